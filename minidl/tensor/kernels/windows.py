"""Which elements the windows of convolutions, pooling, unfold and fold read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

ALL = slice(None)


@lru_cache(maxsize=1024)
def taps(length: tuple, size: tuple, kernel: tuple, stride: tuple, padding: tuple,
         dilation: tuple) -> list[tuple[int, tuple, tuple]]:
    """For each element of the kernel in row-major order: its number, the windows in which it lies within the input, and
    the elements that it reads there. Both are indices of arrays (N, C, *spatial). Taps that read padding only are left out.

    Args:
        length, size: spatial lengths of the input and numbers of windows.
    """
    each = [[_axis(n, m, s, p, d, tap) for tap in range(k)]
            for n, m, k, s, p, d in zip(length, size, kernel, stride, padding, dilation)]
    found = []
    for number, places in enumerate(itertools.product(*each)):
        inside = [place for place in places if place is not None]
        if len(inside) == len(places):
            found.append((number, (ALL, ALL, *[p[0] for p in inside]), (ALL, ALL, *[p[1] for p in inside])))
    return found


def _axis(length: int, size: int, stride: int, padding: int, dilation: int, tap: int) -> tuple | None:
    """The windows whose element number `tap` lies within the axis, and where; None if there is no such window."""
    shift = tap * dilation - padding
    first = max(0, -(shift // stride))
    last = min(size - 1, (length - 1 - shift) // stride)
    if last < first:
        return None
    start = first * stride + shift
    return slice(first, last + 1), slice(start, start + (last - first) * stride + 1, stride)


def spans(size: tuple, kernel: tuple, stride: tuple, dilation: tuple) -> tuple[int, ...]:
    """How many elements of each axis the windows reach over."""
    return tuple((n - 1) * s + (k - 1) * d + 1 for n, k, s, d in zip(size, kernel, stride, dilation))


def image_blocks(images: int, per_image: int, limit: int) -> Iterator[slice]:
    """Slices of the batch whose arrays of `per_image` elements an image stay below `limit` elements."""
    step = max(1, limit // max(per_image, 1))
    for start in range(0, images, step):
        yield slice(start, min(start + step, images))
