"""Reading and writing parts of tensors: x[index] and x[index] = value, and what places values in a copy.

An index means what it means in NumPy, with PyTorch's two differences: integers are applied first, as views, so that they do
not count among the index arrays; and a list that holds slices, None or ... stands for a tuple.
"""

from __future__ import annotations

from operator import index as as_int

import numpy as np

from ...autograd import edits
from ...autograd.graph import Node
from ...autograd.mode import state
from ...autograd.op import Cast, Promote
from .. import dtypes, inplace
from ..apply import composed, op
from ..convert import to_array
from ..dims import one_dim
from ..tensor import Tensor, make_tensor
from .shape import movedim, reshape

__all__ = ["diagonal_scatter", "index_put", "select_scatter", "slice_scatter"]


# Primitives. `index` is a tuple: of ints, slices, None and ... (basic), or as kernels/scatter.py describes it (positions)

@op(Cast.KEEP, view=True)
def _slice(xp, x, *, index):
    """x[index] for a basic index: a view."""
    shape = x.shape
    return x[index], lambda g: xp.unslice(g, shape, index)


@op(Cast.KEEP)
def _unslice(xp, g, *, shape, index):
    return xp.unslice(g, shape, index), lambda h: h[index]


@op(Cast.KEEP)
def _pick(xp, x, *, index):
    """x[index] for positions: a copy."""
    shape = x.shape
    return xp.pick(x, index), lambda g: xp.index_add(shape, index, g)


@op(Cast.KEEP)
def _index_add(xp, g, *, shape, index):
    return xp.index_add(shape, index, g), lambda h: xp.pick(h, index)


@op(Cast.WIDEST, promote=Promote.NONE)
def _replace_at(xp, x, values, *, index):
    """A copy of x with values at [index]; a value that a later one replaces gets no gradient."""
    return xp.replaced_at(x, index, values), (lambda g: xp.cleared_at(g, index), _value_gradient(xp, x.shape, index))


def _value_gradient(xp, shape, index):
    return lambda g: xp.keep_last(xp.pick(g, index), shape, index)


@op(Cast.WIDEST, promote=Promote.NONE)
def _add_at(xp, x, values, *, index):
    """A copy of x with values added at [index]."""
    return xp.added_at(x, index, values), (lambda g: g, lambda g: xp.pick(g, index))


@op(Cast.KEEP)
def _clear_at(xp, x, *, index):
    return xp.cleared_at(x, index), lambda g: xp.cleared_at(g, index)


@op(Cast.KEEP)
def _keep_last(xp, values, *, shape, index):
    return xp.keep_last(values, shape, index), lambda g: xp.keep_last(g, shape, index)


# Understanding an index

_BASIC = frozenset({int, slice, type(None), type(...)})
_ARRAY_LIKE = (Tensor, np.ndarray, list, tuple, range)


def _basic(index):
    """The index as a tuple with ... in it if it is a basic one, else None."""
    if index.__class__ is not tuple:
        if index.__class__ not in _BASIC:
            return None
        return (index,) if index is ... else (index, ...)
    dots = False
    for entry in index:
        if entry.__class__ not in _BASIC:
            return None
        dots = dots or entry is ...
    return index if dots else (*index, ...)


def _parts(input, index):
    """The basic index and the positions in what it shows, either of which may be None."""
    if index.__class__ is Tensor and index.array.dtype == dtypes.int64 and index.ndim and input.ndim:  # the common case
        return None, (wrapped("indexing", _on_device(index, input), input, 0, IndexError),)
    if isinstance(index, list) and any(isinstance(entry, (slice, type(None), type(...))) for entry in index):
        index = tuple(index)
    entries = [_entry(input, entry) for entry in (index if isinstance(index, tuple) else (index,))]
    entries = _without_dots(entries, input.shape)
    basic: list = []
    found: list = []  # positions, an entry for each axis of what the basic index shows
    axis = 0
    for entry in entries:
        if not hasattr(entry, "dtype"):
            basic.append(entry)
            found += [] if isinstance(entry, int) else [slice(None)]
            axis += entry is not None
        elif entry.dtype != dtypes.bool_:
            basic.append(slice(None))
            found.append(wrapped("indexing", entry, input, axis, IndexError))
            axis += 1
        else:
            basic += [slice(None)] * entry.ndim if entry.ndim else [None]
            found += _true_positions(input, entry, axis)
            axis += entry.ndim
    while found and isinstance(found[-1], slice):
        found.pop()
    trivial = all(isinstance(entry, slice) and entry == slice(None) for entry in basic)
    return None if trivial else (*basic, ...), tuple(found) or None


def _entry(input, entry):
    """One entry of an index: an int, a slice, None, ..., or an array of integers or bools on the tensor's device."""
    if entry.__class__ in _BASIC:
        return entry
    if isinstance(entry, (bool, np.bool_)):
        return to_array(bool(entry), device=input.device)
    if isinstance(entry, _ARRAY_LIKE) or hasattr(entry, "dtype"):
        source = _on_device(entry, input)
        if source.size == 0 and isinstance(entry, (list, tuple)):
            source = to_array(source, dtypes.int64)
        if source.dtype == dtypes.uint8 or source.dtype not in (*dtypes.INTEGER, dtypes.bool_):
            raise IndexError(f"indexing expected tensors of bool (a mask) or of signed integers (positions), got "
                             f"{dtypes.dtype_name(source.dtype)}; cast it with .bool() or .long()")
        return int(source) if source.ndim == 0 and source.dtype != dtypes.bool_ else source
    try:
        return as_int(entry)
    except TypeError:
        raise IndexError(f"indexing expected integers, slices, None, ..., and arrays, lists or tensors of integers or bools, "
                         f"got {type(entry).__name__}") from None


def _on_device(entry, input):
    """The array of an index on the input's device."""
    source = entry.array if isinstance(entry, Tensor) else entry
    if source.__class__ is input.array.__class__:
        return source
    return to_array(list(entry) if isinstance(entry, (tuple, range)) else entry, device=input.device)


def _without_dots(entries, shape):
    """The entries with ... written out as slices."""
    dots = [i for i, entry in enumerate(entries) if entry is ...]
    used = sum(entry.ndim if getattr(entry, "dtype", None) == dtypes.bool_ else entry is not None and entry is not ...
               for entry in entries)
    if len(dots) > 1:
        raise IndexError("indexing expected at most one ..., got several")
    if used > len(shape):
        raise IndexError(f"indexing expected at most {len(shape)} entries for a tensor of shape {shape}, got {used}")
    if not dots:
        return entries
    return [*entries[:dots[0]], *[slice(None)] * (len(shape) - used), *entries[dots[0] + 1:]]


def _true_positions(input, mask, axis):
    """The positions of True, an array per axis of the mask; a 0-d mask indexes a new axis of length 1."""
    xp = input.backend
    if mask.ndim == 0:
        return [xp.arange(int(mask))]
    if mask.shape != input.shape[axis:axis + mask.ndim]:
        raise IndexError(f"indexing expected a mask of the tensor's shape {input.shape[axis:axis + mask.ndim]} from axis "
                         f"{axis} on, got {mask.shape}")
    return list(xp.nonzero(mask))


def wrapped(name, index, input, axis, error, *, negative=True):
    """The positions along an axis as int64, negative ones counted from the end.

    Raises:
        error: where one is out of range; says who (`name`) expected what along which axis.
    """
    xp, size = input.backend, input.shape[axis] if input.ndim else 1
    index = xp.asarray(index, dtypes.int64)
    if xp.out_of_range(index, 0, size) is None:
        return index
    bad = xp.out_of_range(index, -size if negative else 0, size)
    if bad is not None:
        expected = f"indices in [{-size if negative else 0}, {size - 1}]" if size else "no indices"
        raise error(f"{name} expected {expected} for axis {axis} of size {size}, got {bad}")
    return xp.where(index < 0, index + size, index)


# x[index] and x[index] = value

def getitem(input, index):
    """x[index]: a view for integers, slices, None and ..., a copy where masks, lists or integer tensors are among them.

    Raises:
        IndexError: for positions out of range, masks of another shape than the axes they index, or what is no index.
    """
    basic = _basic(index)
    if basic is not None:
        try:
            return _slice(input, index=basic)
        except IndexError as error:
            raise _explained(error, input, index) from None
    basic, positions = _parts(input, index)
    if basic is not None or positions is None:
        input = getitem(input, (...,) if basic is None else basic)
    if positions is None:
        return input
    try:
        return _pick(input, index=positions)
    except IndexError as error:
        raise _explained(error, input, index) from None


def _explained(error, input, index):
    return IndexError(f"indexing a tensor of shape {input.shape}: {error}")


def setitem(input, index, value):
    """x[index] = value in place; of a repeated position the last write wins.

    The gradient of what is overwritten is 0; the value, a number or whatever broadcasts to x[index], gets the gradient of
    its places. At a repeated position only the write that won gets one, where PyTorch hands it to all of them. A number
    that is finite but too large for a floating dtype becomes its largest where the index is a mask.

    Raises:
        IndexError: as x[index].
        RuntimeError: if the value has another shape or is a number that an integer dtype cannot hold, or the tensor is a
            leaf that requires grad.
    """
    inplace.check_writable(input, "setitem")
    basic, positions = _basic(index), None
    if basic is None:
        basic, positions = _parts(input, index)
        if isinstance(value, (int, float, np.generic)) and input.dtype in dtypes.FLOATING and _has_mask(index):
            value = dtypes.saturated(value, input.dtype)
        if basic is not None and positions is not None:
            input, basic = getitem(input, basic), None
    _place(input, basic or positions or (...,), value)


def _has_mask(index):
    """True if a mask is an entry of the index."""
    if isinstance(index, tuple):
        return any(map(_has_mask, index))
    while isinstance(index, list) and index:
        index = index[0]
    return isinstance(index, bool) or getattr(index, "dtype", None) == dtypes.bool_


def _place(input, index, value):
    array = input.array
    if inplace.history_written:
        inplace.refresh_views((input, value))
    if value.__class__ is not Tensor and not isinstance(value, (int, float)):
        value = make_tensor(to_array(value, device=input.device), None)
    elif isinstance(value, Tensor) and value.device != input.device:
        if value.ndim:
            raise RuntimeError(f"setitem expected a value on {input.device}, got one on {value.device}; move it with .to()")
        value = value.to(input.device)
    try:
        with np.errstate(all="ignore"):  # what is too large for the dtype becomes inf, as in PyTorch
            array[index] = value.array if isinstance(value, Tensor) else value
    except OverflowError:  # of a number in an integer tensor
        array[index] = dtypes.fitting("setitem", value, array.dtype)
    except ValueError as error:
        raise RuntimeError(f"setitem expected a value that broadcasts to the part of shape {array[index].shape}, and memory "
                           f"that may be written, for a tensor of shape {array.shape}: {error}") from None
    except IndexError as error:
        raise _explained(error, input, index) from None
    edits.record_edit(array)
    node = getattr(value, "node", None)
    if not state.grad or (node is None and input.node is None and input.view_of is None):
        return
    if array.dtype in dtypes.FLOATING and (node is not None or input.node is not None):
        node = _put_node(input, index, value, node)
    inplace.set_history(input, make_tensor(array, node))


def _put_node(input, index, value, source):
    """The node of a tensor after a value, whose node is `source`, was written at [index]."""
    xp, shape, ndim = input.backend, input.shape, getattr(value, "ndim", 0)
    part = _value_gradient(xp, shape, index)

    def value_gradient(g):
        h = part(g)
        return h if h.ndim >= ndim else xp.reshape(h, (1,) * (ndim - h.ndim) + h.shape)  # NumPy drops leading axes of 1

    pullback = (None if input.node is None else lambda g: xp.cleared_at(g, index), None if source is None else value_gradient)
    return Node(_replace_at.op, xp, (input.node, source), pullback, shape, input.dtype)


getitem.__name__, setitem.__name__ = "__getitem__", "__setitem__"


# Values placed in a copy

@composed(Cast.WIDEST)
def index_put(input, indices, values, accumulate=False):
    """A copy of the tensor with values at [indices].

    Args:
        indices: a tuple of tensors of integers or bools, as in x[indices].
        values: a tensor of the input's dtype whose shape broadcasts to that of x[indices].
        accumulate: add the values, repeated positions included; else of a repeated position the last write wins, and only
            that value gets a gradient (PyTorch hands it to all of them).
    """
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put expected its indices as a tuple of tensors, got {type(indices).__name__}")
    if not indices or not all(isinstance(index, Tensor) for index in indices):
        raise TypeError("index_put expected at least one index, and tensors only")
    same_dtype("index_put", input, values)
    basic, positions = _parts(input, tuple([_with_axis(index) for index in indices]))
    if basic is not None:
        raise IndexError("index_put expected masks with at least one axis, got a 0-d mask")
    target = input.array[positions].shape
    lead = values.ndim - len(target)
    if lead > 0 and values.shape[:lead] == (1,) * lead:
        values, lead = reshape(values, values.shape[lead:]), 0
    if lead > 0 or any(n not in (1, want) for n, want in zip(values.shape[::-1], target[::-1])):
        raise RuntimeError(f"index_put expected values that broadcast to shape {target}, got {values.shape}")
    return (_add_at if accumulate else _replace_at)(input, values, index=positions)


def _with_axis(index):
    """Positions of at least one axis, which are no ints to index by first."""
    return reshape(index, 1) if index.ndim == 0 and index.dtype != dtypes.bool_ else index


def same_dtype(name, input, source):
    """Refuse a source of another dtype than the input's."""
    if source.dtype != input.dtype:
        raise RuntimeError(f"{name} expected a source of the input's dtype {dtypes.dtype_name(input.dtype)}, got "
                           f"{dtypes.dtype_name(source.dtype)}; cast one of them")


def _embed(name, input, src, index):
    """A copy of the tensor with src, of exactly the part's shape, at a basic index."""
    shape = input.array[index].shape
    if src.shape != shape:
        raise RuntimeError(f"{name} expected a src of shape {shape}, that of the part it replaces, got {src.shape}")
    return _replace_at(input, src, index=index)


@composed(Cast.WIDEST)
def select_scatter(input, src, dim, index):
    """A copy of the tensor with src in place of the part at `index` along an axis, input.select(dim, index)."""
    dim, index = one_dim("select_scatter", dim, input.ndim), as_int(index)
    size = input.shape[dim] if input.ndim else 0
    if not -size <= index < size:
        raise IndexError(f"select_scatter expected an index in [{-size}, {size - 1}] for axis {dim} of shape {input.shape}, "
                         f"got {index}")
    return _embed("select_scatter", input, src, (slice(None),) * dim + (index, ...))


@composed(Cast.WIDEST)
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """A copy of the tensor with src in place of every step-th place from start to end along an axis."""
    dim = one_dim("slice_scatter", dim, input.ndim)
    if step <= 0:
        raise RuntimeError(f"slice_scatter expected a positive step, got {step}")
    return _embed("slice_scatter", input, src, (slice(None),) * dim + (slice(start, end, step), ...))


@composed(Cast.WIDEST)
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """A copy of the tensor with src in place of input.diagonal(offset, dim1, dim2)."""
    axes = one_dim("diagonal_scatter", dim1, input.ndim), one_dim("diagonal_scatter", dim2, input.ndim)
    if axes[0] == axes[1]:
        raise RuntimeError(f"diagonal_scatter expected two different dims, got {dim1} and {dim2}")
    xp, moved = input.backend, movedim(input, axes, (0, 1))
    length = max(0, min(moved.shape[0] + min(offset, 0), moved.shape[1] - max(offset, 0)))
    if src.shape != (*moved.shape[2:], length):
        raise RuntimeError(f"diagonal_scatter expected a src of shape {(*moved.shape[2:], length)}, that of the diagonal, got "
                           f"{src.shape}")
    places = xp.arange(length)
    index = (places - min(offset, 0), places + max(offset, 0))
    return movedim(_replace_at(moved, movedim(src, -1, 0), index=index), (0, 1), axes)


METHODS = (getitem, setitem, diagonal_scatter, index_put, select_scatter, slice_scatter)
IN_PLACE = (index_put,)
ON_TENSORS = {"pick": lambda x, index: _pick(x, index=index),
              "index_add": lambda shape, index, g: _index_add(g, shape=shape, index=index),
              "unslice": lambda g, shape, index: _unslice(g, shape=shape, index=index),
              "replaced_at": lambda x, index, values: _replace_at(x, values, index=index),
              "added_at": lambda x, index, values: _add_at(x, values, index=index),
              "cleared_at": lambda x, index: _clear_at(x, index=index),
              "keep_last": lambda values, shape, index: _keep_last(values, shape=shape, index=index)}
