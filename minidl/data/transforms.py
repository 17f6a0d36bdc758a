"""What is done to images on their way to a model: the common base, conversions, normalization, composition.

A transform takes one image (C, H, W) or a batch (N, C, H, W), a NumPy array or a tensor, and gives back the same kind in
the same dtype unless it says otherwise; each image of a batch has its own random draw. A tensor of a GPU makes a round
trip through the CPU. The input is never changed. In the worker processes of a DataLoader leave `generator` at None: each
worker has its own default generator, while a generator that is given is copied to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..tensor import dtypes
from ..tensor.creation import as_tensor, from_numpy
from ..tensor.random import Generator, default_generator
from ..tensor.tensor import Tensor

__all__ = ["Compose", "ConvertImageDtype", "ImageTransform", "Lambda", "Normalize", "ToTensor"]


class ImageTransform:
    """Base of the transforms of images: a subclass says in `apply` what happens to a batch (N, C, H, W) of arrays."""

    def __call__(self, images: Any) -> Any:
        """The transformed image (C, H, W) or batch (N, C, H, W).

        Raises:
            TypeError: for what is neither a NumPy array nor a tensor without history.
            ValueError: for another number of axes.
        """
        name = type(self).__name__
        array = array_of(name, images)
        if array.ndim not in (3, 4):
            raise ValueError(f"{name} expected an image of shape (C, H, W) or a batch (N, C, H, W), got shape {array.shape}")
        if array.ndim == 4:
            return kind_of(images, self.apply(array))
        return kind_of(images, self.apply(array[None])[0])

    def apply(self, images: np.ndarray) -> np.ndarray:
        """A new array: the batch (N, C, H, W) transformed."""
        raise NotImplementedError(f"{type(self).__name__} lacks apply(images)")


class Compose:
    """One transform after another.

    Args:
        transforms: callables of one argument, the first one first.
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]):
        self.transforms = list(transforms)
        for transform in self.transforms:
            _check_callable("Compose", transform)

    def __call__(self, images: Any) -> Any:
        for transform in self.transforms:
            images = transform(images)
        return images


class Lambda:
    """A function as a transform.

    Args:
        lambd: callable of one argument.
    """

    def __init__(self, lambd: Callable[[Any], Any]):
        _check_callable("Lambda", lambd)
        self.lambd = lambd

    def __call__(self, images: Any) -> Any:
        return self.lambd(images)


class ToTensor:
    """Turns an image whose channels come last into a tensor whose channels come first; uint8 becomes float32 in [0, 1].

    Takes NumPy arrays and Pillow images. Other dtypes keep their dtype and values.

    Shapes: (H, W) to (1, H, W), (H, W, C) to (C, H, W), (N, H, W, C) to (N, C, H, W).
    """

    def __call__(self, image: Any) -> Tensor:
        if isinstance(image, Tensor):
            raise TypeError("ToTensor expected a NumPy array or a Pillow image, got a Tensor; use ConvertImageDtype")
        array = np.asarray(image)
        if array.dtype == object or array.ndim not in (2, 3, 4):
            raise TypeError(f"ToTensor expected an image of shape (H, W) or (H, W, C), or a batch (N, H, W, C), got "
                            f"{type(image).__name__} of shape {array.shape} and dtype {array.dtype}")
        array = array[None] if array.ndim == 2 else np.moveaxis(array, -1, -3)
        return from_numpy(_scaled(array, dtypes.float32) if array.dtype == np.uint8 else np.array(array, order="C"))


class ConvertImageDtype:
    """Converts images to a dtype; between integers and floats, the full range of the one becomes [0, 1] of the other.

    Args:
        dtype: of the result.

    Shapes: any to the same.
    """

    def __init__(self, dtype: Any = dtypes.float32):
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, images: Any) -> Any:
        array = array_of("ConvertImageDtype", images)
        source, target = array.dtype in dtypes.FLOATING, self.dtype in dtypes.FLOATING
        if source == target and array.dtype != self.dtype and not source:
            raise TypeError(f"ConvertImageDtype converts between integers and floats, got {array.dtype} to {self.dtype}")
        if source == target:
            return kind_of(images, array.astype(self.dtype))
        return kind_of(images, _scaled(array, self.dtype) if target else _quantized(array, self.dtype))


class Normalize(ImageTransform):
    """(image - mean) / std, channel by channel.

    Args:
        mean: one number, or one for each channel.
        std: likewise; none may be zero.
    """

    def __init__(self, mean: Any, std: Any):
        self.mean, self.std = (np.atleast_1d(np.asarray(getattr(v, "array", v), np.float64)) for v in (mean, std))
        if self.mean.ndim != 1 or self.std.ndim != 1:
            raise ValueError(f"Normalize expected a number or one for each channel as mean and std, got shapes "
                             f"{self.mean.shape} and {self.std.shape}")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.std).all() and self.std.all()):
            raise ValueError(f"Normalize expected finite means and deviations other than zero, got {mean} and {std}")

    def apply(self, images: np.ndarray) -> np.ndarray:
        if images.dtype not in dtypes.FLOATING:
            raise TypeError(f"Normalize expected images of a floating dtype, got {images.dtype}; use ConvertImageDtype first")
        dtype = dtypes.accumulation_dtype(images.dtype)
        mean, std = (per_channel("Normalize", v, images.shape[1]).astype(dtype) for v in (self.mean, self.std))
        return ((images.astype(dtype, copy=False) - mean) / std).astype(images.dtype, copy=False)


# What the transforms share

def array_of(name: str, images: Any) -> np.ndarray:
    """The NumPy array of an array or tensor."""
    if isinstance(images, Tensor):
        if images.node is not None:
            raise TypeError(f"{name} acts on data and records no gradient, got a tensor that requires one; detach() it first")
        return images.numpy()
    if not isinstance(images, np.ndarray):
        raise TypeError(f"{name} expected a NumPy array or a tensor, got {type(images).__name__}")
    return images


def kind_of(images: Any, array: np.ndarray) -> Any:
    """The array as what `images` is: an array, or a tensor on the same device."""
    return as_tensor(array, device=images.device) if isinstance(images, Tensor) else array


def stream_of(generator: Generator | None) -> Generator:
    """The generator, or this thread's default one for run time."""
    return default_generator() if generator is None else generator


def per_channel(name: str, values: np.ndarray, channels: int) -> np.ndarray:
    """One number, or one for each channel, in the shape (C or 1, 1, 1)."""
    if len(values) not in (1, channels):
        raise ValueError(f"{name} expected 1 or {channels} values for images of {channels} channels, got {len(values)}")
    return values.reshape(-1, 1, 1)


def rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The values in a dtype; integers are rounded to the nearest and clipped to their range."""
    if dtype.kind not in "iu":
        return values.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)


def _scaled(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Integers as floats, such that the largest becomes 1."""
    largest = 1 if array.dtype == bool else np.iinfo(array.dtype).max
    wide = dtypes.accumulation_dtype(dtype)
    return np.divide(array, wide.type(largest), dtype=wide, order="C").astype(dtype, copy=False)


def _quantized(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.kind not in "iu" or not (np.greater_equal(array, 0).all() and np.less_equal(array, 1).all()):
        raise ValueError(f"ConvertImageDtype expected floats in [0, 1] and an integer dtype, got values in "
                         f"[{array.min()}, {array.max()}] for {dtype}")
    return rounded(array.astype(np.float64) * np.iinfo(dtype).max, dtype)


def _check_callable(name: str, transform: Any) -> None:
    if not callable(transform):
        raise TypeError(f"{name} expected callables of one argument, got {type(transform).__name__}")
