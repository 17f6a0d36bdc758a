"""Padding layers: borders around the last one, two or three axes."""

from __future__ import annotations

from typing import Any

from ..tensor.tensor import Tensor
from . import functional as F
from .module import Module

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    _axes: int
    _mode: str

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * (2 * self._axes)
        if len(self.padding) != 2 * self._axes:
            raise ValueError(f"{type(self).__name__} expected padding as an integer or {2 * self._axes} of them, two for each "
                             f"axis from the last one on, got {padding}")

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A border of one value before and after the last axis.

    Args:
        padding: its width (in elements) at both ends, or (left, right); a negative width cuts off.
        value: what it is filled with.

    Shapes: (*, L) to (*, left + L + right).
    """

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """ConstantPad1d over (*, H, W), with padding (left, right, top, bottom)."""

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """ConstantPad1d over (*, D, H, W), with padding (left, right, top, bottom, front, back)."""

    _axes = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """ConstantPad1d with zeros."""

    _axes = 1


class ZeroPad2d(_ZeroPad):
    """ConstantPad2d with zeros."""

    _axes = 2


class ZeroPad3d(_ZeroPad):
    """ConstantPad3d with zeros."""

    _axes = 3


class ReflectionPad1d(_Pad):
    """A border that mirrors the elements beside the edge one, which is not repeated.

    Args:
        padding: its width (in elements) at both ends, or (left, right); at most L - 1.

    Shapes: (N, C, L) or (C, L) to (N, C, left + L + right) or without N.
    """

    _axes, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """ReflectionPad1d over (N, C, H, W) or (C, H, W), with padding (left, right, top, bottom)."""

    _axes, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """ReflectionPad1d over (N, C, D, H, W) or (C, D, H, W), with padding (left, right, top, bottom, front, back)."""

    _axes, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """A border that repeats the edge elements; arguments and shapes as of ReflectionPad1d, of any width."""

    _axes, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """ReplicationPad1d over (N, C, H, W) or (C, H, W), with padding (left, right, top, bottom)."""

    _axes, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """ReplicationPad1d over (N, C, D, H, W) or (C, D, H, W), with padding (left, right, top, bottom, front, back)."""

    _axes, _mode = 3, "replicate"


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (self._axes + 1, self._axes + 2):
            raise ValueError(f"{type(self).__name__} expected an input of {self._axes + 2} axes, or {self._axes + 1} without a "
                             f"batch, got shape {input.shape}")
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """A border that goes on with the elements of the other end; arguments and shapes as of ReflectionPad1d, of width <= L."""

    _axes = 1


class CircularPad2d(_CircularPad):
    """CircularPad1d over (N, C, H, W) or (C, H, W), with padding (left, right, top, bottom)."""

    _axes = 2


class CircularPad3d(_CircularPad):
    """CircularPad1d over (N, C, D, H, W) or (C, D, H, W), with padding (left, right, top, bottom, front, back)."""

    _axes = 3
