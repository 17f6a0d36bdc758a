"""CUDA devices: which there are, which one is current, waiting for them, their memory. CuPy does the work."""

from __future__ import annotations

from typing import Any

from .tensor.backend import backend_for
from .tensor.device import Device


def is_available() -> bool:
    """True if CuPy, a driver and at least one CUDA device are there."""
    return device_count() > 0


def device_count() -> int:
    """Number of CUDA devices; 0 without CuPy or without a driver."""
    try:
        return _backend().device_count
    except RuntimeError:
        return 0


def current_device() -> int:
    """Number of the device on which this thread's CUDA work runs."""
    return _backend().current_device().index


def set_device(device: Any) -> None:
    """Make a device (a number, "cuda:1" or a Device) the current one of this thread."""
    _cupy_device(device).use()


def device(device: Any) -> Any:
    """Context manager under which a device (a number, "cuda:1" or a Device) is the current one of this thread."""
    return _cupy_device(device)


def synchronize(device: Any = None) -> None:
    """Wait until all work given to a device, by default the current one, is done."""
    _cupy_device("cuda" if device is None else device).synchronize()


def memory_allocated(device: Any = None) -> int:
    """Bytes that arrays hold on a device, by default the current one."""
    with _cupy_device("cuda" if device is None else device):
        return _backend().module.get_default_memory_pool().used_bytes()


def _backend() -> Any:
    return backend_for(Device("cuda"))


def _cupy_device(device: Any) -> Any:
    device = Device(device)
    if device.type != "cuda":
        raise ValueError(f"expected a CUDA device, got {device}")
    backend = _backend()
    return backend.module.cuda.Device(backend.checked_index(device))
