"""New tensors: from data, filled with constants, evenly spaced.

Arguments that they share: `dtype`, by default the default floating dtype unless said otherwise; `device`, by default the
current one (or that of the tensor a new one is to be like); `requires_grad`, whether backward computes its gradient.
"""

from __future__ import annotations

import math
from operator import index as as_int
from typing import Any

import numpy as np

from . import dtypes
from .backend import Backend, backend_for
from .convert import resolve, to_array
from .device import Device, current_device
from .sizes import lengths_of
from .tensor import Tensor, make_tensor

__all__ = ["arange", "as_tensor", "empty", "empty_like", "eye", "from_numpy", "full", "full_like", "linspace", "logspace",
           "ones", "ones_like", "scalar_tensor", "tensor", "zeros", "zeros_like"]


# From data

def tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of the data: numbers, nested sequences of them, arrays, tensors."""
    return _finish(to_array(data, dtype, device, copy=True), requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The data as a tensor that shares its memory where dtype and device allow it; a tensor that fits is returned itself."""
    if not isinstance(data, Tensor):
        return make_tensor(to_array(data, dtype, device), None)
    moved = data if device is None or resolve(device) == data.device else data.to(device)
    return moved if dtype is None else moved.cast_to(dtype)


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares the memory of a NumPy array.

    Raises:
        TypeError: if it is no array, or of a dtype that minidl lacks.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy expected a NumPy array, got {type(ndarray).__name__}; use as_tensor")
    if ndarray.dtype not in dtypes.ALL and not dtypes.is_bfloat16(ndarray.dtype):
        raise TypeError(f"from_numpy expected an array of one of the dtypes "
                        f"{', '.join(sorted(map(dtypes.dtype_name, dtypes.ALL)))} in native byte order, got {ndarray.dtype!r}; "
                        f"use tensor, which copies")
    return make_tensor(ndarray[...].view(np.ndarray), None)


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A 0-d tensor of a number, in the default floating dtype unless dtype says otherwise."""
    return full((), s, dtype=dtypes.get_default_dtype() if dtype is None else dtype, device=device, requires_grad=requires_grad)


# Filled with a constant

def empty(size: Any, *more: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of a shape whose values are whatever the memory holds."""
    xp, device = _backend(device)
    return _finish(_place(xp, xp.empty(lengths_of("empty", size, more), _dtype(dtype)), device), requires_grad)


def zeros(size: Any, *more: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of a shape."""
    xp, device = _backend(device)
    return _finish(_place(xp, xp.zeros(lengths_of("zeros", size, more), _dtype(dtype)), device), requires_grad)


def ones(size: Any, *more: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of a shape."""
    xp, device = _backend(device)
    return _finish(_place(xp, xp.ones(lengths_of("ones", size, more), _dtype(dtype)), device), requires_grad)


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of a shape (a sequence) filled with a number, in the number's dtype unless dtype says otherwise."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full expected its size as a tuple or list, got {size!r}")
    if isinstance(fill_value, Tensor) and dtype is None and fill_value.ndim == 0:
        dtype = fill_value.dtype
    value = _number("full", fill_value)
    xp, device = _backend(device)
    dtype = dtypes.scalar_dtype(value) if dtype is None else dtypes.as_dtype(dtype)
    shape = lengths_of("full", size)
    return _finish(_place(xp, xp.full(shape, _fitting("full", value, dtype), dtype), device), requires_grad)


def eye(n: Any, m: Any = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A matrix of n rows and m columns (n if not given) with ones on the diagonal and zeros elsewhere."""
    rows, columns = lengths_of("eye", (n, n if m is None else m))
    xp, device = _backend(device)
    return _finish(_place(xp, xp.eye(rows, columns, dtype=_dtype(dtype)), device), requires_grad)


# Like another tensor

def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of the shape, dtype and device of `input` whose values are whatever the memory holds."""
    return new_empty(input, input.shape, dtype=dtype, device=device, requires_grad=requires_grad)


def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the shape, dtype and device of `input`."""
    return new_zeros(input, input.shape, dtype=dtype, device=device, requires_grad=requires_grad)


def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of the shape, dtype and device of `input`."""
    return new_ones(input, input.shape, dtype=dtype, device=device, requires_grad=requires_grad)


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None,
              requires_grad: bool = False) -> Tensor:
    """A tensor of the shape, dtype and device of `input` filled with a number."""
    return new_full(input, input.shape, fill_value, dtype=dtype, device=device, requires_grad=requires_grad)


def new_tensor(input: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of the data, of the dtype and device of `input`."""
    return tensor(data, **_like(input, dtype, device), requires_grad=requires_grad)


def new_empty(input: Tensor, size: Any, *more: Any, dtype: Any = None, device: Any = None,
              requires_grad: bool = False) -> Tensor:
    """A tensor of a shape, of the dtype and device of `input`, whose values are whatever the memory holds."""
    return empty(size, *more, **_like(input, dtype, device), requires_grad=requires_grad)


def new_zeros(input: Tensor, size: Any, *more: Any, dtype: Any = None, device: Any = None,
              requires_grad: bool = False) -> Tensor:
    """Zeros of a shape, of the dtype and device of `input`."""
    return zeros(size, *more, **_like(input, dtype, device), requires_grad=requires_grad)


def new_ones(input: Tensor, size: Any, *more: Any, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """Ones of a shape, of the dtype and device of `input`."""
    return ones(size, *more, **_like(input, dtype, device), requires_grad=requires_grad)


def new_full(input: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """A tensor of a shape filled with a number, of the dtype and device of `input`."""
    return full(size, fill_value, **_like(input, dtype, device), requires_grad=requires_grad)


# Evenly spaced

def arange(start: Any = None, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:
    """The numbers start, start + step, ... before end: `arange(end)`, `arange(start, end)`, `arange(start, end, step)`.

    int64 where all arguments are integers, else of the default floating dtype, unless dtype says otherwise.
    """
    if start is None and end is None:
        raise TypeError("arange expected an end, got none")
    start, end = (0, start) if end is None else (0 if start is None else start, end)
    start, end, step = (_number("arange", value) for value in (start, end, step))
    if dtype is None:
        dtype = dtypes.int64 if all(isinstance(v, int) for v in (start, end, step)) else dtypes.get_default_dtype()
    dtype = _numeric("arange", dtype)
    if not (math.isfinite(start) and math.isfinite(end) and math.isfinite(step)) or step == 0:
        raise RuntimeError(f"arange expected finite numbers and a step that is not 0, got {start}, {end}, {step}")
    if (end - start) * step < 0:
        raise RuntimeError(f"arange expected a step from start towards end, got {start}, {end}, {step}")
    if dtype == dtypes.int64:  # as in PyTorch, the other integer dtypes count first and truncate then
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("arange expected a step that is not 0 as an integer")
        count = max(-(-(end - start) // step), 0)
    else:
        count = math.ceil((end - start) / step)
    if dtype in dtypes.INTEGER:
        start, step = int(start), int(step)
    xp, device = _backend(device)
    wide = dtypes.int64 if dtype in dtypes.INTEGER else dtypes.float64
    return _finish(_place(xp, (xp.arange(count, dtype=wide) * step + start).astype(dtype, copy=False), device), requires_grad)


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """`steps` evenly spaced numbers from start to end, both included. start and end may be 0-d tensors."""
    dtype = _numeric("linspace", _dtype(dtype))
    xp, device = _backend(device)
    return _finish(_place(xp, _line(xp, "linspace", start, end, steps, dtype).astype(dtype), device), requires_grad)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """base to the power of `steps` evenly spaced exponents from start to end, both included."""
    dtype = _numeric("logspace", _dtype(dtype))
    xp, device = _backend(device)
    with np.errstate(all="ignore"):
        values = xp.power(float(base), _line(xp, "logspace", start, end, steps, dtype)).astype(dtype)
    return _finish(_place(xp, values, device), requires_grad)


def _line(xp: Backend, name: str, start: Any, end: Any, steps: int, dtype: Any) -> Any:
    """Evenly spaced float64 numbers, counted from both ends so that they are symmetric."""
    for value in (start, end):
        if isinstance(value, Tensor) and value.ndim:
            raise RuntimeError(f"{name} expected 0-d tensors as start and end, got shape {value.shape}")
    start, end, steps = _number(name, start), _number(name, end), as_int(steps)
    if steps < 0:
        raise RuntimeError(f"{name} expected a number of steps that is not negative, got {steps}")
    if dtype in dtypes.INTEGER:
        start, end = int(start), int(end)
    step = (end - start) / max(steps - 1, 1)
    i = xp.arange(steps, dtype=dtypes.float64)
    return xp.where(i < steps / 2, start + step * i, end - step * (steps - 1 - i)) if steps != 1 else i + start


# Arguments

def _dtype(dtype: Any) -> Any:
    return dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)


def _numeric(name: str, dtype: Any) -> Any:
    dtype = dtypes.as_dtype(dtype)
    if dtype == dtypes.bool_:
        raise NotImplementedError(f"{name} expected a floating or integer dtype, got bool")
    return dtype


def _like(input: Tensor, dtype: Any, device: Any) -> dict[str, Any]:
    return {"dtype": input.dtype if dtype is None else dtype, "device": input.device if device is None else device}


def _backend(device: Any) -> tuple[Backend, Device]:
    device = resolve(current_device() if device is None else device)
    return backend_for(device), device


def _place(xp: Backend, array: Any, device: Device) -> Any:
    """A fresh array on the device asked for; the backend has made it on its current one."""
    return array if device.index is None or xp.device_of(array) == device else xp.on_device(array, None, device)


def _finish(array: Any, requires_grad: bool) -> Tensor:
    return make_tensor(array, None).requires_grad_() if requires_grad else make_tensor(array, None)


def _number(name: str, value: Any) -> Any:
    """A Python number from a number or a 0-d tensor or array."""
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Tensor):
        if value.ndim:
            raise TypeError(f"{name} expected numbers or 0-d tensors, got a tensor of shape {value.shape}")
        value = value.numpy()[()]
    if not isinstance(value, (np.generic, np.ndarray)) or np.ndim(value) or value.dtype.kind not in _NUMERIC:
        raise TypeError(f"{name} expected a number, got {type(value).__name__}")
    return float(value) if dtypes.is_bfloat16(value.dtype) else value.item()


def _fitting(name: str, value: Any, dtype: Any) -> Any:
    """The number as the dtype takes it: cut off for integers, and refused where it does not fit."""
    if dtype in dtypes.INTEGER:
        limits = dtypes.iinfo(dtype)
        if not math.isfinite(value) or not -limits.max - 1 <= value <= limits.max:
            raise RuntimeError(f"{name} expected a value that {dtypes.dtype_name(dtype)} can hold, got {value}")
        value = int(value)
        return value if value >= limits.min else value + limits.max + 1
    return bool(value) if dtype == dtypes.bool_ else value


_NUMERIC = "biufV"  # V: ml_dtypes' bfloat16

METHODS = (new_empty, new_full, new_ones, new_tensor, new_zeros)
