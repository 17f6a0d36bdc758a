"""Convolutions, transposed convolutions, and their windows as columns (unfold, fold). Exported by minidl.nn.functional.

Convolution, its gradient for the input (which is the transposed convolution) and its gradient for the weight are linear in
each of their arguments, and the gradients of each are the other two: three ops that need no further ones at any order.
"""

from __future__ import annotations

from ...autograd.op import Cast
from .. import dtypes
from ..apply import composed, op
from ..spatial import batched, lengths_per_axis, unbatched
from .padding import pad
from .shape import reshape

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fold", "unfold"]


@op(Cast.HALF)
def _convolution(xp, input, weight, bias, *, size, how):
    length, kernel = input.shape[2:], weight.shape[2:]
    others = (0, *range(2, input.ndim))
    return xp.convolution(input, weight, bias, size, *how), (
        lambda g: xp.convolution_input(g, weight, None, length, *how),
        lambda g: xp.convolution_weight(g, input, kernel, *how),
        lambda g: xp.sum(g, others))


@op(Cast.HALF)
def _convolution_input(xp, g, weight, bias, *, length, how):
    size, kernel = g.shape[2:], weight.shape[2:]
    others = (0, *range(2, g.ndim))
    return xp.convolution_input(g, weight, bias, length, *how), (
        lambda h: xp.convolution(h, weight, None, size, *how),
        lambda h: xp.convolution_weight(g, h, kernel, *how),
        lambda h: xp.sum(h, others))


@op(Cast.HALF)
def _convolution_weight(xp, g, input, *, kernel, how):
    length, size = input.shape[2:], g.shape[2:]
    return xp.convolution_weight(g, input, kernel, *how), (
        lambda h: xp.convolution(input, h, None, size, *how),
        lambda h: xp.convolution_input(g, h, None, length, *how))


@composed(Cast.HALF)
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation over one spatial axis.

    Args:
        padding: zeros on both sides; "valid" for none, "same" for as many as keep the length (with stride 1 only).
        groups: the channels are split into so many groups, each seen by its own outputs.

    Shapes: input (N, C, L) or (C, L), weight (O, C / groups, kernel), bias (O,), result (N, O, L') or (O, L').
    """
    return _convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@composed(Cast.HALF)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation over two spatial axes; numbers stand for both axes. Arguments as for conv1d.

    Shapes: input (N, C, H, W) or (C, H, W), weight (O, C / groups, kH, kW), bias (O,), result (N, O, H', W').
    """
    return _convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@composed(Cast.HALF)
def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation over three spatial axes; numbers stand for all of them. Arguments as for conv1d.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), weight (O, C / groups, kD, kH, kW), bias (O,), result (N, O, D', H', W').
    """
    return _convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@composed(Cast.HALF)
def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The gradient of conv1d for its input, as a layer: spreads each element over a window of the result.

    Args:
        padding: how much is cut off the result on both sides.
        output_padding: how much longer the result is at the end; less than the stride or the dilation.

    Shapes: input (N, C, L) or (C, L), weight (C, O / groups, kernel), bias (O,), result (N, O, L') or (O, L') with
    L' = (L - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1.
    """
    return _transpose("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@composed(Cast.HALF)
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The gradient of conv2d for its input, as a layer; arguments and lengths as for conv_transpose1d.

    Shapes: input (N, C, H, W) or (C, H, W), weight (C, O / groups, kH, kW), bias (O,), result (N, O, H', W').
    """
    return _transpose("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@composed(Cast.HALF)
def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The gradient of conv3d for its input, as a layer; arguments and lengths as for conv_transpose1d.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), weight (C, O / groups, kD, kH, kW), bias (O,), result
    (N, O, D', H', W').
    """
    return _transpose("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _convolve(name, axes, input, weight, bias, stride, padding, dilation, groups):
    stride = lengths_per_axis(name, "stride", stride, axes, 1)
    dilation = lengths_per_axis(name, "dilation", dilation, axes, 1)
    _check_shapes(name, axes, input, weight, groups)
    if input.shape[-axes - 1] != weight.shape[1] * groups:
        raise RuntimeError(f"{name} expected input of {weight.shape[1] * groups} channels for a weight of shape {weight.shape} "
                           f"and {groups} group(s), got shape {input.shape}")
    _check_bias(name, bias, weight.shape[0])
    if isinstance(padding, str):
        input, padding = _named_padding(name, input, weight.shape[2:], stride, padding, dilation)
    else:
        padding = lengths_per_axis(name, "padding", padding, axes, 0)
    size = _count_windows(input.shape[-axes:], weight.shape[2:], stride, padding, dilation)
    if min(size) < 1:
        raise RuntimeError(f"{name} expected a padded input at least as large as the kernel's reach, got shape {input.shape} "
                           f"with padding {padding} for a weight of shape {weight.shape} with dilation {dilation}")
    out = _convolution(batched(input, axes), weight, bias, size=size, how=(stride, padding, dilation, groups))
    return unbatched(out, input, axes)


def _named_padding(name, input, kernel, stride, padding, dilation):
    """The input and the symmetric padding that "same" or "valid" stand for; an odd zero more goes to the end."""
    if padding == "valid":
        return input, (0,) * len(kernel)
    if padding != "same":
        raise RuntimeError(f"{name} expected padding 'same', 'valid', a number or a tuple, got {padding!r}")
    if max(stride) > 1:
        raise RuntimeError(f"{name} expected stride 1 with padding='same', got {stride}; give the padding as numbers")
    total = [d * (k - 1) for d, k in zip(dilation, kernel)]
    if any(t % 2 for t in total):
        input = pad(input, [width for t in reversed(total) for width in (0, t % 2)])
    return input, tuple(t // 2 for t in total)


def _transpose(name, axes, input, weight, bias, stride, padding, output_padding, groups, dilation):
    stride = lengths_per_axis(name, "stride", stride, axes, 1)
    padding = lengths_per_axis(name, "padding", padding, axes, 0)
    extra = lengths_per_axis(name, "output_padding", output_padding, axes, 0)
    dilation = lengths_per_axis(name, "dilation", dilation, axes, 1)
    _check_shapes(name, axes, input, weight, groups)
    if input.shape[-axes - 1] != weight.shape[0]:
        raise RuntimeError(f"{name} expected input of {weight.shape[0]} channels for a weight of shape {weight.shape}, got "
                           f"shape {input.shape}")
    _check_bias(name, bias, weight.shape[1] * groups)
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation)):
        raise RuntimeError(f"{name} expected output_padding less than the stride or the dilation, got {extra} with stride "
                           f"{stride} and dilation {dilation}")
    length = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in zip(
        input.shape[-axes:], stride, padding, dilation, weight.shape[2:], extra))
    if min(length) < 1:
        raise RuntimeError(f"{name} expected padding that leaves a result, got spatial lengths {length} from input of shape "
                           f"{input.shape}, padding {padding}")
    out = _convolution_input(batched(input, axes), weight, bias, length=length, how=(stride, padding, dilation, groups))
    return unbatched(out, input, axes)


def _check_shapes(name, axes, input, weight, groups):
    if isinstance(groups, bool) or not hasattr(groups, "__index__"):
        raise TypeError(f"{name} expected groups to be an integer, got {groups!r}")
    if groups < 1:
        raise RuntimeError(f"{name} expected a positive number of groups, got {groups}")
    if input.ndim not in (axes + 1, axes + 2):
        raise RuntimeError(f"{name} expected input of {axes + 2} axes, or {axes + 1} without a batch, got shape {input.shape}")
    if weight.ndim != axes + 2:
        raise RuntimeError(f"{name} expected a weight of {axes + 2} axes, got shape {weight.shape}")
    if input.dtype == dtypes.bool_:
        raise NotImplementedError(f"{name} expected numbers, got bool; cast the input first")
    if 0 in input.shape[-axes:] or 0 in weight.shape[2:]:
        raise RuntimeError(f"{name} expected spatial axes that are not empty, got input of shape {input.shape} and weight of "
                           f"shape {weight.shape}")
    if weight.shape[0] < groups or weight.shape[0] % groups:
        raise RuntimeError(f"{name} expected a weight whose first axis {groups} group(s) divide, got shape {weight.shape}")


def _check_bias(name, bias, channels):
    if bias is not None and bias.shape != (channels,):
        raise RuntimeError(f"{name} expected a bias of shape {(channels,)}, got {bias.shape}")


def _count_windows(length, kernel, stride, padding, dilation):
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(length, kernel, stride, padding, dilation))


# Windows as columns

@op(Cast.KEEP)
def _unfold(xp, x, *, size, how):
    length = x.shape[2:]
    return xp.unfold(x, size, *how), lambda g: xp.fold(g, length, *how)


@op(Cast.KEEP)
def _fold(xp, columns, *, length, how):
    size = columns.shape[3:]
    return xp.fold(columns, length, *how), lambda g: xp.unfold(g, size, *how)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The elements of each window as a column.

    Shapes: input (N, C, H, W) or (C, H, W), result (N, C * kH * kW, number of windows) or without N.
    """
    kernel, stride, padding, dilation = _window_arguments("unfold", kernel_size, stride, padding, dilation)
    if input.ndim not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError(f"unfold expected input (N, C, H, W) or (C, H, W) of which only N may be 0, got shape {input.shape}")
    x = batched(input, 2)
    size = _count_windows(x.shape[2:], kernel, stride, padding, dilation)
    if min(size) < 1:
        raise RuntimeError(f"unfold expected a padded input at least as large as a window, got shape {input.shape}, "
                           f"kernel_size {kernel}, padding {padding}, dilation {dilation}")
    out = _unfold(x, size=size, how=(kernel, stride, padding, dilation))
    rows, columns = x.shape[1] * kernel[0] * kernel[1], size[0] * size[1]
    return reshape(out, (*input.shape[:-3], rows, columns))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns added up where their windows lie; the gradient of unfold.

    Shapes: input (N, C * kH * kW, number of windows) or without N, result (N, C, *output_size) or (C, *output_size).
    """
    kernel, stride, padding, dilation = _window_arguments("fold", kernel_size, stride, padding, dilation)
    length = lengths_per_axis("fold", "output_size", output_size, 2, None)
    if isinstance(output_size, (tuple, list)) and len(output_size) != 2:
        raise RuntimeError(f"fold expected output_size to be an integer or two of them, got {output_size!r}")
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(f"fold expected input (N, C * kernel elements, windows) or without N, of which only N may be 0, got "
                           f"shape {input.shape}")
    rows, columns = input.shape[-2:]
    elements = kernel[0] * kernel[1]
    size = _count_windows(length, kernel, stride, padding, dilation)
    if rows % elements:
        raise RuntimeError(f"fold expected columns of a multiple of {elements} elements for kernel_size {kernel}, got shape "
                           f"{input.shape}")
    if min(size) < 1 or size[0] * size[1] != columns:
        raise RuntimeError(f"fold expected as many columns as an output of size {length} has windows, {size[0]} * {size[1]}, "
                           f"got shape {input.shape}")
    x = reshape(input, (input.shape[0] if input.ndim == 3 else 1, rows // elements, elements, *size))
    out = _fold(x, length=length, how=(kernel, stride, padding, dilation))
    return out if input.ndim == 3 else reshape(out, out.shape[1:])


def _window_arguments(name, kernel_size, stride, padding, dilation):
    for argument in (kernel_size, stride, padding, dilation):
        if isinstance(argument, (tuple, list)) and len(argument) != 2:
            raise RuntimeError(f"{name} expected an integer or two of them, got {argument!r}")
    return (lengths_per_axis(name, "kernel_size", kernel_size, 2, 1), lengths_per_axis(name, "stride", stride, 2, 1),
            lengths_per_axis(name, "padding", padding, 2, 0), lengths_per_axis(name, "dilation", dilation, 2, 1))


METHODS = ()
IN_PLACE = ()
ON_TENSORS = {
    "convolution": lambda x, w, bias, size, *how: _convolution(x, w, bias, size=size, how=how),
    "convolution_input": lambda g, w, bias, length, *how: _convolution_input(g, w, bias, length=length, how=how),
    "convolution_weight": lambda g, x, kernel, *how: _convolution_weight(g, x, kernel=kernel, how=how),
    "unfold": lambda x, size, *how: _unfold(x, size=size, how=how),
    "fold": lambda columns, length, *how: _fold(columns, length=length, how=how),
}
