"""Methods of Tensor that overwrite it as a whole, and copies of tensors: copy, deepcopy, pickle."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from ..autograd import edits
from ..autograd.graph import Leaf
from . import dtypes
from .backend import backend_for
from .device import CPU, Device
from .inplace import check_writable, overwrite
from .ops.shape import cast_to, expand
from .tensor import Tensor, make_tensor
from .transfer import move

# Overwriting

def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write the values of `src` into this tensor, broadcast, in its dtype and on its device; gradients flow to src."""
    if not isinstance(src, Tensor):
        raise TypeError(f"copy_ expected a tensor, got {type(src).__name__}; use fill_ for a number")
    check_writable(self, "copy_")
    moved = cast_to(move(src, self.device), self.dtype)
    if moved.ndim > self.ndim or moved.shape != self.shape and not _broadcasts(moved.shape, self.shape):
        raise RuntimeError(f"copy_ expected a source that broadcasts to shape {self.shape}, got shape {src.shape}")
    return overwrite(self, expand(moved, self.shape), "copy_")


def _broadcasts(shape: tuple, target: tuple) -> bool:
    return all(have in (1, want) for have, want in zip(reversed(shape), reversed(target)))


def fill_(self: Tensor, value: Any) -> Tensor:
    """Write a number, or the value of a 0-d tensor, to all places."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(f"fill_ expected a number or a 0-d tensor, got a tensor of shape {value.shape}; use copy_")
        return copy_(self, value)
    check_writable(self, "fill_")
    self.array[...] = value
    return overwrite(self, make_tensor(self.array, None), "fill_")


def zero_(self: Tensor) -> Tensor:
    """Write zeros to all places."""
    check_writable(self, "zero_")
    self.array[...] = 0
    return overwrite(self, make_tensor(self.array, None), "zero_")


def detach_(self: Tensor) -> Tensor:
    """Make this tensor a leaf without history, in place."""
    if self.view_of is not None and self.node is not None:
        raise RuntimeError("detach_ cannot detach a view in place, because its base would keep the history; use .detach()")
    self.node = None
    return self


# Copies

def deep_copy(self: Tensor, memo: dict) -> Tensor:
    """A leaf with memory of its own; tensors that shared memory share the copy, where they are copied together."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError("deepcopy expected a leaf, got a computed tensor, whose history cannot be copied; "
                           "use .detach().clone() or .clone()")
    owner = edits.owner_of(self.array)
    if not _is_one_block(owner):
        array = self.array.copy()
    elif self.array is owner:
        array = copy.deepcopy(owner, memo)
    else:
        array = _window(copy.deepcopy(owner, memo), *_place(self.array, owner))
    made = _rebuild(type(self), array, self.node is not None, None)
    memo[id(self)] = made
    made.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
    if type(self.node) is Leaf and self.node.grad is not None:
        made.grad = copy.deepcopy(self.node.grad, memo)
    return made


def reduce(self: Tensor, protocol: int) -> tuple:
    """For pickle and copy.copy: memory, class, attributes and requires_grad are kept; gradients and history are not.

    A view is stored as its place in the memory that it shows, so tensors that share memory share it after loading.
    """
    device = self.device
    state = {name: value for name, value in self.__dict__.items() if not name.startswith("_retain")}
    requires_grad = self.node is not None
    if device.type != "cpu":
        return _load, (type(self), self.numpy(), str(device), requires_grad), state or None
    owner = edits.owner_of(self.array)
    if self.array is owner or not _is_one_block(owner):
        return _rebuild, (type(self), self.array, requires_grad, None), state or None
    return _rebuild, (type(self), owner, requires_grad, _place(self.array, owner)), state or None


def _rebuild(kind: type, array: Any, requires_grad: bool, place: tuple | None) -> Any:
    tensor: Any = object.__new__(kind)
    tensor.array = array[...] if place is None else _window(array, *place)
    tensor.node = tensor.view_of = None
    if requires_grad:
        tensor.requires_grad_()
    return tensor


def _load(kind: type, values: np.ndarray, device: str, requires_grad: bool) -> Any:
    target = Device(device)
    array = values if target == CPU else backend_for(target).on_device(values, None, target)
    return _rebuild(kind, array, requires_grad, None)


def _is_one_block(owner: Any) -> bool:
    """True for a NumPy array of which a copy or a pickle has the same layout, so that windows into it stay valid."""
    return type(owner) is np.ndarray and (owner.flags.c_contiguous or owner.flags.f_contiguous)


def _place(array: np.ndarray, owner: np.ndarray) -> tuple:
    return array.ctypes.data - owner.ctypes.data, array.shape, array.strides, dtypes.dtype_name(array.dtype)


def _window(owner: np.ndarray, offset: int, shape: tuple, strides: tuple, dtype: str) -> np.ndarray:
    flat = owner.ravel(order="K").view(np.uint8)
    kind = dtypes.as_dtype(dtype)
    if not math.prod(shape):
        return np.zeros(shape, kind)
    if dtype != "bfloat16":
        return np.ndarray(shape, kind, flat, offset, strides)
    return np.ndarray(shape, np.uint16, flat, offset, strides).view(kind)  # buffers know no bfloat16


METHODS: dict[str, Any] = {"copy_": copy_, "fill_": fill_, "zero_": zero_, "detach_": detach_, "__deepcopy__": deep_copy,
                           "__reduce_ex__": reduce}
