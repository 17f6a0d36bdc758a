"""Convolutional layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tensor.creation import empty
from ..tensor.spatial import lengths_per_axis
from ..tensor.tensor import Tensor
from . import functional, init
from .module import Module
from .parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "DepthwiseSeparableConv2d"]

_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """What convolutions and transposed convolutions share; a subclass says in how many axes and with which function."""

    bias: Parameter | None
    padding: tuple | str
    output_padding: tuple
    _axes: int
    _function: Callable[..., Tensor]

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                 output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any, dtype: Any) -> None:
        super().__init__()
        name = self._name()
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{name} expected a positive number of groups that divides both in_channels and out_channels, got "
                             f"{groups} for {in_channels} and {out_channels}")
        if padding_mode not in _MODES:
            raise ValueError(f"{name} expected padding_mode {', '.join(_MODES)}, got {padding_mode!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = lengths_per_axis(name, "kernel_size", kernel_size, self._axes, 1)
        self.stride = lengths_per_axis(name, "stride", stride, self._axes, 1)
        self.padding = padding if isinstance(padding, str) else lengths_per_axis(name, "padding", padding, self._axes, 0)
        self.dilation = lengths_per_axis(name, "dilation", dilation, self._axes, 1)
        self.output_padding = lengths_per_axis(name, "output_padding", output_padding, self._axes, 0)
        self.groups = groups
        self.padding_mode = padding_mode
        self.weight = Parameter(empty(self._weight_shape(), device=device, dtype=dtype))
        self.bias = Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def _weight_shape(self) -> tuple:
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Draw weight and bias uniform over +-1 / sqrt(weight.shape[1] * elements of the kernel)."""
        init.default_(self.weight, self.bias)

    def extra_repr(self) -> str:
        ones, zeros = (1,) * self._axes, (0,) * self._axes
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        shown = (("padding", zeros), ("dilation", ones), ("output_padding", zeros), ("groups", 1))
        text += "".join(f", {name}={getattr(self, name)}" for name, usual in shown if getattr(self, name) != usual)
        text += ", bias=False" if self.bias is None else ""
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class _Conv(_Convolution):

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"{self._name()} expected padding 'same', 'valid', a number or a tuple, got {padding!r}")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode,
                         device, dtype)
        if padding == "same" and max(self.stride) > 1:
            raise ValueError(f"{self._name()} expected stride 1 with padding='same', got {self.stride}; give the padding as "
                             f"numbers")

    def _weight_shape(self) -> tuple:
        return self.out_channels, self.in_channels // self.groups, *self.kernel_size

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of a batch, or of one image without a batch axis."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = functional.pad(input, self._pad_widths(), self.padding_mode)
            padding = 0
        return type(self)._function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _pad_widths(self) -> list[int]:
        """Widths before and after each axis, the last axis first; an odd element more of "same" goes to the end."""
        if self.padding == "same":
            total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
        else:
            total = [0] * self._axes if isinstance(self.padding, str) else [2 * p for p in self.padding]
        return [width for t in reversed(total) for width in (t // 2, t - t // 2)]


class Conv1d(_Conv):
    """Cross-correlation over one spatial axis.

    Args:
        padding: on both sides; "valid" for none, "same" for as much as keeps the length (with stride 1 only).
        groups: the channels are split into so many groups, each seen by its own outputs.
        bias: whether there is one.
        padding_mode: what padding consists of: "zeros", "reflect", "replicate" or "circular".

    Shapes: input (N, C, L) or (C, L), weight (O, C / groups, kernel), bias (O,), result (N, O, L') or (O, L') with
    L' = (L + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1.

    Raises:
        ValueError: if groups do not divide the channels, or for an unknown padding or padding_mode.
    """

    _axes = 1
    _function = functional.conv1d


class Conv2d(_Conv):
    """Cross-correlation over two spatial axes; numbers stand for both axes. Arguments and lengths as for Conv1d.

    Shapes: input (N, C, H, W) or (C, H, W), weight (O, C / groups, kH, kW), bias (O,), result (N, O, H', W').
    """

    _axes = 2
    _function = functional.conv2d


class Conv3d(_Conv):
    """Cross-correlation over three spatial axes; numbers stand for all of them. Arguments and lengths as for Conv1d.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), weight (O, C / groups, kD, kH, kW), bias (O,), result (N, O, D', H', W').
    """

    _axes = 3
    _function = functional.conv3d


class _ConvTranspose(_Convolution):

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
                 device: Any = None, dtype: Any = None) -> None:
        if padding_mode != "zeros":
            raise ValueError(f"{self._name()} expected padding_mode 'zeros', got {padding_mode!r}")
        if isinstance(padding, str):
            raise TypeError(f"{self._name()} expected padding as a number or a tuple, got {padding!r}")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
                         padding_mode, device, dtype)

    def _weight_shape(self) -> tuple:
        return self.in_channels, self.out_channels // self.groups, *self.kernel_size

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The transposed convolution of a batch, or of one image without a batch axis.

        Args:
            output_size: the result's spatial lengths, or its whole shape, in place of output_padding.

        Raises:
            ValueError: for an output_size that no output_padding below the stride gives.
        """
        extra = self.output_padding if output_size is None else self._extra(input, tuple(output_size))
        return type(self)._function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra(self, input: Tensor, size: tuple) -> tuple:
        if len(size) not in (self._axes, input.ndim):
            raise ValueError(f"{self._name()} expected output_size of {self._axes} or {input.ndim} lengths for input of shape "
                             f"{input.shape}, got {size}")
        size = size[-self._axes:]
        least = tuple((n - 1) * s - 2 * int(p) + d * (k - 1) + 1 for n, s, p, d, k in zip(
            input.shape[-self._axes:], self.stride, self.padding, self.dilation, self.kernel_size))
        extra = tuple(wanted - n for wanted, n in zip(size, least))
        if any(not 0 <= e < s for e, s in zip(extra, self.stride)):
            most = tuple(n + s - 1 for n, s in zip(least, self.stride))
            raise ValueError(f"{self._name()} expected output_size from {least} to {most} for input of shape {input.shape}, "
                             f"got {size}")
        return extra


class ConvTranspose1d(_ConvTranspose):
    """The gradient of Conv1d for its input, as a layer: spreads each element over a window of the result.

    Args:
        padding: how much is cut off the result on both sides.
        output_padding: how much longer the result is at the end; less than the stride or the dilation.
        groups: the channels are split into so many groups, each with its own outputs.
        bias: whether there is one.
        padding_mode: "zeros" only.

    Shapes: input (N, C, L) or (C, L), weight (C, O / groups, kernel), bias (O,), result (N, O, L') or (O, L') with
    L' = (L - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1.

    Raises:
        ValueError: if groups do not divide the channels, or for another padding_mode.
    """

    _axes = 1
    _function = functional.conv_transpose1d


class ConvTranspose2d(_ConvTranspose):
    """The gradient of Conv2d for its input, as a layer; arguments and lengths as for ConvTranspose1d.

    Shapes: input (N, C, H, W) or (C, H, W), weight (C, O / groups, kH, kW), bias (O,), result (N, O, H', W').
    """

    _axes = 2
    _function = functional.conv_transpose2d


class ConvTranspose3d(_ConvTranspose):
    """The gradient of Conv3d for its input, as a layer; arguments and lengths as for ConvTranspose1d.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), weight (C, O / groups, kD, kH, kW), bias (O,), result (N, O, D', H', W').
    """

    _axes = 3
    _function = functional.conv_transpose3d


class DepthwiseSeparableConv2d(Module):
    """A convolution of each channel by itself (`depthwise`), then one with a kernel of one element across them (`pointwise`).

    Args:
        kernel_size, stride, padding, dilation, padding_mode: of the depthwise convolution, as for Conv2d.
        bias: whether both have one.

    Shapes: input (N, C, H, W) or (C, H, W), result (N, O, H', W') or (O, H', W').

    Source: Howard et al. (2017), MobileNets, section 3.1, without what is between the two there.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.depthwise = Conv2d(in_channels, in_channels, kernel_size, stride, padding, dilation, in_channels, bias,
                                padding_mode, device, dtype)
        self.pointwise = Conv2d(in_channels, out_channels, 1, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Both convolutions."""
        return self.pointwise(self.depthwise(input))
