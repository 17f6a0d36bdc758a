"""Normalization layers: batch, instance, layer, group, RMS and local response."""

from __future__ import annotations

import warnings
from typing import Any

from ..autograd.mode import state
from ..tensor import journal
from ..tensor.creation import empty, ones, zeros
from ..tensor.dtypes import int64
from ..tensor.spatial import batched, unbatched
from ..tensor.tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "LayerNorm", "LocalResponseNorm", "RMSNorm",
]


class Norm(Module):
    """What normalization layers share: a weight of ones and a bias of zeros of one shape, either of which may be missing."""

    keeps_float32 = True
    weight: Parameter | None
    bias: Parameter | None

    def _make_parameters(self, shape: Any, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = Parameter(empty(shape, device=device, dtype=dtype)) if weight else None
        self.bias = Parameter(empty(shape, device=device, dtype=dtype)) if weight and bias else None

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


# Statistics of channels, which may be tracked

class ChannelNorm(Norm):
    """What BatchNorm and InstanceNorm share: an affine map of each channel, and running statistics of each.

    `_ndims` are the numbers of axes that its input may have.
    """

    _ndims: tuple[int, ...]
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool,
                 device: Any, dtype: Any, bias: bool):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._make_parameters(num_features, affine, bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", zeros((), device=device, dtype=int64) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget what was observed: mean 0, variance 1, no batches."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0, and forget the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_axes(self, input: Tensor) -> None:
        if input.ndim not in self._ndims:
            raise ValueError(f"{type(self).__name__} expected an input of {' or '.join(map(str, self._ndims))} axes, got shape "
                             f"{input.shape}")

    def _channels(self, input: Tensor) -> int:
        return input.shape[1]

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")


class BatchNorm(ChannelNorm):
    """What BatchNorm of any number of axes shares."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_axes(input)
        moves = self.training and self.track_running_stats
        seen = moves or not self.training
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / (self.num_batches_tracked.item() + 1) if moves else 0.0
        y = F.batch_norm(input, self.running_mean if seen else None, self.running_var if seen else None, self.weight, self.bias,
                         self.training or self.running_mean is None, momentum, self.eps)
        if moves and not state.recomputing:
            journal.note(self.num_batches_tracked.array)
            self.num_batches_tracked.add_(1)
        return y


class BatchNorm1d(BatchNorm):
    """Normalize each channel over the batch and all positions, then scale and shift it.

    In training by the batch's mean and biased variance, while the running ones move towards them (the variance unbiased);
    in evaluation by the running ones. Half inputs are computed in float32 and may meet float32 parameters.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: how far running statistics move with each batch; None: they are the mean over all batches.
        affine: learn a scale and a shift.
        track_running_stats: keep running statistics; without them evaluation uses the batch's too.
        bias: with affine=True, learn the shift.

    Shapes: (N, C) or (N, C, L), kept.

    Raises:
        ValueError: for another number of axes, or in training with one value per channel.

    Source: Ioffe and Szegedy 2015, "Batch Normalization".
    """

    _ndims = (2, 3)


class BatchNorm2d(BatchNorm):
    """BatchNorm1d over (N, C, H, W)."""

    _ndims = (4,)


class BatchNorm3d(BatchNorm):
    """BatchNorm1d over (N, C, D, H, W)."""

    _ndims = (5,)


class InstanceNorm(ChannelNorm):
    """What InstanceNorm of any number of axes shares."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_axes(input)
        self._check_channels(input)
        axes = self._ndims[-1] - 2
        y = F.instance_norm(batched(input, axes), self.running_mean, self.running_var, self.weight, self.bias,
                            self.training or not self.track_running_stats, self.momentum or 0.0, self.eps)
        return unbatched(y, input, axes)

    def _channels(self, input: Tensor) -> int:
        return input.shape[input.ndim - self._ndims[0]]

    def _check_channels(self, input: Tensor) -> None:
        if self._channels(input) == self.num_features:
            return
        name = type(self).__name__
        if self.affine:
            raise ValueError(f"{name} expected {self.num_features} channels, got an input of shape {input.shape}")
        warnings.warn(f"{name} expected {self.num_features} channels, got an input of shape {input.shape}; without affine=True "
                      f"the number is not used", stacklevel=4)


class InstanceNorm1d(InstanceNorm):
    """Normalize each channel of each sample over its positions.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: how far running statistics move with each batch.
        affine: learn a scale and a shift of each channel.
        track_running_stats: keep running statistics, by which evaluation normalizes.
        bias: with affine=True, learn the shift.

    Shapes: (N, C, L) or (C, L), kept.

    Raises:
        ValueError: for another number of axes, or if there is one position.

    Source: Ulyanov et al. 2016, "Instance Normalization".
    """

    _ndims = (2, 3)


class InstanceNorm2d(InstanceNorm):
    """InstanceNorm1d over (N, C, H, W) or (C, H, W)."""

    _ndims = (3, 4)


class InstanceNorm3d(InstanceNorm):
    """InstanceNorm1d over (N, C, D, H, W) or (C, D, H, W)."""

    _ndims = (4, 5)


# Statistics of a sample

class GroupNorm(Norm):
    """Normalize each group of channels of each sample, then scale and shift each channel.

    Args:
        num_groups: how many groups the channels form; it divides num_channels.
        num_channels: C.
        eps: added to the variance.
        affine: learn a scale and a shift.
        bias: with affine=True, learn the shift.

    Shapes: (N, C, *), kept.

    Source: Wu and He 2018, "Group Normalization".
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
                 dtype: Any = None, *, bias: bool = True):
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm expected num_groups to divide num_channels, got {num_groups} and {num_channels}")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_parameters(num_channels, affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
                f"bias={self.bias is not None}")


class LayerNorm(Norm):
    """Normalize over the last axes, then scale and shift each element of them.

    Args:
        normalized_shape: lengths of those axes, or the length of the last one.
        eps: added to the variance.
        elementwise_affine: learn a scale and a shift.
        bias: with elementwise_affine=True, learn the shift.

    Shapes: (*, *normalized_shape), kept.

    Source: Ba et al. 2016, "Layer Normalization".
    """

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device: Any = None, dtype: Any = None):
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_parameters(self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
                f"bias={self.bias is not None}")


class RMSNorm(Norm):
    """Divide by the root of the mean square over the last axes, then scale each element of them.

    Args:
        normalized_shape: lengths of those axes, or the length of the last one.
        eps: added to the mean square; default the machine epsilon of the dtype computed in.
        elementwise_affine: learn a scale.

    Shapes: (*, *normalized_shape), kept.

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".
    """

    def __init__(self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
                 dtype: Any = None):
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_parameters(self.normalized_shape, elementwise_affine, False, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    """Divide by (k + alpha * mean of squares over `size` neighbouring channels) ** beta.

    Shapes: (N, C, *) with at least three axes, kept.

    Source: Krizhevsky et al. 2012, "ImageNet Classification with Deep Convolutional Neural Networks", section 3.3.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _as_shape(normalized_shape: Any) -> tuple[int, ...]:
    return (normalized_shape,) if hasattr(normalized_shape, "__index__") else tuple(normalized_shape)
