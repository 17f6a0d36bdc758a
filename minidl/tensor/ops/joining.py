"""Several tensors made into one: concatenation, stacking, blocks, grids and products of coordinates."""

from __future__ import annotations

import itertools
from operator import index as as_int

import numpy as np

from ...autograd.op import Cast
from .. import dtypes
from ..apply import composed, listed_as, op
from ..convert import to_array
from ..dims import one_dim
from ..tensor import Tensor, make_tensor
from .flipping import _take
from .shape import atleast_1d, atleast_2d, atleast_3d, cast_to, clone, expand, reshape

__all__ = ["block_diag", "cartesian_prod", "cat", "column_stack", "combinations", "concat", "concatenate", "dstack",
           "hstack", "meshgrid", "stack", "vstack"]


@op(Cast.WIDEST)
def _cat(xp, *arrays, axis):
    """Arrays of shape (0,) have no place among the others."""
    parts = [array for array in arrays if array.shape != (0,)]
    pullbacks, start = [], 0
    for array in arrays:
        if array.shape == (0,):
            pullbacks.append(lambda g: xp.reshape(g[:0], (0,)))
            continue
        stop = start + array.shape[axis]
        pullbacks.append(_reader((slice(None),) * axis + (slice(start, stop),)))
        start = stop
    return xp.concatenate(parts or arrays, axis), tuple(pullbacks)


@op(Cast.WIDEST)
def _stack(xp, *arrays, axis):
    lead = (slice(None),) * axis
    return xp.stack(arrays, axis), tuple([_reader((*lead, i, ...)) for i in range(len(arrays))])


@op(Cast.WIDEST)
def _block_diag(xp, *arrays):
    height, width = sum(a.shape[0] for a in arrays), sum(a.shape[1] for a in arrays)
    out = xp.zeros((height, width), arrays[0].dtype)
    pullbacks, row, column = [], 0, 0
    for array in arrays:
        place = (slice(row, row + array.shape[0]), slice(column, column + array.shape[1]))
        out[place] = array
        pullbacks.append(_reader(place))
        row, column = row + array.shape[0], column + array.shape[1]
    return out, tuple(pullbacks)


def _reader(place):
    return lambda g: g[place]


def _sequence(name, tensors, error=RuntimeError):
    """The tensors of a sequence argument.

    Raises:
        TypeError: if it is no sequence of tensors.
        RuntimeError: (or `error`) if it is empty.
    """
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"{name} expected a tuple or list of tensors, got {type(tensors).__name__}")
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} expected tensors, got {type(tensor).__name__} at position {i}")
    if not tensors:
        raise error(f"{name} expected at least one tensor, got none")
    return tensors


@listed_as(_cat)
def cat(tensors, dim=0):
    """The tensors one after the other along an axis, in the dtype to which they promote; a copy.

    Tensors of shape (0,) may join any others and add nothing.

    Raises:
        RuntimeError: if shapes differ at another axis.
    """
    tensors = _sequence("cat", tensors, ValueError)
    for i, tensor in enumerate(tensors):
        if tensor.ndim == 0:
            raise RuntimeError(f"cat expected tensors of at least one axis, got a 0-d one at position {i}; use stack")
    parts = [tensor for tensor in tensors if tensor.shape != (0,)]
    first = parts[0] if parts else tensors[0]
    dim = one_dim("cat", dim, first.ndim) if parts else 0
    shape = first.shape
    for part in parts:
        other = part.shape
        if len(other) != len(shape) or other[:dim] != shape[:dim] or other[dim + 1:] != shape[dim + 1:]:
            raise RuntimeError(f"cat expected shapes that differ at axis {dim} only, got {shape} and {other}")
    return _cat(*tensors, axis=dim)


def concat(tensors, dim=0):
    """The tensors one after the other along an axis, as cat."""
    return cat(tensors, dim)


def concatenate(tensors, dim=0, *, axis=None):
    """The tensors one after the other along an axis, as cat."""
    return cat(tensors, dim if axis is None else axis)


@listed_as(_stack)
def stack(tensors, dim=0):
    """The tensors, all of one shape, along a new axis; a copy."""
    tensors = _sequence("stack", tensors)
    shape = tensors[0].shape
    dim = one_dim("stack", dim, len(shape) + 1)
    for tensor in tensors:
        if tensor.shape != shape:
            raise RuntimeError(f"stack expected tensors of one shape, got {shape} and {tensor.shape}")
    return _stack(*tensors, axis=dim)


def hstack(tensors):
    """The tensors along the second axis, 1-d ones along their only axis."""
    tensors = atleast_1d(_sequence("hstack", tensors))
    return cat(tensors, 0 if tensors[0].ndim == 1 else 1)


def vstack(tensors):
    """The tensors along the first axis, 1-d ones as rows."""
    return cat(atleast_2d(_sequence("vstack", tensors)), 0)


def dstack(tensors):
    """The tensors along the third axis, after atleast_3d."""
    return cat(atleast_3d(_sequence("dstack", tensors)), 2)


def column_stack(tensors):
    """The tensors along the second axis, 1-d ones as columns."""
    return hstack([reshape(x, x.numel(), 1) if x.ndim < 2 else x for x in _sequence("column_stack", tensors)])


@composed(Cast.WIDEST)
def block_diag(*tensors):
    """A matrix with the tensors (matrices; vectors count as rows, 0-d ones as 1 x 1) along its diagonal, else 0."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    for i, tensor in enumerate(tensors):
        if tensor.ndim > 2:
            raise RuntimeError(f"block_diag expected tensors of at most 2 axes, got shape {tensor.shape} at position {i}")
    if not tensors:
        return make_tensor(to_array(np.zeros((1, 0)), dtypes.get_default_dtype()), None)
    dtype = dtypes.result_type_of([tensor.array for tensor in tensors])
    return _block_diag(*[cast_to(x, dtype) if x.ndim == 2 else atleast_2d(cast_to(x, dtype)) for x in tensors])


def meshgrid(*tensors, indexing="ij"):
    """The coordinates of the grid that vectors span: for each vector a view of the grid's shape that varies along one axis.

    Args:
        tensors: 1-d or 0-d tensors of one dtype, or one sequence of them.
        indexing: "ij": the i-th vector varies along axis i; "xy": the first two axes are exchanged.
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    tensors = _sequence("meshgrid", tensors)
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f"meshgrid expected indexing 'ij' or 'xy', got {indexing!r}")
    for tensor in tensors:
        if tensor.ndim > 1 or tensor.dtype != tensors[0].dtype:
            raise RuntimeError(f"meshgrid expected vectors of dtype {dtypes.dtype_name(tensors[0].dtype)}, got shape "
                               f"{tensor.shape} of {dtypes.dtype_name(tensor.dtype)}")
    count = len(tensors)
    axes = [1, 0, *range(2, count)] if indexing == "xy" and count > 1 else range(count)
    shape = [0] * count
    for axis, tensor in zip(axes, tensors):
        shape[axis] = tensor.numel()
    return tuple(expand(reshape(tensor, (1,) * axis + (tensor.numel(),) + (1,) * (count - axis - 1)), tuple(shape))
                 for axis, tensor in zip(axes, tensors))


def cartesian_prod(*tensors):
    """All combinations of one element of each vector, (product of the lengths, number of vectors); of one vector itself."""
    for tensor in tensors:
        if tensor.ndim != 1:
            raise RuntimeError(f"cartesian_prod expected vectors, got shape {tensor.shape}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(grid, -1) for grid in meshgrid(*tensors)], 1)


def combinations(input, r=2, with_replacement=False):
    """All combinations of r elements of a vector, in order, (number of combinations, r)."""
    r = as_int(r)
    if input.ndim != 1 or r < 0:
        raise RuntimeError(f"combinations expected a vector and r >= 0, got shape {input.shape} and r = {r}")
    if r == 0:
        return clone(input[:0])
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(input.numel()), r)), np.int64).reshape(-1)
    chosen = _take(input, index=to_array(places, device=input.device), axis=0)
    return reshape(chosen, places.size // r, r)


def _concatenate_arrays(arrays, axis=0):
    return cat(list(arrays), axis)


def _stack_arrays(arrays, axis=0):
    return stack(list(arrays), axis)


METHODS = ()
IN_PLACE = ()
ON_TENSORS = {"concatenate": _concatenate_arrays, "stack": _stack_arrays}
