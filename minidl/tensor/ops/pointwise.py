"""Functions of real numbers, element-wise: exponentials, logarithms, powers, roots, special functions, rounding, clamping."""

from __future__ import annotations

import math

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from ..creation import ones_like, tensor
from ..tensor import Tensor
from .binary import binary, is_number, operand, raw
from .shape import cast_to, clone

__all__ = ["ceil", "clamp", "clamp_max", "clamp_min", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "float_power",
           "floor", "frac", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logit", "nan_to_num", "pow",
           "round", "rsqrt", "sigmoid", "sqrt", "square", "trunc", "xlogy"]

_LN2 = math.log(2)
_LN10 = math.log(10)

real = op(Cast.KEEP, promote=Promote.FLOAT, wide=True)  # declares a function of one real number; integers become floating


# Exponentials and logarithms

@op(Cast.FULL)
def exp(xp, input):
    """e to the power of each element."""
    y = xp.exp(input)
    return y, lambda g: g * y


@op(Cast.FULL)
def exp2(xp, input):
    """2 to the power of each element."""
    y = xp.exp2(input)
    return y, lambda g: g * y * _LN2


@op(Cast.FULL)
def expm1(xp, input):
    """exp(input) - 1, exact also near 0."""
    y = xp.expm1(input)
    return y, lambda g: g * (y + 1)


@op(Cast.FULL)
def log(xp, input):
    """Natural logarithm of each element."""
    return xp.log(input), lambda g: g / input


@op(Cast.FULL)
def log2(xp, input):
    """Logarithm to base 2 of each element."""
    return xp.log2(input), lambda g: g / (input * _LN2)


@op(Cast.FULL)
def log10(xp, input):
    """Logarithm to base 10 of each element."""
    return xp.log10(input), lambda g: g / (input * _LN10)


@op(Cast.FULL)
def log1p(xp, input):
    """log(1 + input), exact also near 0."""
    return xp.log1p(input), lambda g: g / (input + 1)


@binary(promote=Promote.FLOAT, wide=True)
def logaddexp(xp, input, other):
    """log(exp(input) + exp(other)), element-wise, without overflow."""
    return xp.logaddexp(input, other), (lambda g: g * _share(xp, input, other), lambda g: g * _share(xp, other, input))


@binary(promote=Promote.FLOAT, wide=True)
def logaddexp2(xp, input, other):
    """log2(2^input + 2^other), element-wise, without overflow."""
    return xp.logaddexp2(input, other), (lambda g: g * _share(xp, input * _LN2, other * _LN2),
                                         lambda g: g * _share(xp, other * _LN2, input * _LN2))


def _share(xp, a, b):
    """exp(a) / (exp(a) + exp(b)); a half each where both are infinite."""
    return xp.sigmoid(xp.select(a == b, 0, a - b))


@binary(promote=Promote.FLOAT, wide=True)
def _xlogy(xp, input, other):
    def input_gradient(g):
        none = (input == 0) & (other <= 0)
        return xp.select(none, 0, g * xp.log(xp.select(none, 1, other)))

    def other_gradient(g):  # without a division by 0, so that the gradient of this is finite too
        none = (input == 0) & (other == 0)
        return xp.select(none, 0, g * input / xp.select(none, 1, other))

    y = xp.select((input == 0) & ~xp.isnan(other), 0, input * xp.log(other))
    return y, (input_gradient, other_gradient)


def xlogy(input, other):
    """input * log(other), element-wise, and 0 where input is 0."""
    if is_number(other):
        other = tensor(other, dtype=dtypes.result_type(raw(input), operand("xlogy", other)))
    return _xlogy(input, other)


# Powers and roots

@real
def sqrt(xp, input):
    """Square root of each element."""
    y = xp.sqrt(input)
    return y, lambda g: g / (y * 2)


@op(Cast.FULL)
def rsqrt(xp, input):
    """1 / sqrt(input), element-wise."""
    y = 1 / xp.sqrt(input)
    return y, lambda g: g * y * y * y * -0.5


@binary(Cast.FULL, promote=Promote.COMMON, wide=True)
def _power(xp, input, exponent):
    y = input ** exponent

    def input_gradient(g):
        return xp.select(exponent == 0, 0, g * exponent * input ** (exponent - 1))

    def exponent_gradient(g):
        return g * xp.select((input == 0) & (exponent >= 0), 0, y * xp.log(input))

    return y, (input_gradient, exponent_gradient)


@binary(Cast.FULL, promote=Promote.COMMON, wide=True)
def _power_of_number(xp, base, exponent):
    y = base ** exponent
    log_base = math.log(base) if base > 0 else math.nan

    def exponent_gradient(g):
        if base == 0:
            return -g * xp.select(exponent >= 0, 0, y)  # y is infinite for negative exponents, and so is the slope
        return g * y * log_base

    return y, (None, exponent_gradient)


@binary(Cast.FULL, promote=Promote.COMMON, wide=True)
def _power_to_number(xp, input, exponent):
    if exponent == 0:
        return xp.ones_like(input), (lambda g: xp.zeros_like(g), None)
    if exponent == 2:
        return input * input, (lambda g: g * (input * 2), None)
    return xp.power_number(input, exponent), (lambda g: g * (xp.power_number(input, exponent - 1) * exponent), None)


@op(Cast.FULL, promote=Promote.COMMON)
def _integer_power(xp, base, exponent):
    sign = xp.select(base == -1, 1 - 2 * (exponent & 1), base == 1)
    return xp.select(exponent < 0, sign, base ** xp.maximum(exponent, 0)), None


@composed(Cast.FULL)
def pow(input, exponent):
    """input to the power of exponent, element-wise; either may be a number.

    Integers to negative integers give 0, but -1 and 1 to these give -1 or 1.

    Raises:
        RuntimeError: for integers to the power of a negative integer number.
    """
    if exponent.__class__ in (int, float) and isinstance(input, Tensor) and input.array.dtype.kind == "f":
        return _power_to_number(input, exponent)
    input, exponent = operand("pow", input), operand("pow", exponent)
    number = is_number(exponent)
    category = dtypes.category(dtypes.result_type_of([raw(input), raw(exponent)]))
    if category == 0 and number:
        return clone(input) if exponent else ones_like(input)
    if category == 0:
        raise NotImplementedError("pow expected numbers, got bools; cast one first")
    if category == 2:
        return (_power_to_number if number else _power_of_number if is_number(input) else _power)(input, exponent)
    if not number:
        return _integer_power(input, exponent)
    if exponent < 0:
        raise RuntimeError(f"pow expected integers to be raised to a power that is not negative, got {exponent}; cast them "
                           f"to a floating dtype, or write the exponent as {float(exponent)}")
    return _power_to_number(input, exponent)


def square(input):
    """input * input, element-wise."""
    return pow(input, 2)


def float_power(input, exponent):
    """input to the power of exponent, computed and returned in float64."""
    return pow(*[x if is_number(x) else cast_to(x, dtypes.float64) for x in (input, exponent)])


# Special functions

@real
def sigmoid(xp, input):
    """1 / (1 + exp(-input)), element-wise."""
    y = xp.sigmoid(input)
    return y, lambda g: g * y * (1 - y)


@real
def _logit(xp, x, *, eps):
    inner = x if eps is None else xp.minimum(xp.maximum(x, eps), 1 - eps)

    def gradient(g):
        if eps is None:
            return xp.select((x >= 0) & (x <= 1), g / (x * (1 - x)), math.nan)
        return xp.select((x >= eps) & (x <= 1 - eps), g / (x * (1 - x)), 0)

    return xp.log(inner / (1 - inner)), gradient


def logit(input, eps=None):
    """log(input / (1 - input)), the inverse of sigmoid; inputs are first clamped to [eps, 1 - eps] if eps is given."""
    return _logit(input, eps=eps)


@real
def erf(xp, input):
    """The error function of each element."""
    return xp.erf(input), lambda g: g * (xp.exp(-input * input) * _SLOPE)


@real
def erfc(xp, input):
    """1 - erf(input), exact also where it is small."""
    return xp.erfc(input), lambda g: g * (xp.exp(-input * input) * -_SLOPE)


@op(Cast.FULL)
def erfinv(xp, input):
    """The inverse of the error function."""
    y = xp.erfinv(input)
    return y, lambda g: g * (xp.exp(y * y) / _SLOPE)


_SLOPE = 2 / math.sqrt(math.pi)  # of erf at 0


# Rounding. The gradient is 0.

@op(Cast.KEEP)
def _floor(xp, x):
    return xp.floor(x), lambda g: xp.zeros_like(g)


@op(Cast.KEEP)
def _ceil(xp, x):
    return xp.ceil(x), lambda g: xp.zeros_like(g)


@op(Cast.KEEP)
def _trunc(xp, x):
    return xp.trunc(x), lambda g: xp.zeros_like(g)


@op(Cast.KEEP, wide=True)
def _round(xp, x, *, decimals):
    if decimals == 0:
        return xp.rint(x), lambda g: xp.zeros_like(g)
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    y = xp.rint(x * scale) / scale if decimals > 0 else xp.rint(x / scale) * scale
    return y, lambda g: xp.zeros_like(g)


def floor(input):
    """The largest whole number not above each element; the gradient is 0."""
    return _whole(_floor, input)


def ceil(input):
    """The smallest whole number not below each element; the gradient is 0."""
    return _whole(_ceil, input)


def trunc(input):
    """Each element without its fraction; the gradient is 0."""
    return _whole(_trunc, input)


def round(input, *, decimals=0):
    """Each element rounded to the nearest number of so many decimals, halves to the even one; the gradient is 0.

    Args:
        decimals: how many; negative ones count digits before the point.
    """
    if input.dtype in dtypes.INTEGER and decimals:
        raise NotImplementedError(f"round expected a floating input to round to {decimals} decimals, got "
                           f"{dtypes.dtype_name(input.dtype)}")
    return _whole(_round, input, decimals=decimals)


def _whole(function, input, **attributes):
    if input.dtype in dtypes.FLOATING:
        return function(input, **attributes)
    if input.dtype == dtypes.bool_:
        raise NotImplementedError(f"{function.op.name} expected numbers, got bool")
    return clone(input)


@op(Cast.KEEP)
def _frac(xp, x):
    return x - xp.trunc(x), lambda g: g


def frac(input):
    """The fraction of each element, with its sign."""
    if input.dtype not in dtypes.FLOATING:
        raise NotImplementedError(f"frac expected a floating input, got {dtypes.dtype_name(input.dtype)}")
    return _frac(input)


# Clamping

@op(Cast.WIDEST)
def _clamp(xp, x, low, high):
    y = x if low is None else xp.maximum(x, low)
    y = y if high is None else xp.minimum(y, high)

    def input_gradient(g):
        if low is None or high is None:
            return xp.select(x <= high if low is None else x >= low, g, 0)
        return xp.select((x >= low) & (x <= high), g, 0)

    def low_gradient(g):
        return xp.select(x < low if high is None else (x < low) & (low < high), g, 0)

    def high_gradient(g):
        return xp.select(x > high if low is None else (x > high) | (high < low), g, 0)

    return y, (input_gradient, low_gradient, high_gradient)


def clamp(input, min=None, max=None):
    """input, but no less than min and no more than max, element-wise; max wins where it is the smaller one.

    Args:
        min, max: numbers, tensors or None. The gradient at a bound goes to the input.

    Raises:
        RuntimeError: if neither is given.
    """
    if min is None and max is None:
        raise RuntimeError("clamp expected min, max or both, got neither")
    return _clamp(input, *[x if x is None else operand("clamp", x) for x in (min, max)])


def clamp_min(input, min):
    """input, but no less than min, element-wise."""
    return clamp(input, min)


def clamp_max(input, max):
    """input, but no more than max, element-wise."""
    return clamp(input, None, max)


@op(Cast.KEEP)
def _replace_nonfinite(xp, x, *, nan, posinf, neginf):
    y = xp.select(xp.isnan(x), nan, x)
    y = xp.select(x == math.inf, posinf, y)
    return xp.select(x == -math.inf, neginf, y), lambda g: xp.select(xp.isfinite(x), g, 0)


def nan_to_num(input, nan=None, posinf=None, neginf=None):
    """nan replaced by `nan` (default 0), infinities by posinf and neginf (default the largest and lowest finite value)."""
    if input.dtype not in dtypes.FLOATING:
        return clone(input)
    limits = dtypes.finfo(input.dtype)
    return _replace_nonfinite(input, nan=0.0 if nan is None else nan, posinf=limits.max if posinf is None else posinf,
                              neginf=limits.min if neginf is None else neginf)


METHODS = (ceil, clamp, clamp_max, clamp_min, erf, erfc, erfinv, exp, exp2, expm1, float_power, floor, frac, log, log10,
           log1p, log2, logaddexp, logaddexp2, logit, nan_to_num, pow, round, rsqrt, sigmoid, sqrt, square, trunc, xlogy)
IN_PLACE = (ceil, clamp, clamp_max, clamp_min, erf, erfc, erfinv, exp, exp2, expm1, float_power, floor, frac, log, log10,
            log1p, log2, logit, nan_to_num, pow, round, rsqrt, sigmoid, sqrt, square, trunc, xlogy)


def _clip(x, a_min, a_max):
    return clamp(x, a_min, a_max)


ON_TENSORS = {"ceil": ceil, "clip": _clip, "erf": erf, "erfc": erfc, "erfinv": erfinv, "exp": exp, "exp2": exp2,
              "expm1": expm1, "floor": floor, "log": log, "log10": log10, "log1p": log1p, "log2": log2,
              "logaddexp": logaddexp, "logaddexp2": logaddexp2, "nan_to_num": nan_to_num, "power": pow,
              "power_number": pow, "rint": round, "sigmoid": sigmoid, "sqrt": sqrt, "square": square, "trunc": trunc}
