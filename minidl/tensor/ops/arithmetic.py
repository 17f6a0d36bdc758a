"""Arithmetic with broadcasting: sums, products, quotients and their rounded forms, and what is fused of them."""

from __future__ import annotations

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, listed_as, op
from ..creation import ones_like, zeros_like
from ..tensor import Tensor
from .binary import INTEGERS, binary, is_number, operand, raw
from .shape import clone

__all__ = ["abs", "add", "addcdiv", "addcmul", "div", "floor_divide", "fmod", "lerp", "mul", "neg", "positive",
           "reciprocal", "remainder", "rsub", "sgn", "sign", "sub"]


@binary()
def _add(xp, a, b):
    return a + b, (lambda g: g, lambda g: g)


@binary()
def _sub(xp, a, b):
    return a - b, (lambda g: g, lambda g: -g)


@binary()
def mul(xp, input, other):
    """input * other, element-wise."""
    return input * other, (lambda g: g * other, lambda g: g * input)


@binary(promote=Promote.FLOAT)
def _divide(xp, a, b):
    y = a / b
    return y, (lambda g: g / b, lambda g: -g * y / b)


@binary(Cast.FULL, wide=True)
def divide_number(xp, a, b):
    """a / b for a number a, which autocast runs in float32, as a reciprocal."""
    y = a / b
    return y, (None, lambda g: -g * y / b)


@listed_as(_add)
def add(input, other, *, alpha=1):
    """input + alpha * other, element-wise; the sum of two bools is `or`."""
    return _add(input, other if alpha.__class__ is int and alpha == 1 else _scaled("add", input, other, alpha))


def subtract_operands(input, other):
    """input - other, element-wise.

    Raises:
        RuntimeError: for bools.
    """
    if _is_bool(input) or _is_bool(other):
        raise RuntimeError("sub expected numbers, got bool; use logical_xor, ^ or logical_not, or cast it first")
    return _sub(input, other)


def _is_bool(value):
    if isinstance(value, Tensor):
        return value.array.dtype.kind == "b"
    return value.__class__ is bool or getattr(value, "dtype", None) == dtypes.bool_


@listed_as(_sub)
def sub(input, other, *, alpha=1):
    """input - alpha * other, element-wise.

    Raises:
        RuntimeError: for bools.
    """
    if (alpha.__class__ is int and alpha == 1) or _is_bool(other):
        return subtract_operands(input, other)
    return subtract_operands(input, _scaled("sub", input, other, alpha))


def rsub(input, other, *, alpha=1):
    """other - alpha * input, element-wise."""
    return sub(other, input, alpha=alpha)


def _scaled(name, input, other, alpha):
    """alpha * other, where alpha suits the kind of the dtype in which input and other meet."""
    if not is_number(alpha):
        raise TypeError(f"{name} expected alpha to be a number, got {type(alpha).__name__}")
    found = dtypes.category(dtypes.result_type_of([operand(name, raw(input)), operand(name, raw(other))]))
    kind = dtypes.category(dtypes.scalar_dtype(alpha))
    if (kind == 0) > (found == 0) or (kind == 2) > (found == 2):
        raise RuntimeError(f"{name} expected an alpha of the kind of the tensors, {('bool', 'integer', 'floating')[found]}, "
                           f"got {alpha}; multiply by it first")
    alpha = alpha if found else bool(alpha)
    return other * alpha if is_number(other) else mul(other, alpha)


def neg(input):
    """-input, element-wise."""
    if input.dtype == dtypes.bool_:
        raise RuntimeError("neg expected numbers, got bool; use logical_not or ~")
    return _neg(input)


@op(Cast.KEEP)
def _neg(xp, x):
    return -x, lambda g: -g


def positive(input):
    """The input itself."""
    if input.dtype == dtypes.bool_:
        raise RuntimeError("positive expected numbers, got bool")
    return input


def abs(input):
    """The absolute value of each element; the gradient at 0 is 0."""
    if input.dtype == dtypes.bool_:
        raise NotImplementedError("abs expected numbers, got bool; the tensor is its own absolute value")
    return _abs(input)


@op(Cast.KEEP)
def _abs(xp, x):
    return xp.abs(x), lambda g: g * xp.sign(x)


@op(Cast.KEEP)
def _sign(xp, x):
    return xp.select(xp.isnan(x), 0, xp.sign(x)), lambda g: xp.zeros_like(g)


def sign(input):
    """-1, 0 or 1, after the sign of each element, and 0 for nan; its gradient is 0."""
    return clone(input) if input.dtype == dtypes.bool_ else _sign(input)


def sgn(input):
    """The sign of each element, as `sign`."""
    return sign(input)


@op(Cast.FULL)
def reciprocal(xp, input):
    """1 / input, element-wise."""
    y = 1 / input
    return y, lambda g: -g * y * y


# Quotients

@binary(wide=True)
def _floor_divide(xp, a, b):
    return xp.floor_divide(a, b), (lambda g: xp.zeros_like(g), lambda g: xp.zeros_like(g))


@binary(wide=True)
def _truncate_ratio(xp, a, b):
    return xp.trunc(a / b), (lambda g: xp.zeros_like(g), lambda g: xp.zeros_like(g))


@binary()
def _truncate_integer_ratio(xp, a, b):
    return xp.floor_divide(a - xp.fmod(a, b), b), None


@binary(wide=True)
def _remainder(xp, a, b):
    return xp.remainder(a, b), (lambda g: g, lambda g: -g * xp.floor_divide(a, b))


@binary(wide=True)
def _fmod(xp, a, b):
    return xp.fmod(a, b), (lambda g: g, lambda g: -g * xp.trunc(a / b))


@listed_as(_divide)
def div(input, other, *, rounding_mode=None):
    """input / other, element-wise; integers give the default floating dtype.

    Args:
        rounding_mode: None; "trunc" rounds towards 0; "floor" rounds down. With both, integers give integers and the
            gradient is 0.

    Raises:
        RuntimeError: for another rounding mode, or where an integer is divided by 0 and rounded.
    """
    if rounding_mode is None:
        return _divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise RuntimeError(f"div expected rounding_mode None, 'trunc' or 'floor', got {rounding_mode!r}")
    if _check_integers("div", input, other):
        return _truncate_integer_ratio(input, other)
    return _truncate_ratio(input, other)


def floor_divide(input, other):
    """input / other rounded down, element-wise, in the dtype in which they meet; the gradient is 0.

    Raises:
        RuntimeError: where an integer is divided by 0.
    """
    _check_integers("floor_divide", input, other)
    return _floor_divide(input, other)


def remainder(input, other):
    """What is left of input after division by other and rounding down; has the sign of other, as Python's %.

    Raises:
        RuntimeError: where an integer is divided by 0.
    """
    _check_integers("remainder", input, other)
    return _remainder(input, other)


def fmod(input, other):
    """What is left of input after division by other and rounding towards 0; has the sign of input, as C's fmod.

    Raises:
        RuntimeError: where an integer is divided by 0.
    """
    _check_integers("fmod", input, other)
    return _fmod(input, other)


def _check_integers(name, input, other):
    """True if the operands meet as integers; refuses to divide these by 0, and bools."""
    divisor = operand(name, raw(other))
    category = dtypes.category(dtypes.result_type_of([operand(name, raw(input)), divisor]))
    if category == 0:
        raise NotImplementedError(f"{name} expected numbers, got bools; cast one first")
    if category == 1 and not (divisor.all() if hasattr(divisor, "dtype") else divisor):
        raise RuntimeError(f"{name} expected integers other than 0 to divide by, got a 0 (ZeroDivisionError)")
    return category == 1


# Fused forms

@op(Cast.WIDEST, wide=True)
def _addcmul(xp, input, tensor1, tensor2, *, value):
    return input + tensor1 * tensor2 * value, (lambda g: g, lambda g: g * tensor2 * value, lambda g: g * tensor1 * value)


@op(Cast.WIDEST, wide=True)
def _addcdiv(xp, input, tensor1, tensor2, *, value):
    return input + tensor1 / tensor2 * value, (lambda g: g, lambda g: g / tensor2 * value,
                                               lambda g: -g * tensor1 / (tensor2 * tensor2) * value)


def addcmul(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 * tensor2, element-wise."""
    category = dtypes.category(dtypes.result_type_of([raw(x) for x in (input, tensor1, tensor2)]))
    if category == 0:
        raise NotImplementedError("addcmul expected numbers, got bools; cast one first")
    if category == 1 and not isinstance(value, INTEGERS):
        raise RuntimeError(f"addcmul expected an integer value for integer tensors, got {value}")
    return _addcmul(input, tensor1, tensor2, value=value)


def addcdiv(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 / tensor2, element-wise.

    Raises:
        RuntimeError: for two integer tensors.
    """
    if dtypes.category(dtypes.result_type_of([raw(tensor1), raw(tensor2)])) < 2:
        raise RuntimeError("addcdiv expected a floating tensor1 or tensor2, got integers; cast one first, or divide with "
                           "rounding_mode='trunc' and add")
    return _addcdiv(input, tensor1, tensor2, value=value)


@op(Cast.WIDEST, wide=True)
def _lerp_by_number(xp, input, end, *, weight):
    rest = 1 - weight
    y = input + (end - input) * weight if weight < 0.5 else end - (end - input) * rest
    return y, (lambda g: g * rest, lambda g: g * weight)


@op(Cast.WIDEST, wide=True)
def _lerp(xp, input, end, weight):
    step = end - input
    y = xp.select(weight < 0.5, input + weight * step, end - step * (1 - weight))
    return y, (lambda g: g * (1 - weight), lambda g: g * weight, lambda g: g * (end - input))


@composed(Cast.WIDEST)
def lerp(input, end, weight):
    """input + weight * (end - input), element-wise; weight is a number or a tensor.

    Raises:
        RuntimeError: for tensors of different dtypes, or integers.
    """
    found = [x.dtype for x in (input, end, weight) if isinstance(x, Tensor)]
    if any(dtype != found[0] for dtype in found):
        raise RuntimeError(f"lerp expected tensors of one dtype, got {' and '.join(map(dtypes.dtype_name, found))}; cast one")
    if found[0] not in dtypes.FLOATING:
        raise NotImplementedError(f"lerp expected floating tensors, got {dtypes.dtype_name(found[0])}; cast them first")
    if is_number(weight):
        return _lerp_by_number(input, end, weight=float(weight))
    return _lerp(input, end, weight)


METHODS = (abs, add, addcdiv, addcmul, div, floor_divide, fmod, lerp, mul, neg, positive, reciprocal, remainder, sgn, sign,
           sub)
IN_PLACE = (abs, add, addcdiv, addcmul, div, floor_divide, fmod, lerp, mul, neg, reciprocal, remainder, sgn, sign, sub)
ON_TENSORS = {"abs": abs, "add": _add, "divide": _divide, "floor_divide": floor_divide, "fmod": fmod, "multiply": mul,
              "negative": neg, "ones_like": ones_like, "reciprocal": reciprocal, "remainder": remainder, "sign": sign,
              "subtract": subtract_operands, "zeros_like": zeros_like}
