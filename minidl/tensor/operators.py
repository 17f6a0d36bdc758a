"""The operators of Tensor: a table of Python's special methods and what they call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtypes
from .apply import apply
from .inplace import in_place, in_place_arithmetic
from .ops import arithmetic, bitwise, comparison, linalg, pointwise
from .ops.binary import OPERANDS
from .tensor import Tensor


def _operator(function: Callable) -> Callable:
    """`self function other`; Python asks the other side where that is no tensor, array or number."""
    def method(self: Tensor, other: Any) -> Any:
        return function(self, other) if isinstance(other, OPERANDS) else NotImplemented

    return method


def _reflected(function: Callable) -> Callable:
    def method(self: Tensor, other: Any) -> Any:
        return function(other, self) if isinstance(other, OPERANDS) else NotImplemented

    return method


def _arithmetic(function: Callable) -> Callable:
    """As _operator, for an op of two operands, and faster where both are tensors."""
    record = function.op  # type: ignore[attr-defined]

    def method(self: Tensor, other: Any) -> Any:
        if other.__class__ is Tensor:
            return apply(record, (self, other), {})
        return function(self, other) if isinstance(other, OPERANDS) else NotImplemented

    return method


def _product(function: Callable) -> Callable:
    """As _operator, for an operator that numbers have not."""
    def method(self: Tensor, other: Any) -> Any:
        return function(self, other) if isinstance(other, (Tensor, np.ndarray)) else NotImplemented

    return method


def _quotient_of(number: Any, tensor: Tensor) -> Any:
    """number / tensor, which autocast runs in float32; an array on the left is like any operand."""
    return arithmetic.divide_number(number, tensor) if isinstance(number, (float, int)) else arithmetic._divide(number, tensor)


def _inverted(tensor: Any) -> Any:
    if tensor.dtype in dtypes.FLOATING:
        raise TypeError(f"~ expected a tensor of integers or bools, got {dtypes.dtype_name(tensor.dtype)}")
    return bitwise.bitwise_not(tensor)


OPERATORS: dict[str, Callable] = {
    "__add__": _arithmetic(arithmetic._add), "__radd__": _reflected(arithmetic._add),
    "__sub__": _operator(arithmetic.subtract_operands), "__rsub__": _reflected(arithmetic.subtract_operands),
    "__mul__": _arithmetic(arithmetic.mul), "__rmul__": _reflected(arithmetic.mul),
    "__truediv__": _arithmetic(arithmetic._divide), "__rtruediv__": _reflected(_quotient_of),
    "__floordiv__": _operator(arithmetic.floor_divide), "__rfloordiv__": _reflected(arithmetic.floor_divide),
    "__mod__": _operator(arithmetic.remainder), "__rmod__": _reflected(arithmetic.remainder),
    "__pow__": _operator(pointwise.pow), "__rpow__": _reflected(pointwise.pow),
    "__matmul__": _product(linalg.matmul), "__rmatmul__": _product(lambda self, other: linalg.matmul(other, self)),
    "__and__": _operator(bitwise.bitwise_and), "__rand__": _reflected(bitwise.bitwise_and),
    "__or__": _operator(bitwise.bitwise_or), "__ror__": _reflected(bitwise.bitwise_or),
    "__xor__": _operator(bitwise.bitwise_xor), "__rxor__": _reflected(bitwise.bitwise_xor),
    "__lshift__": _operator(bitwise.bitwise_left_shift), "__rlshift__": _reflected(bitwise.bitwise_left_shift),
    "__rshift__": _operator(bitwise.bitwise_right_shift), "__rrshift__": _reflected(bitwise.bitwise_right_shift),
    "__neg__": arithmetic.neg, "__pos__": arithmetic.positive, "__abs__": arithmetic.abs, "__invert__": _inverted,
    "__eq__": _operator(comparison.eq), "__ne__": _operator(comparison.ne),
    "__lt__": _operator(comparison.lt), "__le__": _operator(comparison.le),
    "__gt__": _operator(comparison.gt), "__ge__": _operator(comparison.ge),
    "__hash__": object.__hash__,  # by identity, although == compares elements
    "__ifloordiv__": _operator(in_place(arithmetic.floor_divide)), "__imod__": _operator(in_place(arithmetic.remainder)),
    "__ipow__": _operator(in_place(pointwise.pow)), "__itruediv__": _operator(in_place(arithmetic.div)),
    "__iand__": _operator(in_place(bitwise.bitwise_and)), "__ior__": _operator(in_place(bitwise.bitwise_or)),
    "__ixor__": _operator(in_place(bitwise.bitwise_xor)),
    "__ilshift__": _operator(in_place(bitwise.bitwise_left_shift)),
    "__irshift__": _operator(in_place(bitwise.bitwise_right_shift)),
    "__iadd__": _operator(in_place_arithmetic(arithmetic.add, "add")),
    "__isub__": _operator(in_place_arithmetic(arithmetic.sub, "subtract")),
    "__imul__": _operator(in_place_arithmetic(arithmetic.mul, "multiply")),
}
