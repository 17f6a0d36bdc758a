"""Random numbers: Generators, and the two default streams of each thread.

Numbers come from NumPy's Philox, a counter-based generator that gives the same numbers on every platform. They are
drawn on the CPU and copied where a tensor lies elsewhere, so a seed means the same on every device.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from . import dtypes
from .backend import backend_for
from .device import CPU, Device
from .tensor import make_tensor


class Generator:
    """A stream of random numbers.

    Args:
        device: where tensors drawn from it lie if their device is not given.
    """

    def __init__(self, device: Any = "cpu"):
        self.device = Device(device)
        self.manual_seed(_DEFAULT_SEED)

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of a seed (any integer); returns the generator itself."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise TypeError(f"manual_seed expected an integer, got {seed!r}")
        self._seed = seed.__index__()
        self.numpy = np.random.Generator(np.random.Philox(key=_key(self._seed)))
        return self

    def seed(self) -> int:
        """Start the stream of a seed from the operating system; returns the seed."""
        self.manual_seed(int(np.random.SeedSequence().entropy) % (1 << 63))  # type: ignore[arg-type]
        return self._seed

    def initial_seed(self) -> int:
        """The seed with which the stream was started."""
        return self._seed

    def get_state(self) -> Any:
        """The state as a uint8 tensor: the seed and everything drawn so far decide it."""
        state = self.numpy.bit_generator.state
        words = np.concatenate([
            np.array([self._seed & _MASK, self._seed >> 64 & _MASK], np.uint64),
            state["state"]["counter"], state["state"]["key"], state["buffer"],
            np.array([state["buffer_pos"], state["has_uint32"], state["uinteger"]], np.uint64)])
        return make_tensor(words.astype("<u8").view(np.uint8), None)

    def set_state(self, state: Any) -> None:
        """Go on from a state that get_state gave."""
        data = np.ascontiguousarray(getattr(state, "array", state))
        if data.dtype != np.uint8 or data.shape != (8 * _WORDS,):
            raise ValueError(f"set_state expected a uint8 tensor of shape ({8 * _WORDS},) from get_state, got dtype "
                             f"{data.dtype} and shape {data.shape}")
        words = data.view("<u8").astype(np.uint64)
        self._seed = _signed(int(words[0]), int(words[1]))
        self.numpy.bit_generator.state = {
            "bit_generator": "Philox", "state": {"counter": words[2:6], "key": words[6:8]}, "buffer": words[8:12],
            "buffer_pos": int(words[12]), "has_uint32": int(words[13]), "uinteger": int(words[14])}

    # Arrays of random numbers, on the device asked for

    def uniform(self, shape: tuple, dtype: Any, device: Any = None) -> Any:
        """Numbers in [0, 1). Halves are drawn on a grid of their own precision, so that none is rounded up to 1."""
        if dtype not in dtypes.HALF:
            return self._place(self.numpy.random(shape, dtype), device)
        steps = _GRID.get(dtype, np.float32(1 << 8))
        return self._place((np.floor(self.numpy.random(shape, np.float32) * steps) / steps).astype(dtype), device)

    def normal(self, shape: tuple, dtype: Any, device: Any = None) -> Any:
        """Standard normal numbers."""
        kind = np.float64 if dtype == dtypes.float64 else np.float32
        return self._place(self.numpy.standard_normal(shape, kind).astype(dtype, copy=False), device)

    def integers(self, low: int, high: int, shape: tuple, dtype: Any, device: Any = None) -> Any:
        """Integers in [low, high)."""
        return self._place(self.numpy.integers(low, high, shape).astype(dtype), device)

    def permutation(self, n: int, dtype: Any, device: Any = None) -> Any:
        """The numbers 0 ... n-1 in random order."""
        return self._place(self.numpy.permutation(n).astype(dtype), device)

    def _place(self, array: Any, device: Any) -> Any:
        device = self.device if device is None else Device(device)
        array = np.asarray(array)
        return array if device == CPU else backend_for(device).on_device(array, array.dtype, device)


_DEFAULT_SEED = 0
_MASK = (1 << 64) - 1
_WORDS = 15
_GRID = {dtypes.float16: np.float32(1 << 11)}


def _key(seed: int) -> int:
    """A Philox key of 128 bits; the seed's sign and size count."""
    return seed % (1 << 128)


def _signed(low: int, high: int) -> int:
    value = low | high << 64
    return value - (1 << 128) if value >> 127 else value


class _Defaults(threading.local):
    """The default streams of a thread: initialisation, the same on all ranks, and run time (dropout, data)."""

    def __init__(self) -> None:
        self.rank = 0
        self.initialization = Generator()
        self.run_time = Generator()
        manual_seed_of(self, _DEFAULT_SEED)


def manual_seed_of(defaults: Any, seed: int) -> None:
    """Start both streams of a thread; the rank is folded into the second one."""
    defaults.initialization.manual_seed(seed)
    seed_run_time(defaults, seed)


def seed_run_time(defaults: Any, seed: int) -> None:
    """Start the run-time stream of a thread; the one for initialisation goes on."""
    defaults.run_time.manual_seed((seed % (1 << 64)) + ((defaults.rank + 1) << 64))
    defaults.run_time._seed = seed


_defaults = _Defaults()


def manual_seed(seed: int) -> Generator:
    """Start this thread's default streams: one for initialisation and one for run time (dropout, data, sampling)."""
    Generator().manual_seed(seed)  # refuse what is no seed before anything changes
    manual_seed_of(_defaults, seed.__index__())
    return _defaults.run_time


def set_rank(rank: int) -> None:
    """Fold a rank into this thread's run-time stream, which starts again, so that ranks drop out different units; the
    stream for initialisation goes on. minidl.distributed calls it."""
    _defaults.rank = rank
    seed_run_time(_defaults, _defaults.run_time.initial_seed())


def default_generator() -> Generator:
    """This thread's run-time stream."""
    return _defaults.run_time


def initialization_generator() -> Generator:
    """This thread's stream for initial parameters: the same on all ranks."""
    return _defaults.initialization


def get_rng_state() -> Any:
    """The state of this thread's run-time stream, a uint8 tensor."""
    return _defaults.run_time.get_state()


def set_rng_state(state: Any) -> None:
    """Go on from a state that get_rng_state gave."""
    _defaults.run_time.set_state(state)


def initial_seed() -> int:
    """The seed of this thread's default streams."""
    return _defaults.run_time.initial_seed()


def seed() -> int:
    """Start this thread's default streams from a seed of the operating system's; returns it."""
    value = Generator().seed()
    manual_seed(value)
    return value
