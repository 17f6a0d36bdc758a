"""How much memory arrays take: counted inside `track_memory`, free of cost outside it.

On the CPU this is tracemalloc, to which NumPy reports every array; it counts Python's own objects too, which are small
beside arrays. On CUDA devices a hook of CuPy's memory pool counts the blocks that it hands out.
"""

from __future__ import annotations

import importlib.util
import threading
import tracemalloc
from typing import Any

from .backend import backend_for
from .device import Device

_open: list[track_memory] = []  # from the outermost block to the innermost; tracemalloc counts for all threads
_lock = threading.RLock()


class track_memory:
    """Context manager in which memory is counted, relative to its start: values, what backward keeps, and scratch.

    Blocks may be nested. `memory_stats()` asks the innermost one; `as` gives the block itself, whose `stats()` can be
    asked after it has ended as well. Memory from before the outermost block counts neither while it lives nor when it is
    freed. Python runs slower inside. CUDA memory is counted in the thread of the block.
    """

    def __enter__(self) -> track_memory:
        with _lock:
            if not _open:
                _start_tracing()
            self._start = _read_peaks()
            self._peak = 0
            self._ended: dict[str, dict[str, int]] | None = None
            outer = _open[-1].cuda if _open else None
            self.cuda: Any = outer if outer is not None else _cuda_counter()
            self._owns_cuda = outer is None and self.cuda is not None
            if self._owns_cuda:
                self.cuda.__enter__()
            self._cuda_start = {} if self.cuda is None else self.cuda.begin(self)
            _open.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        with _lock:
            self._ended = self.stats()
            _open.remove(self)
            if self.cuda is not None:
                self.cuda.peaks.pop(self)
                if self._owns_cuda:
                    self.cuda.__exit__(*exc)
            if not _open:
                _stop_tracing()

    def stats(self) -> dict[str, dict[str, int]]:
        """Bytes per device, `{"cpu": {"current": bytes, "peak": bytes}, ...}`, since the block's start."""
        if self._ended is not None:
            return self._ended
        with _lock:
            current = _read_peaks()
            found = {"cpu": {"current": current - self._start, "peak": max(self._peak - self._start, 0)}}
            if self.cuda is not None:
                found |= self.cuda.stats(self, self._cuda_start)
        return found

    def saw(self, peak: int) -> None:
        """Take note of a height that the traced memory has reached."""
        self._peak = max(self._peak, peak)


def memory_stats() -> dict[str, dict[str, int]]:
    """Bytes in use now and at most since the start of the innermost `track_memory` block, per device:
    `{"cpu": {"current": bytes, "peak": bytes}, "cuda:0": ...}`.

    Raises:
        RuntimeError: outside such a block.
    """
    if not _open:
        raise RuntimeError("memory_stats expected to be called inside `with minidl.track_memory():`, where memory is counted")
    return _open[-1].stats()


# tracemalloc has one peak; blocks inside one another each want their own, so each reading is handed to all open blocks

_ours = False


def _start_tracing() -> None:
    global _ours
    _ours = not tracemalloc.is_tracing()
    if _ours:
        tracemalloc.start(1)


def _stop_tracing() -> None:
    if _ours:
        tracemalloc.stop()


def _read_peaks() -> int:
    """The traced memory now; every open block learns of the peak since the last reading."""
    current, peak = tracemalloc.get_traced_memory()
    for block in _open:
        block.saw(peak)
    tracemalloc.reset_peak()
    return current


def _cuda_counter() -> Any:
    """A hook that counts CuPy's memory; None where there is no CUDA device."""
    if importlib.util.find_spec("cupy") is None:
        return None
    try:
        cupy: Any = backend_for(Device("cuda")).module
    except RuntimeError:
        return None

    class Counter(cupy.cuda.MemoryHook):  # type: ignore[name-defined, misc]
        """Bytes of the blocks that the pool has handed out since the outermost block began, and peaks per block."""

        name = "minidl memory"

        def __init__(self) -> None:
            self.current: dict[int, int] = {}
            self.peaks: dict[track_memory, dict[int, int]] = {}

        def begin(self, block: track_memory) -> dict[int, int]:
            self.peaks[block] = dict(self.current)
            return dict(self.current)

        def malloc_postprocess(self, **event: Any) -> None:
            device = event["device_id"]
            now = self.current[device] = self.current.get(device, 0) + event["mem_size"]
            for peak in self.peaks.values():
                peak[device] = max(peak.get(device, 0), now)

        def free_postprocess(self, **event: Any) -> None:
            self.current[event["device_id"]] = self.current.get(event["device_id"], 0) - event["mem_size"]

        def stats(self, block: track_memory, start: dict[int, int]) -> dict[str, dict[str, int]]:
            return {f"cuda:{device}": {"current": self.current.get(device, 0) - start.get(device, 0),
                                       "peak": peak - start.get(device, 0)} for device, peak in self.peaks[block].items()}

    return Counter()
