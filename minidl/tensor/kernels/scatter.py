"""Reading and writing at positions: values put, added or combined at them, repeated ones included.

An index is a tuple with one entry for each axis up to the last one that it names: integer arrays with values in [0, length)
and slices, with NumPy's meaning. Indices of slices alone may hold anything that NumPy takes for them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import HALF, accumulation_dtype, float32, float64, int64
from .strided import StridedKernels

_BLOCK = 1 << 16  # elements added at a time, so that their positions stay in the second-level cache
_ALL = slice(None)
_LONG_ROW = 64    # from so many elements on, adding whole rows pays for sorting them
_PER_ROUND = 16000  # elements added one by one in the time of one more pass over the rows

_quiet = np.errstate(all="ignore")  # what is too large for a dtype becomes inf, as in PyTorch
_AS_PAIRS = {float32: np.dtype(np.complex64), float64: np.dtype(np.complex128)}


class ScatterKernels(StridedKernels):
    """Reading at positions, its gradients, and writing there."""

    module: Any
    device_type: str
    asarray: Any
    is_array: Any
    is_half: Any
    assign: Any
    where: Any
    zeros: Any
    empty: Any
    arange: Any
    nonzero: Any
    concatenate: Any
    broadcast_to: Any
    take: Any
    full: Any
    exp: Any

    # Reading

    def pick(self, x: Any, index: Any) -> Any:
        """x[index]."""
        last = len(index) - 1
        if self.is_positions(index[last]) and all(entry.__class__ is slice and entry == _ALL for entry in index[:last]):
            return x.take(index[last], last)  # faster than x[index]
        return x[index]

    def is_positions(self, entry: Any) -> bool:
        """True for an array among the entries of an index."""
        return hasattr(entry, "dtype")

    def out_of_range(self, index: Any, low: int, high: int) -> int | None:
        """The first number of `index` that does not lie in [low, high), or None; costs one pass over int64."""
        if index.size == 0:
            return None
        if low == 0 and index.dtype == np.int64 and index.view(np.uint64).max() < high:  # unsigned, negative ones are large
            return None
        outside = index[(index < low) | (index >= high)]
        return int(outside[0]) if outside.size else None

    # Writing into copies

    @_quiet
    def replaced_at(self, x: Any, index: Any, values: Any) -> Any:
        """A copy of x with values put at [index]; where a position is repeated, the last value stays."""
        out = x.copy()
        out[index] = values
        return out

    def cleared_at(self, x: Any, index: Any) -> Any:
        """A copy of x with zeros at [index]."""
        return self.replaced_at(x, index, 0)

    def keep_last(self, values: Any, shape: tuple, index: Any) -> Any:
        """values for [index] of an array of the given shape, with zeros in place of those that a later one replaces."""
        if not any(self.is_positions(entry) for entry in index):
            return values
        rows, _ = self._rows(shape, index)
        turn = self.arange(1, rows.size + 1, dtype=np.uint64)
        last = self.zeros(math.prod(shape[:len(index)]), np.uint64)
        self.module.maximum.at(last, rows.reshape(-1), turn)
        stays = last[rows] == turn.reshape(rows.shape)
        return self.where(stays.reshape(rows.shape + (1,) * (values.ndim - rows.ndim)), values, 0)

    @_quiet
    def added_at(self, x: Any, index: Any, values: Any) -> Any:
        """A copy of x with values added at [index]; repeated positions add up, halves in float32."""
        out = self._accumulator(x)
        self.scatter_add(out, index, values)
        return self._cast(out, x.dtype)

    @_quiet
    def index_add(self, shape: tuple, index: Any, g: Any) -> Any:
        """zeros(shape) with g added at [index]; the gradient of x[index]. Repeated positions add up, halves in float32."""
        index = index if isinstance(index, tuple) else (index,)
        if self.is_half(g) and len(index) == 1 and shape[0] > 2 * index[0].size > 0:
            return self._few_half_rows(shape, index[0], g)
        out = self.zeros(shape, accumulation_dtype(g.dtype))
        self.scatter_add(out, index, g)
        return self._cast(out, g.dtype)

    def _few_half_rows(self, shape: tuple, rows: Any, g: Any) -> Any:
        """index_add of halves into a large table, of which only the rows that are named exist in float32."""
        order, ordered, starts = self._sorted(rows.reshape(-1), shape[0])
        targets = ordered[starts[:-1]]
        numbers = self.empty(ordered.size, int64)
        numbers[order] = self.module.searchsorted(starts, self.arange(ordered.size), side="right") - 1
        wide = self.zeros((targets.size, *shape[1:]), float32)
        self.scatter_add(wide, (numbers,), g.reshape(-1, *shape[1:]))
        out = self.zeros(shape, g.dtype)
        out[targets] = self._cast(wide, g.dtype)
        return out

    def unslice(self, g: Any, shape: tuple, index: Any) -> Any:
        """zeros(shape) with g at the basic index `index`; the gradient of a slice."""
        out = self.zeros(shape, g.dtype)
        out[index] = g
        return out

    def _accumulator(self, x: Any) -> Any:
        """A copy of x in row-major order, in float32 if x is half."""
        out = self.empty(x.shape, accumulation_dtype(x.dtype))
        self.assign(out, x)
        return out

    def _cast(self, x: Any, dtype: Any) -> Any:
        """An array or a number in a dtype; x itself where it has that dtype."""
        if not self.is_array(x) or not self.is_half(x) and dtype not in HALF:
            return self.asarray(x, dtype)
        if x.dtype == dtype:
            return x
        out = self.empty(x.shape, dtype)
        self.assign(out, x)
        return out

    # Adding in place

    def scatter_add(self, out: Any, index: Any, values: Any) -> None:
        """out[index] += values, repeated positions counted; writes into out."""
        index = index if isinstance(index, tuple) else (index,)
        if not (out.flags.c_contiguous and any(self.is_positions(entry) for entry in index)):
            self.module.add.at(out, index, values)
            return
        rows, tail = self._rows(out.shape, index)
        if rows.size == 0 or out.size == 0:
            return
        values = self._cast(values, out.dtype)
        if values.shape != rows.shape + tail:
            values = self.broadcast_to(values, rows.shape + tail)
        length = math.prod(tail)
        self._combine_rows(out.reshape(-1, length), rows.reshape(-1), values.reshape(-1, length), "add")

    def _rows(self, shape: tuple, index: tuple) -> tuple:
        """For each place of [index] the number of the row that it names, where a row is all that the axes after the last
        indexed one hold; and the shape of a row."""
        head, tail = shape[:len(index)], shape[len(index):]
        if len(index) == 1:
            return index[0], tail
        if all(self.is_positions(entry) for entry in index):
            rows = index[0]
            for entry, length in zip(index[1:], head[1:]):
                rows = rows * length + entry
            return rows, tail
        return self.arange(math.prod(head)).reshape(head)[index], tail

    def _combine_rows(self, out: Any, rows: Any, values: Any, how: str) -> None:
        """out[rows] = how(out[rows], values) for (n, length) arrays, row after row."""
        combine, length = getattr(self.module, how), out.shape[1]
        if self.device_type != "cpu" or length >= _LONG_ROW:
            order, ordered, starts = self._sorted(rows, len(out))
            counts = self.module.diff(starts)
            longest = int(counts.max())
            if self.device_type != "cpu":
                self._combine_by_doubling(combine, out, ordered, values[order], starts, longest)
                return
            if longest * _PER_ROUND < values.size:
                self._combine_in_rounds(combine, out, ordered[starts[:-1]], values, order, starts, counts)
                return
        if how == "add" and length % 2 == 0 and out.dtype in _AS_PAIRS:  # a complex number is added as two reals
            pair = _AS_PAIRS[out.dtype]
            out, values, length = out.view(pair), self.module.ascontiguousarray(values).view(pair), length // 2
        flat, columns = out.reshape(-1), self.arange(length)
        step = max(1, _BLOCK // length)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            places = rows[part] if length == 1 else (rows[part, None] * length + columns).reshape(-1)
            combine.at(flat, places, values[part].reshape(-1))

    def _sorted(self, rows: Any, count: int) -> tuple:
        """The order that sorts row numbers below `count`, these sorted, and where each new one starts, with the end."""
        order = self.module.argsort(rows.astype(np.uint16) if count <= 1 << 16 else rows, kind="stable")  # 16 bits: radix
        rows = rows[order]
        starts = self.nonzero(rows[1:] != rows[:-1])[0] + 1
        ends = self.asarray([0, len(rows)], int64)
        return order, rows, self.concatenate((ends[:1], starts, ends[1:]))

    def _combine_in_rounds(self, combine: Any, out: Any, targets: Any, values: Any, order: Any, starts: Any,
                           counts: Any) -> None:
        """First the first row of each target, then the second of those that have one, and so on."""
        by_count = self.module.argsort(-counts, kind="stable")
        targets, starts = targets[by_count], starts[by_count]
        left = self.module.searchsorted(-counts[by_count], -self.arange(int(counts.max())))  # targets of more than k rows
        for k, several in enumerate(left.tolist()):
            some = targets[:several]
            out[some] = combine(out[some], self.take(values, order[starts[:several] + k], 0))

    def _combine_by_doubling(self, combine: Any, out: Any, rows: Any, values: Any, starts: Any, longest: int) -> None:
        """Runs of equal sorted rows combined in log2(longest) passes, for CuPy, which has no reduceat and few .at."""
        step = 1
        while step < longest:
            same = (rows[step:] == rows[:-step])[:, None]
            both = self.where(same, combine(values[:-step], values[step:]), values[step:])
            values = self.concatenate((values[:step], both))
            step *= 2
        targets = rows[starts[:-1]]
        out[targets] = combine(out[targets], values[starts[1:] - 1])

    # Other combinations

    @_quiet
    def combined_at(self, x: Any, index: Any, values: Any, how: str) -> Any:
        """A copy of x with values combined into it at [index], repeated positions included.

        Args:
            how: "multiply", "maximum" or "minimum", by that function of the array module.
        """
        rows, tail = self._rows(x.shape, index)
        out, length = self._accumulator(x), math.prod(tail)
        if rows.size and length:
            values = self.broadcast_to(self._cast(values, out.dtype), rows.shape + tail)
            self._combine_rows(out.reshape(-1, length), rows.reshape(-1), values.reshape(-1, length), how)
        return out.astype(x.dtype, copy=False)

    @_quiet
    def segment_softmax(self, x: Any, index: Any, shape: tuple) -> Any:
        """exp(x) over its sum among the rows of equal index; zeros where all of these are -inf."""
        top = self.combined_at(self.full(shape, -math.inf, x.dtype), index, x, "maximum")
        top = self.where(top == -math.inf, 0, top)
        y = self.exp(x - self.pick(top, index))
        total = self.index_add(shape, index, y)
        y /= self.pick(total + (total == 0), index)
        return y
