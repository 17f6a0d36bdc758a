"""Medians, modes and quantiles."""

from __future__ import annotations

from ...autograd.op import Cast
from .. import dtypes
from ..apply import op
from ..dims import one_dim
from ..tensor import Tensor, make_tensor
from .extrema import _extremum, pick, pick_one, rows_of
from .reduction import axes_of, refuse_integers
from .shape import movedim, reshape

__all__ = ["median", "mode", "nanmedian", "nanquantile", "quantile"]

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@op(Cast.KEEP)
def _median(xp, x, *, ignore_nan):
    y = xp.reshape(xp.pick_along(x, xp.median_index(x, 0, ignore_nan), 0), ())
    return _extremum(xp, x, y, (0,))


def _median_of(name, input, dim, keepdim, ignore_nan):
    if dim is not None:
        one_dim(name, dim, input.ndim)
    if input.dtype == dtypes.bool_:
        raise NotImplementedError(f"{name} expected numbers, got a bool tensor; cast it first")
    if dim is not None:
        rows, axis = rows_of(name, input, dim)
        return pick_one(input, input.backend.median_index(rows, axis, ignore_nan), axis, keepdim)
    if input.numel() == 0:
        refuse_integers(f"{name} of no elements", input)
        return make_tensor(input.backend.full((), float("nan"), input.dtype), None)
    return _median(reshape(input, -1), ignore_nan=ignore_nan)


def median(input, dim=None, keepdim=False):
    """The median, the lower of the two middle elements; nan where there is a nan.

    Without dim that of all elements, equal ones of which share the gradient evenly; with it the named tuple
    (values, indices) along an axis.
    """
    return _median_of("median", input, dim, keepdim, False)


def nanmedian(input, dim=None, keepdim=False):
    """The median of the elements that are not nan; otherwise as median."""
    return _median_of("nanmedian", input, dim, keepdim, True)


def mode(input, dim=-1, keepdim=False):
    """The most frequent element along an axis, the smallest of several: a named tuple (values, indices).

    The index is that of the element's last place.
    """
    rows, axis = rows_of("mode", input, dim)
    return pick_one(input, input.backend.mode_index(rows, axis), axis, keepdim)


@op(Cast.KEEP)
def _weight_of(xp, q, span, weight):
    """The weight, which grows with q by `span`; where that is 0, a gradient of nan is none."""
    return weight, (lambda g: xp.select(span == 0, 0, g * span), None, None)


def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """Quantiles over an axis or all elements; nan where there is a nan.

    Args:
        q: a number in [0, 1], or a tensor of one axis of them, which becomes the first axis of the result.
        dim: an axis, or None for all.
        keepdim: keep the reduced axis with length 1.
        interpolation: linear, lower, higher, midpoint or nearest: what lies between two elements.

    Raises:
        RuntimeError: if the input is not float32 or float64 or is empty, q is out of range or of another dtype, or there
            is no such interpolation.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """Quantiles of the elements that are not nan; otherwise as quantile."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


def _quantile(name, input, q, dim, keepdim, interpolation, ignore_nan):
    _check_quantile(name, input, q, interpolation)
    axes = axes_of(name, dim, input.ndim)
    rows = reshape(input, -1) if dim is None or input.ndim == 0 else movedim(input, axes[0], -1)
    kept = tuple([1 if i in axes else n for i, n in enumerate(input.shape)])
    left = kept if keepdim else tuple([n for i, n in enumerate(input.shape) if i not in axes])
    x, xp = rows.array, input.backend
    axis = rows.ndim - 1
    order = xp.sort_index(x, axis)
    below, above, weight, span = _ranks(xp, x, axis, q, interpolation, ignore_nan)
    found = pick(rows, xp.take_along_axis(order, below, axis), axis, False)
    if interpolation in ("linear", "midpoint"):
        step = pick(rows, xp.take_along_axis(order, above, axis), axis, False) - found
        weight = make_tensor(weight, None)
        if interpolation == "linear" and isinstance(q, Tensor):
            weight = _weight_of(reshape(q, -1), span, weight)
        found = found + step * weight
    if not isinstance(q, Tensor) or q.ndim == 0:
        return reshape(found, left)
    return reshape(movedim(found, -1, 0), (q.shape[0], *left))


def _ranks(xp, x, axis, q, interpolation, ignore_nan):
    """Between which places in sorted order the quantiles lie, how far from the first of them, and over how many places
    all q spread."""
    last = x.shape[axis] - 1
    nans = xp.count_nan(x, axis)
    shares = xp.reshape(q.array if isinstance(q, Tensor) else xp.full((1,), q, x.dtype), (-1,))
    if ignore_nan:
        span = xp.asarray(xp.maximum(last - nans, 0), x.dtype)
        rank = shares * span
    else:  # nans are sorted to the end
        span = xp.asarray(xp.where(nans > 0, 0, last), x.dtype)
        rank = xp.where(nans > 0, last, shares * last)
    if interpolation == "nearest":
        rank = xp.rint(rank)
    elif interpolation == "higher":
        rank = xp.ceil(rank)
    below = xp.floor(rank)
    weight = 0.5 * (rank > below) if interpolation == "midpoint" else rank - below
    return (xp.asarray(below, dtypes.int64), xp.asarray(xp.ceil(rank), dtypes.int64), xp.asarray(weight, x.dtype),
            span)


def _check_quantile(name, input, q, interpolation):
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"{name} expected a float32 or float64 tensor, got {dtypes.dtype_name(input.dtype)}; cast it first")
    if input.numel() == 0:
        raise RuntimeError(f"{name} expected a tensor with elements, got shape {input.shape}")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(f"{name} expected an interpolation of {', '.join(_INTERPOLATIONS)}, got {interpolation!r}")
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name} expected q in [0, 1], got {q}")
        return
    if q.ndim > 1:
        raise RuntimeError(f"{name} expected q of at most one axis, got shape {q.shape}")
    if q.dtype != input.dtype:
        raise RuntimeError(f"{name} expected q in the input's dtype {dtypes.dtype_name(input.dtype)}, got "
                           f"{dtypes.dtype_name(q.dtype)}")
    if not bool(((q.array >= 0) & (q.array <= 1)).all()):
        raise RuntimeError(f"{name} expected every q in [0, 1]")


METHODS = (median, mode, nanmedian, nanquantile, quantile)
ON_TENSORS: dict = {}
