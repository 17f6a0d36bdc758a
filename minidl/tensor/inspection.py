"""Methods of Tensor that tell its layout, and simple questions about tensors."""

from __future__ import annotations

from typing import Any

from ..autograd import edits
from . import dtypes
from .dims import one_dim
from .ops.shape import permute, transpose
from .tensor import Tensor

__all__ = ["is_floating_point", "is_same_size", "is_tensor", "numel"]


def is_tensor(obj: Any) -> bool:
    """True for a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """True for a tensor of float16, bfloat16, float32 or float64."""
    return input.dtype in dtypes.FLOATING


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """True if both have the same shape."""
    return input.shape == other.shape


def numel(input: Tensor) -> int:
    """Number of elements."""
    return input.array.size


def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the length of one axis."""
    if dim is None:
        return self.shape
    if not self.ndim:
        raise IndexError("size expected a tensor with axes where dim is given, got a 0-d tensor")
    return self.shape[one_dim("size", dim, self.ndim)]


def dim(self: Tensor) -> int:
    """Number of axes."""
    return self.array.ndim


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Steps in elements from one position to the next along each axis, or along one."""
    steps = tuple(step // self.array.itemsize for step in self.array.strides)
    return steps if dim is None else steps[one_dim("stride", dim, self.ndim)]


def storage_offset(self: Tensor) -> int:
    """Position, in elements, of the first element in the memory that the tensor shows."""
    return (_address(self.array) - _address(edits.owner_of(self.array))) // self.array.itemsize


def data_ptr(self: Tensor) -> int:
    """Address of the first element."""
    return _address(self.array)


def _address(array: Any) -> int:
    return array.ctypes.data if hasattr(array, "ctypes") else array.data.ptr


def is_contiguous(self: Tensor) -> bool:
    """True if the elements lie in order without gaps."""
    return bool(self.array.flags.c_contiguous)


def element_size(self: Tensor) -> int:
    """Bytes of one element."""
    return self.array.itemsize


def get_device(self: Tensor) -> int:
    """Number of the CUDA device; -1 on the CPU."""
    return -1 if self.device.index is None else self.device.index


def reversed_axes(self: Tensor) -> Tensor:
    """The axes in reverse order."""
    return permute(self, tuple(range(self.ndim))[::-1]) if self.ndim > 1 else self


def matrix_transpose(self: Tensor) -> Tensor:
    """The last two axes exchanged."""
    if self.ndim < 2:
        raise RuntimeError(f"mT expected at least 2 axes, got a tensor of shape {self.shape}")
    return transpose(self, -2, -1)


def matrix_adjoint(self: Tensor) -> Tensor:
    """The transpose of a matrix (real numbers are their own conjugates)."""
    if self.ndim not in (0, 2):
        raise RuntimeError(f"H expected a matrix, got a tensor of shape {self.shape}; use .mT for batches of them")
    return reversed_axes(self)


METHODS: dict[str, Any] = {
    "size": size, "dim": dim, "ndimension": dim, "numel": numel, "nelement": numel, "stride": stride,
    "storage_offset": storage_offset, "data_ptr": data_ptr, "is_contiguous": is_contiguous, "element_size": element_size,
    "is_floating_point": is_floating_point, "is_same_size": is_same_size, "get_device": get_device,
    "is_complex": lambda self: False, "is_signed": lambda self: self.dtype not in (dtypes.uint8, dtypes.bool_),
}
PROPERTIES: dict[str, Any] = {
    "T": reversed_axes, "mT": matrix_transpose, "H": matrix_adjoint, "mH": matrix_transpose,
    "nbytes": lambda self: self.array.nbytes, "itemsize": element_size,
    "is_cuda": lambda self: self.device.type == "cuda", "is_cpu": lambda self: self.device.type == "cpu",
}
