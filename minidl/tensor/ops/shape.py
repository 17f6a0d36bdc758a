"""Functions that say how the same elements are laid out: casts, copies, shapes, the order of axes, broadcasting.

Wherever the memory allows it their values are views: they share the input's memory, and writes through them reach it.
"""

from __future__ import annotations

import math

import numpy as np

from ...autograd.edits import owner_of
from ...autograd.op import Cast
from .. import dtypes
from ..apply import composed, op
from ..dims import one_dim, some_dims
from ..sizes import sizes_of
from ..tensor import make_tensor

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors", "broadcast_to", "clone",
           "flatten", "moveaxis", "movedim", "permute", "ravel", "reshape", "squeeze", "swapaxes", "swapdims", "t",
           "transpose", "unflatten", "unsqueeze"]


@op(Cast.KEEP, view=True)
def _reshape(xp, x, *, shape):
    before = x.shape
    return xp.reshape(x, shape), lambda g: xp.reshape(g, before)


@op(Cast.KEEP, view=True)
def _permute(xp, x, *, axes):
    return xp.transpose(x, axes), lambda g: xp.transpose(g, _inverse(axes))


@op(Cast.KEEP, view=True)
def _expand(xp, x, *, shape):
    if math.prod(shape) == math.prod(x.shape):  # NumPy's broadcasting would make it read-only
        return xp.reshape(x, shape), lambda g: g
    return xp.broadcast_to(x, shape), lambda g: g  # the engine sums over broadcast axes


@op(Cast.KEEP)
def _sum_to(xp, x, *, shape):
    before = x.shape
    return xp.sum_to(x, shape), lambda g: xp.broadcast_to(g, before)


@op(Cast.KEEP)
@np.errstate(all="ignore")  # what is too large for the dtype becomes inf, as in PyTorch
def _cast(xp, x, *, dtype):
    return xp.asarray(x, dtype), lambda g: g  # the engine casts to the input's dtype


@op(Cast.KEEP)
def clone(xp, input):
    """A copy of the tensor, through which gradients flow back to it."""
    return input.copy(), lambda g: g


def cast_to(input, dtype):
    """The tensor in another dtype; itself where it has that dtype."""
    dtype = dtypes.as_dtype(dtype)
    return input if input.dtype == dtype else _cast(input, dtype=dtype)


def contiguous(input):
    """The tensor itself where its elements lie in row-major order without gaps, else a copy that is laid out so."""
    return input if input.array.flags.c_contiguous else clone(input)


# Shapes

def reshape(input, shape, *more):
    """The same elements in another shape; one length may be -1 and is inferred. A view where the memory allows it.

    Raises:
        RuntimeError: if the shape asks for another number of elements.
    """
    shape = _resolve("reshape", sizes_of("reshape", shape, more), input.array)
    return _reshape_view(input, shape)


def view(input, size=None, *more, dtype=None):
    """The same memory in another shape, or its bytes as another dtype: `x.view(2, -1)`, `x.view(minidl.int32)`.

    Raises:
        RuntimeError: if the memory does not allow it; use reshape.
    """
    if dtype is not None or isinstance(size, (np.dtype, type)):
        return _view_dtype(input, dtypes.as_dtype(size if dtype is None else dtype))
    shape = _resolve("view", sizes_of("view", size, more), input.array)
    out = _reshape_view(input, shape)
    if out.view_of is None:
        raise RuntimeError(f"view expected memory that can be read as shape {shape} without copying, got a tensor of shape "
                           f"{input.shape} whose axes are not laid out so; use reshape")
    return out


def _reshape_view(input, shape):
    out = _reshape(input, shape=shape)
    if not input.array.flags.c_contiguous and owner_of(out.array) is not owner_of(input.array):
        out.view_of = None  # it had to be copied
    return out


def _view_dtype(input, dtype):
    if dtype == input.dtype:
        return _reshape(input, shape=input.shape)
    try:
        return make_tensor(input.array.view(dtype), None)
    except ValueError as error:
        raise RuntimeError(f"view as {dtypes.dtype_name(dtype)} expected a last axis of whole elements that lie side by "
                           f"side, got shape {input.shape} of {dtypes.dtype_name(input.dtype)} ({error})") from None


def _resolve(name, shape, array):
    """`shape` with its -1 replaced by the length that keeps the number of elements."""
    total = array.size
    if math.prod(shape) == total and min(shape, default=0) >= 0:
        return shape
    if shape.count(-1) == 1:
        rest = -math.prod(shape)
        if rest > 0 and total % rest == 0 and min(shape) == -1:
            return tuple([total // rest if n == -1 else n for n in shape])
    raise RuntimeError(f"{name} expected a shape of {total} elements with at most one length of -1 that they decide, got "
                       f"{shape} for a tensor of shape {array.shape}")


def reshape_as(input, other):
    """The same elements in the shape of `other`."""
    return reshape(input, other.shape)


def view_as(input, other):
    """The same memory in the shape of `other`."""
    return view(input, other.shape)


def ravel(input):
    """The tensor as one axis; a view where the memory allows it."""
    return reshape(input, -1)


def flatten(input, start_dim=0, end_dim=-1):
    """The axes from start_dim to end_dim, both included, as one axis."""
    start, end = one_dim("flatten", start_dim, input.ndim), one_dim("flatten", end_dim, input.ndim)
    if start > end:
        raise RuntimeError(f"flatten expected start_dim before end_dim, got {start_dim} and {end_dim} for a tensor of "
                           f"{input.ndim} axes")
    if start == end and input.ndim:
        return input
    shape = input.shape
    return _reshape_view(input, (*shape[:start], math.prod(shape[start:end + 1]), *shape[end + 1:]))


def unflatten(input, dim, sizes):
    """One axis as several of the lengths `sizes`, of which one may be -1."""
    dim = one_dim("unflatten", dim, input.ndim)
    sizes = sizes_of("unflatten", sizes)
    length = input.shape[dim] if input.ndim else 1
    rest = math.prod(n for n in sizes if n != -1)
    fits = length % rest == 0 if rest and sizes.count(-1) == 1 else rest == length and -1 not in sizes
    if not sizes or not fits or min(sizes) < -1:
        raise RuntimeError(f"unflatten expected sizes of {length} elements for axis {dim} of shape {input.shape}, got {sizes}")
    sizes = tuple(length // rest if n == -1 else n for n in sizes)
    return _reshape_view(input, (*input.shape[:dim], *sizes, *input.shape[dim + 1:]))


def squeeze(input, dim=None):
    """Without its axes of length 1: all of them, or those among `dim` (an axis or a sequence of axes)."""
    shape = input.shape
    if dim is None:
        return _reshape_view(input, tuple([n for n in shape if n != 1]))
    dims = () if isinstance(dim, (tuple, list)) and not dim else some_dims("squeeze", dim, input.ndim)
    return _reshape_view(input, tuple([n for i, n in enumerate(shape) if n != 1 or i not in dims]))


def unsqueeze(input, dim):
    """With an axis of length 1 put in at `dim`."""
    dim = one_dim("unsqueeze", dim, input.ndim + 1)
    return _reshape_view(input, (*input.shape[:dim], 1, *input.shape[dim:]))


def _each(function, tensors):
    """`function` of a tensor, or the tuple of its values for several tensors or one sequence of them."""
    if len(tensors) == 1:
        if not isinstance(tensors[0], (tuple, list)):
            return function(tensors[0])
        tensors = tensors[0]
    return tuple(function(tensor) for tensor in tensors)


def atleast_1d(*tensors):
    """Each tensor with at least one axis; a tuple for several tensors or a sequence."""
    return _each(lambda x: reshape(x, 1) if x.ndim == 0 else x, tensors)


def atleast_2d(*tensors):
    """Each tensor with at least two axes, new ones in front; a tuple for several tensors or a sequence."""
    return _each(lambda x: reshape(x, 1, -1 if x.numel() else 0) if x.ndim < 2 else x, tensors)


def atleast_3d(*tensors):
    """Each tensor with at least three axes: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1); as atleast_1d."""
    return _each(lambda x: x if x.ndim > 2 else unsqueeze(x if x.ndim == 2 else atleast_2d(x), -1), tensors)


# Order of the axes

def permute(input, dims, *more):
    """The axes in another order; a view.

    Raises:
        RuntimeError: if dims does not name each axis once.
    """
    given = sizes_of("permute", dims, more)
    ndim = input.ndim
    axes = tuple([d + ndim if d < 0 else d for d in given])
    if sorted(axes) != list(range(ndim)):
        for d in given:
            one_dim("permute", d, ndim)
        raise RuntimeError(f"permute expected each of the {ndim} axes once, got dims {given}")
    return _permute(input, axes=axes)


def transpose(input, dim0, dim1):
    """Two axes exchanged; a view."""
    ndim = input.ndim
    dim0, dim1 = one_dim("transpose", dim0, ndim), one_dim("transpose", dim1, ndim)
    axes = list(range(ndim))
    if ndim:
        axes[dim0], axes[dim1] = dim1, dim0
    return _permute(input, axes=tuple(axes))


def swapaxes(input, axis0, axis1):
    """Two axes exchanged, as transpose."""
    return transpose(input, axis0, axis1)


def swapdims(input, dim0, dim1):
    """Two axes exchanged, as transpose."""
    return transpose(input, dim0, dim1)


def t(input):
    """The transpose of a matrix; tensors of fewer axes as they are."""
    if input.ndim > 2:
        raise RuntimeError(f"t expected a tensor of at most 2 axes, got shape {input.shape}; use permute or transpose")
    return _permute(input, axes=tuple(reversed(range(input.ndim))))


def movedim(input, source, destination):
    """The axes `source` moved to the places `destination`; the others keep their order. A view."""
    ndim = input.ndim
    source, destination = sizes_of("movedim", source), sizes_of("movedim", destination)
    if len(source) != len(destination):
        raise RuntimeError(f"movedim expected as many destinations as sources, got {destination} for {source}")
    source = some_dims("movedim", source, ndim) if source else ()
    destination = some_dims("movedim", destination, ndim) if destination else ()
    if not ndim:
        return _permute(input, axes=())
    axes = [axis for axis in range(ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        axes.insert(to, axis)
    return _permute(input, axes=tuple(axes))


def moveaxis(input, source, destination):
    """The axes `source` moved to the places `destination`, as movedim."""
    return movedim(input, source, destination)


def _inverse(axes):
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


# Broadcasting

def expand(input, size, *more):
    """The tensor broadcast to a larger shape without copying; -1 keeps a length.

    Raises:
        RuntimeError: if an axis longer than 1 would change its length.
    """
    given = sizes_of("expand", size, more)
    before = input.shape
    lead = len(given) - len(before)
    old = (-1,) * lead + before
    shape = tuple([o if n == -1 else n for o, n in zip(old, given)])
    if lead < 0 or min(shape, default=0) < 0 or any(n != o and o != 1 for o, n in zip(before, shape[lead:])):
        raise RuntimeError(f"expand expected a size to which shape {before} broadcasts, with -1 for existing axes only, "
                           f"got {given}")
    return _expand(input, shape=shape)


def expand_as(input, other):
    """The tensor broadcast to the shape of `other` without copying."""
    return expand(input, other.shape)


def broadcast_to(input, size=None, *, shape=None):
    """The tensor broadcast to a larger shape without copying; -1 keeps a length. `shape` is another name of size."""
    if (size is None) == (shape is None):
        raise TypeError(f"broadcast_to expected one of size and shape, got size={size} and shape={shape}")
    return expand(input, shape if size is None else size)


def broadcast_shapes(*shapes):
    """The shape in which shapes (tuples or integers) meet by broadcasting.

    Raises:
        RuntimeError: if they do not.
    """
    shapes = tuple(sizes_of("broadcast_shapes", shape) for shape in shapes)
    out = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        if min(shape, default=0) < 0:
            raise RuntimeError(f"broadcast_shapes expected lengths that are not negative, got {shape}")
        for i, n in enumerate(reversed(shape), 1):
            if n != 1 and out[-i] not in (1, n):
                raise RuntimeError(f"broadcasting expected equal lengths or 1 at each axis from the last, got shapes {shapes}")
            out[-i] = out[-i] if n == 1 else n
    return tuple(out)


def broadcast_tensors(*tensors):
    """The tensors broadcast to their common shape without copying, a tuple."""
    shape = broadcast_shapes(*[tensor.shape for tensor in tensors])
    return tuple(expand(tensor, shape) for tensor in tensors)


@composed(Cast.FULL)
def sum_to_size(input, *size):
    """The tensor summed over the axes along which `size` broadcasts to its shape; sums of integers are int64."""
    size = sizes_of("sum_to_size", size[0] if len(size) == 1 else size)
    lead = input.ndim - len(size)
    if lead < 0 or any(n not in (1, have) for n, have in zip(size, input.shape[lead:])):
        raise RuntimeError(f"sum_to_size expected a size that broadcasts to the shape {input.shape}, got {size}")
    if input.dtype not in dtypes.FLOATING and (size != input.shape or not size):
        input = cast_to(input, dtypes.int64)
    return input if size == input.shape else _sum_to(input, shape=size)


# In-place forms that change what the tensor is, not what its memory holds

def _become(tensor, function, *args):
    """Make `tensor` what `function` shows of it."""
    before = make_tensor(tensor.array, tensor.node)
    before.view_of = tensor.view_of
    after = function(before, *args)
    if tensor.node is not None and tensor.is_leaf:
        raise RuntimeError("changing the shape in place expected a tensor whose history can change, got a leaf that requires "
                           "grad; use the out-of-place form")
    tensor.array, tensor.node, tensor.view_of = after.array, after.node, after.view_of
    return tensor


def squeeze_(input, dim=None):
    """In-place form of squeeze: the tensor itself loses axes."""
    return _become(input, squeeze, dim)


def unsqueeze_(input, dim):
    """In-place form of unsqueeze: the tensor itself gets an axis."""
    return _become(input, unsqueeze, dim)


def transpose_(input, dim0, dim1):
    """In-place form of transpose: the tensor's own axes are exchanged."""
    return _become(input, transpose, dim0, dim1)


def t_(input):
    """In-place form of t."""
    return _become(input, t)


def _transpose_axes(x, axes=None):
    return _permute(x, axes=tuple(reversed(range(x.ndim))) if axes is None else tuple(axes))


def _expand_dims(x, axis):
    return unsqueeze(x, axis)


def _sum_to_shape(x, shape):
    return sum_to_size(x, tuple(shape))


METHODS = (broadcast_to, cast_to, clone, contiguous, expand, expand_as, flatten, moveaxis, movedim, permute, ravel,
           reshape, reshape_as, squeeze, squeeze_, sum_to_size, swapaxes, swapdims, t, t_, transpose, transpose_,
           unflatten, unsqueeze, unsqueeze_, view, view_as)
IN_PLACE = ()
ON_TENSORS = {"reshape": reshape, "transpose": _transpose_axes, "swapaxes": transpose, "moveaxis": movedim,
              "broadcast_to": broadcast_to, "sum_to": _sum_to_shape, "expand_dims": _expand_dims, "squeeze": squeeze,
              "ravel": ravel}
