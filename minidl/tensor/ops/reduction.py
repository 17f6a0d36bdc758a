"""Functions that reduce axes: sums, means, products, moments, logsumexp, and questions about all elements."""

from __future__ import annotations

import math

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from ..dims import one_dim, some_dims
from .arithmetic import _divide
from .shape import cast_to, reshape

__all__ = ["all", "any", "count_nonzero", "logsumexp", "mean", "nanmean", "nansum", "prod", "std", "std_mean", "sum", "var",
           "var_mean"]


def axes_of(name, dim, ndim):
    """The axes that `dim` (an axis, a sequence, None or () for all) means, counted from the front; () for a 0-d tensor."""
    dims = some_dims(name, dim, ndim)
    return dims if ndim else ()


def kept_shape(shape, axes):
    """`shape` with length 1 at the axes."""
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])


def refuse_integers(name, input):
    """RuntimeError for a tensor of integers or bool."""
    if input.dtype not in dtypes.FLOATING:
        raise RuntimeError(f"{name} expected a floating tensor, got {dtypes.dtype_name(input.dtype)}; cast it first")


def integers_as_int64(input, dtype):
    """The tensor in the dtype asked for; without one, integers and bool become int64."""
    if dtype is not None:
        return cast_to(input, dtype)
    return input if input.dtype in dtypes.FLOATING else cast_to(input, dtypes.int64)


# Sums and means

@op(Cast.FULL, promote=Promote.NONE, wide=False)
def _sum(xp, x, *, axis, keepdims):
    shape = x.shape
    kept = kept_shape(shape, axis)
    return xp.sum(x, axis, keepdims), lambda g: xp.broadcast_to(xp.reshape(g, kept), shape)


@op(Cast.FULL, promote=Promote.NONE, wide=False)
def _mean(xp, x, *, axis, keepdims):
    shape = x.shape
    kept = kept_shape(shape, axis)
    count = max(math.prod([shape[a] for a in axis]), 1)
    return xp.mean(x, axis, keepdims), lambda g: xp.broadcast_to(xp.reshape(xp.divide_by_count(g, count), kept), shape)


@op(Cast.KEEP)
def _divide_by_count(xp, x, count):
    return xp.divide_by_count(x, count), (lambda g: xp.divide_by_count(g, count), None)


@composed(Cast.FULL)
def sum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum over an axis, several, or all; integers and bool give int64 unless dtype says otherwise.

    Args:
        dim: an axis, a sequence of axes, or None for all.
        keepdim: keep reduced axes with length 1.
        dtype: cast the input to it first.
    """
    if dtype is not None or input.dtype not in dtypes.FLOATING:
        input = integers_as_int64(input, dtype)
    return _sum(input, axis=axes_of("sum", dim, input.ndim), keepdims=bool(keepdim))


@composed(Cast.FULL)
def mean(input, dim=None, keepdim=False, *, dtype=None):
    """Mean over an axis, several, or all; nan over no elements. Arguments as in sum.

    Raises:
        RuntimeError: if the input, or dtype where given, is not floating.
    """
    if dtype is not None:
        input = cast_to(input, dtype)
    refuse_integers("mean", input)
    return _mean(input, axis=axes_of("mean", dim, input.ndim), keepdims=bool(keepdim))


@op(Cast.KEEP)
def _nan_to_zero(xp, x):
    keep = xp.asarray(x == x)  # of a 0-d array that is a scalar
    return xp.where(keep, x, 0), lambda g: xp.where(keep, g, 0)


@composed(Cast.FULL)
def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum of the elements that are not nan. Arguments as in sum."""
    if input.dtype in dtypes.FLOATING:
        input = _nan_to_zero(input)
    return sum(input, dim, keepdim, dtype=dtype)


@composed(Cast.FULL)
def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    """Mean of the elements that are not nan; nan where all are. Arguments as in sum."""
    refuse_integers("nanmean", input)
    if dtype is not None:
        input = cast_to(input, dtype)
        refuse_integers("nanmean", input)
    axis = axes_of("nanmean", dim, input.ndim)
    wide = dtypes.accumulation_dtype(input.dtype)
    count = _count_numbers(input, axis=axis, keepdims=bool(keepdim))
    return cast_to(_divide(nansum(input, dim, keepdim, dtype=wide), cast_to(count, wide)), input.dtype)


@op(Cast.KEEP)
def _count_numbers(xp, x, *, axis, keepdims):
    return xp.sum(xp.asarray(~xp.isnan(x), dtypes.int64), axis, keepdims), None


# Products

@op(Cast.FULL, promote=Promote.NONE)
def _prod(xp, x, *, axis, keepdims):
    kept = kept_shape(x.shape, (axis,))
    y = xp.prod(x, axis, keepdims=keepdims, dtype=x.dtype)

    def gradient(g):  # products of the elements before and after each: no division, so zeros are no special case
        before = xp.running_product(xp.shift(x, axis, 1, 1), axis)
        after = xp.running_product(xp.shift(x, axis, -1, 1), axis, True)
        return xp.reshape(g, kept) * (before * after)

    return y, gradient


@composed(Cast.FULL)
def prod(input, dim=None, keepdim=False, *, dtype=None):
    """Product of all elements or along an axis; integers and bool give int64 unless dtype says otherwise.

    Args:
        dim: an axis, or None for all.
        keepdim: keep the reduced axis with length 1.
        dtype: cast the input to it first.
    """
    input = integers_as_int64(input, dtype)
    axis = 0 if dim is None else one_dim("prod", dim, input.ndim)
    shape = input.shape
    if dim is None or not shape:
        return reshape(_prod(reshape(input, -1), axis=0, keepdims=False), (1,) * len(shape) if keepdim else ())
    return _prod(input, axis=axis, keepdims=bool(keepdim))


# Moments

@op(Cast.FULL, promote=Promote.NONE)
def _var(xp, x, *, axis, correction, keepdims):
    kept = kept_shape(x.shape, axis)
    factor = _moment_factor(x.shape, axis, correction)
    return (xp.variance(x, axis, correction, keepdims),
            lambda g: xp.reshape(g, kept) * factor * 2 * (x - xp.mean(x, axis, True)))


@op(Cast.FULL, promote=Promote.NONE)
def _std(xp, x, *, axis, correction, keepdims):
    kept = kept_shape(x.shape, axis)
    factor = _moment_factor(x.shape, axis, correction)
    y = xp.sqrt(xp.variance(x, axis, correction, keepdims))
    return y, lambda g: xp.reshape(xp.divide_or_zero(g, y), kept) * factor * (x - xp.mean(x, axis, True))


def _moment_factor(shape, axis, correction):
    count = math.prod([shape[a] for a in axis])
    if count == 0:
        return 0.0
    return 1 / (count - correction) if count > correction else math.inf


@op(Cast.FULL)
def divide_or_zero(xp, a, b):
    """a / b, and 0 with no gradient where b is 0."""
    y = xp.divide_or_zero(a, b)
    return y, (lambda g: xp.divide_or_zero(g, b), lambda g: -xp.divide_or_zero(g * y, b))


def _moment_arguments(name, input, dim, unbiased, correction, keepdim):
    """Sort out PyTorch's overloads `(unbiased)`, `(dim, unbiased, keepdim)` and `(dim, *, correction, keepdim)`."""
    refuse_integers(name, input)
    if isinstance(dim, bool):
        if unbiased is not None:
            raise TypeError(f"{name} expected one of dim and unbiased first, got {dim} and {unbiased}")
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{name} expected one of unbiased and correction, got both")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return {"axis": axes_of(name, dim, input.ndim), "correction": correction, "keepdims": bool(keepdim)}


@composed(Cast.FULL)
def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Variance over an axis, several, or all.

    Args:
        dim: an axis, a sequence of axes, or None for all.
        unbiased: False for correction=0, True for correction=1. May stand in the place of dim.
        keepdim: keep reduced axes with length 1.
        correction: what is subtracted from the number of elements in the divisor; 1 by default.
    """
    return _var(input, **_moment_arguments("var", input, dim, unbiased, correction, keepdim))


@composed(Cast.FULL)
def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Standard deviation, the square root of var and with its arguments; where it is 0, so is its gradient."""
    return _std(input, **_moment_arguments("std", input, dim, unbiased, correction, keepdim))


@composed(Cast.FULL)
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The tuple (variance, mean); arguments as in var."""
    arguments = _moment_arguments("var_mean", input, dim, unbiased, correction, keepdim)
    return _var(input, **arguments), _mean(input, axis=arguments["axis"], keepdims=arguments["keepdims"])


@composed(Cast.FULL)
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The tuple (standard deviation, mean); arguments as in var."""
    arguments = _moment_arguments("std_mean", input, dim, unbiased, correction, keepdim)
    return _std(input, **arguments), _mean(input, axis=arguments["axis"], keepdims=arguments["keepdims"])


# Logarithms of sums of exponentials

@op(Cast.FULL)
def _logsumexp(xp, x, *, axis, keepdims):
    kept = kept_shape(x.shape, axis)
    y = xp.logsumexp(x, axis, keepdims)
    return y, lambda g: xp.reshape(g, kept) * xp.exp_difference(x, xp.reshape(y, kept))


@op(Cast.FULL)
def _exp_difference(xp, a, b):
    y = xp.exp_difference(a, b)
    return y, (lambda g: g * y, lambda g: -g * y)


@composed(Cast.FULL)
def logsumexp(input, dim, keepdim=False):
    """log of the sum of exp(input) over an axis or several; -inf, with gradient 0, where all elements are -inf."""
    return _logsumexp(input, axis=axes_of("logsumexp", dim, input.ndim), keepdims=bool(keepdim))


# Questions about all elements

@op(Cast.KEEP)
def _all(xp, x, *, axis, keepdims):
    return xp.all(x, axis, keepdims=keepdims), None


@op(Cast.KEEP)
def _any(xp, x, *, axis, keepdims):
    return xp.any(x, axis, keepdims=keepdims), None


def _ask(question, name, input, dim, keepdim):
    axis = () if isinstance(dim, (tuple, list)) and not dim else axes_of(name, dim, input.ndim)
    answer = question(input, axis=axis, keepdims=bool(keepdim))
    return cast_to(answer, dtypes.uint8) if input.dtype == dtypes.uint8 else answer


def all(input, dim=None, keepdim=False):
    """True where every element over the axes (an axis, a sequence, None for all) is non-zero; uint8 for uint8."""
    return _ask(_all, "all", input, dim, keepdim)


def any(input, dim=None, keepdim=False):
    """True where some element over the axes (an axis, a sequence, None for all) is non-zero; uint8 for uint8."""
    return _ask(_any, "any", input, dim, keepdim)


@op(Cast.KEEP)
def _count_nonzero(xp, x, *, axis):
    return xp.sum(xp.asarray(x != 0, dtypes.int64), axis), None


def count_nonzero(input, dim=None):
    """How many elements over the axes (an axis, a sequence, None for all) are not zero, int64."""
    return _count_nonzero(input, axis=axes_of("count_nonzero", dim, input.ndim))


METHODS = (all, any, count_nonzero, logsumexp, mean, nanmean, nansum, prod, std, sum, var)
ON_TENSORS = {"sum": sum, "mean": mean, "divide_by_count": _divide_by_count, "divide_or_zero": divide_or_zero,
              "exp_difference": _exp_difference}
