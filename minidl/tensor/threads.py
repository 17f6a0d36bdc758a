"""How many threads the CPU's matrix products use."""

from __future__ import annotations

import os
from typing import Any


def set_num_threads(num_threads: int) -> None:
    """Set the number of threads that the BLAS and OpenMP libraries of this process use.

    Raises:
        ValueError: if the number is not positive.
        ImportError: if threadpoolctl is not installed.
    """
    if isinstance(num_threads, bool) or not hasattr(num_threads, "__index__"):
        raise TypeError(f"set_num_threads expected an integer, got {num_threads!r}")
    if num_threads.__index__() < 1:
        raise ValueError(f"set_num_threads expected a positive number, got {num_threads}")
    _threadpoolctl().threadpool_limits(limits=num_threads.__index__())


def get_num_threads() -> int:
    """The number of threads that the BLAS and OpenMP libraries of this process use; the most, where they differ."""
    return max((pool["num_threads"] for pool in _threadpoolctl().threadpool_info()), default=os.cpu_count() or 1)


def _threadpoolctl() -> Any:
    try:
        import threadpoolctl
    except ImportError as error:
        raise ImportError("the number of threads is set through threadpoolctl: pip install threadpoolctl") from error
    return threadpoolctl
