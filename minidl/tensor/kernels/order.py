"""Sorting along an axis, and reading and writing at the places it gives. A nan counts as the largest value."""

from __future__ import annotations

from typing import Any

from ..dtypes import int64


class OrderKernels:
    """Places of elements in sorted order."""

    module: Any
    widen: Any
    flip: Any
    argsort: Any
    take_along_axis: Any
    zeros: Any
    arange: Any
    index_add: Any
    moveaxis: Any
    maximum: Any
    where: Any
    scan: Any

    def sort_index(self, x: Any, axis: int, descending: bool = False) -> Any:
        """The places that put an axis in order; equal elements keep theirs."""
        key = self.widen(x)  # NumPy sorts float32 faster than halves
        if not descending:
            return self.argsort(key, axis, kind="stable")
        return x.shape[axis] - 1 - self.flip(self.argsort(self.flip(key, axis), axis, kind="stable"), axis)

    def top_index(self, x: Any, k: int, axis: int, largest: bool) -> Any:
        """The places of the k largest or smallest elements along an axis, in order of their values."""
        n = x.shape[axis]
        first = tuple([slice(None)] * axis + [slice(k)])
        if k == 0 or 8 * k > n:
            return self.sort_index(x, axis, largest)[first]
        key = self.widen(x)
        if largest:
            part = self.module.argpartition(key, n - k, axis)[first[:-1] + (slice(n - k, None),)]
        else:
            part = self.module.argpartition(key, k - 1, axis)[first]
        part = self.module.sort(part, axis)
        return self.take_along_axis(part, self.sort_index(self.take_along_axis(key, part, axis), axis, largest), axis)

    def pick_along(self, x: Any, index: Any, axis: int, distinct: bool = False) -> Any:
        """x at places along an axis; `distinct` promises that no place is named twice."""
        return self.take_along_axis(x, index, axis)

    def put_along(self, g: Any, index: Any, axis: int, length: int, distinct: bool = False) -> Any:
        """The gradient of pick_along: g added at places along an axis of the given length."""
        shape = (*g.shape[:axis], length, *g.shape[axis + 1:])
        if distinct:
            out = self.zeros(shape, g.dtype)
            self.module.put_along_axis(out, index, g, axis)
            return out
        grid = [self.arange(n).reshape([-1 if j == i else 1 for j in range(g.ndim)]) for i, n in enumerate(g.shape)]
        grid[axis] = index
        return self.index_add(shape, tuple(grid), g)

    def median_index(self, x: Any, axis: int, ignore_nan: bool) -> Any:
        """The place of the lower median along an axis, which is kept with length 1; that of the first nan where there is
        one, unless nans are ignored."""
        order = self.sort_index(x, axis)
        n = x.shape[axis]
        numbers = n - self.count_nan(x, axis)
        if ignore_nan:
            rank = self.maximum(numbers - 1, 0) // 2
        else:
            rank = self.where(numbers < n, numbers, (n - 1) // 2)
        return self.take_along_axis(order, rank, axis)

    def count_nan(self, x: Any, axis: int) -> Any:
        """How many elements along an axis, which is kept with length 1, are nan."""
        return self.module.add.reduce(x != x, axis=axis, dtype=int64, keepdims=True)

    def mode_index(self, x: Any, axis: int) -> Any:
        """The last place along an axis, which is kept with length 1, of the smallest of its most frequent elements."""
        order = self.sort_index(x, axis)
        ordered = self.moveaxis(self.take_along_axis(x, order, axis), axis, -1)
        places = self.arange(ordered.shape[-1])
        starts = self.zeros(ordered.shape, int64)
        starts[..., 1:] = self.where(ordered[..., 1:] != ordered[..., :-1], places[1:], 0)
        run = places - self.scan(self.maximum, starts, ordered.ndim - 1)
        ends = self.module.argmax(run, -1)[..., None]  # the end of the first of the longest runs
        return self.take_along_axis(order, self.moveaxis(ends, -1, axis), axis)

    def run_starts(self, rows: Any) -> Any:
        """True for each row that differs from the one before it; rows are (n, columns)."""
        starts = self.module.ones(rows.shape[0], bool)
        starts[1:] = (rows[1:] != rows[:-1]).any(1)
        return starts

    def lexical_order(self, rows: Any) -> Any:
        """The places that put rows (n, columns) in order by their first, then second, ... element."""
        if rows.shape[1] == 0:
            return self.arange(rows.shape[0])
        return self.module.lexsort(self.flip(rows, 1).T)
