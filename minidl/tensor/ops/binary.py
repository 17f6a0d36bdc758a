"""How ops of two operands are declared: tensors, arrays or numbers on either side."""

from __future__ import annotations

import functools
import inspect
import numbers

import numpy as np

from ...autograd.op import Cast, Promote
from ..apply import apply, op
from ..tensor import Tensor

OPERANDS = (Tensor, float, int, np.ndarray, np.generic)  # what an operator takes on its other side
INTEGERS = (int, np.integer)


def binary(cast: Cast = Cast.WIDEST, *, promote: Promote | None = None, wide: bool = False, wide_with_number: bool = True):
    """Declare an op of two operands.

    Args:
        cast, promote, wide: as for `op`.
        wide_with_number: compute halves in float32 where one operand is a number, as PyTorch does: 1e5 and 1e-9 are no
            halves, but x * 1e5 may be one.
    """
    def declare(body):
        plain = op(cast, promote=promote, wide=wide)(body).op
        mixed = plain if wide == wide_with_number else op(cast, promote=promote, wide=wide_with_number)(body).op

        @functools.wraps(body)
        def call(input, other):
            if isinstance(input, Tensor):
                if isinstance(other, Tensor):
                    return apply(plain, (input, other), {})
                if other.__class__ is int and input.array.dtype.kind == "f":
                    other = float(other)  # spares apply a look at the dtypes
            elif input.__class__ is int and isinstance(other, Tensor) and other.array.dtype.kind == "f":
                input = float(input)
            return apply(mixed, (operand(plain.name, input), operand(plain.name, other)), {})

        call.__signature__ = inspect.signature(call, follow_wrapped=False)
        call.op = plain
        return call

    return declare


def operand(name, value):
    """A tensor, an array, or a Python number: NumPy's numbers would decide the dtype of the result.

    Raises:
        TypeError: for anything else.
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (Tensor, float, int)) or hasattr(value, "dtype"):
        return value
    raise TypeError(f"{name} expected a tensor or a number, got {type(value).__name__}; make a tensor of it first")


def is_number(value) -> bool:
    """True for Python's and NumPy's numbers."""
    return isinstance(value, (numbers.Real, np.generic))


def raw(value):
    """The array of a tensor; anything else itself."""
    return value.array if isinstance(value, Tensor) else value
