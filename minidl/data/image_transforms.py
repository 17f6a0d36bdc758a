"""Transforms that move pixels: crops, flips, shifts, rotation. A batch is done at once, each image by its own draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from ..tensor import dtypes
from ..tensor.random import Generator
from .transforms import ImageTransform, per_channel, rounded, stream_of

__all__ = ["CenterCrop", "RandomCrop", "RandomHorizontalFlip", "RandomRotation", "RandomShift", "RandomVerticalFlip"]


class RandomCrop(ImageTransform):
    """A window of a given size at a random place.

    Args:
        size: height and width of the window in pixels, or one number for both.
        padding: pixels added before the crop: one number, (left and right, top and bottom), or (left, top, right, bottom).
        pad_if_needed: pad an image that is smaller than the window, by what it lacks on either side.
        fill: value of the added pixels, one number or one for each channel, for padding_mode "constant".
        padding_mode: "constant", "edge", "reflect" or "symmetric", as in np.pad.
        generator: where the places are drawn from; by default the run-time generator.

    Shapes: (C, H, W) to (C, *size), (N, C, H, W) to (N, C, *size).

    Raises:
        ValueError: if the padded image is smaller than the window.
    """

    def __init__(self, size: int | Sequence[int], padding: int | Sequence[int] | None = None, pad_if_needed: bool = False,
                 fill: Any = 0, padding_mode: str = "constant", *, generator: Generator | None = None):
        self.size = _size("RandomCrop", size)
        self.padding = _sides("RandomCrop", padding)
        self.pad_if_needed = pad_if_needed
        self.fill, self.padding_mode = fill, _mode("RandomCrop", padding_mode)
        self.generator = generator

    def apply(self, images: np.ndarray) -> np.ndarray:
        images = _pad("RandomCrop", images, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            rows, columns = (max(wanted - length, 0) for wanted, length in zip(self.size, images.shape[2:]))
            images = _pad("RandomCrop", images, (columns, rows, columns, rows), self.fill, self.padding_mode)
        return _random_windows("RandomCrop", images, self.size, self.generator)


class CenterCrop(ImageTransform):
    """The window of a given size in the middle; a smaller image is padded with zeros first.

    Args:
        size: height and width of the window in pixels, or one number for both.

    Shapes: (C, H, W) to (C, *size), (N, C, H, W) to (N, C, *size).
    """

    def __init__(self, size: int | Sequence[int]):
        self.size = _size("CenterCrop", size)

    def apply(self, images: np.ndarray) -> np.ndarray:
        lack, more = (tuple(max(wanted - length, 0) + odd >> 1 for wanted, length in zip(self.size, images.shape[2:]))
                      for odd in (0, 1))
        images = _pad("CenterCrop", images, (lack[1], lack[0], more[1], more[0]), 0, "constant")
        top, left = (round((length - wanted) / 2) for wanted, length in zip(self.size, images.shape[2:]))
        return images[:, :, top:top + self.size[0], left:left + self.size[1]].copy()


class RandomShift(ImageTransform):
    """The image moved by up to k pixels up or down and left or right.

    Args:
        k: the farthest that it moves, in pixels: one number, or (rows, columns).
        fill: value of the pixels that come in, one number or one for each channel, for padding_mode "constant".
        padding_mode: "constant", "edge", "reflect" or "symmetric", as in np.pad.
        generator: where the moves are drawn from; by default the run-time generator.

    Shapes: (C, H, W) or (N, C, H, W), kept.
    """

    def __init__(self, k: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant", *,
                 generator: Generator | None = None):
        rows, columns = _pair("RandomShift", "k", k, 0)
        self.padding = columns, rows, columns, rows
        self.fill, self.padding_mode = fill, _mode("RandomShift", padding_mode)
        self.generator = generator

    def apply(self, images: np.ndarray) -> np.ndarray:
        padded = _pad("RandomShift", images, self.padding, self.fill, self.padding_mode)
        return _random_windows("RandomShift", padded, images.shape[2:], self.generator)


class RandomHorizontalFlip(ImageTransform):
    """The image mirrored left to right with a probability.

    Args:
        p: the probability.
        generator: where it is drawn from; by default the run-time generator.

    Shapes: (C, H, W) or (N, C, H, W), kept.
    """

    axis = 3

    def __init__(self, p: float = 0.5, *, generator: Generator | None = None):
        self.p = probability(type(self).__name__, p)
        self.generator = generator

    def apply(self, images: np.ndarray) -> np.ndarray:
        chosen = stream_of(self.generator).uniform((len(images),), dtypes.float32, "cpu") < self.p
        return np.where(chosen[:, None, None, None], np.flip(images, self.axis), images)


class RandomVerticalFlip(RandomHorizontalFlip):
    """The image turned upside down with a probability.

    Args:
        p: the probability.
        generator: where it is drawn from; by default the run-time generator.

    Shapes: (C, H, W) or (N, C, H, W), kept.
    """

    axis = 2


class RandomRotation(ImageTransform):
    """The image turned about its centre by a random angle, with bilinear interpolation.

    Args:
        degrees: angles lie in [-degrees, degrees], or between the two numbers given; positive is counter-clockwise.
        fill: value around the image, one number or one for each channel.
        generator: where the angles are drawn from; by default the run-time generator.

    Shapes: (C, H, W) or (N, C, H, W), kept.
    """

    def __init__(self, degrees: float | Sequence[float], fill: Any = 0, *, generator: Generator | None = None):
        low, high = map(float, degrees if isinstance(degrees, Sequence) else (-degrees, degrees))
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError(f"RandomRotation expected a number of degrees that is not negative, or (lowest, highest), got "
                             f"{degrees}")
        self.degrees = low, high
        self.fill = fill
        self.generator = generator

    def apply(self, images: np.ndarray) -> np.ndarray:
        low, high = self.degrees
        draws = stream_of(self.generator).uniform((len(images),), dtypes.float64, "cpu")
        angles = np.deg2rad(low + (high - low) * draws)[:, None, None]
        height, width = images.shape[2:]
        down = np.arange(height)[:, None] - (height - 1) / 2
        right = np.arange(width) - (width - 1) / 2
        cos, sin = np.cos(angles), np.sin(angles)
        rows = cos * down + sin * right + (height - 1) / 2
        columns = cos * right - sin * down + (width - 1) / 2
        return _bilinear(_pad("RandomRotation", images, (1, 1, 1, 1), self.fill, "constant"), rows + 1, columns + 1)


def probability(name: str, p: float) -> float:
    """p, checked."""
    if not 0 <= p <= 1:
        raise ValueError(f"{name} expected a probability p in [0, 1], got {p}")
    return p


def fill_values(name: str, fill: Any, images: np.ndarray) -> np.ndarray:
    """A fill value as an array (C or 1, 1, 1) of the images' dtype, which must be able to hold it."""
    wanted = per_channel(name, np.atleast_1d(np.asarray(fill)), images.shape[1])
    with np.errstate(all="ignore"):
        values = wanted.astype(images.dtype)
    if images.dtype not in dtypes.FLOATING and not np.array_equal(values, wanted):
        raise ValueError(f"{name} expected a fill value that {images.dtype} holds, got {fill}")
    return values


def _random_windows(name: str, images: np.ndarray, size: Sequence[int], generator: Generator | None) -> np.ndarray:
    """A window of each image (N, C, H, W), at a random place."""
    rows, columns = (length - wanted for wanted, length in zip(size, images.shape[2:]))
    if rows < 0 or columns < 0:
        raise ValueError(f"{name} expected images of at least {tuple(size)} pixels, got {images.shape[2:]} with the padding; "
                         f"give more padding or pad_if_needed=True")
    stream, n = stream_of(generator), len(images)
    top = stream.integers(0, rows + 1, (n,), dtypes.int64, "cpu")
    left = stream.integers(0, columns + 1, (n,), dtypes.int64, "cpu")
    if not images.size:
        return np.empty((*images.shape[:2], *size), images.dtype)
    windows = np.lib.stride_tricks.sliding_window_view(images, tuple(size), (2, 3))
    return windows[np.arange(n), :, top, left]


def _pad(name: str, images: np.ndarray, sides: tuple[int, ...], fill: Any, mode: str) -> np.ndarray:
    left, top, right, bottom = sides
    if not any(sides):
        return images
    if mode != "constant":
        height, width = images.shape[2:]
        if mode == "reflect" and (max(top, bottom) >= height or max(left, right) >= width):
            raise ValueError(f"{name} expected less padding than the image's {(height, width)} pixels for mode 'reflect', got "
                             f"(left, top, right, bottom) = {sides}")
        return np.pad(images, ((0, 0), (0, 0), (top, bottom), (left, right)), mode)  # type: ignore[call-overload]
    n, channels, height, width = images.shape
    padded = np.empty((n, channels, top + height + bottom, left + width + right), images.dtype)
    padded[...] = fill_values(name, fill, images)
    padded[:, :, top:top + height, left:left + width] = images
    return padded


def _bilinear(images: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Images (N, C, H, W) read between their pixels, at the places (N, h, w); outside counts as the border's pixels."""
    n, channels, height, width = images.shape
    dtype = dtypes.accumulation_dtype(images.dtype) if images.dtype in dtypes.FLOATING else dtypes.float32
    rows, columns = np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)
    top, left = (np.minimum(at, max(length - 2, 0)).astype(np.intp) for at, length in ((rows, height), (columns, width)))
    flat = n, 1, math.prod(top.shape[1:])
    down, right = ((at - start).reshape(flat).astype(dtype) for at, start in ((rows, top), (columns, left)))
    first = (top * width + left).reshape(flat)
    pixels = images.reshape(n, channels, height * width).astype(dtype, copy=False)

    def read(offset: int) -> np.ndarray:
        return np.take_along_axis(pixels, first + offset, 2)

    above = read(0) * (1 - right) + read(1) * right
    below = read(width) * (1 - right) + read(width + 1) * right
    mixed = (above * (1 - down) + below * down).reshape(n, channels, *top.shape[1:])
    return rounded(mixed, images.dtype)


def _pair(name: str, what: str, value: Any, lowest: int) -> tuple[int, int]:
    pair: tuple[Any, ...] = (value, value) if isinstance(value, Integral) else tuple(value)
    if len(pair) != 2 or not all(_is_whole(v, lowest) for v in pair):
        raise ValueError(f"{name} expected {what} as one or two integers of at least {lowest}, got {value}")
    return pair[0], pair[1]


def _is_whole(value: Any, lowest: int) -> bool:
    return isinstance(value, Integral) and int(value) >= lowest


def _size(name: str, size: Any) -> tuple[int, int]:
    return _pair(name, "size", size[0] if isinstance(size, (list, tuple)) and len(size) == 1 else size, 1)


def _sides(name: str, padding: Any) -> tuple[int, ...]:
    """(left, top, right, bottom) of a padding."""
    sides = (padding or 0,) if padding is None or isinstance(padding, Integral) else tuple(padding)
    if len(sides) not in (1, 2, 4) or not all(_is_whole(v, 0) for v in sides):
        raise ValueError(f"{name} expected padding as 1, 2 or 4 integers that are not negative, got {padding}")
    return sides * (4 // len(sides))


def _mode(name: str, mode: str) -> str:
    if mode not in _MODES:
        raise ValueError(f"{name} expected padding_mode to be one of {', '.join(map(repr, _MODES))}, got {mode!r}")
    return mode


_MODES = ("constant", "edge", "reflect", "symmetric")
