"""dtypes, their promotion, and the dtype in which sums are accumulated.

A dtype of minidl is a numpy.dtype, so `minidl.float16`, `np.float16` and "float16" are interchangeable. bfloat16 comes
from ml_dtypes, which takes longer to import than all the rest, so it is loaded when it is first asked for. Promotion
follows PyTorch's torch.result_type, not NumPy's rules.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

__all__ = ["can_cast", "double", "finfo", "float16", "float32", "float64", "get_default_dtype", "half", "iinfo",
           "int16", "int32", "int64", "int8", "long", "promote_types", "result_type", "set_default_dtype", "short",
           "uint8"]

float16 = half = np.dtype(np.float16)
float32 = np.dtype(np.float32)
float64 = double = np.dtype(np.float64)
uint8 = np.dtype(np.uint8)
int8 = np.dtype(np.int8)
int16 = short = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = long = np.dtype(np.int64)
bool_ = np.dtype(np.bool_)

HALF = {float16}  # these sets gain bfloat16 when it is loaded
FLOATING = {float16, float32, float64}
INTEGER = frozenset({uint8, int8, int16, int32, int64})
ALL = {*FLOATING, *INTEGER, bool_}

_names = {float16: "float16", float32: "float32", float64: "float64", uint8: "uint8",
          int8: "int8", int16: "int16", int32: "int32", int64: "int64", bool_: "bool"}
_default = float32


def __getattr__(name: str) -> Any:
    if name == "bfloat16":
        return _load_bfloat16()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _load_bfloat16() -> np.dtype:
    import ml_dtypes

    found = np.dtype(ml_dtypes.bfloat16)
    for members in (HALF, FLOATING, ALL):
        members.add(found)
    _names[found] = "bfloat16"
    globals()["bfloat16"] = found
    return found


def is_bfloat16(dtype: Any) -> bool:
    """True for ml_dtypes' bfloat16, whether or not minidl has met it before."""
    return getattr(dtype, "name", None) == "bfloat16" and _load_bfloat16() == dtype


def as_dtype(dtype: Any) -> np.dtype:
    """The minidl dtype that `dtype` (a dtype, a NumPy type, a Python type or a name) stands for.

    Python's float is float64, as in NumPy and PyTorch, whatever the default floating dtype; its int is int64.

    Raises:
        TypeError: if minidl has no such dtype.
    """
    found: Any
    if isinstance(dtype, np.dtype):
        found = dtype
    elif isinstance(dtype, str) and dtype == "bfloat16":
        return _load_bfloat16()
    else:
        try:
            found = np.dtype(dtype)
        except TypeError:
            found = None
    if found not in ALL and not is_bfloat16(found):
        raise TypeError(f"expected one of the dtypes {', '.join(_names.values())}, got {dtype!r}")
    return found


def dtype_name(dtype: Any) -> str:
    """The name under which minidl exports a dtype: `float16`, `int64`, `bool`."""
    return _names[np.dtype(dtype)]


def is_floating(dtype: Any) -> bool:
    """True for float16, bfloat16, float32 and float64."""
    return dtype in FLOATING


def accumulation_dtype(dtype: Any) -> np.dtype:
    """The dtype in which sums, means, norms and products of `dtype` are accumulated: float32 for the halves."""
    return float32 if dtype in HALF else dtype


def get_default_dtype() -> np.dtype:
    """The dtype of floating tensors made from Python numbers; float32 unless set otherwise."""
    return _default


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype of floating tensors made from Python numbers (for all threads)."""
    global _default
    dtype = as_dtype(dtype)
    if dtype not in FLOATING:
        raise TypeError(f"set_default_dtype expected a floating dtype, got {dtype_name(dtype)}")
    _default = dtype


@cache
def promote_types(a: Any, b: Any) -> np.dtype:
    """The smallest dtype to which both can be promoted: a floating dtype wins over integers, integers over bool."""
    a, b = as_dtype(a), as_dtype(b)
    if a == b:
        return a
    if a in FLOATING and b in FLOATING:
        return float32 if a in HALF and b in HALF else max(a, b, key=lambda d: d.itemsize)
    if a in FLOATING or b in FLOATING:
        return a if a in FLOATING else b
    return np.promote_types(a, b)


def category(dtype: Any) -> int:
    """0 for bool, 1 for integers, 2 for floating dtypes: a higher category wins in promotion."""
    return 2 if dtype in FLOATING else 1 if dtype in INTEGER else 0


def can_cast(from_: Any, to: Any) -> bool:
    """True if a value of dtype `from_` may be stored as `to`: not floating as integer, nor a number as bool."""
    return category(as_dtype(from_)) <= category(as_dtype(to))


def result_type(tensor1: Any, tensor2: Any) -> np.dtype:
    """The dtype in which two operands, tensors or Python numbers, meet in arithmetic."""
    return result_type_of((tensor1, tensor2))


def scalar_dtype(value: Any) -> np.dtype:
    """The dtype of a Python number on its own."""
    if isinstance(value, bool):
        return bool_
    return int64 if isinstance(value, int) else _default


def result_type_of(operands: Any) -> np.dtype:
    """The dtype in which operands (arrays and Python numbers) meet.

    Arrays with axes decide; a 0-d array counts only where its category is higher than theirs, a number only where its
    category is higher than that of all arrays (source: PyTorch's documentation of torch.result_type).
    """
    ranks: list[Any] = [None, None, None]
    for operand in operands:
        if isinstance(operand, (bool, int, float)):
            rank, dtype = 2, scalar_dtype(operand)
        else:
            rank, dtype = (0 if operand.ndim else 1), operand.dtype
        ranks[rank] = dtype if ranks[rank] is None else promote_types(ranks[rank], dtype)
    found = None
    for dtype in ranks:
        if dtype is None:
            continue
        found = dtype if found is None or category(dtype) > category(found) else found
    assert found is not None
    return found


def _bfloat16_limits() -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(ml_dtypes.bfloat16)


class finfo:
    """Limits of a floating dtype: bits, eps, max, min, tiny, smallest_normal, resolution, dtype."""

    def __init__(self, dtype: Any = None):
        dtype = _default if dtype is None else as_dtype(dtype)
        if dtype not in FLOATING:
            raise TypeError(f"finfo expected a floating dtype, got {dtype_name(dtype)}; use iinfo")
        info = np.finfo(dtype) if dtype.kind == "f" else _bfloat16_limits()
        self.dtype = dtype_name(dtype)
        self.bits = int(info.bits)
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(info.resolution)

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")


@cache
def _largest(dtype: Any) -> float:
    return finfo(dtype).max


def saturated(value: Any, dtype: Any) -> float:
    """The number, or the floating dtype's largest of its sign if it is finite but larger; a fill of -1e9 is no -inf."""
    if value != value or value in (math.inf, -math.inf):
        return float(value)
    largest = _largest(dtype)
    return float(min(max(value, -largest), largest))


class iinfo:
    """Limits of an integer dtype: bits, min, max, dtype."""

    def __init__(self, dtype: Any):
        dtype = as_dtype(dtype)
        if dtype not in INTEGER:
            raise TypeError(f"iinfo expected an integer dtype, got {dtype_name(dtype)}; use finfo")
        info = np.iinfo(dtype)
        self.dtype, self.bits, self.min, self.max = dtype_name(dtype), info.bits, int(info.min), int(info.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def fitting(name: str, value: Any, dtype: Any) -> Any:
    """The number as one that the dtype holds: saturated, cut off for integers, and uint8's negative ones wrapped around.

    Raises:
        RuntimeError: if an integer dtype cannot hold it; `name` says who wanted it.
    """
    if dtype in FLOATING:
        return saturated(value, dtype)
    if dtype == bool_:
        return bool(value)
    info = iinfo(dtype)
    if not (info.min or -info.max) <= value <= info.max:
        raise RuntimeError(f"{name} expected a number that {info.dtype} can hold, in [{info.min}, {info.max}], got {value}")
    return int(value) % (info.max + 1) if not info.min else int(value)
