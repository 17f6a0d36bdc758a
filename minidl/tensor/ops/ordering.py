"""Sorting along an axis, and what is read off in sorted order. A nan counts as the largest value, as in PyTorch."""

from __future__ import annotations

from ..dims import one_dim
from ..tensor import make_tensor
from .extrema import ValuesAndIndices, pick, pick_one, rows_of
from .shape import reshape

__all__ = ["argsort", "kthvalue", "msort", "sort", "topk"]


def _in_order(input, index, axis):
    """The named tuple (values, indices) at the places `index` along an axis."""
    rows = input if input.ndim else reshape(input, 1)
    values = pick(rows, index, axis)
    if input.ndim:
        return ValuesAndIndices(values, make_tensor(index, None))
    return ValuesAndIndices(reshape(values, ()), make_tensor(index.reshape(()), None))


def _places(name, input, dim, descending):
    axis = one_dim(name, dim, input.ndim)
    rows = input.array if input.ndim else input.array.reshape(1)
    return input.backend.sort_index(rows, axis, bool(descending)), axis


def sort(input, dim=-1, descending=False, stable=False):
    """The elements along an axis in order: a named tuple (values, indices).

    Args:
        dim: the axis.
        descending: largest first.
        stable: equal elements keep their order; they do without it, too.
    """
    return _in_order(input, *_places("sort", input, dim, descending))


def argsort(input, dim=-1, descending=False, stable=False):
    """The places (int64) that put an axis in order; arguments as in sort."""
    index, _ = _places("argsort", input, dim, descending)
    return make_tensor(index.reshape(input.shape), None)


def msort(input):
    """The elements in ascending order along the first axis."""
    return sort(input, 0).values


def topk(input, k, dim=-1, largest=True, sorted=True):
    """The k largest (or smallest) elements along an axis: a named tuple (values, indices), in order of the values.

    Args:
        k: how many.
        dim: the axis.
        largest: False for the smallest.
        sorted: the result is sorted; it is without it, too.

    Raises:
        RuntimeError: if the axis has fewer than k elements.
    """
    axis = one_dim("topk", dim, input.ndim)
    rows = input.array if input.ndim else input.array.reshape(1)
    if not 0 <= k <= rows.shape[axis]:
        raise RuntimeError(f"topk expected k in [0, {rows.shape[axis]}] for axis {axis} of shape {input.shape}, got {k}")
    k = k if input.ndim else 1
    return _in_order(input, input.backend.top_index(rows, k, axis, bool(largest)), axis)


def kthvalue(input, k, dim=-1, keepdim=False):
    """The k-th smallest element along an axis, counted from 1: a named tuple (values, indices).

    Raises:
        RuntimeError: if the axis has fewer than k elements, or k is less than 1.
    """
    rows, axis = rows_of("kthvalue", input, dim)
    if not 1 <= k <= rows.shape[axis]:
        raise RuntimeError(f"kthvalue expected k in [1, {rows.shape[axis]}] for axis {axis} of shape {input.shape}, got {k}")
    index = input.backend.top_index(rows, k, axis, False)
    return pick_one(input, index[(slice(None),) * axis + (slice(k - 1, k),)], axis, keepdim)


METHODS = (argsort, kthvalue, msort, sort, topk)
ON_TENSORS: dict = {}
