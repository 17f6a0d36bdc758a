"""Functions of the bits of integers and truth values."""

from __future__ import annotations

from ...autograd.op import Cast
from .. import dtypes
from ..apply import op
from ..creation import tensor
from ..tensor import Tensor
from .binary import binary, operand, raw

__all__ = ["bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor"]


@binary()
def _bitwise_and(xp, a, b):
    return xp.bitwise_and(a, b), None


@binary()
def _bitwise_or(xp, a, b):
    return xp.bitwise_or(a, b), None


@binary()
def _bitwise_xor(xp, a, b):
    return xp.bitwise_xor(a, b), None


@op(Cast.KEEP)
def _bitwise_not(xp, x):
    return xp.invert(x), None


@binary(wide_with_number=False)
def _left_shift(xp, a, b):
    return xp.select((b < 0) | (b >= 8 * a.dtype.itemsize), 0, xp.left_shift(a, b)), None


@binary(wide_with_number=False)
def _right_shift(xp, a, b):
    return xp.select((b < 0) | (b >= 8 * a.dtype.itemsize), -(a < 0).astype(a.dtype), xp.right_shift(a, b)), None


def bitwise_and(input, other):
    """The bits that are set in both; logical `and` of bools."""
    return _of_integers("bitwise_and", _bitwise_and, input, other)


def bitwise_or(input, other):
    """The bits that are set in one of the two or both; logical `or` of bools."""
    return _of_integers("bitwise_or", _bitwise_or, input, other)


def bitwise_xor(input, other):
    """The bits that are set in one of the two; logical `xor` of bools."""
    return _of_integers("bitwise_xor", _bitwise_xor, input, other)


def bitwise_not(input):
    """The bits that are not set; logical `not` of bools."""
    return _of_integers("bitwise_not", _bitwise_not, input)


def bitwise_left_shift(input, other):
    """input with its bits moved up by `other` places; 0 where that is negative or moves all out."""
    return _shift("bitwise_left_shift", _left_shift, input, other)


def bitwise_right_shift(input, other):
    """input with its bits moved down by `other` places, the sign kept."""
    return _shift("bitwise_right_shift", _right_shift, input, other)


def _of_integers(name, function, *operands):
    operands = [operand(name, x) for x in operands]
    dtype = dtypes.result_type_of([raw(x) for x in operands])
    if dtype in dtypes.FLOATING:
        raise NotImplementedError(f"{name} expected integers or bools, got {dtypes.dtype_name(dtype)}")
    return function(*operands)


def _shift(name, function, input, other):
    input, other = operand(name, input), operand(name, other)
    dtype = dtypes.result_type_of([raw(input), raw(other)])
    if dtype not in dtypes.INTEGER:
        raise NotImplementedError(f"{name} expected integers, got {dtypes.dtype_name(dtype)}")
    return function(*[x if isinstance(x, Tensor) else tensor(x, dtype=dtype) for x in (input, other)])


METHODS = (bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor)
IN_PLACE = METHODS
ON_TENSORS = {"bitwise_and": bitwise_and, "bitwise_or": bitwise_or, "bitwise_xor": bitwise_xor, "invert": bitwise_not}
