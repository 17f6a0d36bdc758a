"""Pooling over windows and its gradients.

A maximum's place is kept as the number of its kernel element ("tap") in the smallest unsigned dtype: a byte for each window
in place of an index of eight. A window is `how` = (kernel, stride, padding, dilation), a tuple per spatial axis each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import FLOATING, HALF, accumulation_dtype, float32, int64
from .halves import narrow_into, widen_into
from .windows import ALL, image_blocks, spans, taps


class PoolingKernels:
    """Pooling over windows and its gradients, over arrays (N, C, *lengths)."""

    module: Any
    device_type: str
    arange: Any
    asarray: Any
    empty: Any
    full: Any
    isnan: Any
    maximum: Any
    take: Any
    where: Any
    zeros: Any
    ascontiguousarray: Any

    # Maxima

    def max_pool(self, x: Any, size: tuple, how: tuple) -> tuple:
        """The maximum of each window, where padding never wins, and the tap that holds it: the first of equal ones, the last
        of several nans, the first within the input where all are the lowest number."""
        out = self.empty((*x.shape[:2], *size), x.dtype)
        places = self.empty(out.shape, _tap_dtype(how[0]))
        places[...] = self._first_taps(x.shape[2:], size, how, places.dtype)
        for block, part in self._blocks_of(x, math.prod(x.shape[1:])):
            nans = self.device_type != "cpu" and x.dtype in FLOATING
            best = self._max_with_taps(part, places[block], size, how, nans)
            if self.device_type == "cpu" and x.dtype in FLOATING and self.isnan(best).any():
                best = self._max_with_taps(part, places[block], size, how, True)
            self._store(out[block], best)
        return out, places

    def _max_with_taps(self, x: Any, places: Any, size: tuple, how: tuple, nans: bool) -> Any:
        """The maxima; writes their taps into places, which hold each window's first. With nans, a nan takes the place."""
        best = None
        for number, windows, reads in taps(x.shape[2:], size, *how):
            if best is None and x[reads].shape[2:] == size:
                best = x[reads].copy()
                continue
            values = self.ascontiguousarray(x[reads])  # strided values would be read twice, without SIMD
            best = self._full_of_lowest(x, size) if best is None else best
            target, place = best[windows], places[windows]
            wins = values > target
            if nans:
                wins |= values != values
            wins = wins.view(np.uint8).astype(places.dtype, copy=False)
            wins *= number
            self.maximum(place, wins, out=place)  # of the taps that won, the last one's number is the largest
            self.maximum(values, target, out=target)
        return self._full_of_lowest(x, size) if best is None else best

    def max_pool_values(self, x: Any, size: tuple, how: tuple) -> Any:
        """max_pool without the places: one axis after the other."""
        out = self.empty((*x.shape[:2], *size), x.dtype)
        for block, part in self._blocks_of(x, math.prod(x.shape[1:])):
            for axis, n, *window in zip(range(2, x.ndim), size, *how):
                best = self._full_of_lowest(part, (*part.shape[2:axis], n, *part.shape[axis + 1:]))
                for _, windows, reads in taps((part.shape[axis],), (n,), *[(w,) for w in window]):
                    target = best[(ALL,) * axis + windows[2:]]
                    self.maximum(part[(ALL,) * axis + reads[2:]], target, out=target)
                part = best
            self._store(out[block], part)
        return out

    def places_as_indices(self, places: Any, length: tuple, how: tuple) -> Any:
        """Positions in the flattened spatial axes of the input, int64, from taps."""
        kernel, stride, padding, dilation = how
        count = len(kernel)
        base = self.zeros((1,) * count, int64)
        shift = self.zeros((1,) * count, int64)
        for axis in range(count):
            step = math.prod(length[axis + 1:])
            shape = (1,) * axis + (-1,) + (1,) * (count - 1 - axis)
            first = self.arange(places.shape[axis + 2], dtype=int64) * stride[axis] - padding[axis]
            base = base + (first * step).reshape(shape)
            shift = shift + (self.arange(kernel[axis], dtype=int64) * (dilation[axis] * step)).reshape(shape)
        return self.take(shift.reshape(-1), places) + base

    def put_at_taps(self, g: Any, places: Any, length: tuple, how: tuple) -> Any:
        """g added where the taps of its windows lie in zeros (N, C, *length); the gradient of take_at_taps."""
        apart = all(s >= reach for s, reach in zip(how[1], spans((1,) * len(length), how[0], how[1], how[3])))
        dtype = g.dtype if apart else accumulation_dtype(g.dtype)
        out = self.zeros((*g.shape[:2], *length), g.dtype)
        for block in self._pool_blocks(g.shape[0], math.prod(out.shape[1:])):
            index = self._positions(places[block], length, how)
            if apart:
                out[block].reshape(-1)[index] = g[block]
                continue
            total = self.zeros(out[block].size, dtype)
            self.module.add.at(total, index.reshape(-1), g[block].astype(dtype, copy=False).reshape(-1))
            self._store(out[block], total.reshape(out[block].shape))
        return out

    def take_at_taps(self, x: Any, places: Any, how: tuple) -> Any:
        """The elements of x at the taps of its windows."""
        out = self.empty(places.shape, x.dtype)
        for block in self._pool_blocks(x.shape[0], math.prod(x.shape[1:])):
            out[block] = self.take(x[block].reshape(-1), self._positions(places[block], x.shape[2:], how))
        return out

    def _positions(self, places: Any, length: tuple, how: tuple) -> Any:
        """Positions in the flattened (images, channels, *length), from taps."""
        index = self.places_as_indices(places, length, how)
        planes = self.arange(index.shape[0] * index.shape[1], dtype=int64) * math.prod(length)
        index += planes.reshape(index.shape[:2] + (1,) * len(length))
        return index

    def adaptive_max_pool(self, x: Any, size: tuple) -> tuple:
        """The maximum of each of size windows that cover x evenly, and its position in the flattened spatial axes."""
        length = x.shape[2:]
        out, index = self.empty((*x.shape[:2], *size), x.dtype), self.zeros((*x.shape[:2], *size), int64)
        reads = [self._evenly_placed(*axis) for axis in zip(length, size)]
        for block, part in self._blocks_of(x, math.prod(x.shape[1:])):
            part = part.reshape(*part.shape[:2], math.prod(length))
            best, found = self._full_of_lowest(part, size), index[block]
            for numbers in np.ndindex(*[len(axis) for axis in reads]):
                place = self.zeros((1,) * len(size), int64)
                for axis, (n, number) in enumerate(zip(length, numbers)):
                    place = place * n + reads[axis][number].reshape((-1,) + (1,) * (len(size) - 1 - axis))
                values = self.take(part, place.reshape(-1), 2).reshape(best.shape)
                wins = (values > best) | (values != values)
                found[...] = self.where(wins, place, found) if any(numbers) else place
                best = self.maximum(best, values)
            self._store(out[block], best)
        return out, index

    def _evenly_placed(self, length: int, size: int) -> Any:
        """(elements of the longest window, size): where they lie. Shorter windows read their last one again, which never
        wins."""
        windows = windows_evenly(length, size)
        longest = max((stop - start for start, stop in windows), default=0)
        reads = [[min(start + number, stop - 1) for start, stop in windows] for number in range(longest)]
        return self.asarray(np.asarray(reads, np.int64).reshape(longest, size))

    def _full_of_lowest(self, x: Any, size: tuple) -> Any:
        lowest = -math.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
        return self.full((*x.shape[:2], *size), lowest, x.dtype)

    def _first_taps(self, length: tuple, size: tuple, how: tuple, dtype: Any) -> Any:
        """For each window its first tap within the input, shape size."""
        number = self.zeros((1,) * len(size), int64)
        for axis, (n, k, s, p, d) in enumerate(zip(size, *how)):
            first = self.maximum(p - self.arange(n, dtype=int64) * s + (d - 1), 0) // d
            number = number * k + self.module.minimum(first, k - 1).reshape((-1,) + (1,) * (len(size) - 1 - axis))
        return number.astype(dtype)

    # Means

    def average_windows(self, x: Any, size: tuple, windows: tuple, counts: Any) -> Any:
        """Sums of windows over counts.

        Args:
            windows: per spatial axis (kernel, stride, padding), or None for windows that cover the axis evenly.
            counts: one number, or for each axis the windows' lengths, whose products divide the sums.
        """
        dtype = accumulation_dtype(x.dtype)
        out = self.empty((*x.shape[:2], *size), x.dtype)
        counts = self._divisors(counts, dtype)
        for block, part in self._blocks_of(x, math.prod(x.shape[1:])):
            if _single(size, windows):
                reads = tuple(slice(0, w[0]) for w in windows)
                axes = tuple(range(2, x.ndim))
                part = self.module.add.reduce(part[(ALL, ALL) + reads], axis=axes, dtype=dtype, keepdims=True)
            else:
                for axis, n, window in zip(range(2, x.ndim), size, windows):
                    part = self._sum_along(part, axis, n, window, dtype)
            self._store(out[block], _quotient(part, counts))
        return out

    def spread_windows(self, g: Any, length: tuple, windows: tuple, counts: Any) -> Any:
        """g over counts, added to all elements of its windows; the gradient of average_windows."""
        dtype = accumulation_dtype(g.dtype)
        out = self.empty((*g.shape[:2], *length), g.dtype)
        counts = self._divisors(counts, dtype)
        if _single(g.shape[2:], windows):
            if any(w[0] < n for w, n in zip(windows, length)):
                out[...] = 0
            out[(ALL, ALL) + tuple(slice(0, w[0]) for w in windows)] = _quotient(g.astype(dtype, copy=False), counts)
            return out
        for block, part in self._blocks_of(g, math.prod(out.shape[1:])):
            part = _quotient(part.astype(dtype, copy=False), counts)
            for axis in range(g.ndim - 1, 1, -1):
                part = self._spread_along(part, axis, length[axis - 2], windows[axis - 2])
            self._store(out[block], part)
        return out

    @np.errstate(all="ignore")
    def power_or_zero(self, x: Any, exponent: float) -> Any:
        """x^exponent, and 0 where x is 0."""
        return self.where(x == 0, 0, x ** exponent)

    def _divisors(self, counts: Any, dtype: Any) -> Any:
        """A number, or the products of the axes' counts in the shape of the windows."""
        if not isinstance(counts, tuple):
            return counts
        product = self.asarray(np.ones((1,) * len(counts), dtype))
        for axis, lengths in enumerate(counts):
            shape = (-1,) + (1,) * (len(counts) - 1 - axis)
            product = product * self.asarray(np.asarray(lengths, dtype)).reshape(shape)
        return product

    def _sum_along(self, x: Any, axis: int, size: int, window: Any, dtype: Any) -> Any:
        lead, length = (ALL,) * axis, x.shape[axis]
        shape = (*x.shape[:axis], size, *x.shape[axis + 1:])
        if window is None:
            out = self.empty(shape, dtype)
            for i, (start, stop) in enumerate(windows_evenly(length, size)):
                out[lead + (i,)] = self.module.add.reduce(x[lead + (slice(start, stop),)], axis=axis, dtype=dtype)
            return out
        out = None
        for outs, reads in _taps_along(length, size, window):
            values = x[lead + (reads,)]
            if out is None and values.shape == shape:
                out = values.astype(dtype)
                continue
            out = self.zeros(shape, dtype) if out is None else out
            out[lead + (outs,)] += values
        return self.zeros(shape, dtype) if out is None else out

    def _spread_along(self, g: Any, axis: int, length: int, window: Any) -> Any:
        lead, size = (ALL,) * axis, g.shape[axis]
        out = self.zeros((*g.shape[:axis], length, *g.shape[axis + 1:]), g.dtype)
        if window is None:
            for i, (start, stop) in enumerate(windows_evenly(length, size)):
                out[lead + (slice(start, stop),)] += g[lead + (slice(i, i + 1),)]
            return out
        for outs, reads in _taps_along(length, size, window):
            if window[1] >= window[0]:
                out[lead + (reads,)] = g[lead + (outs,)]
            else:
                out[lead + (reads,)] += g[lead + (outs,)]
        return out

    # Blocks of images that fit into the processor's cache

    def _blocks_of(self, x: Any, per_image: int) -> Any:
        """(slice of the batch, what x holds there): halves in float32, since NumPy computes with them slowly."""
        for block in self._pool_blocks(x.shape[0], per_image):
            part = x[block]
            if x.dtype in HALF and self.device_type == "cpu":
                wide = self.empty(part.shape, float32)
                widen_into(wide, part)
                part = wide
            yield block, part

    def _store(self, out: Any, x: Any) -> None:
        if self.device_type == "cpu":
            narrow_into(out, x)
        else:
            out[...] = x

    def _pool_blocks(self, images: int, per_image: int) -> Any:
        return image_blocks(images, per_image, 1 << 17 if self.device_type == "cpu" else 1 << 26)


def windows_evenly(length: int, size: int) -> list[tuple[int, int]]:
    """Where `size` windows that cover an axis evenly begin and end; neighbours may share an element."""
    return [(i * length // size, -(-(i + 1) * length // size)) for i in range(size)]


def _taps_along(length: int, size: int, window: tuple) -> Any:
    kernel, stride, padding = window
    for _, outs, reads in taps((length,), (size,), (kernel,), (stride,), (padding,), (1,)):
        yield outs[2], reads[2]


def _single(size: tuple, windows: tuple) -> bool:
    """True for one window without padding."""
    return math.prod(size) == 1 and all(w is not None and w[2] == 0 for w in windows)


def _tap_dtype(kernel: tuple) -> Any:
    count = math.prod(kernel)
    return np.dtype(np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32)


def _quotient(x: Any, counts: Any) -> Any:
    return x if isinstance(counts, int) and counts == 1 else x / counts
