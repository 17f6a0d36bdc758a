"""Dropout layers. Masks come from the default run-time generator, whose state checkpoints put back when they run again."""

from __future__ import annotations

from collections.abc import Callable

from ..tensor.tensor import Tensor
from . import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    _drop: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__} expected p, the probability to drop, in [0, 1], got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return self._drop(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, zero each element with probability p and divide the others by 1 - p; in evaluation, the input.

    Args:
        p: the probability to drop.
        inplace: write into the input.

    Source: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from Overfitting".
    """

    _drop = staticmethod(F.dropout)


class Dropout1d(_Dropout):
    """Dropout of whole channels of (N, C, L) or (C, L)."""

    _drop = staticmethod(F.dropout1d)


class Dropout2d(_Dropout):
    """Dropout of whole channels of (N, C, H, W)."""

    _drop = staticmethod(F.dropout2d)


class Dropout3d(_Dropout):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    _drop = staticmethod(F.dropout3d)


class AlphaDropout(_Dropout):
    """Dropout for SELU networks: dropped elements take SELU's lowest value, and mean and variance are kept.

    Source: Klambauer et al. 2017, "Self-Normalizing Neural Networks".
    """

    _drop = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """AlphaDropout of whole channels of (N, C, ...)."""

    _drop = staticmethod(F.feature_alpha_dropout)
