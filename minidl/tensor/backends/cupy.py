"""CUDA devices: CuPy arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..backend import Backend
from ..device import Device

_ATOMIC = frozenset({dtypes.int32, dtypes.float32, dtypes.float64})  # what CuPy's scattering adds without a detour


class CuPyBackend(Backend):
    """Kernels over CuPy arrays. Work runs on the current device of the calling thread, as in CuPy.

    Args:
        module: cupy.
    """

    device_type = "cuda"

    def __init__(self, module: Any):
        super().__init__(module)
        self.array_type = module.ndarray
        self.repeat = self._repeat
        self.device_count = module.cuda.runtime.getDeviceCount()
        self._devices = [Device("cuda", i) for i in range(self.device_count)]

    def is_array(self, value: Any) -> bool:
        """True for CuPy arrays; CuPy's reductions return arrays too."""
        return isinstance(value, self.array_type)

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        """A CuPy array from a CuPy array, a NumPy array or a number; copies only if it must."""
        if value.__class__ is self.array_type and (dtype is None or value.dtype == dtype):
            return value
        return self.module.asarray(value, dtype)

    def on_device(self, array: Any, dtype: Any, device: Device) -> Any:
        """A copy of a NumPy or CuPy array on a CUDA device."""
        with self.module.cuda.Device(self.checked_index(device)):
            return self.module.array(array, dtype)

    def device_of(self, array: Any) -> Device:
        """The CUDA device on which an array lies."""
        return self._devices[array.device.id]

    def current_device(self) -> Device:
        """The CUDA device on which this thread's work runs and what "cuda" without a number stands for."""
        return self._devices[self.module.cuda.Device().id]

    def checked_index(self, device: Device) -> int:
        """The number of a CUDA device.

        Raises:
            RuntimeError: if there is no such device.
        """
        index = self.current_device().index if device.index is None else device.index
        if index is None or index >= self.device_count:
            raise RuntimeError(f"there is no device {device}: this machine has {self.device_count} CUDA device(s), "
                               f"numbered from 0")
        return index

    def pieces(self, flat: Any, places: Any) -> list:
        """Arrays that show pieces of a 1-d array's memory, for places (start, shape)."""
        return [flat[start:start + math.prod(shape)].reshape(shape) for start, shape in places]

    def to_numpy(self, array: Any) -> np.ndarray:
        """A NumPy array with a copy of the values."""
        return array.get()

    def scatter_add(self, out: Any, index: Any, values: Any) -> None:
        """out[index] += values, repeated positions counted; writes into out.

        CuPy adds atomically in int32, uint64, float32 and float64 only: int64 goes as uint64, which adds the same bits,
        halves in float32, small integers in int32.
        """
        add = self.module.add
        if out.dtype in _ATOMIC:
            add.at(out, index, values)
        elif out.dtype == dtypes.int64:
            add.at(out.view(np.uint64), index, self.module.asarray(values, np.int64).view(np.uint64))
        else:
            wide = out.astype(dtypes.float32 if out.dtype in dtypes.FLOATING else dtypes.int32)
            add.at(wide, index, values)
            out[...] = wide

    def _repeat(self, x: Any, repeats: Any, axis: int | None = None) -> Any:
        """As NumPy's; CuPy takes the repeats of each element as a list only."""
        return self.module.repeat(x, repeats.get().tolist() if self.is_array(repeats) else repeats, axis)


def make() -> CuPyBackend:
    """The backend of devices "cuda:i".

    Raises:
        RuntimeError: if CuPy is not installed, or there is no driver or no device.
    """
    try:
        import cupy
    except ImportError as error:
        raise RuntimeError('device "cuda" needs CuPy, which is not installed: pip install "minidl[cuda12]" for CUDA 12, '
                           'pip install "minidl[cuda13]" for CUDA 13') from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except RuntimeError as error:
        raise RuntimeError(f'device "cuda" needs an NVIDIA GPU and its driver; CuPy {cupy.__version__} is installed, but '
                           f'CUDA says: {error}') from error
    if count == 0:
        raise RuntimeError('device "cuda" needs an NVIDIA GPU, but CUDA finds none; is CUDA_VISIBLE_DEVICES set to hide it?')
    return CuPyBackend(cupy)
