"""The largest and smallest elements, of all or along axes, and where they are. A nan is both."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...autograd.op import Cast
from .. import dtypes
from ..apply import op
from ..dims import one_dim
from ..tensor import Tensor, make_tensor
from . import comparison
from .reduction import axes_of, kept_shape
from .shape import reshape

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "max", "min"]


class ValuesAndIndices(NamedTuple):
    """Values along an axis and the places (int64) they were found at."""

    values: Any
    indices: Any


class MinMax(NamedTuple):
    """The smallest and the largest elements."""

    min: Any
    max: Any


# Over all elements, or several axes: the gradient is shared evenly by equal elements

@op(Cast.KEEP)
def _amax(xp, x, *, axis, keepdims):
    return _extremum(xp, x, xp.amax(x, axis, keepdims=keepdims), axis)


@op(Cast.KEEP)
def _amin(xp, x, *, axis, keepdims):
    return _extremum(xp, x, xp.amin(x, axis, keepdims=keepdims), axis)


def _extremum(xp, x, y, axis):
    kept = kept_shape(x.shape, axis)
    return y, lambda g: xp.share(xp.reshape(g, kept), xp.ties(x, xp.reshape(y, kept)), axis)


@op(Cast.KEEP)
def _share(xp, g, *, mask, axis):
    return xp.share(g, mask, axis), lambda h: xp.share(h, mask, axis)  # the engine sums over the axes


def _ties_of(x, y):
    return x.backend.ties(x.array, y.array)


def _reduce(function, name, input, dim, keepdim):
    axis = axes_of(name, dim, input.ndim)
    _refuse_empty(name, input, axis, dim is None or dim == ())
    return function(input, axis=axis, keepdims=bool(keepdim))


def _refuse_empty(name, input, axes, whole, error=RuntimeError):
    """There is no extremum of nothing: RuntimeError for a whole empty tensor, IndexError for an empty axis."""
    if 0 in input.shape:
        if whole:
            raise error(f"{name} expected a tensor with elements, got shape {input.shape}; name the axes to reduce")
        for axis in axes:
            if input.shape[axis] == 0:
                raise IndexError(f"{name} expected an axis with elements, got axis {axis} of shape {input.shape}")


def amax(input, dim=(), keepdim=False):
    """The largest element over an axis, several, or all; equal ones share the gradient evenly.

    Raises:
        RuntimeError: (over all) or IndexError (over an axis) where there are no elements.
    """
    return _reduce(_amax, "amax", input, dim, keepdim)


def amin(input, dim=(), keepdim=False):
    """The smallest element over an axis, several, or all; equal ones share the gradient evenly. Raises as amax."""
    return _reduce(_amin, "amin", input, dim, keepdim)


def aminmax(input, *, dim=None, keepdim=False):
    """The smallest and the largest element over an axis or all: a named tuple (min, max)."""
    axis = axes_of("aminmax", None if dim is None else one_dim("aminmax", dim, input.ndim), input.ndim)
    _refuse_empty("aminmax", input, axis, dim is None)
    return MinMax(_amin(input, axis=axis, keepdims=bool(keepdim)), _amax(input, axis=axis, keepdims=bool(keepdim)))


# Along one axis: with the place, to which the gradient goes

@op(Cast.KEEP)
def _argmax(xp, x, *, axis, keepdims):
    return xp.argmax(x, axis, keepdims=keepdims), None


@op(Cast.KEEP)
def _argmin(xp, x, *, axis, keepdims):
    return xp.argmin(x, axis, keepdims=keepdims), None


@op(Cast.KEEP)
def _pick_along(xp, x, *, index, axis, distinct):
    length = x.shape[axis]
    return xp.pick_along(x, index, axis, distinct), lambda g: xp.put_along(g, index, axis, length, distinct)


@op(Cast.KEEP)
def _put_along(xp, g, *, index, axis, length, distinct):
    return xp.put_along(g, index, axis, length, distinct), lambda h: xp.pick_along(h, index, axis, distinct)


def pick(x, index, axis, distinct=True):
    """The elements at places along an axis (an array that names one or more per row; `distinct`: no place twice)."""
    return _pick_along(x, index=index, axis=axis, distinct=distinct)


def pick_one(input, index, axis, keepdim):
    """The named tuple (values, indices) for an array with one place per row, whose axis has length 1.

    A 0-d input has been given an axis by rows_of.
    """
    rows = input if input.ndim else reshape(input, 1)
    shape = index.shape if keepdim else index.shape[:axis] + index.shape[axis + 1:]
    shape = shape if input.ndim else ()
    return ValuesAndIndices(reshape(pick(rows, index, axis), shape), make_tensor(index.reshape(shape), None))


def rows_of(name, input, dim):
    """The array, with an axis for a 0-d tensor, and the axis counted from the front.

    Raises:
        IndexError: if there is no such axis, or it has no elements.
    """
    axis = one_dim(name, dim, input.ndim)
    if input.ndim and input.shape[axis] == 0:
        raise IndexError(f"{name} expected an axis with elements, got axis {axis} of shape {input.shape}")
    return (input.array if input.ndim else input.array.reshape(1)), axis


def _argument(function, name, input, dim, keepdim):
    if input.dtype == dtypes.bool_:
        raise RuntimeError(f"{name} expected numbers, got a bool tensor; cast it first")
    if dim is None:
        _refuse_empty(name, input, (), True, IndexError)
        return reshape(function(reshape(input, -1), axis=0, keepdims=False), (1,) * input.ndim if keepdim else ())
    x, axis = rows_of(name, input, dim)
    index = function(make_tensor(x, None), axis=axis, keepdims=bool(keepdim))
    return index if input.ndim else reshape(index, ())


def argmax(input, dim=None, keepdim=False):
    """The place (int64) of the largest element along an axis, the first of equal ones; None: in the flattened tensor."""
    return _argument(_argmax, "argmax", input, dim, keepdim)


def argmin(input, dim=None, keepdim=False):
    """The place (int64) of the smallest element along an axis, the first of equal ones; None: in the flattened tensor."""
    return _argument(_argmin, "argmin", input, dim, keepdim)


def max(input, dim=None, keepdim=False, *, other=None):
    """The largest element.

    `max(input)`: of all; equal ones share the gradient evenly. `max(input, dim, keepdim)`: along an axis, a named tuple
    (values, indices), the first of equal ones. `max(input, other)`: element-wise, as maximum.
    """
    if isinstance(dim, Tensor) or other is not None:
        return comparison.maximum(input, dim if other is None else other)
    if dim is None:
        return _reduce(_amax, "max", input, None, False)
    x, axis = rows_of("max", input, dim)
    return pick_one(input, input.backend.argmax(x, axis, keepdims=True), axis, keepdim)


def min(input, dim=None, keepdim=False, *, other=None):
    """The smallest element; forms as in max."""
    if isinstance(dim, Tensor) or other is not None:
        return comparison.minimum(input, dim if other is None else other)
    if dim is None:
        return _reduce(_amin, "min", input, None, False)
    x, axis = rows_of("min", input, dim)
    return pick_one(input, input.backend.argmin(x, axis, keepdims=True), axis, keepdim)


METHODS = (amax, amin, aminmax, argmax, argmin, max, min)
ON_TENSORS = {"ties": _ties_of,
              "share": lambda g, mask, axis: _share(g, mask=mask, axis=axis),
              "pick_along": lambda x, index, axis, distinct=False: pick(x, index, axis, distinct),
              "put_along": lambda g, index, axis, length, distinct=False: _put_along(
                  g, index=index, axis=axis, length=length, distinct=distinct)}
