"""Cumulative forms along an axis (sums, products, extrema, logsumexp), differences, and the trapezoidal rule.

The gradients of products and of logsumexp are linear recurrences, which a scan solves without dividing: zeros and
infinities are no special cases, and gradients of gradients are scans again.
"""

from __future__ import annotations

import math

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from ..dims import one_dim
from ..tensor import make_tensor
from . import extrema
from .indexing import _slice
from .joining import cat
from .reduction import integers_as_int64, kept_shape, sum
from .shape import clone, reshape

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "diff", "logcumsumexp", "trapezoid", "trapz"]


@op(Cast.FULL, promote=Promote.NONE, wide=False)
def _running_sum(xp, x, *, axis, reverse=False):
    return xp.running_sum(x, axis, reverse), lambda g: xp.running_sum(g, axis, not reverse)


@op(Cast.FULL, promote=Promote.NONE)
def _running_product(xp, x, *, axis, reverse=False):
    y = xp.running_product(x, axis, reverse)
    back = 1 if reverse else -1

    def gradient(g):  # the product of what comes before x[j], times s[j] = g[j] + x[j+1] * s[j+1]
        return xp.shift(y, axis, -back, 1) * xp.linear_scan(xp.shift(x, axis, back, 0), g, axis, not reverse)

    return y, gradient


@op(Cast.FULL, promote=Promote.NONE)
def _running_logsumexp(xp, x, *, axis):
    y = xp.running_logsumexp(x, axis)

    def gradient(g):  # exp(x[j] - y[j]) * s[j], where s[j] = g[j] + exp(y[j] - y[j+1]) * s[j+1]
        decay = xp.exp_difference(y, xp.shift(y, axis, -1, math.inf))
        return xp.exp_difference(x, y) * xp.linear_scan(decay, g, axis, True)

    return y, gradient


@op(Cast.FULL, promote=Promote.NONE)
def _linear_scan(xp, a, b, *, axis, reverse):
    s = xp.linear_scan(a, b, axis, reverse)
    back = 1 if reverse else -1

    def gradients(g):
        gb = xp.linear_scan(xp.shift(a, axis, back, 0), g, axis, not reverse)
        return gb * xp.shift(s, axis, -back, 0), gb

    return s, gradients


@op(Cast.KEEP)
def _shift(xp, x, *, axis, by, fill):
    return xp.shift(x, axis, by, fill), lambda g: xp.shift(g, axis, -by, 0)


def _along(function, name, input, dim, **attributes):
    """A cumulative op along one axis; a 0-d tensor counts as one element."""
    axis = one_dim(name, dim, input.ndim)
    if input.ndim:
        return function(input, axis=axis, **attributes)
    return reshape(function(reshape(input, 1), axis=0, **attributes), ())


@composed(Cast.FULL)
def cumsum(input, dim, *, dtype=None):
    """Sums of the elements up to each place along an axis; integers and bool give int64 unless dtype says otherwise."""
    return _along(_running_sum, "cumsum", integers_as_int64(input, dtype), dim)


@composed(Cast.FULL)
def cumprod(input, dim, *, dtype=None):
    """Products of the elements up to each place along an axis; dtypes as in cumsum."""
    return _along(_running_product, "cumprod", integers_as_int64(input, dtype), dim)


@composed(Cast.FULL)
def logcumsumexp(input, dim):
    """log of the sum of exp of the elements up to each place along an axis; gradient 0 where it is -inf."""
    one_dim("logcumsumexp", dim, input.ndim)
    if input.dtype not in dtypes.FLOATING:
        raise NotImplementedError(f"logcumsumexp expected a floating tensor, got {dtypes.dtype_name(input.dtype)}")
    return _along(_running_logsumexp, "logcumsumexp", input, dim)


def _running_extremum(name, input, dim, largest):
    axis = one_dim(name, dim, input.ndim)
    rows = input if input.ndim else reshape(input, 1)
    xp = input.backend
    _, index = xp.running_extremum(rows.array, axis, largest)
    values = extrema.pick(rows, index, axis, False)
    return extrema.ValuesAndIndices(reshape(values, input.shape), make_tensor(index.reshape(input.shape), None))


def cummax(input, dim):
    """The largest element up to each place along an axis: (values, indices), the index the latest of equal ones."""
    return _running_extremum("cummax", input, dim, True)


def cummin(input, dim):
    """The smallest element up to each place along an axis: (values, indices), the index the latest of equal ones."""
    return _running_extremum("cummin", input, dim, False)


# Differences and areas

def _part(x, axis, start, stop):
    return _slice(x, index=(slice(None),) * axis + (slice(start, stop),))


def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The n-th differences of neighbours along an axis; of bool, whether neighbours differ.

    Args:
        n: how often to take differences.
        prepend, append: tensors put before and after the input along the axis first.

    Raises:
        RuntimeError: for a 0-d tensor, a negative n, or prepend or append of another shape.
    """
    if input.ndim == 0:
        raise RuntimeError("diff expected a tensor of at least one axis, got a 0-d one")
    if n < 0:
        raise RuntimeError(f"diff expected n >= 0, got {n}")
    axis = one_dim("diff", dim, input.ndim)
    if n == 0:
        return clone(input)
    parts = [part for part in (prepend, input, append) if part is not None]
    for part in parts:
        if kept_shape(part.shape, (axis,)) != kept_shape(input.shape, (axis,)):
            raise RuntimeError(f"diff expected prepend and append of the input's shape {input.shape} except along axis {axis}, "
                               f"got {part.shape}")
    x = input if len(parts) == 1 else cat(parts, axis)
    for _ in range(min(n, x.shape[axis])):
        ahead, behind = _part(x, axis, 1, None), _part(x, axis, 0, -1)
        x = _differ(ahead, behind) if x.dtype == dtypes.bool_ else ahead - behind
    return x


@op(Cast.KEEP)
def _differ(xp, a, b):
    return a != b, None


@composed(Cast.FULL)
def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral of y along an axis by the trapezoidal rule.

    Args:
        x: where y was taken: a tensor of one axis, or one that broadcasts against y.
        dx: the distance between places, where x is not given; 1 by default.

    Raises:
        TypeError: if both x and dx are given.
        RuntimeError: if x has another length than y, or y is bool.
    """
    if y.ndim == 0:
        raise IndexError("trapezoid expected a tensor of at least one axis, got a 0-d one")
    axis = one_dim("trapezoid", dim, y.ndim)
    if x is not None and dx is not None:
        raise TypeError("trapezoid expected one of x and dx, got both")
    if y.dtype == dtypes.bool_:
        raise RuntimeError("trapezoid expected numbers, got a bool tensor; cast it first")
    if y.shape[axis] == 0:
        return sum(y, axis)
    after, before = _part(y, axis, 1, None), _part(y, axis, 0, -1)
    if x is None:
        return (sum(after, axis) + sum(before, axis)) * ((1.0 if dx is None else dx) / 2)
    if x.ndim == 1:
        if x.shape[0] != y.shape[axis]:
            raise RuntimeError(f"trapezoid expected as many places x as elements along axis {axis} of shape {y.shape}, got "
                               f"{x.shape[0]}")
        x = reshape(x, (-1,) + (1,) * (y.ndim - axis - 1))
    x = reshape(x, (1,) * (y.ndim - x.ndim) + x.shape)
    return sum((after + before) * diff(x, dim=axis - y.ndim), axis) / 2


def trapz(y, x=None, *, dx=None, dim=-1):
    """The integral of y along an axis by the trapezoidal rule, as trapezoid."""
    return trapezoid(y, x, dx=dx, dim=dim)


METHODS = (cummax, cummin, cumprod, cumsum, diff, logcumsumexp)
IN_PLACE = (cumprod, cumsum)
ON_TENSORS = {"running_sum": lambda x, axis, reverse=False: _running_sum(x, axis=axis, reverse=reverse),
              "running_product": lambda x, axis, reverse=False: _running_product(x, axis=axis, reverse=reverse),
              "linear_scan": lambda a, b, axis, reverse=False: _linear_scan(a, b, axis=axis, reverse=reverse),
              "shift": lambda x, axis, by, fill: _shift(x, axis=axis, by=by, fill=fill)}
