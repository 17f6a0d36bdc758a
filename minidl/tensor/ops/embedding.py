"""Embedding tables: rows looked up by number, one by one or summed up in bags; one-hot rows."""

from __future__ import annotations

from ...autograd import edits
from ...autograd.op import Cast
from .. import autocast, dtypes
from ..apply import op
from ..tensor import Tensor, make_tensor
from .arithmetic import mul
from .indexing import _pick
from .segment import segment_max, segment_mean, segment_sum
from .shape import reshape, unsqueeze

__all__ = ["embedding", "embedding_bag", "one_hot"]


# The value is the input's; only gradients are changed

@op(Cast.KEEP)
def _without_gradient_where(xp, x, *, mask):
    return x, lambda g: xp.where(mask, 0, g)


@op(Cast.KEEP)
def _gradient_divided_by(xp, x, *, counts):
    return x, lambda g: xp.divide_by_count(g, counts)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of a table at the places in input.

    Args:
        input: int64 or int32 of any shape.
        weight: the table, (num_embeddings, embedding_dim).
        padding_idx: a row, which may count from the end, that gets no gradient.
        max_norm: rows that are looked up and whose norm is larger are scaled down to it first, in place.
        norm_type: the p of that norm.
        scale_grad_by_freq: a row's gradient is divided by how often it is looked up.
        sparse: accepted for PyTorch's sake; gradients are dense.

    Shapes: the input's, with embedding_dim appended.

    Raises:
        IndexError: for a place outside of the table.
    """
    places = _places("embedding", input, weight, IndexError)
    padding_idx = _padding("embedding", padding_idx, weight, ValueError)
    if max_norm is not None:
        renormalize(weight, places, max_norm, norm_type)
    return _looked_up(places, weight, padding_idx, scale_grad_by_freq)


def _looked_up(places, weight, padding_idx, scale_grad_by_freq):
    rows = _pick(weight, index=(places,))
    if padding_idx is not None and rows.requires_grad:
        rows = _without_gradient_where(rows, mask=(places == padding_idx)[..., None])
    if scale_grad_by_freq and rows.requires_grad:
        counts = weight.backend.bincount(places.reshape(-1), minlength=weight.shape[0])
        rows = _gradient_divided_by(rows, counts=counts[places][..., None])
    return rows


def _places(name, input, weight, range_error):
    """The places as an int64 array."""
    if input.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(f"{name} expected an input of int32 or int64, got {dtypes.dtype_name(input.dtype)}")
    if weight.ndim != 2:
        raise RuntimeError(f"{name} expected a weight of shape (num_embeddings, embedding_dim), got {weight.shape}")
    xp = weight.backend
    places = xp.asarray(input.array, dtypes.int64)
    bad = xp.out_of_range(places, 0, weight.shape[0])
    if bad is not None:
        raise range_error(f"{name} expected indices in [0, {weight.shape[0]}), the rows of its weight, got {bad}")
    return places


def _padding(name, padding_idx, weight, error):
    """padding_idx counted from the front."""
    count = weight.shape[0]
    if padding_idx is not None and not -count <= padding_idx < count:
        raise error(f"{name} expected padding_idx in [{-count}, {count - 1}], one of the rows of its weight, got {padding_idx}")
    return None if padding_idx is None else padding_idx % count


def renormalize(weight, places, max_norm, norm_type):
    """Scale the rows of a table at `places` down to a norm of max_norm, in place."""
    xp, array = weight.backend, weight.array
    named = xp.unique(places)
    rows = xp.widen(xp.take(array, named, 0))
    norm = _row_norms(xp, rows, float(norm_type))
    too_long = xp.nonzero(norm[:, 0] > max_norm)[0]
    if too_long.size:
        array[named[too_long]] = rows[too_long] * (max_norm / (norm[too_long] + 1e-7))
        edits.record_edit(array)


def _row_norms(xp, rows, p):
    size = xp.abs(rows)
    if p == float("inf"):
        return xp.amax(size, 1, keepdims=True)
    return xp.sum(size ** p, 1, True) ** (1 / p) if p else xp.sum(xp.asarray(size != 0, rows.dtype), 1, True)


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """The sum, mean or maximum of the rows of a table at the places in each bag; 0 for an empty bag.

    Args:
        input: int64 or int32: a bag per row, (B, n), or all bags one after the other, (n,).
        weight: the table, (num_embeddings, embedding_dim). (Weight and input may be exchanged.)
        offsets: where in a 1-d input each bag starts, (B,); the first at 0.
        max_norm, norm_type, scale_grad_by_freq, sparse: as for embedding.
        mode: "sum", "mean" or "max".
        per_sample_weights: a factor for each place, of the input's shape; for "sum" only.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: places of this row are left out of the bags.

    Shapes: (B, embedding_dim).

    Raises:
        RuntimeError: for places outside of the table.
    """
    if weight.dtype in (dtypes.int32, dtypes.int64) and input.dtype in dtypes.FLOATING:
        input, weight = weight, input
    _check_bags(input, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights, weight)
    places = _places("embedding_bag", input, weight, RuntimeError)
    padding_idx = _padding("embedding_bag", padding_idx, weight, RuntimeError)
    if max_norm is not None:
        renormalize(weight, places, max_norm, norm_type)
    bag, count = _bags(weight.backend, places, offsets, include_last_offset)
    places = places.reshape(-1)
    factors = None if per_sample_weights is None else reshape(per_sample_weights, -1)
    if padding_idx is not None or include_last_offset:
        kept = weight.backend.nonzero((places != (-1 if padding_idx is None else padding_idx)) & (bag < count))[0]
        places, bag = places[kept], bag[kept]
        factors = None if factors is None else _pick(factors, index=(kept,))
    rows = _looked_up(places, weight, None, scale_grad_by_freq)
    if factors is not None:
        rows = mul(rows, unsqueeze(factors, 1))
    return {"sum": segment_sum, "mean": segment_mean, "max": segment_max}[mode](rows, make_tensor(bag, None), count)


def _check_bags(input, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights, weight):
    if input.ndim not in (1, 2):
        raise ValueError(f"embedding_bag expected an input of one or two axes, got shape {input.shape}")
    if input.ndim == 2 and offsets is not None:
        raise ValueError("embedding_bag expected no offsets for a 2-d input, whose rows are the bags, got some")
    if input.ndim == 1 and (not isinstance(offsets, Tensor) or offsets.ndim != 1):
        raise ValueError("embedding_bag expected a vector of offsets for a 1-d input, got "
                         f"{offsets.shape if isinstance(offsets, Tensor) else offsets}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag expected mode 'sum', 'mean' or 'max', got {mode!r}")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError("embedding_bag has neither scale_grad_by_freq nor sparse gradients for mode 'max'")
    if per_sample_weights is None:
        return
    if mode != "sum":
        raise NotImplementedError(f"embedding_bag expected mode 'sum' with per_sample_weights, got {mode!r}")
    if per_sample_weights.shape != input.shape:
        raise ValueError(f"embedding_bag expected per_sample_weights of the input's shape {input.shape}, got "
                         f"{per_sample_weights.shape}")
    mixed = autocast.touches(weight.array) and autocast.touches(per_sample_weights.array)
    if per_sample_weights.dtype != weight.dtype and not mixed:
        raise RuntimeError(f"embedding_bag expected per_sample_weights of dtype {dtypes.dtype_name(weight.dtype)}, as weight, "
                           f"got {dtypes.dtype_name(per_sample_weights.dtype)}")


def _bags(xp, places, offsets, include_last_offset):
    """The number of each place's bag, and how many bags there are; places behind the last bag have that number."""
    if places.ndim == 2:
        count, length = places.shape
        return xp.arange(count * length) // max(length, 1), count
    starts = xp.asarray(offsets.array, dtypes.int64)
    if starts.size and int(starts[0]) != 0:
        raise RuntimeError(f"embedding_bag expected the first bag to start at 0, got offsets[0] = {int(starts[0])}")
    if starts.size and (bool((starts[1:] < starts[:-1]).any()) or int(starts[-1]) > places.size):
        raise RuntimeError(f"embedding_bag expected offsets that ascend and do not exceed the input's {places.size} places")
    if include_last_offset and not starts.size:
        raise RuntimeError("embedding_bag with include_last_offset expected at least one offset, got none")
    bag = xp.searchsorted(starts, xp.arange(places.size), side="right") - 1
    return bag, starts.size - bool(include_last_offset)


def one_hot(tensor, num_classes=-1):
    """int64 rows of zeros with a 1 at each class, of the tensor's shape with num_classes appended.

    Args:
        tensor: classes, int64.
        num_classes: how many there are; -1: one more than the largest in the tensor.
    """
    if tensor.dtype != dtypes.int64:
        raise RuntimeError(f"one_hot expected a tensor of int64, got {dtypes.dtype_name(tensor.dtype)}; cast it with .long()")
    xp, classes = tensor.backend, tensor.array
    if num_classes == -1 or not classes.size:
        if not classes.size and num_classes <= 0:
            raise RuntimeError("one_hot expected num_classes for an empty tensor, which has no largest class")
        num_classes = int(classes.max()) + 1 if num_classes == -1 else num_classes
    bad = xp.out_of_range(classes, 0, max(num_classes, 0))
    if bad is not None:
        raise RuntimeError(f"one_hot expected classes in [0, {num_classes}), got {bad}")
    out = xp.zeros((classes.size, num_classes), dtypes.int64)
    out[xp.arange(classes.size), classes.reshape(-1)] = 1
    return make_tensor(out.reshape(*classes.shape, num_classes), None)


METHODS = ()
ON_TENSORS: dict = {}
