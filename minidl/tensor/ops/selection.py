"""Elements chosen by masks, and positions found: masked_*, nonzero, isin, searchsorted, bucketize."""

from __future__ import annotations

from ...autograd.op import Cast
from .. import dtypes
from ..apply import composed
from ..tensor import Tensor, make_tensor
from .binary import is_number
from .comparison import _where, where
from .gathering import scalar
from .indexing import _pick, _replace_at, same_dtype
from .shape import broadcast_shapes, expand, reshape

__all__ = ["argwhere", "bucketize", "fill", "isin", "masked_fill", "masked_scatter", "masked_select", "nonzero", "searchsorted"]


# Masks

def _check_mask(name, mask):
    if mask.dtype != dtypes.bool_:
        raise RuntimeError(f"{name} expected a bool mask, got {dtypes.dtype_name(mask.dtype)}; cast it with .bool()")


def masked_fill(input, mask, value):
    """A copy of the tensor with a number where the mask is True.

    Args:
        mask: bool; its shape and the input's broadcast.
        value: a number or a 0-d tensor. What is finite but too large for a floating dtype becomes its largest number.
    """
    _check_mask("masked_fill", mask)
    fill = scalar("masked_fill", input, value)
    if not isinstance(fill, Tensor):
        fill = dtypes.fitting("masked_fill", fill, input.dtype)
    return _where(fill, input, condition=mask.array)


def fill(input, value):
    """A tensor of the input's shape and dtype with the same value everywhere: a number, or a 0-d tensor."""
    return masked_fill(input, make_tensor(input.backend.ones((), dtypes.bool_), None), value)


def _flat(name, input, mask):
    """The common shape, the input flattened in it, and the positions of True there."""
    _check_mask(name, mask)
    shape = broadcast_shapes(input.shape, mask.shape)
    xp = input.backend
    mask = mask.array if mask.shape == shape else xp.broadcast_to(mask.array, shape)
    return shape, reshape(expand(input, shape), -1), (xp.nonzero(mask.reshape(-1))[0],)


def masked_select(input, mask):
    """The elements where the mask is True, in order, as a vector; shapes broadcast."""
    _, flat, positions = _flat("masked_select", input, mask)
    return _pick(flat, index=positions)


@composed(Cast.WIDEST)
def masked_scatter(input, mask, source):
    """A copy of the tensor with the elements of source, in order, where the mask is True.

    Args:
        mask: bool; its shape and the input's broadcast.
        source: has the input's dtype and at least as many elements as the mask has True.
    """
    same_dtype("masked_scatter", input, source)
    shape, flat, positions = _flat("masked_scatter", input, mask)
    count = positions[0].size
    if source.array.size < count:
        raise RuntimeError(f"masked_scatter expected a source of at least {count} elements, as the mask has True, got "
                           f"{source.array.size}")
    return reshape(_replace_at(flat, reshape(source, -1)[:count], index=positions), shape)


# Positions

def nonzero(input, *, as_tuple=False):
    """The positions of the elements other than 0, (n, ndim) int64, in row-major order.

    Args:
        as_tuple: one vector per axis instead, as x[nonzero(x, as_tuple=True)] takes them; a 0-d tensor counts as a vector.
    """
    if as_tuple:
        return where(input)
    xp = input.backend
    if input.ndim == 0:
        return make_tensor(xp.zeros((int(bool(input.array)), 0), dtypes.int64), None)
    return make_tensor(xp.stack(xp.nonzero(input.array), 1), None)


def argwhere(input):
    """The positions of the elements other than 0, as nonzero."""
    return nonzero(input)


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """True for each element that is among test_elements; nan never is. Either may be a number.

    Args:
        assume_unique: accepted for PyTorch's sake.
        invert: True for those that are not.
    """
    tensors = [x for x in (elements, test_elements) if isinstance(x, Tensor)]
    if not tensors or not all(isinstance(x, Tensor) or is_number(x) for x in (elements, test_elements)):
        raise TypeError(f"isin expected a tensor and a tensor or number, got {type(elements).__name__} and "
                        f"{type(test_elements).__name__}")
    if dtypes.bool_ in [x.dtype for x in tensors]:
        raise RuntimeError("isin expected numbers, got bool; cast it first")
    xp = tensors[0].backend
    x, among = _common(xp, elements, test_elements)
    among = xp.sort(among.reshape(-1))
    if among.size == 0:
        found = xp.zeros(x.shape, dtypes.bool_)
    else:
        found = among[xp.minimum(xp.searchsorted(among, x), among.size - 1)] == x
    return make_tensor(xp.asarray(~found if invert else found), None)


def _common(xp, *operands):
    """Arrays of the operands in the dtype in which they meet; float32 in place of halves."""
    dtype = dtypes.result_type_of([x.array if isinstance(x, Tensor) else x for x in operands])
    wide = dtypes.accumulation_dtype(dtype)
    return [xp.asarray(xp.asarray(x.array if isinstance(x, Tensor) else x, dtype), wide) for x in operands]


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None):
    """The places before which the elements would keep a sorted sequence in order.

    Args:
        sorted_sequence: one sequence, (n,), or one per row, (..., n).
        input: a number or tensor; with rows, a tensor (..., m) of the same leading shape.
        out_int32: int32 instead of int64 results.
        right: after equal elements instead of before them; the same as side "right" instead of "left".
        sorter: places (int64) that sort the sequences, of their shape.
    """
    shape = sorted_sequence.shape
    if side not in (None, "left", "right") or (right and side == "left"):
        raise RuntimeError(f"searchsorted expected side 'left' or 'right' that agrees with right={right}, got {side!r}")
    if not shape:
        raise RuntimeError("searchsorted expected a sequence, got a 0-d tensor")
    if isinstance(input, Tensor):
        if len(shape) > 1 and input.shape[:-1] != shape[:-1]:
            raise RuntimeError(f"searchsorted expected an input of leading shape {shape[:-1]}, as the sequences have, got "
                               f"{input.shape}")
    elif len(shape) > 1:
        raise RuntimeError(f"searchsorted expected one sequence for a number, got shape {shape}")
    xp = sorted_sequence.backend
    rows, x = _common(xp, sorted_sequence, input)
    if sorter is not None:
        rows = xp.take_along_axis(rows, _checked_sorter(sorter, sorted_sequence), -1)
    if rows.dtype == dtypes.bool_:
        raise NotImplementedError("searchsorted expected numbers, got two bools; cast one first")
    right = bool(right or side == "right")
    found = xp.searchsorted(rows, x, side="right" if right else "left") if rows.ndim == 1 else _search_rows(xp, rows, x, right)
    return make_tensor(xp.asarray(found, dtypes.int32 if out_int32 else dtypes.int64), None)


def _checked_sorter(sorter, sequence):
    if sorter.shape != sequence.shape or sorter.dtype != dtypes.int64:
        raise RuntimeError(f"searchsorted expected a sorter of int64 and of shape {sequence.shape}, got "
                           f"{dtypes.dtype_name(sorter.dtype)} of shape {sorter.shape}")
    bad = sequence.backend.out_of_range(sorter.array, 0, sequence.shape[-1])
    if bad is not None:
        raise RuntimeError(f"searchsorted expected a sorter of places below {sequence.shape[-1]}, got {bad}")
    return sorter.array


def _search_rows(xp, rows, x, right):
    """Binary search in all rows at once; nan is the largest number."""
    n = rows.shape[-1]
    low, high = xp.zeros(x.shape, dtypes.int64), xp.full(x.shape, n, dtypes.int64)
    for _ in range(n.bit_length()):
        middle = (low + high) // 2
        probe = xp.take_along_axis(rows, xp.minimum(middle, n - 1), -1)
        if right:
            after = ~((x < probe) | ((probe != probe) & (x == x)))
        else:
            after = (probe < x) | ((x != x) & (probe == probe))
        searching = low < high
        low = xp.where(searching & after, middle + 1, low)
        high = xp.where(searching & ~after, middle, high)
    return low


def bucketize(input, boundaries, *, out_int32=False, right=False):
    """The number of the bucket between sorted boundaries that each element lies in.

    Args:
        input: a number or tensor.
        boundaries: a vector.
        out_int32: int32 instead of int64 results.
        right: buckets include their left boundary instead of their right one.
    """
    if not isinstance(boundaries, Tensor):
        raise TypeError(f"bucketize expected its boundaries as a tensor, got {type(boundaries).__name__}")
    if boundaries.ndim != 1:
        raise RuntimeError(f"bucketize expected a vector of boundaries, got shape {boundaries.shape}")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


METHODS = (argwhere, isin, masked_fill, masked_scatter, masked_select, nonzero)
IN_PLACE = (masked_fill, masked_scatter)
ON_TENSORS: dict = {}
