"""Reads pickles of plain data (dict, list, str, bytes, numbers, numeric arrays) without running what they ask to run.

The few names that such a pickle holds are answered by stand-ins of our own, made anew for each pickle; NumPy's own
unpickling, which trusts its input, is never called.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import Any

import numpy as np


def load_plain(content: bytes, source: str) -> Any:
    """What a pickle of plain data holds, text of Python 2 as bytes; arrays are in native byte order.

    Args:
        content: the pickle.
        source: names it in errors.

    Raises:
        ValueError: if it asks for any other name, which is not looked up, or is damaged.
    """
    try:
        return _resolve(_PlainUnpickler(content).load(), {})
    except _Forbidden as error:
        raise ValueError(f"{source} is a pickle that asks for {error}, which plain data does not hold; nothing of it was run. "
                         f"Do not trust this file") from None
    except (pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RecursionError,
            TypeError, ValueError) as error:
        raise ValueError(f"{source} is a damaged pickle ({type(error).__name__}: {error}); fetch it again") from error


class _Forbidden(Exception):
    """A pickle asked for a name that plain data does not hold."""


class _PlainUnpickler(pickle.Unpickler):
    def __init__(self, content: bytes):
        super().__init__(io.BytesIO(content), encoding="bytes")
        self.names = _stand_ins()

    def find_class(self, module: str, name: str) -> Any:
        found = self.names.get((module.replace("numpy._core.", "numpy.core."), name))
        if found is None:
            raise _Forbidden(f"{module}.{name}")
        return found

    def persistent_load(self, pid: Any) -> Any:
        raise _Forbidden(f"the persistent object {pid!r}")


class _Dtype:
    """Stands in for a numpy.dtype: a number's kind and size, then its byte order."""

    __slots__ = ("code", "order")

    def __init__(self, code: Any):
        self.code = code.decode("ascii") if isinstance(code, bytes) else code
        self.order = "|"

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        self.order = order.decode("ascii") if isinstance(order, bytes) else order
        if any(part is not None for part in state[2:5]):
            raise ValueError("an array's dtype has fields")

    def dtype(self) -> np.dtype:
        if self.code not in _NUMBERS or self.order not in ("<", ">", "|", "="):
            raise ValueError(f"an array's dtype is {self.order!r} {self.code!r}; expected numbers")
        return np.dtype(self.order + self.code)


class _Array:
    """Stands in for a numpy.ndarray until the pickle has been read."""

    __slots__ = ("state",)

    def __init__(self, state: Any = None):
        self.state = state

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, content = state
        self.state = shape, dtype, "F" if fortran else "C", content

    def array(self) -> np.ndarray:
        shape, dtype, order, content = self.state
        if order not in ("C", "F") or not isinstance(dtype, _Dtype) or not isinstance(content, (bytes, bytearray)):
            raise ValueError("an array without numbers")
        kind = dtype.dtype()
        if len(content) != math.prod(shape) * kind.itemsize:
            raise ValueError(f"an array of shape {shape} and {kind} with {len(content)} bytes")
        return np.frombuffer(content, kind).reshape(shape, order=order).astype(kind.newbyteorder("="))


def _stand_ins() -> dict[tuple[str, str], Any]:
    def reconstruct(kind: Any, shape: Any, code: Any) -> _Array:
        return _Array()

    def from_buffer(content: Any, dtype: Any, shape: Any, order: Any) -> _Array:
        return _Array((shape, dtype, order, content))

    def make_dtype(code: Any, *flags: Any) -> _Dtype:
        return _Dtype(code)

    def encode(text: str, encoding: str = "latin1") -> bytes:
        return text.encode("latin1")

    return {("numpy.core.multiarray", "_reconstruct"): reconstruct, ("numpy.core.numeric", "_frombuffer"): from_buffer,
            ("numpy", "dtype"): make_dtype, ("numpy", "ndarray"): "numpy.ndarray", ("_codecs", "encode"): encode}


def _resolve(value: Any, done: dict[int, Any], depth: int = 0) -> Any:
    """The value with arrays in place of their stand-ins. What is `done` is not done again: a few bytes of a pickle can refer
    to one list a million times."""
    if value is None or type(value) in (str, bytes, bytearray, int, float, bool):
        return value
    if depth > _DEEPEST:
        raise ValueError(f"containers nested deeper than {_DEEPEST}")
    if id(value) not in done:
        done[id(value)] = _resolved(value, done, depth + 1)
    return done[id(value)]


def _resolved(value: Any, done: dict[int, Any], depth: int) -> Any:
    if isinstance(value, _Array):
        return value.array()
    if type(value) in (list, tuple):
        return type(value)(_resolve(item, done, depth) for item in value)
    if type(value) is dict:
        return {key: _resolve(item, done, depth) for key, item in value.items()}
    raise ValueError(f"a {type(value).__name__} where plain data was expected")


_NUMBERS = {"b1", *(kind + str(size) for kind in "iu" for size in (1, 2, 4, 8)), "f2", "f4", "f8"}
_DEEPEST = 20
