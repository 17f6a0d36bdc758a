"""Tensors from one device to another, recorded: the gradient comes back to the device that the tensor left."""

from __future__ import annotations

from typing import Any

from ..autograd.graph import Node
from ..autograd.mode import state
from ..autograd.op import Cast, Op, Promote
from . import inplace
from .backend import backend_for, backend_of
from .device import Device
from .tensor import Tensor, make_tensor


def move_array(array: Any, device: Device) -> Any:
    """The array on `device`; itself where it lies there."""
    source = backend_of(array)
    if source.device_of(array) == device:
        return array
    if source.device_type == device.type:
        return source.on_device(array, None, device)
    return backend_for(device).on_device(source.to_numpy(array), None, device)


def move(value: Any, device: Device) -> Any:
    """The tensor (or array) on `device`; itself where it lies there.

    Two nodes are recorded, because one stands for a value on one device and this operation has two.
    """
    if not isinstance(value, Tensor):
        return move_array(value, device)
    if inplace.history_written:
        inplace.refresh_views((value,))
    array = move_array(value.array, device)
    if array is value.array:
        return value
    if value.node is None or not state.grad:
        return make_tensor(array, None)
    home = value.device
    left = Node(_TO, value.backend, (value.node,), lambda g: move(g, home), array.shape, array.dtype)
    return make_tensor(array, Node(_TO, backend_of(array), (left,), _arrived, array.shape, array.dtype))


def _arrived(g: Any) -> Any:
    return g


def _to(xp: Any, x: Any) -> Any:
    raise AssertionError("nodes of this op are made by move")


_TO = Op("to", _to, Cast.KEEP, Promote.NONE, wide=False, replay=False, view=False)
