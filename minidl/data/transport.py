"""Objects from one process to another: the arrays in them travel beside the pickle, large ones through shared memory.

On Linux the memory is an anonymous file whose descriptor is sent: it has no name, so nothing is left behind when a process
dies, and the sender need not wait until the receiver reads. Elsewhere everything goes through the connection.
"""

from __future__ import annotations

import io
import os
import pickle
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

import numpy as np

from ..tensor.tensor import Tensor, make_tensor

Parts = list[Any]


def pack(value: Any) -> Parts:
    """The pickle of an object, then the memory of each of its arrays.

    Raises:
        pickle.PicklingError, AttributeError, TypeError: if it cannot be pickled.
    """
    buffers: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    _Pickler(file, protocol=5, buffer_callback=buffers.append).dump(value)
    return [file.getbuffer(), *[buffer.raw() for buffer in buffers]]


def send(connection: Any, parts: Parts) -> None:
    """Send what pack made. Where shared memory is used this returns at once."""
    sizes = [len(part) for part in parts]
    shared = _HAS_SHARED_FILES and sum(sizes) >= _LARGE
    connection.send_bytes(pickle.dumps((shared, sizes)))
    if not shared:
        for part in parts:
            connection.send_bytes(part)
        return
    with open(os.memfd_create("minidl"), "wb", buffering=0) as file:
        for part in parts:
            view = memoryview(part)
            while view:
                view = view[file.write(view):]
        send_handle(connection, file.fileno(), None)


def receive(connection: Any) -> Any:
    """The next object that the other side has sent, in memory of its own.

    Raises:
        EOFError, OSError: if the other side is gone.
    """
    shared, sizes = pickle.loads(connection.recv_bytes())
    if not shared:
        parts = [bytearray(connection.recv_bytes()) for _ in sizes]
        return pickle.loads(parts[0], buffers=parts[1:])
    arrays = [np.empty(size, np.uint8) for size in sizes]
    with open(recv_handle(connection), "rb", buffering=0) as file:
        file.seek(0)
        for array in arrays:
            view = memoryview(array)  # type: ignore[arg-type]
            while view:
                view = view[file.readinto(view):]
    return pickle.loads(arrays[0], buffers=arrays[1:])  # type: ignore[arg-type]


class _Pickler(pickle.Pickler):
    """Sends of a tensor only the part that it shows, not the memory that it is a view of, and no gradients."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not Tensor or value.device.type != "cpu" or value.__dict__:
            return NotImplemented
        return _tensor, (np.ascontiguousarray(value.array).reshape(value.shape), value.requires_grad and value.is_leaf)


def _tensor(array: np.ndarray, requires_grad: bool) -> Tensor:
    tensor = make_tensor(array, None)
    return tensor.requires_grad_() if requires_grad else tensor


_HAS_SHARED_FILES = hasattr(os, "memfd_create")
_LARGE = 1 << 16  # bytes; below, a copy through the connection is cheaper
