"""Elements in another order or several times: flipped, rolled, rotated, repeated."""

from __future__ import annotations

from operator import index as as_int

from ...autograd.op import Cast
from .. import dtypes
from ..apply import op
from ..creation import arange
from ..dims import one_dim, some_dims
from ..sizes import sizes_of
from ..tensor import Tensor
from .shape import clone, expand, flatten, reshape, transpose, unsqueeze

__all__ = ["flip", "fliplr", "flipud", "repeat_interleave", "roll", "rot90", "tile"]


@op(Cast.KEEP)
def _flip(xp, x, *, axes):
    return xp.flip(x, axes).copy(), lambda g: xp.flip(g, axes)


@op(Cast.KEEP)
def _roll(xp, x, *, shifts, axes):
    return xp.roll(x, shifts, axes), lambda g: xp.roll(g, tuple([-n for n in shifts]), axes)


@op(Cast.KEEP)
def _tile(xp, x, *, repeats):
    lead = (1,) * (len(repeats) - x.ndim)
    paired = tuple([n for pair in zip(repeats, lead + x.shape) for n in pair])
    return xp.tile(x, repeats), lambda g: xp.sum(xp.reshape(g, paired), tuple(range(0, len(paired), 2)))


@op(Cast.KEEP)
def _take(xp, x, *, index, axis):
    shape = x.shape
    return xp.take(x, index, axis), lambda g: xp.index_add(shape, (slice(None),) * axis + (index,), g)


def flip(input, dims, *more):
    """The order of the elements reversed along axes; a copy."""
    dims = sizes_of("flip", dims, more)
    return _flip(input, axes=some_dims("flip", dims, input.ndim)) if dims and input.ndim else clone(input)


def fliplr(input):
    """The columns (second axis) in reverse order; a copy."""
    if input.ndim < 2:
        raise RuntimeError(f"fliplr expected a tensor of at least 2 axes, got shape {input.shape}")
    return flip(input, 1)


def flipud(input):
    """The rows (first axis) in reverse order; a copy."""
    if input.ndim < 1:
        raise RuntimeError("flipud expected a tensor of at least one axis, got a 0-d one")
    return flip(input, 0)


def roll(input, shifts, dims=None):
    """The elements moved on by `shifts` places along `dims`, those that leave at the end coming in at the start.

    Args:
        shifts: an integer, or one for each of dims.
        dims: an axis or a sequence of axes; None rolls the flattened tensor.
    """
    shifts, dims = sizes_of("roll", shifts), () if dims is None else sizes_of("roll", dims)
    if not dims and len(shifts) == 1:
        return reshape(_roll(reshape(input, -1), shifts=shifts, axes=(0,)), input.shape)
    if not shifts or len(shifts) != len(dims):
        raise RuntimeError(f"roll expected one shift for each of dims, got shifts {shifts} and dims {dims}")
    if input.ndim == 0:
        raise IndexError(f"roll expected a tensor with the axes {dims}, got a 0-d one")
    return _roll(input, shifts=shifts, axes=tuple([one_dim("roll", d, input.ndim) for d in dims]))


def rot90(input, k=1, dims=(0, 1)):
    """The tensor turned k times by 90 degrees in the plane of two axes, from the first towards the second."""
    dims = sizes_of("rot90", dims)
    if len(dims) != 2 or input.ndim < 2:
        raise RuntimeError(f"rot90 expected two dims of a tensor of at least 2 axes, got {dims} and shape {input.shape}")
    a, b = some_dims("rot90", dims, input.ndim)
    k = as_int(k) % 4
    if k == 0:
        return clone(input)
    if k == 2:
        return flip(input, a, b)
    return transpose(flip(input, b if k == 1 else a), a, b)


def repeat(input, repeats, *more):
    """The tensor laid side by side with itself, `repeats` times along each axis; missing axes are put in front."""
    repeats = sizes_of("repeat", repeats, more)
    if len(repeats) < input.ndim or min(repeats, default=0) < 0:
        raise RuntimeError(f"repeat expected a number that is not negative for each of the {input.ndim} axes, got {repeats}")
    return _tile(input, repeats=repeats)


def tile(input, dims, *more):
    """The tensor laid side by side with itself, as repeat; where dims are missing, they are 1."""
    dims = sizes_of("tile", dims, more)
    return repeat(input, (1,) * (input.ndim - len(dims)) + dims)


def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element along an axis several times in a row.

    Args:
        repeats: an integer, or an integer tensor with a number for each place of the axis (or one for all).
        dim: the axis; None flattens the input first.
        output_size: what the repeats add up to, if known.

    Without repeats, the input is a tensor of them and the result has the index i input[i] times.
    """
    if repeats is None:
        return repeat_interleave(arange(input.numel(), device=input.device), input, 0, output_size=output_size)
    if dim is None:
        input, dim = reshape(input, -1), 0
    elif input.ndim == 0:
        input = reshape(input, 1)
    dim = one_dim("repeat_interleave", dim, input.ndim)
    if isinstance(repeats, Tensor) and repeats.numel() == 1 and input.shape[dim] != 1:
        repeats = int(repeats.numpy().reshape(()))
    if not isinstance(repeats, Tensor):
        return _repeat_each(input, as_int(repeats), dim, output_size)
    return _take(input, index=_positions(repeats, input.shape, dim, output_size), axis=dim)


def _repeat_each(input, count, dim, output_size):
    if count < 0:
        raise RuntimeError(f"repeat_interleave expected repeats that are not negative, got {count}")
    _check_total(count * input.shape[dim], output_size)
    wide = expand(unsqueeze(input, dim + 1), (*input.shape[:dim + 1], count, *input.shape[dim + 1:]))
    return clone(flatten(wide, dim, dim + 1)) if count == 1 else flatten(wide, dim, dim + 1)


def _positions(repeats, shape, dim, output_size):
    """The place along the axis that each place of the result comes from."""
    counts, xp = repeats.array, repeats.backend
    if counts.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(f"repeat_interleave expected repeats of int32 or int64, got {dtypes.dtype_name(counts.dtype)}")
    if counts.ndim > 1 or counts.size != shape[dim]:
        raise RuntimeError(f"repeat_interleave expected one number for each of the {shape[dim]} places of axis {dim} of shape "
                           f"{shape}, got repeats of shape {counts.shape}")
    counts = xp.reshape(counts, (-1,))
    if counts.size and int(xp.amin(counts)) < 0:
        raise RuntimeError(f"repeat_interleave expected repeats that are not negative, got {int(xp.amin(counts))}")
    ends = xp.cumsum(counts, dtype=dtypes.int64)
    total = int(ends[-1]) if ends.size else 0
    _check_total(total, output_size)
    return xp.searchsorted(ends, xp.arange(total), side="right")


def _check_total(total, output_size):
    if output_size is not None and output_size != total:
        raise RuntimeError(f"repeat_interleave expected output_size {total}, what the repeats add up to, got {output_size}")


def _flip_axes(x, axis=None):
    return flip(x, tuple(range(x.ndim)) if axis is None else axis)


METHODS = (flip, fliplr, flipud, repeat, repeat_interleave, roll, rot90, tile)
IN_PLACE = ()
ON_TENSORS = {"flip": _flip_axes, "roll": roll, "tile": tile}
