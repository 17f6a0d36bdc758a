"""Comparisons and logic: functions whose values are truth values, and choices between elements."""

from __future__ import annotations

import math

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from ..tensor import make_tensor
from .binary import binary, operand, raw
from .shape import cast_to

__all__ = ["allclose", "copysign", "eq", "equal", "fmax", "fmin", "ge", "gt", "heaviside", "isclose", "isfinite", "isinf",
           "isnan", "isneginf", "isposinf", "isreal", "le", "logical_and", "logical_not", "logical_or", "logical_xor", "lt",
           "maximum", "minimum", "ne", "signbit", "where"]

comparison = binary(wide_with_number=False)
logical = binary(promote=Promote.NONE, wide_with_number=False)


# Comparisons

@comparison
def eq(xp, input, other):
    """input == other, element-wise."""
    return input == other, None


@comparison
def ne(xp, input, other):
    """input != other, element-wise."""
    return input != other, None


@comparison
def lt(xp, input, other):
    """input < other, element-wise."""
    return input < other, None


@comparison
def le(xp, input, other):
    """input <= other, element-wise."""
    return input <= other, None


@comparison
def gt(xp, input, other):
    """input > other, element-wise."""
    return input > other, None


@comparison
def ge(xp, input, other):
    """input >= other, element-wise."""
    return input >= other, None


def equal(input, other):
    """True if both tensors have the same shape and equal elements; a Python bool."""
    return input.shape == other.shape and bool(eq(input, other).array.all())


@op(Cast.WIDEST, wide=True)
def _isclose(xp, a, b, *, rtol, atol, equal_nan):
    close = a == b
    if rtol or atol:
        distance = xp.abs(a - b)
        close = close | (xp.isfinite(distance) & (distance <= atol + xp.abs(b * rtol)))
    return close | (xp.isnan(a) & xp.isnan(b)) if equal_nan else close, None


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """|input - other| <= atol + rtol * |other|, element-wise; infinities are close to themselves only.

    Args:
        equal_nan: nan counts as close to nan.
    """
    if input.dtype != other.dtype:
        raise RuntimeError(f"isclose expected tensors of one dtype, got {dtypes.dtype_name(input.dtype)} and "
                           f"{dtypes.dtype_name(other.dtype)}; cast one first")
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"isclose expected tolerances that are not negative, got rtol={rtol} and atol={atol}")
    if input.dtype not in dtypes.FLOATING:
        input, other = cast_to(input, dtypes.int64), cast_to(other, dtypes.int64)  # differences of small ones wrap around
    return _isclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """True if `isclose` holds for all elements; a Python bool."""
    return bool(isclose(input, other, rtol, atol, equal_nan).array.all())


# Properties of numbers

@op(Cast.KEEP)
def isnan(xp, input):
    """True where an element is nan."""
    return input != input, None


@op(Cast.KEEP)
def isfinite(xp, input):
    """True where an element is neither infinite nor nan."""
    return xp.isfinite(input), None


@op(Cast.KEEP)
def isinf(xp, input):
    """True where an element is infinite."""
    return xp.isinf(input), None


def isposinf(input):
    """True where an element is infinity."""
    return eq(input, math.inf)


def isneginf(input):
    """True where an element is -infinity."""
    return eq(input, -math.inf)


def isreal(input):
    """True everywhere: there are no complex tensors."""
    return eq(input, input) | isnan(input)


@op(Cast.KEEP)
def _signbit(xp, x):
    return xp.signbit(x), None


def signbit(input):
    """True where an element is negative, -0.0 included."""
    return _signbit(input) if input.dtype in dtypes.FLOATING else lt(input, 0)


# Logic

@logical
def logical_and(xp, input, other):
    """True where both elements are other than 0."""
    return xp.logical_and(input, other), None


@logical
def logical_or(xp, input, other):
    """True where an element of the two is other than 0."""
    return xp.logical_or(input, other), None


@logical
def logical_xor(xp, input, other):
    """True where one of two elements is other than 0."""
    return xp.logical_xor(input, other), None


@op(Cast.KEEP)
def logical_not(xp, input):
    """True where an element is 0."""
    return xp.logical_not(input), None


# Choices

@op(Cast.WIDEST)
def _where(xp, a, b, *, condition):
    return xp.select(condition, a, b), (lambda g: xp.select(condition, g, 0), lambda g: xp.select(condition, 0, g))


def where(condition, input=None, other=None):
    """input where the condition is True, else other, element-wise; the branch that is not taken gets a gradient of 0.

    That branch's own gradient function may still make a nan of this 0, as sqrt's does at 0: replace its argument by a
    second `where` first. `where(condition)` alone returns the indices of True as one tensor per axis.

    Args:
        condition: a bool tensor.
        input, other: tensors or numbers, all of shapes that broadcast. A number that is finite but too large for the
            result's floating dtype becomes its largest.
    """
    mask = raw(condition)
    if input is None and other is None:
        return tuple(make_tensor(index, None) for index in condition.backend.nonzero(mask if mask.ndim else mask.reshape(1)))
    if not hasattr(mask, "dtype"):
        raise TypeError(f"where expected a bool tensor as its condition, got {type(mask).__name__}")
    if mask.dtype not in (dtypes.bool_, dtypes.uint8):
        raise RuntimeError(f"where expected a bool condition, got {dtypes.dtype_name(mask.dtype)}; compare it with 0 first")
    input, other = operand("where", input), operand("where", other)
    if _is_large(input) or _is_large(other):
        dtype = dtypes.result_type_of((raw(input), raw(other)))
        if dtype in dtypes.FLOATING:
            input, other = [dtypes.saturated(x, dtype) if _is_large(x) else x for x in (input, other)]
    return _where(input, other, condition=mask)


def _is_large(value):
    """True for a number that float16, the narrowest dtype, does not hold."""
    return value.__class__ in (int, float) and not -65504 <= value <= 65504


def _where_method(input, condition, other=None, *, y=None):
    """The tensor where the condition is True, else other (also called y), as minidl.where(condition, input, other)."""
    if (other is None) == (y is None):
        raise TypeError("where expected one of other and y")
    return where(condition, input, y if other is None else other)


_where_method.__name__ = "where"


@binary()
def maximum(xp, input, other):
    """The larger of two elements; nan where one is nan. The gradient is shared where they are equal."""
    def gradient(g, mine, its):
        return xp.select(mine == its, g / 2, xp.select(mine < its, 0, g))

    return xp.maximum(input, other), (lambda g: gradient(g, input, other), lambda g: gradient(g, other, input))


@binary()
def minimum(xp, input, other):
    """The smaller of two elements; nan where one is nan. The gradient is shared where they are equal."""
    def gradient(g, mine, its):
        return xp.select(mine == its, g / 2, xp.select(mine > its, 0, g))

    return xp.minimum(input, other), (lambda g: gradient(g, input, other), lambda g: gradient(g, other, input))


@binary()
def fmax(xp, input, other):
    """The larger of two elements, the other one where one is nan."""
    return xp.fmax(input, other), (lambda g: xp.select((input >= other) | xp.isnan(other), g, 0),
                                   lambda g: xp.select((input >= other) | xp.isnan(other), 0, g))


@binary()
def fmin(xp, input, other):
    """The smaller of two elements, the other one where one is nan."""
    return xp.fmin(input, other), (lambda g: xp.select((input <= other) | xp.isnan(other), g, 0),
                                   lambda g: xp.select((input <= other) | xp.isnan(other), 0, g))


@binary(promote=Promote.FLOAT)
def copysign(xp, input, other):
    """The magnitude of input with the sign of other, -0.0 included."""
    y = xp.copysign(input, other)
    return y, (lambda g: g * (xp.sign(input) * xp.sign(y)), lambda g: xp.zeros_like(g))


@op(Cast.WIDEST, promote=Promote.NONE)
def _heaviside(xp, input, values):
    return xp.select(input == 0, values, (input > 0) * xp.ones_like(values)), None


@composed(Cast.WIDEST)
def heaviside(input, values):
    """0 where input is negative or nan, 1 where it is positive, values where it is 0."""
    if input.dtype != values.dtype:
        raise RuntimeError(f"heaviside expected tensors of one dtype, got {dtypes.dtype_name(input.dtype)} and "
                           f"{dtypes.dtype_name(values.dtype)}; cast one first")
    return _heaviside(input, values)


METHODS = (allclose, copysign, eq, equal, fmax, fmin, ge, gt, heaviside, isclose, isfinite, isinf, isnan, isneginf,
           isposinf, isreal, le, logical_and, logical_not, logical_or, logical_xor, lt, maximum, minimum, ne, signbit,
           _where_method)
IN_PLACE = (copysign, eq, ge, gt, heaviside, le, logical_and, logical_not, logical_or, logical_xor, lt, ne)
ON_TENSORS = {"copysign": copysign, "equal": eq, "fmax": fmax, "fmin": fmin, "greater": gt, "greater_equal": ge,
              "isfinite": isfinite, "isinf": isinf, "isnan": isnan, "less": lt, "less_equal": le,
              "logical_and": logical_and, "logical_not": logical_not, "logical_or": logical_or,
              "logical_xor": logical_xor, "maximum": maximum, "minimum": minimum, "not_equal": ne, "signbit": signbit,
              "select": where, "where": where}
