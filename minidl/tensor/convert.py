"""Arrays from what users pass: numbers, nested lists, NumPy arrays, tensors, DLPack exporters."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from . import dtypes
from .backend import backend_for, backend_of
from .device import Device, current_device


@np.errstate(all="ignore")  # a number too large for a dtype becomes inf, as in PyTorch
def to_array(data: Any, dtype: Any = None, device: Any = None, copy: bool = False) -> Any:
    """An array of the device's backend.

    Args:
        data: number, nested sequence, NumPy array, array of a device, tensor, or a nested sequence of tensors.
        dtype: of the result; by default that of the data, where Python floats count as the default floating dtype.
        device: of the result; by default that of the data, where it has one, else the current device.
        copy: never share memory with the data.

    Raises:
        TypeError: if the data cannot be made a tensor of a dtype that minidl has.
        ValueError: if nested sequences are ragged.
        RuntimeError: if an integer dtype cannot hold one of the numbers.
    """
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    source = data.array if hasattr(data, "view_of") else data
    fresh = False
    try:
        backend = backend_of(source)
    except TypeError:
        fresh = isinstance(source, (list, tuple, numbers.Number, np.generic))
        source = _from_python(source, dtype) if fresh else from_exporter(source)
        backend = backend_of(source)
    here = backend.device_of(source)
    if device is not None:
        target = resolve(device)
    else:  # a tensor stays where it is, other data that lies on the CPU goes where new tensors are made
        target = here if hasattr(data, "view_of") or backend.device_type != "cpu" else resolve(current_device())
    if source.dtype not in dtypes.ALL and not dtypes.is_bfloat16(source.dtype):
        source = _supported(source, dtype)
    if target != here:
        if backend.device_type != target.type:
            source = backend.to_numpy(source)
        return backend_for(target).on_device(source, dtype, target)
    made = backend.asarray(source, dtype)
    if not fresh and (made is source or made.base is not None):
        return made.copy() if copy else made[...]  # one array object belongs to one tensor
    return made


def resolve(device: Any) -> Device:
    """The device with its index filled in: "cuda" is the current CUDA device."""
    device = Device(device)
    return device if device.type == "cpu" or device.index is not None else backend_for(device).current_device()


def from_exporter(data: Any) -> Any:
    """The array of an object that shares its memory through DLPack or NumPy's protocols; no copy where it can be.

    Raises:
        TypeError: if the object has none of them.
    """
    if hasattr(data, "__dlpack__") and hasattr(data, "__dlpack_device__"):
        if data.__dlpack_device__()[0] == _DLPACK_CUDA:
            return backend_for(Device("cuda")).module.from_dlpack(data)
        if not hasattr(data, "__array__"):
            return np.from_dlpack(data)
    array = np.asarray(data)
    if array.dtype == object:
        raise TypeError(f"cannot make a tensor of a {type(data).__name__}; expected numbers, nested sequences of them, "
                        f"arrays or tensors")
    return array


_DLPACK_CUDA = 2


def _from_python(data: Any, dtype: Any) -> np.ndarray:
    """A NumPy array from numbers and nested sequences, with PyTorch's default dtypes."""
    if isinstance(data, np.generic):
        return np.asarray(data)
    if isinstance(data, numbers.Number):
        kind = dtype if dtype is not None else dtypes.scalar_dtype(data) if isinstance(data, (bool, int, float)) else None
        return _as_numpy(data, kind)
    data = _plain(data)
    try:
        array = _as_numpy(data, np.float64 if dtype in dtypes.HALF else dtype)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise ValueError(f"expected nested sequences of equal lengths, got ragged ones ({error})") from None
        raise
    if array.dtype.kind == "f" and np.isnan(array).any() and _holds_none(data):  # which NumPy takes for NaN
        raise TypeError("tensor expected numbers, got None among them")
    if dtype in dtypes.HALF:
        return array.astype(dtype)
    if dtype is None and array.dtype == np.float64 and not _holds_arrays(data):
        array = array.astype(dtypes.get_default_dtype())
    return array


def _as_numpy(data: Any, dtype: Any) -> np.ndarray:
    """np.asarray, with integers that are too large told apart."""
    try:
        array = np.asarray(data, dtype)
    except OverflowError:
        if dtype in dtypes.FLOATING:
            raise RuntimeError(f"tensor expected numbers that a float can hold, got an int above 1e308 for dtype "
                               f"{dtypes.dtype_name(dtype)}") from None
        return np.asarray(_fitting(data, dtype), dtype)
    if dtype is None and array.dtype.kind in "uO":  # where NumPy puts integers beyond int64
        _fitting(data, dtype)
    return array


def _fitting(data: Any, dtype: Any) -> Any:
    """The nested lists with their numbers as the integer dtype holds them, or an error that names one that it cannot."""
    if isinstance(data, list):
        return [_fitting(item, dtype) for item in data]
    return dtypes.fitting("tensor", data, dtype or dtypes.int64) if isinstance(data, (int, float)) else data


def _plain(data: Any) -> Any:
    """Nested sequences with the tensors in them replaced by NumPy arrays."""
    if isinstance(data, (list, tuple)):
        return [_plain(item) for item in data]
    if hasattr(data, "view_of"):
        return backend_of(data.array).to_numpy(data.array)
    return data


def _holds_none(data: Any) -> bool:
    return any(map(_holds_none, data)) if isinstance(data, list) else data is None


def _holds_arrays(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_holds_arrays(item) for item in data)
    return isinstance(data, (np.ndarray, np.generic)) and data.dtype == np.float64


def _supported(array: Any, dtype: Any) -> Any:
    """An array of a NumPy dtype that minidl lacks, in one that it has."""
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        if array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise RuntimeError(f"tensor expected numbers that int64 can hold, got ones up to {array.max()}")
        return array.astype(np.int64)
    if array.dtype.newbyteorder("=") in dtypes.ALL:
        return array.astype(array.dtype.newbyteorder("="))
    if array.size == 0 and array.dtype == object:
        return np.zeros(array.shape, dtype or dtypes.get_default_dtype())
    raise TypeError(f"cannot make a tensor of NumPy dtype {array.dtype}; expected numbers of one of the dtypes "
                    f"{', '.join(sorted(dtypes.dtype_name(d) for d in dtypes.ALL))}")
