"""Second names under which PyTorch has element-wise functions."""

from __future__ import annotations

from . import arithmetic, comparison, pointwise, trigonometry

__all__ = ["absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "clip", "divide",
           "fix", "greater", "greater_equal", "less", "less_equal", "multiply", "negative", "not_equal", "subtract",
           "true_divide"]


def absolute(input):
    """As `abs`."""
    return arithmetic.abs(input)


def arccos(input):
    """As `acos`."""
    return trigonometry.acos(input)


def arccosh(input):
    """As `acosh`."""
    return trigonometry.acosh(input)


def arcsin(input):
    """As `asin`."""
    return trigonometry.asin(input)


def arcsinh(input):
    """As `asinh`."""
    return trigonometry.asinh(input)


def arctan(input):
    """As `atan`."""
    return trigonometry.atan(input)


def arctan2(input, other):
    """As `atan2`."""
    return trigonometry.atan2(input, other)


def arctanh(input):
    """As `atanh`."""
    return trigonometry.atanh(input)


def clip(input, min=None, max=None):
    """As `clamp`."""
    return pointwise.clamp(input, min, max)


def divide(input, other, *, rounding_mode=None):
    """As `div`."""
    return arithmetic.div(input, other, rounding_mode=rounding_mode)


def fix(input):
    """As `trunc`."""
    return pointwise.trunc(input)


def greater(input, other):
    """As `gt`."""
    return comparison.gt(input, other)


def greater_equal(input, other):
    """As `ge`."""
    return comparison.ge(input, other)


def less(input, other):
    """As `lt`."""
    return comparison.lt(input, other)


def less_equal(input, other):
    """As `le`."""
    return comparison.le(input, other)


def multiply(input, other):
    """As `mul`."""
    return arithmetic.mul(input, other)


def negative(input):
    """As `neg`."""
    return arithmetic.neg(input)


def not_equal(input, other):
    """As `ne`."""
    return comparison.ne(input, other)


def subtract(input, other, *, alpha=1):
    """As `sub`."""
    return arithmetic.sub(input, other, alpha=alpha)


def true_divide(input, other):
    """As `div`."""
    return arithmetic.div(input, other)


METHODS = (absolute, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, clip, divide, fix, greater,
           greater_equal, less, less_equal, multiply, negative, not_equal, subtract, true_divide)
IN_PLACE = METHODS
ON_TENSORS: dict = {}
