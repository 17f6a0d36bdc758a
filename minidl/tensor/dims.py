"""Axis arguments: negative, missing, repeated and out-of-range ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def one_dim(name: str, dim: Any, ndim: int) -> int:
    """`dim` counted from the front. A 0-d tensor counts as having one axis.

    Raises:
        IndexError: if there is no such axis.
        TypeError: if dim is no integer.
    """
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"{name} expected dim to be an integer, got {dim!r}")
    dim = dim.__index__()
    axes = max(ndim, 1)
    if not -axes <= dim < axes:
        raise IndexError(f"{name} expected dim in [{-axes}, {axes - 1}] for a tensor of {ndim} axes, got {dim}")
    return dim % axes


def some_dims(name: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """`dim` (an integer, a sequence, None or () for all axes) as a sorted-as-given tuple counted from the front.

    Raises:
        IndexError: if there is no such axis.
        RuntimeError: if an axis is named twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if not isinstance(dim, Iterable):
        return (one_dim(name, dim, ndim),)
    dims = tuple(one_dim(name, d, ndim) for d in dim)
    if not dims:
        return tuple(range(ndim))
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"{name} expected different dims, got {tuple(dim)} for a tensor of {ndim} axes")
    return dims
