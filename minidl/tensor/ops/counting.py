"""Which values there are and how often: unique elements, counts, histograms. None of them has a gradient."""

from __future__ import annotations

import math

from .. import dtypes
from ..dims import one_dim
from ..tensor import make_tensor

__all__ = ["bincount", "histc", "unique", "unique_consecutive"]


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements, sorted; with `dim` the different slices along an axis. Each nan differs from all.

    Args:
        sorted: the result is sorted; it is without it, too.
        return_inverse: return also where each element of the input is in the result.
        return_counts: return also how often each was found.
        dim: an axis, or None for elements of the flattened tensor.

    Returns:
        values, or a tuple (values, inverse, counts) of what was asked for.
    """
    return _unique("unique", input, dim, return_inverse, return_counts, False)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements, or with `dim` slices, that differ from the one before. Arguments and result as in unique."""
    return _unique("unique_consecutive", input, dim, return_inverse, return_counts, True)


def _unique(name, input, dim, return_inverse, return_counts, consecutive):
    x, xp = input.array, input.backend
    if dim is None:
        slices = x.reshape(-1)
        rows = slices.reshape(x.size, 1)
    else:
        slices = xp.moveaxis(x, _slice_axis(name, x, dim), 0)
        rows = slices.reshape(slices.shape[0], math.prod(slices.shape[1:]))
    count = rows.shape[0]
    if consecutive:
        order = xp.arange(count)
    else:
        order = xp.sort_index(rows[:, 0], 0) if dim is None else xp.lexical_order(rows)
    starts = xp.run_starts(rows[order])
    first = xp.nonzero(starts)[0]
    values = slices[order[first]]
    found = [values if dim is None else xp.ascontiguousarray(xp.moveaxis(values, 0, one_dim(name, dim, x.ndim)))]
    if return_inverse:
        inverse = xp.empty(count, dtypes.int64)
        inverse[order] = xp.running_sum(xp.asarray(starts, dtypes.int64), 0) - 1
        found.append(inverse.reshape(x.shape) if dim is None else inverse)
    if return_counts:
        ends = xp.concatenate((first[1:], xp.full((min(1, count),), count, dtypes.int64)))
        found.append(ends - first)
    tensors = tuple([make_tensor(array, None) for array in found])
    return tensors[0] if len(tensors) == 1 else tensors


def _slice_axis(name, x, dim):
    axis = one_dim(name, dim, x.ndim)
    if x.ndim == 0:
        raise IndexError(f"{name} along an axis expected a tensor of at least one axis, got a 0-d one")
    if 0 in x.shape[:axis] + x.shape[axis + 1:]:
        raise RuntimeError(f"{name} along axis {axis} expected slices with elements, got shape {x.shape}")
    return axis


def bincount(input, weights=None, minlength=0):
    """How often each integer 0, 1, ... occurs; with weights, the sum of their weights.

    Args:
        input: integers, none negative, shape (N,).
        weights: shape (N,). The result has their dtype for float32, else float64; int64 without weights.
        minlength: the least length of the result.

    Raises:
        RuntimeError: for other shapes, or a negative element or minlength.
    """
    x, xp = input.array, input.backend
    if x.dtype not in dtypes.INTEGER:
        raise NotImplementedError(f"bincount expected integers, got {dtypes.dtype_name(x.dtype)}")
    if x.ndim != 1 or (x.size and bool((x < 0).any())):
        raise RuntimeError(f"bincount expected one axis of integers that are not negative, got shape {x.shape}")
    if minlength < 0:
        raise RuntimeError(f"bincount expected minlength >= 0, got {minlength}")
    if weights is not None and weights.shape != x.shape:
        raise RuntimeError(f"bincount expected weights of the input's shape {x.shape}, got {weights.shape}")
    x = xp.asarray(x, dtypes.int64)
    if weights is None or x.size == 0:
        return make_tensor(xp.asarray(xp.bincount(x, minlength=minlength), dtypes.int64), None)
    kind = dtypes.float32 if weights.dtype == dtypes.float32 else dtypes.float64
    summed = xp.bincount(x, xp.asarray(weights.array, dtypes.float64), minlength)
    return make_tensor(xp.asarray(summed, kind), None)


def histc(input, bins=100, min=0, max=0):
    """How many elements lie in each of `bins` equal parts of [min, max], in the input's dtype; others are not counted.

    Args:
        bins: the number of parts.
        min, max: the range; where they are equal, that of the data.

    Raises:
        RuntimeError: if bins is not positive, max is less than min, or the range is not finite.
    """
    if input.dtype not in dtypes.FLOATING:
        raise NotImplementedError(f"histc expected a floating tensor, got {dtypes.dtype_name(input.dtype)}; cast it first")
    if bins <= 0:
        raise RuntimeError(f"histc expected bins > 0, got {bins}")
    xp = input.backend
    x = xp.asarray(input.array.reshape(-1), dtypes.float64)
    low, high = float(min), float(max)
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"histc expected a finite range, got [{low}, {high}]; pass min and max")
    if high < low:
        raise RuntimeError(f"histc expected min <= max, got [{low}, {high}]")
    inside = x[(x >= low) & (x <= high)]
    place = xp.asarray((inside - low) * bins / (high - low), dtypes.int64)
    counts = xp.bincount(xp.minimum(place, bins - 1), minlength=bins)
    return make_tensor(xp.asarray(counts, input.dtype), None)


METHODS = (bincount, histc, unique, unique_consecutive)
ON_TENSORS: dict = {}
