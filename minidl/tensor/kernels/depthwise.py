"""Zero-padded images as a convolution kernel of one channel sees them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from .windows import ALL, spans


class Shifted:
    """For each element of the kernel a view of the padded images.

    With stride 1 the views run over all padded planes as one piece of memory that begins a little later for each element:
    what is computed at the few positions that are no windows is wasted, in exchange for long inner loops.
    """

    def __init__(self, xp: Any, channels: int, kernel: tuple, stride: tuple, start: tuple, dilation: tuple, size: Any,
                 dtype: Any):
        self.xp, self.channels, self.kernel, self.dtype = xp, channels, kernel, dtype
        self.stride, self.start, self.dilation, self.size = stride, start, dilation, tuple(size)
        self.span = spans(self.size, kernel, stride, dilation)
        self.flat = max(stride) == 1
        self.layout = (math.prod(self.span),) if self.flat else self.size
        self.elements = channels * math.prod(self.span)
        self.last = self._place(tuple((k - 1) * d for k, d in zip(kernel, dilation)))
        self.buffers: dict = {}

    def load(self, x: Any) -> Iterator[Any]:
        """What each element of the kernel reads of x, in row-major order and in the dtype of the sums; 0 is read around x."""
        used = x.shape[0] * self.elements
        memory = self._buffer("padded", (used + self.last,))
        padded = memory[:used].reshape(x.shape[0], self.channels, *self.span)
        places: tuple = (ALL, ALL)
        reads: tuple = (ALL, ALL)
        for n, length, first in zip(self.span, x.shape[2:], self.start):
            low = min(max(-first, 0), n)
            high = max(min(n, length - first), low)
            places += (slice(low, high),)
            reads += (slice(first + low, first + high),)
        padded[places] = x[reads]
        for tap in itertools.product(*map(range, self.kernel)):
            begin = tuple(t * d for t, d in zip(tap, self.dilation))
            if self.flat:
                place = self._place(begin)
                yield memory[place:place + used].reshape(x.shape[0], self.channels, *self.layout)
            else:
                steps = [slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(begin, self.size, self.stride)]
                yield padded[(ALL, ALL) + tuple(steps)]

    def scratch(self, images: int, count: int, number: int) -> Any:
        """An array in the views' layout with `count` rows per channel; it holds zeros or what it was left with."""
        return self._buffer(number, (images, self.channels, count, *self.layout))

    def windows(self, sums: Any) -> Any:
        """An array in the views' layout as (images, channels, count, *windows), a view."""
        if not self.flat:
            return sums
        return sums.reshape(*sums.shape[:3], *self.span)[(...,) + tuple(map(slice, self.size))]

    def _buffer(self, key: Any, shape: tuple) -> Any:
        if key not in self.buffers:  # the first block is the largest
            self.buffers[key] = self.xp.zeros(shape, self.dtype)
        return self.buffers[key][:shape[0]]

    def _place(self, index: tuple) -> int:
        place = 0
        for i, n in zip(index, self.span):
            place = place * n + i
        return place
