"""Elements read from places along an axis, and values put, added or combined there: gather and scatter, index_*, take, put.

Where places repeat, a value that a later one replaces gets no gradient.
"""

from __future__ import annotations

import math

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from ..dims import one_dim
from ..tensor import Tensor, make_tensor
from .arithmetic import _divide, floor_divide, mul
from .indexing import _add_at, _pick, _replace_at, _slice, same_dtype, wrapped
from .shape import broadcast_shapes, cast_to, clone, expand, reshape

__all__ = ["gather", "index_add", "index_copy", "index_fill", "index_select", "put", "scatter", "scatter_add",
           "scatter_reduce", "take", "take_along_dim"]


# Combinations other than the sum

@op(Cast.WIDEST, promote=Promote.NONE, wide=True)
def _multiply_at(xp, x, values, *, index):
    """A copy of x into which values are multiplied at [index]."""
    shape, y = x.shape, xp.combined_at(x, index, values, "multiply")

    def x_gradient(g):
        divisor = xp.where(x == 0, 1, x)
        return g * xp.combined_at(divisor, index, values, "multiply") / divisor

    def value_gradient(g):  # the only zero at its place gets the product of all others there
        zero = values == 0
        zeros = xp.pick(xp.index_add(shape, index, xp.where(zero, xp.ones_like(values), 0)), index)
        alone = zero & (zeros == 1)
        others = xp.combined_at(x, index, xp.where(alone, 1, values), "multiply")
        return xp.where(alone, xp.pick(g * others, index), xp.pick(g * y, index) / xp.where(zero, 1, values))

    return y, (x_gradient, value_gradient)


@op(Cast.WIDEST, promote=Promote.NONE, wide=True)
def _extremum_at(xp, x, values, *, index, how):
    """A copy of x with the maximum or minimum of x and values at [index]; equal ones share the gradient evenly."""
    shape, y = x.shape, xp.combined_at(x, index, values, how)

    def share(g):
        mine = xp.where(x == y, xp.ones_like(x), 0)
        theirs = xp.where(values == xp.pick(y, index), xp.ones_like(values), 0)
        count = mine + xp.index_add(shape, index, theirs)
        return g / (count + (count == 0))

    return y, (lambda g: xp.where(x == y, share(g), 0),
               lambda g: xp.where(values == xp.pick(y, index), xp.pick(share(g), index), 0))


def _combined_at(x, index, values, how):
    if how == "multiply":
        return _multiply_at(x, values, index=index)
    return _extremum_at(x, values, index=index, how=how)


# gather and scatter: an index array with a place for each element

def _lifted(tensor):
    """The tensor, with an axis where it has none."""
    return tensor if tensor.ndim else reshape(tensor, 1)


def _grid(name, input, dim, index, *, error=RuntimeError, negative=False):
    """The positions [..., i, index[..., i, j, ...], j, ...] that gather reads; input and index have axes.

    Along last axes over which the index was expanded, whole rows are named.
    """
    xp, places, ndim = input.backend, index, input.ndim
    while ndim > dim + 1 and places.shape[-1] == input.shape[ndim - 1] and places.strides[-1] == 0 and places.size:
        places, ndim = places[..., 0], ndim - 1
    grid = [xp.arange(n).reshape([-1 if i == axis else 1 for i in range(ndim)]) for axis, n in enumerate(places.shape)]
    grid[dim] = wrapped(name, places, input, dim, error, negative=negative)
    return tuple(grid)


def _check_index(name, input, dim, index, src=None):
    """Refuse indices of the wrong dtype, number of axes or size; empty ones pass, as in PyTorch."""
    if index.array.size == 0:
        return
    if index.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(f"{name} expected an index of int32 or int64, got {dtypes.dtype_name(index.dtype)}")
    shape, want = _lifted(input).shape, _lifted(index).shape
    if len(shape) != len(want):
        raise RuntimeError(f"{name} expected an index with as many axes as the input of shape {input.shape}, got shape "
                           f"{index.shape}")
    if any(n > have for axis, (n, have) in enumerate(zip(want, shape)) if axis != dim):
        raise RuntimeError(f"{name} expected an index no larger than the input's shape {shape} except along axis {dim}, got "
                           f"shape {want}")
    if src is not None and (_lifted(src).ndim != len(want) or any(n > have for n, have in zip(want, _lifted(src).shape))):
        raise RuntimeError(f"{name} expected a src of at least the index's shape {want}, got {src.shape}")


def gather(input, dim, index, *, sparse_grad=False):
    """The elements at places along an axis: for dim 0, out[i][j] = input[index[i][j]][j].

    Args:
        index: int64 or int32, no larger than the input along the other axes; the result has its shape.
        sparse_grad: accepted for PyTorch's sake; gradients are dense.

    Raises:
        RuntimeError: for places out of range, or an index of the wrong size.
    """
    dim = one_dim("gather", dim, input.ndim)
    _check_index("gather", input, dim, index)
    if index.array.size == 0:
        return _pick(reshape(input, -1), index=(input.backend.asarray(index.array, dtypes.int64),))
    x, places = _lifted(input), _lifted(index).array
    return reshape(_pick(x, index=_grid("gather", x, dim, places)), index.shape)


def _scatter(name, function, input, dim, index, src):
    """function(input, src, index=positions) for the part of src that the index covers, or for a number."""
    dim = one_dim(name, dim, input.ndim)
    is_tensor = isinstance(src, Tensor)
    _check_index(name, input, dim, index, src if is_tensor else None)
    if is_tensor:
        same_dtype(name, input, src)
    if index.array.size == 0:
        return clone(input)
    x, places = _lifted(input), _lifted(index).array
    if is_tensor:
        src = _lifted(src)
        if src.shape != places.shape:
            src = _slice(src, index=tuple([slice(n) for n in places.shape]))
    return reshape(function(x, src, index=_grid(name, x, dim, places)), input.shape)


@composed(Cast.WIDEST)
def scatter(input, dim, index, src=None, value=None, *, reduce=None):
    """A copy of the tensor with values put at places along an axis: for dim 0, out[index[i][j]][j] = src[i][j].

    Args:
        index: int64 or int32, no larger than src, nor than the input along the other axes. Where places repeat, the last
            value stays.
        src: a tensor of the input's dtype, or a number.
        value: a number, in place of src.
        reduce: "add" or "multiply" combines the values with what is there.

    Raises:
        RuntimeError: for places out of range, sizes that do not fit, or another reduce.
    """
    functions = {None: _replace_at, "add": _add_at, "multiply": _multiply_at}
    if reduce not in functions:
        raise RuntimeError(f"scatter expected reduce 'add' or 'multiply', got {reduce!r}")
    if (src is None) == (value is None):
        raise TypeError("scatter expected either src or value")
    return _scatter("scatter", functions[reduce], input, dim, index, value if src is None else src)


@composed(Cast.WIDEST)
def scatter_add(input, dim, index, src):
    """A copy of the tensor with values added at places along an axis: for dim 0, out[index[i][j]][j] += src[i][j].

    Arguments as in scatter; repeated places add up, in float32 for halves.
    """
    return _scatter("scatter_add", _add_at, input, dim, index, src)


@composed(Cast.WIDEST)
def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    """A copy of the tensor with values combined at places along an axis; arguments as in scatter.

    Args:
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: the input's own elements take part; else only values count where there are any.
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"scatter_reduce expected reduce 'sum', 'prod', 'mean', 'amax' or 'amin', got {reduce!r}")
    if reduce == "mean" and input.dtype == dtypes.bool_:
        raise NotImplementedError("scatter_reduce expected numbers for the mean, got bool; cast first")
    wide = dtypes.accumulation_dtype(input.dtype)
    dtype = input.dtype

    def combine(x, values, index):
        if not include_self:
            x = _replace_at(x, _neutral(reduce, dtype), index=index)
        if reduce == "sum":
            return _add_at(x, values, index=index)
        if reduce == "prod":
            return _multiply_at(x, values, index=index)
        if reduce != "mean":
            return _extremum_at(x, values, index=index, how={"amax": "maximum", "amin": "minimum"}[reduce])
        total = _add_at(cast_to(x, wide), cast_to(values, wide), index=index)
        xp, kind = x.backend, wide if wide in dtypes.FLOATING else dtypes.int64
        count = xp.index_add(x.shape, index, xp.ones(values.shape, kind))
        count = make_tensor(count + 1 if include_self else xp.maximum(count, 1), None)
        return cast_to((_divide if wide in dtypes.FLOATING else floor_divide)(total, count), dtype)

    return _scatter("scatter_reduce", combine, input, dim, index, src)


def _neutral(reduce, dtype):
    """What changes nothing when it is combined with a value."""
    if reduce in ("sum", "mean"):
        return 0
    return 1 if reduce == "prod" else limits(dtype)[reduce == "amin"]


def limits(dtype):
    """The smallest and largest values of a dtype, infinities included."""
    if dtype in dtypes.FLOATING:
        return -math.inf, math.inf
    if dtype == dtypes.bool_:
        return False, True
    info = dtypes.iinfo(dtype)
    return info.min, info.max


# index_*: one place for a whole slice

def _places(name, input, dim, index, *, dtypes_=(dtypes.int32, dtypes.int64), shape_error=IndexError,
            dtype_error=RuntimeError, range_error=IndexError, negative=False):
    """The axis, and the positions that a vector of places along it names."""
    axis = one_dim(name, dim, input.ndim)
    if index.ndim > 1:
        raise shape_error(f"{name} expected a vector as its index, got shape {index.shape}")
    if index.dtype not in dtypes_:
        raise dtype_error(f"{name} expected an index of {' or '.join(map(dtypes.dtype_name, dtypes_))}, got "
                          f"{dtypes.dtype_name(index.dtype)}")
    places = wrapped(name, index.array.reshape(-1), input, axis, range_error, negative=negative)
    return axis, (slice(None),) * axis + (places,)


def index_select(input, dim, index):
    """The slices at places along an axis; a copy.

    Args:
        index: a vector of int64 or int32.

    Raises:
        IndexError: for places out of range; negative ones are.
    """
    if input.ndim == 0 and index.ndim < 2 and index.array.size != 1:
        raise RuntimeError(f"index_select expected one place for a 0-d input, got {index.array.size}")
    _, positions = _places("index_select", input, dim, index)
    return reshape(_pick(reshape(input, 1), index=positions), ()) if input.ndim == 0 else _pick(input, index=positions)


def _indexed(function, input, source, axis, positions):
    """function of the input and a source that may lack axes of length 1."""
    x = _lifted(input)
    source = reshape(source, (*x.shape[:axis], positions[-1].size, *x.shape[axis + 1:]))
    return reshape(function(x, source, index=positions), input.shape)


@composed(Cast.WIDEST)
def index_add(input, dim, index, source, *, alpha=1):
    """A copy of the tensor with alpha times the slices of source added at places along an axis; repeated ones add up.

    Args:
        index: a vector of int64 or int32, as long as source along the axis.
        source: has the input's dtype and, along the other axes, its shape.

    Raises:
        RuntimeError: for a source of another shape or dtype, or (IndexError for a vector) places out of range.
    """
    axis, positions = _places("index_add", input, dim, index, range_error=IndexError if input.ndim < 2 else RuntimeError)
    same_dtype("index_add", input, source)
    want = (*input.shape[:axis], index.array.size, *input.shape[axis + 1:]) if input.ndim else ()
    if source.shape != want or (not input.ndim and index.array.size != 1):
        raise RuntimeError(f"index_add expected a source of shape {want}, got {source.shape}, with an index of "
                           f"{index.array.size} places along axis {axis} of shape {input.shape}")
    if alpha != 1:
        source = mul(source, alpha if source.dtype in dtypes.FLOATING else int(alpha))
    return _indexed(_add_at, input, source, axis, positions)


@composed(Cast.WIDEST)
def index_copy(input, dim, index, source):
    """A copy of the tensor with the slices of source at places along an axis; of repeated ones the last stays.

    Args:
        index: a vector of int64, as long as source along the axis.
        source: has the input's dtype and, along the other axes, its shape.

    Raises:
        IndexError: for places out of range.
    """
    axis, count = one_dim("index_copy", dim, input.ndim), index.array.size
    if source.ndim and input.ndim and source.ndim != input.ndim:
        raise IndexError(f"index_copy expected a source of {input.ndim} axes, as the input has, got shape {source.shape}")
    others = input.shape[:axis] + input.shape[axis + 1:]
    if source.shape[:axis] + source.shape[axis + 1:] != others and (source.ndim or math.prod(others) != 1):
        raise RuntimeError(f"index_copy expected slices of shape {others}, got a source of shape {source.shape}")
    if count != (source.shape[axis] if source.ndim else 1):
        raise IndexError(f"index_copy expected a source of {count} slices along axis {axis}, as its index has places, got "
                         f"shape {source.shape}")
    same_dtype("index_copy", input, source)
    axis, positions = _places("index_copy", input, dim, index, dtypes_=(dtypes.int64,))
    return _indexed(_replace_at, input, source, axis, positions)


def index_fill(input, dim, index, value):
    """A copy of the tensor with a number at all elements of the slices at places along an axis.

    Args:
        index: a vector of int64; negative places count from the end.
        value: a number or a 0-d tensor.
    """
    fill = scalar("index_fill", input, value)
    _, positions = _places("index_fill", input, dim, index, dtypes_=(dtypes.int64,), shape_error=RuntimeError,
                           dtype_error=IndexError, negative=True)
    return reshape(_replace_at(_lifted(input), fill, index=positions), input.shape)


def scalar(name, input, value):
    """A number, or a 0-d tensor in the input's dtype."""
    if not isinstance(value, Tensor):
        return value
    if value.ndim:
        raise RuntimeError(f"{name} expected value to be a number or a 0-d tensor, got shape {value.shape}")
    return cast_to(value, input.dtype)


# Positions in the flattened tensor

def take(input, index):
    """The elements at places (int64) of the flattened tensor, in the index's shape; negative places count from the end.

    Raises:
        IndexError: for places out of range.
    """
    flat = reshape(input, -1)
    return _pick(flat, index=(_flat_places("take", flat, index),))


def _flat_places(name, flat, index):
    if index.dtype != dtypes.int64:
        raise RuntimeError(f"{name} expected an index of int64, got {dtypes.dtype_name(index.dtype)}; cast it with .long()")
    return wrapped(name, index.array, flat, 0, IndexError)


@composed(Cast.WIDEST)
def put(input, index, source, accumulate=False):
    """A copy of the tensor with the elements of source at places (int64) of the flattened tensor.

    Args:
        source: has the input's dtype and as many elements as the index.
        accumulate: add them; else of repeated places the last stays.
    """
    flat = reshape(input, -1)
    places = _flat_places("put", flat, index).reshape(-1)
    same_dtype("put", input, source)
    if source.array.size != places.size:
        raise IndexError(f"put expected a source of {places.size} elements, as its index has, got {source.array.size}")
    return reshape((_add_at if accumulate else _replace_at)(flat, reshape(source, -1), index=(places,)), input.shape)


def take_along_dim(input, indices, dim=None):
    """The elements at places along an axis, as gather, where the other axes broadcast; None: of the flattened tensors.

    Args:
        indices: int64; negative places count from the end.
    """
    if indices.dtype != dtypes.int64:
        raise RuntimeError(f"take_along_dim expected indices of int64, got {dtypes.dtype_name(indices.dtype)}")
    if dim is None:
        flat = reshape(input, -1)
        return _pick(flat, index=(_flat_places("take_along_dim", flat, reshape(indices, -1)),))
    if input.ndim != indices.ndim:
        raise RuntimeError(f"take_along_dim expected as many axes in input and indices, got shapes {input.shape} and "
                           f"{indices.shape}")
    axis = one_dim("take_along_dim", dim, input.ndim)
    x, places = _lifted(input), _lifted(indices).array
    common = list(broadcast_shapes((*x.shape[:axis], 1, *x.shape[axis + 1:]),
                                   (*places.shape[:axis], 1, *places.shape[axis + 1:])))
    full, wide = (*common[:axis], places.shape[axis], *common[axis + 1:]), (*common[:axis], x.shape[axis], *common[axis + 1:])
    places = x.backend.broadcast_to(places, full)
    if places.size == 0:
        return _pick(reshape(x, -1), index=(x.backend.zeros(full, dtypes.int64),))
    x = expand(x, wide)
    picked = _pick(x, index=_grid("take_along_dim", x, axis, places, error=IndexError, negative=True))
    return reshape(picked, full if input.ndim else ())


METHODS = (gather, index_add, index_copy, index_fill, index_select, put, scatter, scatter_add, scatter_reduce, take,
           take_along_dim)
IN_PLACE = (index_add, index_copy, index_fill, put, scatter, scatter_add, scatter_reduce)
ON_TENSORS = {"combined_at": _combined_at}
