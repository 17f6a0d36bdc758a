"""Batch and instance normalization that learn the number of channels from the first input."""

from __future__ import annotations

from typing import Any

from ..tensor.tensor import Tensor
from .lazy import LazyModule
from .normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    ChannelNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from .parameter import is_uninitialized

__all__ = ["LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
           "LazyInstanceNorm3d"]


class _LazyNorm(LazyModule, ChannelNorm):

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
                 device: Any = None, dtype: Any = None, *, bias: bool = True):
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.defer("weight", "bias", "running_mean", "running_var")

    def initialize_parameters(self, input: Tensor) -> None:
        """Take num_features from the input, or from what was loaded."""
        self._check_axes(input)
        known = [t for t in (self.weight, self.running_mean) if t is not None and not is_uninitialized(t)]
        self.num_features = known[0].shape[0] if known else self._channels(input)
        shape = (self.num_features,)
        self.materialize(weight=shape, bias=shape, running_mean=shape, running_var=shape)


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """BatchNorm1d whose num_features are the channels of the first input. Arguments and shapes as for BatchNorm1d."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """BatchNorm2d whose num_features are the channels of the first input. Arguments and shapes as for BatchNorm2d."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """BatchNorm3d whose num_features are the channels of the first input. Arguments and shapes as for BatchNorm3d."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """InstanceNorm1d whose num_features are the channels of the first input. As in PyTorch, and unlike InstanceNorm1d, it is
    affine and tracks statistics by default."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """LazyInstanceNorm1d over (N, C, H, W) or (C, H, W)."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """LazyInstanceNorm1d over (N, C, D, H, W) or (C, D, H, W)."""

    cls_to_become = InstanceNorm3d
