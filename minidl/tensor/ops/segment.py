"""Rows reduced by group, as layers over graphs need them: the rows of equal index form a segment.

Arguments that they share: `values` (E, ...), `index` (E,) with the number of each row's segment, int64 or int32, in any
order; `num_segments` N, by default one more than the largest index. Results are (N, ...), 0 for empty segments.
"""

from __future__ import annotations

from ...autograd.op import Cast
from .. import dtypes
from ..apply import op
from .gathering import limits
from .indexing import _index_add
from .reduction import refuse_integers

__all__ = ["segment_max", "segment_mean", "segment_min", "segment_softmax", "segment_sum"]


@op(Cast.KEEP, wide=True)
def _segment_mean(xp, values, *, index, shape, counts):
    return (xp.divide_by_count(xp.index_add(shape, index, values), counts),
            lambda g: xp.pick(xp.divide_by_count(g, counts), index))


@op(Cast.KEEP, wide=True)
def _segment_extremum(xp, values, *, index, shape, empty, start, how):
    """Equal extrema share the gradient evenly."""
    y = xp.where(empty, 0, xp.combined_at(xp.full(shape, start, values.dtype), index, values, how))

    def gradient(g):
        top = values == xp.pick(y, index)
        count = xp.index_add(shape, index, xp.where(top, xp.ones_like(values), 0))
        return xp.where(top, xp.pick(g / (count + (count == 0)), index), 0)

    return y, gradient


@op(Cast.FULL)
def _segment_softmax(xp, values, *, index, shape):
    y = xp.segment_softmax(values, index, shape)
    return y, lambda g: y * (g - xp.pick(xp.index_add(shape, index, g * y), index))


def segment_sum(values, index, num_segments=None):
    """The sum of each segment's rows; halves are accumulated in float32.

    Raises:
        IndexError: for an index that is not in [0, num_segments).
    """
    positions, shape = _segments("segment_sum", values, index, num_segments)
    return _index_add(values, shape=shape, index=positions)


def segment_mean(values, index, num_segments=None):
    """The mean of each segment's rows, of floating values."""
    refuse_integers("segment_mean", values)
    positions, shape = _segments("segment_mean", values, index, num_segments)
    counts = values.backend.maximum(_sizes(values, positions, shape), 1)
    return _segment_mean(values, index=positions, shape=shape, counts=counts)


def segment_max(values, index, num_segments=None):
    """The largest element of each segment, column by column; equal ones share the gradient evenly."""
    return _extremum("segment_max", values, index, num_segments, "maximum")


def segment_min(values, index, num_segments=None):
    """The smallest element of each segment, column by column; equal ones share the gradient evenly."""
    return _extremum("segment_min", values, index, num_segments, "minimum")


def segment_softmax(values, index, num_segments=None):
    """exp(values) over its sum in each row's segment, (E, ...); zeros in a segment whose values are all -inf."""
    positions, shape = _segments("segment_softmax", values, index, num_segments)
    return _segment_softmax(values, index=positions, shape=shape)


def _extremum(name, values, index, num_segments, how):
    positions, shape = _segments(name, values, index, num_segments)
    start = limits(dtypes.accumulation_dtype(values.dtype))[how == "minimum"]
    empty = _sizes(values, positions, shape) == 0
    return _segment_extremum(values, index=positions, shape=shape, empty=empty, start=start, how=how)


def _sizes(values, positions, shape):
    """The number of rows of each segment, (N, 1, ...)."""
    return values.backend.bincount(positions[0], minlength=shape[0]).reshape(-1, *[1] * (len(shape) - 1))


def _segments(name, values, index, num_segments):
    """The index as positions, and the shape of the result."""
    if values.ndim == 0 or index.shape != values.shape[:1]:
        raise ValueError(f"{name} expected an index of shape ({values.shape[0] if values.ndim else 'E'},), one for each row of "
                         f"values, got shape {index.shape} for values of shape {values.shape}")
    if index.dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError(f"{name} expected an index of int32 or int64, got {dtypes.dtype_name(index.dtype)}")
    xp = values.backend
    places = xp.asarray(index.array, dtypes.int64)
    if num_segments is None:
        num_segments = int(places.max()) + 1 if places.size else 0
    bad = xp.out_of_range(places, 0, num_segments)
    if bad is not None:
        raise IndexError(f"{name} expected indices in [0, {num_segments}), the number of segments, got {bad}")
    return (places,), (num_segments, *values.shape[1:])


METHODS = ()
ON_TENSORS: dict = {}
