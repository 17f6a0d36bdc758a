"""Backends: the functions of an array module, and reference bodies of the kernels that a device may do faster.

An op's body gets a backend as `xp`. Names that arrays of every kind share (exp, where, reshape, ...) are the array
module's own functions, listed below. The rest are methods, written over the former, so that they run on NumPy, on
CuPy and, for higher-order gradients, on Tensors (tensor_backend.py). A faster backend overrides a method;
`Backend(numpy)` is always the reference that the override is tested against.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .device import CPU, Device
from .dtypes import FLOATING, HALF, float32
from .kernels.convolution import ConvolutionKernels
from .kernels.loss import LossKernels
from .kernels.normalization import NormalizationKernels
from .kernels.pooling import PoolingKernels
from .kernels.product import ProductKernels
from .kernels.reduction import ReductionKernels
from .kernels.resampling import ResamplingKernels
from .kernels.scatter import ScatterKernels
from .kernels.special import SpecialKernels

# Taken from the array module as they are. All exist in NumPy and CuPy under this name with these semantics.
ARRAY_FUNCTIONS = """
abs negative sign positive exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal
sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh sinc
add subtract multiply divide power floor_divide remainder fmod arctan2 hypot copysign logaddexp logaddexp2
maximum minimum fmax fmin floor ceil trunc rint signbit
isnan isinf isfinite equal not_equal less less_equal greater greater_equal
logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor invert left_shift right_shift
where clip nan_to_num
moveaxis broadcast_to expand_dims squeeze ravel concatenate stack flip roll tile repeat
zeros ones full empty zeros_like ones_like empty_like full_like arange linspace eye ascontiguousarray
amax amin argmax argmin all any prod cumsum cumprod count_nonzero
sort argsort nonzero searchsorted bincount unique
take take_along_axis diagonal tril triu copyto
""".split()


class Backend(ReductionKernels, ProductKernels, ScatterKernels, ConvolutionKernels, PoolingKernels,
              NormalizationKernels, LossKernels, ResamplingKernels, SpecialKernels):
    """The functions of one array module and the reference kernels over them."""

    device_type = "cpu"
    array_type: Any = np.ndarray
    wide_dtype = float32

    def __init__(self, module: Any):
        self.module = module
        for name in ARRAY_FUNCTIONS:
            setattr(self, name, getattr(module, name))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the {type(self).__name__} has no function {name!r}: add it to ARRAY_FUNCTIONS where every "
                             f"array module has it, or write it as a method of Backend")

    # What is an array, and where

    def is_array(self, value: Any) -> bool:
        """True for this backend's arrays and for the scalars that its reductions return."""
        return isinstance(value, (self.array_type, np.generic))

    def is_floating(self, value: Any) -> bool:
        """True for an array of a floating dtype."""
        return value.dtype in FLOATING

    def is_half(self, value: Any) -> bool:
        """True for an array of float16 or bfloat16."""
        return value.dtype in HALF

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        """An array of this backend from an array of this backend, a NumPy array or a number; copies only if it must."""
        return self.module.asarray(value, dtype)

    def on_device(self, array: Any, dtype: Any, device: Device) -> Any:
        """A copy of a NumPy array on a device of this backend."""
        return self.module.array(array, dtype)

    def device_of(self, array: Any) -> Device:
        """The device on which an array of this backend lies."""
        return CPU

    def pieces(self, flat: Any, places: Any) -> list:
        """Arrays that show pieces of a 1-d array's memory, for places (start, shape). Where the array module can, each
        counts as memory of its own: an in-place edit of one is not one of the others, and its views are views of it."""
        if not flat.size:
            return [self.zeros(shape, flat.dtype) for _, shape in places]
        memory: Any = (ctypes.c_char * flat.nbytes).from_buffer(flat.view(np.uint8))  # as base, it hides the array behind it
        return [np.ndarray(shape, flat.dtype, memory, start * flat.itemsize) for start, shape in places]

    def to_numpy(self, array: Any) -> np.ndarray:
        """A NumPy array with the same values; a view on the CPU."""
        return array

    def widen(self, array: Any) -> Any:
        """A float32 copy of a half array; any other array itself."""
        return array.astype(float32) if array.dtype in HALF else array

    # NumPy's functions of these names are Python wrappers several times slower than the method

    def reshape(self, x: Any, shape: Any) -> Any:
        """x in another shape, a view where it can be."""
        return x.reshape(shape)

    def transpose(self, x: Any, axes: Any = None) -> Any:
        """x with its axes in another order, a view."""
        return x.transpose(axes)

    def swapaxes(self, x: Any, a: int, b: int) -> Any:
        """x with two axes exchanged, a view."""
        return x.swapaxes(a, b)


_by_array_type: dict[type, Backend] = {}
_makers: dict[str, Callable[[], Backend]] = {}


def register(device_type: str, make: Callable[[], Backend]) -> None:
    """Say how the backend of a device type is made; it is made when it is first needed."""
    _makers[device_type] = make


def backend_for(device: Device) -> Backend:
    """The backend that serves a device."""
    for backend in _by_array_type.values():
        if backend.device_type == device.type:
            return backend
    backend = _makers[device.type]()
    _by_array_type[backend.array_type] = backend
    return backend


@contextmanager
def use_backend(backend: Backend) -> Iterator[Backend]:
    """Let `backend` serve its kind of array inside the block, in all threads: `use_backend(Backend(numpy))` selects the
    reference kernels on the CPU."""
    kind = backend.array_type
    before = _by_array_type.get(kind)
    _by_array_type[kind] = backend
    try:
        yield backend
    finally:
        if before is None:
            del _by_array_type[kind]
        else:
            _by_array_type[kind] = before


def backend_of(array: Any) -> Backend:
    """The backend whose arrays `array` belongs to."""
    backend = _by_array_type.get(array.__class__)
    if backend is not None:
        return backend
    for kind, backend in list(_by_array_type.items()):
        if isinstance(array, kind):
            return backend
    raise TypeError(f"expected an array of one of the devices in use ({', '.join(k.__name__ for k in _by_array_type)}), "
                    f"got {type(array).__name__}")
