"""The CPU: NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend import Backend
from ..dtypes import float16, float32
from ..kernels.halves import narrow_into, widen_into

_MANY = 1 << 13  # elements from which the block-wise casts are faster than NumPy's


class CPUBackend(Backend):
    """Kernels over NumPy arrays."""

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        """An array of this backend from an array or a number; copies only if it must."""
        if dtype == float16 and value.__class__ is np.ndarray and value.dtype == float32 and value.size >= _MANY:
            out = np.empty(value.shape, float16)
            narrow_into(out, value)
            return out
        return np.asarray(value, dtype)

    def widen(self, array: Any) -> Any:
        """A float32 copy of a half array; any other array itself."""
        if array.dtype == float16 and array.size >= _MANY:
            out = np.empty(array.shape, float32)
            widen_into(out, array)
            return out
        return super().widen(array)

    def scan(self, combine: Any, x: Any, axis: int) -> Any:
        """`combine` of all elements up to each place, in one pass."""
        return combine.accumulate(x, axis)


def make() -> CPUBackend:
    """The backend of device "cpu"."""
    return CPUBackend(np)
