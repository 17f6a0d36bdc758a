"""Parts of a tensor along one axis: single places, ranges, pieces, overlapping windows. All are views."""

from __future__ import annotations

from operator import index as as_int

from ...autograd.op import Cast
from .. import dtypes
from ..apply import op
from ..dims import one_dim
from ..tensor import Tensor
from .indexing import _slice
from .shape import reshape

__all__ = ["chunk", "dsplit", "hsplit", "narrow", "select", "split", "tensor_split", "unbind", "vsplit"]


@op(Cast.KEEP)
def _split(xp, x, *, places, axis):
    """Pieces that follow each other; one node for all, whose backward is one concatenation."""
    return tuple([x[place] for place in places]), lambda gs: xp.concatenate(gs, axis)


@op(Cast.KEEP)
def _unbind(xp, x, *, places, axis):
    return tuple([x[place] for place in places]), lambda gs: xp.stack(gs, axis)


@op(Cast.KEEP, view=True)
def _windows(xp, x, *, axis, size, step):
    shape = x.shape
    return xp.windows(x, axis, size, step), lambda g: xp.add_windows(g, shape, axis, step)


@op(Cast.KEEP, wide=False)
def _add_windows(xp, g, *, shape, axis, step):
    size = g.shape[-1]
    return xp.add_windows(g, shape, axis, step), lambda gg: xp.windows(gg, axis, size, step)


def _views(function, input, places, axis):
    """The values of an op with several views for values; each is told what it is a view of."""
    if not places:
        return ()
    parts = function(input, places=tuple(places), axis=axis)
    for part, place in zip(parts, places):
        part.view_of = (input, _slice.op, {"index": place}, input.node)
    return parts


def _axis(name, input, dim):
    """The axis, of a tensor that must have one."""
    if input.ndim == 0:
        raise RuntimeError(f"{name} expected a tensor of at least one axis, got a 0-d one; use reshape(1) first")
    return one_dim(name, dim, input.ndim)


def select(input, dim, index):
    """The part at `index` along an axis, which the result lacks; a view.

    Raises:
        IndexError: if the axis has no such place.
    """
    if input.ndim == 0:
        raise IndexError("select expected a tensor of at least one axis, got a 0-d one")
    dim, index = one_dim("select", dim, input.ndim), as_int(index)
    length = input.shape[dim]
    if not -length <= index < length:
        raise IndexError(f"select expected an index in [{-length}, {length - 1}] for axis {dim} of shape {input.shape}, got "
                         f"{index}")
    return _slice(input, index=(slice(None),) * dim + (index % length, ...))


def narrow(input, dim, start, length):
    """`length` places along an axis from `start` (an integer or a 0-d tensor), which may count from the end; a view."""
    if isinstance(start, Tensor):
        if start.ndim or start.dtype not in dtypes.INTEGER:
            raise RuntimeError(f"narrow expected start as an integer or a 0-d integer tensor, got shape {start.shape} of "
                               f"{dtypes.dtype_name(start.dtype)}")
        start = int(start.numpy())
    dim, start, length = _axis("narrow", input, dim), as_int(start), as_int(length)
    have = input.shape[dim]
    if length < 0:
        raise RuntimeError(f"narrow expected a length that is not negative, got {length}")
    if not -have <= start <= have:
        raise IndexError(f"narrow expected start in [{-have}, {have}] for axis {dim} of shape {input.shape}, got {start}")
    start = start + have if start < 0 else start
    if start + length > have:
        raise RuntimeError(f"narrow expected start + length of at most {have} for axis {dim} of shape {input.shape}, got "
                           f"{start} + {length}")
    return _slice(input, index=_range(dim, start, start + length))


def _range(dim, start, stop):
    return (slice(None),) * dim + (slice(start, stop), ...)


def unbind(input, dim=0):
    """The parts at each place along an axis, a tuple of views without it."""
    if input.ndim == 0:
        raise IndexError("unbind expected a tensor of at least one axis, got a 0-d one")
    dim = one_dim("unbind", dim, input.ndim)
    return _views(_unbind, input, [(slice(None),) * dim + (i, ...) for i in range(input.shape[dim])], dim)


def split(input, split_size_or_sections, dim=0):
    """Pieces along an axis: of one length (the last may be shorter), or of the lengths in a sequence. Views.

    Raises:
        RuntimeError: if the lengths do not add up to the axis's.
    """
    dim = _axis("split", input, dim)
    have = input.shape[dim]
    if isinstance(split_size_or_sections, (tuple, list)):
        lengths = [as_int(n) for n in split_size_or_sections]
        if min(lengths, default=0) < 0 or sum(lengths) != have:
            raise RuntimeError(f"split expected lengths that add up to {have} for axis {dim} of shape {input.shape}, got "
                               f"{lengths}")
        return _pieces(input, lengths, dim)
    size = as_int(split_size_or_sections)
    if size < 0 or (size == 0 and have):
        raise RuntimeError(f"split expected a positive length, got {size}")
    full, rest = divmod(have, size) if size else (1, 0)
    lengths = [size] * full + [rest] * (rest > 0) if have else [0]
    return _pieces(input, lengths, dim)


def _pieces(input, lengths, dim):
    places, start = [], 0
    for length in lengths:
        places.append(_range(dim, start, start + length))
        start += length
    return _views(_split, input, places, dim)


def chunk(input, chunks, dim=0):
    """At most `chunks` pieces of equal length along an axis (the last may be shorter). Views."""
    dim, chunks = _axis("chunk", input, dim), as_int(chunks)
    if chunks <= 0:
        raise RuntimeError(f"chunk expected a positive number of chunks, got {chunks}")
    have = input.shape[dim]
    return split(input, -(-have // chunks), dim) if have else _pieces(input, [0] * chunks, dim)


def _indices_or_sections(name, *given):
    """The one argument that was given of those that mean the same."""
    found = [value for value in given if value is not None]
    if len(found) != 1:
        raise TypeError(f"{name} expected one of indices_or_sections, sections and indices, got {len(found)} of them")
    return found[0]


def tensor_split(input, indices_or_sections=None, dim=0, *, sections=None, indices=None, tensor_indices_or_sections=None):
    """Pieces along an axis: a number of them, or cut at indices (a sequence or a 1-d CPU tensor). Views.

    Lengths of a number of pieces differ by one at most; indices mean what they mean in slices.

    Args:
        sections, indices, tensor_indices_or_sections: indices_or_sections by PyTorch's keywords for it.
    """
    indices_or_sections = _indices_or_sections("tensor_split", indices_or_sections, sections, indices,
                                               tensor_indices_or_sections)
    dim = _axis("tensor_split", input, dim)
    have = input.shape[dim]
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.ndim > 1 or indices_or_sections.dtype.kind not in "iu":
            raise RuntimeError(f"tensor_split expected a 0-d or 1-d int64 tensor of indices, got shape "
                               f"{indices_or_sections.shape} and dtype {indices_or_sections.dtype}")
        indices_or_sections = indices_or_sections.numpy().tolist()
    if isinstance(indices_or_sections, (tuple, list)):
        cuts = [None, *[as_int(i) for i in indices_or_sections], None]
        return tuple(_slice(input, index=_range(dim, a, b)) for a, b in zip(cuts, cuts[1:]))
    sections = as_int(indices_or_sections)
    if sections <= 0:
        raise RuntimeError(f"tensor_split expected a positive number of sections, got {sections}")
    small, longer = divmod(have, sections)
    return _pieces(input, [small + 1] * longer + [small] * (sections - longer), dim)


def _split_axis(name, input, indices_or_sections, dim, least):
    if input.ndim < least:
        raise RuntimeError(f"{name} expected a tensor of at least {least} axes, got shape {input.shape}")
    if not isinstance(indices_or_sections, (tuple, list, Tensor)):
        sections = as_int(indices_or_sections)
        if sections <= 0 or input.shape[dim] % sections:
            raise RuntimeError(f"{name} expected a number of equal sections of axis {dim} of shape {input.shape}, got "
                               f"{sections}; use tensor_split for unequal ones")
    return tensor_split(input, indices_or_sections, dim)


def hsplit(input, indices_or_sections=None, *, sections=None, indices=None):
    """Equal pieces, or pieces cut at indices, along the second axis (the only one of a 1-d tensor). Views."""
    parts = _indices_or_sections("hsplit", indices_or_sections, sections, indices)
    return _split_axis("hsplit", input, parts, 0 if input.ndim == 1 else 1, 1)


def vsplit(input, indices_or_sections=None, *, sections=None, indices=None):
    """Equal pieces, or pieces cut at indices, along the first axis. Views."""
    parts = _indices_or_sections("vsplit", indices_or_sections, sections, indices)
    return _split_axis("vsplit", input, parts, 0, 2)


def dsplit(input, indices_or_sections=None, *, sections=None, indices=None):
    """Equal pieces, or pieces cut at indices, along the third axis. Views."""
    parts = _indices_or_sections("dsplit", indices_or_sections, sections, indices)
    return _split_axis("dsplit", input, parts, 2, 3)


def unfold(input, dimension, size, step):
    """Every step-th window of `size` elements along an axis; the window becomes a last axis. A view.

    Shapes: (..., n, ...) to (..., (n - size) // step + 1, ..., size)
    """
    axis, size, step = one_dim("unfold", dimension, input.ndim), as_int(size), as_int(step)
    have = input.shape[axis] if input.ndim else 1
    if not 0 <= size <= have or step <= 0:
        raise RuntimeError(f"unfold expected 0 <= size <= {have} and step > 0 for axis {axis} of shape {input.shape}, got size "
                           f"{size} and step {step}")
    if input.ndim == 0:
        return narrow(reshape(input, 1), 0, 0, size)
    return _windows(input, axis=axis, size=size, step=step)


def _windows_of(x, axis, size, step):
    return _windows(x, axis=axis, size=size, step=step)


def _windows_added(g, shape, axis, step):
    return _add_windows(g, shape=shape, axis=axis, step=step)


METHODS = (chunk, dsplit, hsplit, narrow, select, split, tensor_split, unbind, unfold, vsplit)
IN_PLACE = ()
ON_TENSORS = {"windows": _windows_of, "add_windows": _windows_added}
