"""Pooling layers: the functions of minidl.nn.functional with their arguments kept.

Each family says once how its arguments are kept and used; its members differ in the number of spatial axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor.tensor import Tensor
from . import functional as F
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d",
    "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]


class _Pool(Module):
    _pool: Callable[..., Any]    # the function of the class
    _shown: tuple[str, ...]      # the arguments that repr shows

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)


# Maxima

class _MaxPool(_Pool):
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
                 ceil_mode: bool = False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._pool(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
                          self.return_indices)


class MaxPool1d(_MaxPool):
    """The largest element of each window.

    Args:
        kernel_size: length of a window; for more axes a number for all of them, or one for each.
        stride: the distance between windows; default kernel_size.
        padding: how far windows reach over both ends; what lies there is never the largest.
        dilation: the distance between a window's elements.
        return_indices: give (values, where they lie in the flattened spatial axes), for MaxUnpool.
        ceil_mode: a last window that reaches over the end counts if it begins before it.

    Shapes: (N, C, L) or (C, L) to (N, C, L') or (C, L').
    """

    _pool = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """MaxPool1d over (N, C, H, W) or (C, H, W)."""

    _pool = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """MaxPool1d over (N, C, D, H, W) or (C, D, H, W)."""

    _pool = staticmethod(F.max_pool3d)


class _MaxUnpool(_Pool):
    _shown = ("kernel_size", "stride", "padding")
    _axes: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        super().__init__()
        self.kernel_size = _per_axis(kernel_size, self._axes)
        self.stride = self.kernel_size if stride is None else _per_axis(stride, self._axes)
        self.padding = _per_axis(padding, self._axes)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return self._pool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """Zeros with each element where MaxPool1d found it; called as `unpool(values, indices, output_size=None)`.

    Args:
        kernel_size, stride, padding: those of the MaxPool1d, which had return_indices=True.

    Shapes: (N, C, L) or (C, L) to (N, C, L'), L' = (L - 1) * stride + kernel_size - 2 * padding unless output_size, the
    pooled input's spatial lengths or whole shape, says otherwise.
    """

    _axes = 1
    _pool = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """MaxUnpool1d over (N, C, H, W) or (C, H, W)."""

    _axes = 2
    _pool = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """MaxUnpool1d over (N, C, D, H, W) or (C, D, H, W)."""

    _axes = 3
    _pool = staticmethod(F.max_unpool3d)


# Means

class AvgPool1d(_Pool):
    """The mean of each window.

    Args:
        kernel_size: length of a window.
        stride: the distance between windows; default kernel_size.
        padding: zeros at both ends.
        ceil_mode: a last window that reaches over the end counts if it begins before it.
        count_include_pad: the padding's zeros are counted in the mean.

    Shapes: (N, C, L) or (C, L) to (N, C, L') or (C, L').
    """

    _shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True):
        super().__init__()
        self.kernel_size = _per_axis(kernel_size, 1)
        self.stride = self.kernel_size if stride is None else _per_axis(stride, 1)
        self.padding = _per_axis(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPool(_Pool):
    _shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                          self.divisor_override)


class AvgPool2d(_AvgPool):
    """AvgPool1d over (N, C, H, W) or (C, H, W).

    Args:
        divisor_override: what sums are divided by instead of the number of elements.
    """

    _pool = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """AvgPool2d over (N, C, D, H, W) or (C, D, H, W)."""

    _pool = staticmethod(F.avg_pool3d)


class _LPPool(_Pool):
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPool):
    """The p-norm of each window, with p = norm_type.

    Args:
        norm_type: p.
        kernel_size: length of a window; for more axes a number for all of them, or one for each.
        stride: the distance between windows; default kernel_size.
        ceil_mode: a last window that reaches over the end counts, scaled up as if it were whole.

    Shapes: (N, C, L) or (C, L) to (N, C, L') or (C, L').
    """

    _pool = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """LPPool1d over (N, C, H, W) or (C, H, W)."""

    _pool = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """LPPool1d over (N, C, D, H, W) or (C, D, H, W)."""

    _pool = staticmethod(F.lp_pool3d)


# Windows by the size of the result

class _AdaptiveAvgPool(_Pool):
    _shown = ("output_size",)

    def __init__(self, output_size: Any):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of output_size windows that cover the input evenly.

    Args:
        output_size: a number for each spatial axis, or one for all; None keeps an axis as it is.

    Shapes: (N, C, L) or (C, L) to (N, C, output_size) or (C, output_size).
    """

    _pool = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """AdaptiveAvgPool1d over (N, C, H, W) or (C, H, W)."""

    _pool = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """AdaptiveAvgPool1d over (N, C, D, H, W) or (C, D, H, W)."""

    _pool = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPool(_Pool):
    _shown = ("output_size",)

    def __init__(self, output_size: Any, return_indices: bool = False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return self._pool(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of output_size windows that cover the input evenly.

    Args:
        output_size: a number for each spatial axis, or one for all; None keeps an axis as it is.
        return_indices: give (values, where they lie in the flattened spatial axes).

    Shapes: (N, C, L) or (C, L) to (N, C, output_size) or (C, output_size).
    """

    _pool = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """AdaptiveMaxPool1d over (N, C, H, W) or (C, H, W)."""

    _pool = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """AdaptiveMaxPool1d over (N, C, D, H, W) or (C, D, H, W)."""

    _pool = staticmethod(F.adaptive_max_pool3d)


def _per_axis(value: Any, axes: int) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes
