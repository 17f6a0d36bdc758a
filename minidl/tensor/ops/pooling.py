"""Pooling over windows: maxima, means, p-norms, and the inverse of a maximum. Exported by minidl.nn.functional.

The gradient of a maximum puts elements where the maxima were, the gradient of that takes them from there, and so on: two
ops closed under differentiation. Averaging and spreading are another such pair.
"""

from __future__ import annotations

import math

from ...autograd.mode import state
from ...autograd.op import Cast
from .. import dtypes
from ..apply import composed, op
from ..pooling_arguments import adaptive_size, check_dtype, check_input, count_windows, window_arguments
from ..spatial import lengths_per_axis
from .arithmetic import abs, neg
from .pointwise import pow
from .shape import cast_to, reshape

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d",
    "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]


# Maxima

@op(Cast.KEEP)
def _max_pool(xp, x, *, size, how):
    length = x.shape[2:]
    value, places = xp.max_pool(x, size, how)
    return value, lambda g: xp.put_at_taps(g, places, length, how)


@op(Cast.KEEP)
def _max_pool_indices(xp, x, *, size, how):
    length = x.shape[2:]
    value, places = xp.max_pool(x, size, how)
    return (value, xp.places_as_indices(places, length, how)), lambda g: xp.put_at_taps(g[0], places, length, how)


@op(Cast.KEEP)
def _max_pool_values(xp, x, *, size, how):
    return xp.max_pool_values(x, size, how), None


@op(Cast.KEEP)
def _put_at_taps(xp, g, *, places, length, how):
    return xp.put_at_taps(g, places, length, how), lambda h: xp.take_at_taps(h, places, how)


@op(Cast.KEEP)
def _take_at_taps(xp, x, *, places, how):
    length = x.shape[2:]
    return xp.take_at_taps(x, places, how), lambda g: xp.put_at_taps(g, places, length, how)


@op(Cast.KEEP)
def _adaptive_max_pool(xp, x, *, size):
    shape, planes = x.shape, (x.shape[0] * x.shape[1], math.prod(x.shape[2:]))
    value, indices = xp.adaptive_max_pool(x, size)
    index = _in_planes(xp, planes[0], indices, size)
    rows = index[1].shape
    return (value, indices), lambda g: xp.reshape(xp.index_add(planes, index, xp.reshape(g[0], rows)), shape)


@op(Cast.KEEP)
def _max_unpool(xp, x, *, indices, length):
    shape, planes = x.shape, (x.shape[0] * x.shape[1], math.prod(length))
    index = _in_planes(xp, planes[0], indices, shape[2:])
    value = xp.replaced_at(xp.zeros(planes, x.dtype), index, xp.reshape(x, index[1].shape))
    return xp.reshape(value, (*shape[:2], *length)), lambda g: xp.reshape(xp.pick(xp.reshape(g, planes), index), shape)


def _in_planes(xp, planes, indices, size):
    """The index of elements (planes, elements of a plane), from positions in each plane."""
    return xp.reshape(xp.arange(planes), (planes, 1)), xp.reshape(indices, (planes, math.prod(size)))


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window.

    Args:
        stride: kernel_size if it is not given.
        padding: how far windows reach over both ends; what lies there is never the largest.
        ceil_mode: a last window that reaches over the end counts if it begins before it.
        return_indices: also give where the elements lie in the flattened spatial axes, int64; the first of equal ones.

    Shapes: input (N, C, L) or (C, L), result (N, C, L') or (C, L') with L' = (L + 2 * padding - dilation * (kernel_size - 1)
    - 1) / stride + 1, rounded down, or up in ceil_mode.
    """
    return _max("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window of (N, C, H, W) or (C, H, W); numbers stand for both axes. As max_pool1d."""
    return _max("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window of (N, C, D, H, W) or (C, D, H, W); numbers stand for all axes. As max_pool1d."""
    return _max("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool1d with return_indices=True."""
    return _max("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool2d with return_indices=True."""
    return _max("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool3d with return_indices=True."""
    return _max("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The largest element of each of output_size windows that cover the input evenly.

    Args:
        output_size: one number for each spatial axis, or one for all; None keeps an axis as it is.
        return_indices: also give where the elements lie in the flattened spatial axes, int64.

    Shapes: input (N, C, L) or (C, L), result (N, C, output_size) or (C, output_size).
    """
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """adaptive_max_pool1d over (N, C, H, W) or (C, H, W)."""
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """adaptive_max_pool1d over (N, C, D, H, W) or (C, D, H, W)."""
    return _adaptive_max("adaptive_max_pool3d", 3, input, output_size, return_indices)


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool1d with return_indices=True."""
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, True)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool2d with return_indices=True."""
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, True)


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool3d with return_indices=True."""
    return _adaptive_max("adaptive_max_pool3d", 3, input, output_size, True)


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with each element where max_pool1d found it.

    Args:
        indices: from max_pool1d with return_indices=True and the same window arguments.
        output_size: the spatial lengths of the result, or its whole shape, where several are pooled to the input's.

    Shapes: input (N, C, L) or (C, L), result (N, C, L') with L' = (L - 1) * stride + kernel_size - 2 * padding.
    """
    return _unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """max_unpool1d over (N, C, H, W) or (C, H, W)."""
    return _unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """max_unpool1d over (N, C, D, H, W) or (C, D, H, W)."""
    return _unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


def _max(name, axes, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    how = window_arguments(name, axes, kernel_size, stride, padding, dilation)
    check_input(name, axes, input)
    check_dtype(name, input, (*dtypes.FLOATING, *dtypes.INTEGER))
    length = input.shape[-axes:]
    size = count_windows(name, length, how, ceil_mode)
    if any(p and d > n for n, p, d in zip(length, how[2], how[3])):
        raise RuntimeError(f"{name} expected dilation of at most the input's lengths {length}, got {how[3]}: with padding "
                           f"{how[2]} there are windows without an element")
    return _maxima(_batched(input, axes), input.ndim, size, how, return_indices)


def _maxima(x, ndim, size, how, return_indices):
    if return_indices:
        value, indices = _max_pool_indices(x, size=size, how=how)
        return (value, indices) if ndim == x.ndim else (reshape(value, value.shape[1:]), reshape(indices, indices.shape[1:]))
    pool = _max_pool if x.requires_grad and state.grad else _max_pool_values
    return _unbatched(pool(x, size=size, how=how), ndim)


def _adaptive_max(name, axes, input, output_size, return_indices):
    size = adaptive_size(name, axes, input, output_size, 1)
    x = _batched(input, axes)
    if all(s and n % s == 0 for n, s in zip(x.shape[2:], size)):
        kernel, zeros, ones = tuple(n // s for n, s in zip(x.shape[2:], size)), (0,) * axes, (1,) * axes
        return _maxima(x, input.ndim, size, (kernel, kernel, zeros, ones), return_indices)
    value, indices = _adaptive_max_pool(x, size=size)
    value = _unbatched(value, input.ndim)
    return (value, _unbatched(indices, input.ndim)) if return_indices else value


def _unpool(name, axes, input, indices, kernel_size, stride, padding, output_size):
    kernel, stride, padding, _ = window_arguments(name, axes, kernel_size, stride, padding, 1, check=False)
    if indices.dtype != dtypes.int64:
        raise RuntimeError(f"{name} expected indices of int64, got {dtypes.dtype_name(indices.dtype)}; cast them with .long()")
    if input.ndim not in (axes + 1, axes + 2) or 0 in input.shape[-axes - 1:]:
        raise RuntimeError(f"{name} expected input of {axes + 2} axes, or {axes + 1} without a batch, of which only the batch "
                           f"may be empty, got shape {input.shape}")
    if indices.shape != input.shape:
        raise RuntimeError(f"{name} expected indices of the input's shape {input.shape}, got {indices.shape}")
    length = _unpooled_size(name, input.shape[-axes:], kernel, stride, padding, output_size)
    planes = math.prod(length)
    bad = input.backend.out_of_range(indices.array, 0, planes)
    if bad is not None:
        raise RuntimeError(f"{name} expected indices from 0 to {planes - 1} for an output of lengths {length}, got {bad}; give "
                           f"the output_size that was pooled")
    x = _batched(input, axes)
    return _unbatched(_max_unpool(x, indices=indices.array, length=length), input.ndim)


def _unpooled_size(name, length, kernel, stride, padding, output_size):
    default = tuple((n - 1) * s + k - 2 * p for n, s, k, p in zip(length, stride, kernel, padding))
    size = default
    if output_size is not None:
        size = tuple(output_size)
        size = size[2:] if len(size) == len(kernel) + 2 else size
        if len(size) != len(kernel):
            raise ValueError(f"{name} expected output_size of {len(kernel)} or {len(kernel) + 2} lengths, got {output_size}")
        if any(not d - s < n < d + s for n, d, s in zip(size, default, stride)):
            raise ValueError(f"{name} expected an output_size less than the stride {stride} away from {default}, got {size}")
    if min(size) < 0:
        raise ValueError(f"{name} expected arguments that give a result of positive lengths, got {size}")
    return size


# Means

@op(Cast.KEEP)
def _average(xp, x, *, size, windows, counts):
    length = x.shape[2:]
    return xp.average_windows(x, size, windows, counts), lambda g: xp.spread_windows(g, length, windows, counts)


@op(Cast.KEEP)
def _spread(xp, g, *, length, windows, counts):
    size = g.shape[2:]
    return xp.spread_windows(g, length, windows, counts), lambda h: xp.average_windows(h, size, windows, counts)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of each window.

    Args:
        stride: kernel_size if it is not given.
        padding: zeros on both sides.
        ceil_mode: a last window that reaches over the end counts if it begins before it; what lies beyond the padding is not
            counted.
        count_include_pad: the padding's zeros are counted in the mean.

    Shapes: input (N, C, L) or (C, L), result (N, C, L') or (C, L') with L' = (L + 2 * padding - kernel_size) / stride + 1,
    rounded down, or up in ceil_mode.
    """
    return _avg("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    """The mean of each window of (N, C, H, W) or (C, H, W), or its sum over divisor_override. As avg_pool1d."""
    return _avg("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W), or its sum over divisor_override. As avg_pool1d."""
    return _avg("avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool1d(input, output_size):
    """The mean of each of output_size windows that cover the input evenly.

    Args:
        output_size: one number for each spatial axis, or one for all; None keeps an axis as it is.

    Shapes: input (N, C, L) or (C, L), result (N, C, output_size) or (C, output_size).
    """
    return _adaptive_avg("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input, output_size):
    """adaptive_avg_pool1d over (N, C, H, W) or (C, H, W)."""
    return _adaptive_avg("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_avg_pool3d(input, output_size):
    """adaptive_avg_pool1d over (N, C, D, H, W) or (C, D, H, W)."""
    return _adaptive_avg("adaptive_avg_pool3d", 3, input, output_size)


def _avg(name, axes, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    how = window_arguments(name, axes, kernel_size, stride, padding, 1)
    check_input(name, axes, input)
    check_dtype(name, input, (*dtypes.FLOATING, dtypes.int64))
    if divisor_override == 0:
        raise RuntimeError(f"{name} expected a divisor_override other than 0, got {divisor_override}")
    length = input.shape[-axes:]
    size = count_windows(name, length, how, ceil_mode)
    counts = divisor_override
    if counts is None:
        counts = tuple(_lengths(*axis, count_include_pad) for axis in zip(length, size, *how))
        if all(len(set(c)) == 1 for c in counts):
            counts = math.prod(c[0] for c in counts)
    x = _batched(input, axes)
    return _unbatched(_average(x, size=size, windows=tuple(zip(*how[:3])), counts=counts), input.ndim)


def _lengths(length, size, kernel, stride, padding, _, with_padding):
    """How many elements each window along an axis has, with or without the padding's."""
    starts = [i * stride - padding for i in range(size)]
    if with_padding:
        return tuple(min(s + kernel, length + padding) - s for s in starts)
    return tuple(min(s + kernel, length) - max(s, 0) for s in starts)


def _adaptive_avg(name, axes, input, output_size):
    size = adaptive_size(name, axes, input, output_size, 1 if axes == 3 else input.ndim - axes)
    x = _batched(input, axes)
    windows, counts = [], []
    for n, s in zip(x.shape[2:], size):
        even = s and n % s == 0
        windows.append((n // s, n // s, 0) if even else None)
        counts.append((n // s,) * s if even else tuple(-(-(i + 1) * n // s) - i * n // s for i in range(s)))
    divisors = math.prod(c[0] for c in counts) if all(len(set(c)) == 1 for c in counts) else tuple(counts)
    return _unbatched(_average(x, size=size, windows=tuple(windows), counts=divisors), input.ndim)


# Norms

@composed(Cast.FULL)
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window, p = norm_type: the norm_type-th root of the sum of powers; gradient 0 where that is 0.

    Args:
        stride: kernel_size if it is not given.
        ceil_mode: as in avg_pool1d; the sums of windows that reach over the end are scaled up as if they were whole.

    Shapes: input (N, C, L) or (C, L), result as of avg_pool1d.
    """
    return _lp("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@composed(Cast.FULL)
def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """lp_pool1d over (N, C, H, W) or (C, H, W)."""
    return _lp("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@composed(Cast.FULL)
def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """lp_pool1d over (N, C, D, H, W) or (C, D, H, W)."""
    return _lp("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


@op(Cast.FULL)
def _root(xp, x, *, power):
    """x^(1 / power), with gradient 0 where x is 0."""
    return x ** (1 / power), lambda g: g * xp.power_or_zero(x, 1 / power - 1) * (1 / power)


@op(Cast.FULL)
def _power_or_zero(xp, x, *, exponent):
    return xp.power_or_zero(x, exponent), lambda g: g * xp.power_or_zero(x, exponent - 1) * exponent


def _lp(name, axes, input, norm_type, kernel_size, stride, ceil_mode):
    if norm_type == math.inf:
        return _max(name, axes, abs(input), kernel_size, stride, 0, 1, ceil_mode, False)
    if norm_type == -math.inf:
        return neg(_max(name, axes, neg(abs(input)), kernel_size, stride, 0, 1, ceil_mode, False))
    if axes > 1 and isinstance(kernel_size, (tuple, list)) and len(kernel_size) != axes:
        raise ValueError(f"{name} expected kernel_size to be one integer or {axes} of them, got {kernel_size}")
    kernel = math.prod(lengths_per_axis(name, "kernel_size", kernel_size, axes, 1))
    wide = cast_to(input, dtypes.accumulation_dtype(input.dtype))  # powers of halves overflow
    means = _avg(name, axes, pow(wide, norm_type), kernel_size, stride, 0, ceil_mode, True, None)
    norms = _root(means * kernel, power=norm_type)
    return cast_to(norms, input.dtype) if input.dtype in dtypes.HALF else norms


def _batched(input, axes):
    return input if input.ndim == axes + 2 else reshape(input, (1, *input.shape))


def _unbatched(out, ndim):
    return out if out.ndim == ndim else reshape(out, out.shape[1:])


METHODS = ()
IN_PLACE = ()
ON_TENSORS = {
    "put_at_taps": lambda g, places, length, how: _put_at_taps(g, places=places, length=length, how=how),
    "take_at_taps": lambda x, places, how: _take_at_taps(x, places=places, how=how),
    "average_windows": lambda x, size, windows, counts: _average(x, size=size, windows=windows, counts=counts),
    "spread_windows": lambda g, length, windows, counts: _spread(g, length=length, windows=windows, counts=counts),
    "power_or_zero": lambda x, exponent: _power_or_zero(x, exponent=exponent),
}
