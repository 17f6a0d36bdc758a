"""Methods of Tensor that change dtype or device, or hand its values to Python, NumPy and other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtypes
from .convert import from_exporter, resolve
from .device import Device
from .ops.shape import cast_to, clone
from .tensor import Tensor, make_tensor
from .transfer import move

__all__ = ["from_dlpack"]


# dtype and device

def to(self: Tensor, *args: Any, device: Any = None, dtype: Any = None, other: Tensor | None = None,
       non_blocking: bool = False, copy: bool = False) -> Tensor:
    """The tensor on another device or in another dtype, recorded; the tensor itself where nothing changes.

    Takes `to(dtype)`, `to(device, dtype=None)` or `to(other)`, each followed by non_blocking and copy.

    Args:
        other: take device and dtype from this tensor.
        non_blocking: accepted for PyTorch's sake; copies wait here.
        copy: make a copy even if nothing changes.
    """
    rest = list(args)
    if rest:
        first = rest.pop(0)
        if isinstance(first, Tensor):
            other = first
        elif _names_device(first):
            device = first
            if rest and not isinstance(rest[0], bool):
                dtype = rest.pop(0)
        elif first is not None:
            dtype = first
        elif rest and not isinstance(rest[0], bool):
            dtype = rest.pop(0)
    if len(rest) > 2 or not all(isinstance(flag, bool) for flag in rest):
        raise TypeError(f"to expected (dtype), (device, dtype) or (other), then non_blocking and copy, got {args}")
    copy = rest[1] if len(rest) == 2 else copy
    if other is not None:
        device, dtype = other.device, other.dtype
    result = self if dtype is None else cast_to(self, dtype)
    if device is not None:
        result = move(result, resolve(device))
    return clone(self) if copy and result is self else result


def _names_device(value: Any) -> bool:
    if isinstance(value, str):
        try:
            dtypes.as_dtype(value)
        except TypeError:
            return True
        return False
    return isinstance(value, Device) or (isinstance(value, int) and not isinstance(value, bool))


def cpu(self: Tensor) -> Tensor:
    """The tensor on the CPU; itself where it is there."""
    return move(self, Device("cpu"))


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """The tensor on a CUDA device, by default the current one."""
    target = resolve("cuda" if device is None else device)
    if target.type != "cuda":
        raise RuntimeError(f"cuda expected a CUDA device, got {target}; use .to()")
    return move(self, target)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype, and on the device, of another."""
    return to(self, other)


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The tensor in another dtype; without one, the name of its type, such as "minidl.FloatTensor"."""
    if dtype is None:
        return f"minidl.{'cuda.' if self.device.type == 'cuda' else ''}{_TYPE_NAMES[dtypes.dtype_name(self.dtype)]}Tensor"
    return cast_to(self, dtype)


_TYPE_NAMES = {"float16": "Half", "bfloat16": "BFloat16", "float32": "Float", "float64": "Double", "uint8": "Byte",
               "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool"}


def _caster(method: str, name: str) -> Callable:
    def cast(self: Tensor) -> Tensor:
        return cast_to(self, name)

    cast.__name__ = method
    cast.__qualname__ = f"Tensor.{method}"
    cast.__doc__ = f"The tensor in {name}; itself where it has that dtype."
    return cast


CASTS = {"half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64", "byte": "uint8",
         "char": "int8", "short": "int16", "int": "int32", "long": "int64", "bool": "bool"}


# Python

def item(self: Tensor) -> Any:
    """The value of a tensor of one element as a Python number.

    Raises:
        RuntimeError: if it has more or fewer.
    """
    if self.array.size != 1:
        raise RuntimeError(f"item expected a tensor of one element, got one of shape {self.shape}; use .tolist()")
    return _number(self.array)


def _number(array: Any) -> Any:
    value = array.item()
    return value if isinstance(value, (bool, int, float)) else float(value)  # ml_dtypes' scalars are no floats


def tolist(self: Tensor) -> Any:
    """The values as nested lists of Python numbers; of a 0-d tensor, a number."""
    return self.backend.to_numpy(self.array).tolist() if self.ndim else _number(self.array)


def length(self: Tensor) -> int:
    """len(): the length of the first axis."""
    if not self.ndim:
        raise TypeError("len() expected a tensor with axes, got a 0-d tensor")
    return self.shape[0]


def iterate(self: Tensor) -> Any:
    """iter(): views of the places along the first axis."""
    if not self.ndim:
        raise TypeError("iteration expected a tensor with axes, got a 0-d tensor")
    return iter(self.unbind(0))


def backwards(self: Tensor) -> Tensor:
    """reversed(): the first axis the other way round; a copy."""
    return self.flip(0) if self.ndim else self


def truth(self: Tensor) -> bool:
    """bool(): of a tensor with one element."""
    if self.array.size != 1:
        raise RuntimeError(f"the truth value of a tensor of shape {self.shape} is ambiguous; use .any() or .all()")
    return bool(_number(self.array))


def index(self: Tensor) -> int:
    """The Python integer for range(), slices and list indices: of an integer tensor with one element."""
    if self.array.size != 1 or self.dtype in dtypes.FLOATING:
        raise TypeError(f"expected an integer tensor of one element as an index, got one of dtype "
                        f"{dtypes.dtype_name(self.dtype)} and shape {self.shape}")
    return int(_number(self.array))


def contains(self: Tensor, element: Any) -> bool:
    """`element in tensor`: True if some element equals it."""
    if not isinstance(element, (Tensor, bool, int, float, np.generic)):
        raise RuntimeError(f"`in` expected a number or a tensor before it, got {type(element).__name__}")
    matches: Any = self == element
    return bool(matches.any())


# NumPy and DLPack

def numpy_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """np.asarray(): the values, shared where dtype and copy allow it; refused on a GPU, where it would hide a transfer."""
    if self.device.type != "cpu":
        raise TypeError(f"cannot convert a tensor on {self.device} to a NumPy array implicitly; call .numpy() or .cpu() first")
    if not copy and (dtype is None or np.dtype(dtype) == self.dtype):
        return self.array
    if copy is False:
        raise ValueError(f"cannot convert a tensor of dtype {self.dtype} to {np.dtype(dtype)} without a copy")
    return self.array.astype(self.dtype if dtype is None else dtype)


def numpy_function(self: Tensor, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
    """NumPy's own functions work on the values and return arrays."""
    return func(*_as_arrays(args), **{name: _as_arrays(value) for name, value in kwargs.items()})


def _as_arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return numpy_array(value)
    return type(value)(map(_as_arrays, value)) if type(value) in (list, tuple) else value


def dlpack(self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
           copy: bool | None = None) -> Any:
    """A capsule through which other libraries share the memory; arguments as in the Python array API.

    Raises:
        BufferError: for bfloat16, which NumPy does not export.
    """
    if dtypes.is_bfloat16(self.dtype):
        raise BufferError("NumPy's DLPack has no bfloat16; export .view(dtype=minidl.int16) and reinterpret it there")
    return self.array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def dlpack_device(self: Tensor) -> tuple:
    """DLPack's numbers for the kind of device and the device."""
    return self.array.__dlpack_device__()


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor that shares the memory of another library's tensor, through DLPack.

    Args:
        ext_tensor: any object with __dlpack__ and __dlpack_device__, such as a NumPy, CuPy or PyTorch array.

    Raises:
        TypeError: if it has them not, or its dtype is none of minidl's.
        BufferError: for bfloat16 of a library that does not export it to NumPy.
    """
    if not hasattr(ext_tensor, "__dlpack__") or not hasattr(ext_tensor, "__dlpack_device__"):
        raise TypeError(f"from_dlpack expected an object with __dlpack__ and __dlpack_device__, "
                        f"got {type(ext_tensor).__name__}")
    if isinstance(ext_tensor, Tensor):
        return ext_tensor.detach()
    try:
        array = from_exporter(ext_tensor)
    except (BufferError, RuntimeError, TypeError) as error:
        if "bfloat16" not in str(getattr(ext_tensor, "dtype", "")):
            raise
        raise BufferError("from_dlpack expected a dtype that NumPy's DLPack has, got bfloat16; import "
                          ".view(torch.int16), or the like, and .view(dtype=minidl.bfloat16) what comes") from error
    if array.dtype not in dtypes.ALL and not dtypes.is_bfloat16(array.dtype):
        raise TypeError(f"from_dlpack expected one of minidl's dtypes, got {array.dtype}")
    return make_tensor(array[...], None)


METHODS: dict[str, Any] = {
    **{method: _caster(method, name) for method, name in CASTS.items()},
    "to": to, "cpu": cpu, "cuda": cuda, "type": type_, "type_as": type_as, "item": item, "tolist": tolist,
    "__len__": length, "__iter__": iterate, "__reversed__": backwards, "__bool__": truth, "__index__": index,
    "__int__": lambda self: int(item(self)), "__float__": lambda self: float(item(self)),
    "__complex__": lambda self: complex(item(self)), "__contains__": contains,
    "__array__": numpy_array, "__array_function__": numpy_function, "__dlpack__": dlpack, "__dlpack_device__": dlpack_device,
}
