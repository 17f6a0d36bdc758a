"""Half-precision matrix products on the CPU: time and scratch memory against float32 and against NumPy's own float16.

    python benchmarks/half_products.py [--size 1024]
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc

import numpy as np

import minidl


def best(function, repeats: int) -> float:
    """Median seconds of a call."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def scratch(function) -> int:
    """Bytes held at the peak of a call beyond its inputs and its result."""
    tracemalloc.start()
    result = function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - result.numpy().nbytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1024, help="of the square matrices (default 1024)")
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    rng = np.random.RandomState(0)
    a, b = (rng.randn(args.size, args.size).astype(np.float32) for _ in range(2))
    rows = {}
    for dtype in (minidl.float32, minidl.float16, minidl.bfloat16):
        x, y = minidl.tensor(a, dtype=dtype), minidl.tensor(b, dtype=dtype)
        rows[f"minidl {dtype}"] = (best(lambda x=x, y=y: x @ y, args.repeats), scratch(lambda x=x, y=y: x @ y))
    half = a.astype(np.float16), b.astype(np.float16)
    start = time.perf_counter()
    np.matmul(*half)
    rows["numpy float16"] = (time.perf_counter() - start, 0)
    base = rows["minidl float32"][0]
    print(f"{args.size} x {args.size} product, ratio to float32; scratch beyond inputs and result")
    for name, (seconds, extra) in rows.items():
        print(f"{name:18s}{1e3 * seconds:10.1f} ms{seconds / base:9.2f} x{extra / 2**20:9.1f} MiB")


if __name__ == "__main__":
    main()
