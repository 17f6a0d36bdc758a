"""Transforms of images that paint over boxes: Cutout and RandomErasing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..tensor import dtypes
from ..tensor.random import Generator
from .image_transforms import fill_values, probability
from .transforms import ImageTransform, stream_of

__all__ = ["Cutout", "RandomErasing"]


class Cutout(ImageTransform):
    """Paints over square boxes around random pixels; what lies beyond the image's edge is cut off.

    Args:
        length: side of a box in pixels.
        count: number of boxes in an image.
        fill: value of their pixels, one number or one for each channel.
        generator: where the places are drawn from; by default the run-time generator.

    Shapes: (C, H, W) or (N, C, H, W), kept.

    Source: DeVries and Taylor 2017, Improved regularization of convolutional neural networks with cutout.
    """

    def __init__(self, length: int, *, count: int = 1, fill: Any = 0, generator: Generator | None = None):
        if length < 1 or count < 1:
            raise ValueError(f"Cutout expected a length and a count of at least 1, got {length} and {count}")
        self.length, self.count, self.fill = length, count, fill
        self.generator = generator

    def apply(self, images: np.ndarray) -> np.ndarray:
        n, _, height, width = images.shape
        fill = fill_values("Cutout", self.fill, images)
        if not images.size:
            return images.copy()
        stream = stream_of(self.generator)
        top, left = (stream.integers(0, side, (n, self.count), dtypes.int64, "cpu") - self.length // 2
                     for side in (height, width))
        painted = in_boxes((top, top + self.length), (left, left + self.length), height, width)
        return np.where(painted.any(1, keepdims=True), fill, images)


class RandomErasing(ImageTransform):
    """Paints over a box of random size and shape with a probability; where ten draws give none that fits, nothing is done.

    Args:
        p: the probability.
        scale: smallest and largest area of the box, as a part of the image's.
        ratio: smallest and largest ratio of its height to its width.
        value: of its pixels: one number, one for each channel, or "random" for standard normal noise (floating images).
        generator: where all is drawn from; by default the run-time generator.

    Shapes: (C, H, W) or (N, C, H, W), kept.

    Source: Zhong et al. 2017, Random erasing data augmentation.
    """

    def __init__(self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
                 value: Any = 0, *, generator: Generator | None = None):
        self.p = probability("RandomErasing", p)
        if len(scale) != 2 or not 0 <= scale[0] <= scale[1] <= 1:
            raise ValueError(f"RandomErasing expected a scale (smallest, largest) within [0, 1], got {scale}")
        if len(ratio) != 2 or not 0 < ratio[0] <= ratio[1]:
            raise ValueError(f"RandomErasing expected a ratio (smallest, largest) above 0, got {ratio}")
        if isinstance(value, str) and value != "random":
            raise ValueError(f"RandomErasing expected a number, one for each channel, or 'random' as value, got {value!r}")
        self.scale, self.ratio, self.value = tuple(scale), tuple(ratio), value
        self.generator = generator

    def apply(self, images: np.ndarray) -> np.ndarray:
        random = isinstance(self.value, str)
        if random and images.dtype not in dtypes.FLOATING:
            raise TypeError(f"RandomErasing expected floating images for value='random', got {images.dtype}")
        stream = stream_of(self.generator)
        fill = stream.normal(images.shape, images.dtype, "cpu") if random else fill_values("RandomErasing", self.value, images)
        return np.where(self._painted(images, stream)[:, None], fill, images)

    def _painted(self, images: np.ndarray, stream: Generator) -> np.ndarray:
        n, _, height, width = images.shape
        chosen, down, right = stream.uniform((3, n), dtypes.float64, "cpu")
        area, shape = stream.uniform((2, n, _ATTEMPTS), dtypes.float64, "cpu")
        area = height * width * (self.scale[0] + (self.scale[1] - self.scale[0]) * area)
        logs = np.log(self.ratio)
        shape = np.exp(logs[0] + (logs[1] - logs[0]) * shape)
        rows, columns = np.rint(np.sqrt(area * shape)), np.rint(np.sqrt(area / shape))
        fits = (rows < height) & (columns < width)
        first = np.arange(n), fits.argmax(1)
        rows, columns = rows[first], columns[first]
        top, left = np.floor(down * (height - rows + 1)), np.floor(right * (width - columns + 1))
        painted = in_boxes((top, top + rows), (left, left + columns), height, width)
        return painted & ((chosen < self.p) & fits[first])[:, None, None]


def in_boxes(rows: tuple[Any, Any], columns: tuple[Any, Any], height: int, width: int) -> np.ndarray:
    """Which pixels lie in boxes: (...) starts and ends of rows and columns to bool (..., height, width)."""
    inside_rows, inside_columns = (
        (np.arange(length) >= np.asarray(start)[..., None]) & (np.arange(length) < np.asarray(end)[..., None])
        for (start, end), length in ((rows, height), (columns, width)))
    return inside_rows[..., :, None] & inside_columns[..., None, :]


_ATTEMPTS = 10
