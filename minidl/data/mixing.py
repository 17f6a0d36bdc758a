"""mixup and CutMix: batches in which each sample is mixed with another one, and so is its target."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import dtypes
from ..tensor.random import Generator
from .erasing import in_boxes
from .transforms import array_of, kind_of, stream_of

__all__ = ["cutmix", "mixup"]


def mixup(x: Any, y: Any, num_classes: int | None = None, *, alpha: float = 1.0, generator: Generator | None = None) -> Any:
    """Mixes each sample with another one of the batch, in a part that is drawn from Beta(alpha, alpha) for the batch.

    Args:
        x: floating batch (N, ...), an array or a tensor.
        y: classes (N,), integers, or soft targets (N, num_classes), floats.
        num_classes: number of classes; needed where y holds classes.
        alpha: above 0; the smaller, the less is mixed.
        generator: where part and partners are drawn from; by default the run-time generator.

    Returns:
        (x, y): the mixed batch, and soft targets (N, num_classes) as cross_entropy takes them; of the kind that x and y are.

    Source: Zhang et al. 2018, mixup: beyond empirical risk minimization.
    """
    images, soft, part, partner = _draw("mixup", x, y, num_classes, alpha, generator)
    if images.dtype not in dtypes.FLOATING:
        raise TypeError(f"mixup expected a batch of a floating dtype, got {images.dtype}; use ConvertImageDtype first")
    return kind_of(x, _mix(images, images[partner], part)), kind_of(y, _mix(soft, soft[partner], part))


def cutmix(x: Any, y: Any, num_classes: int | None = None, *, alpha: float = 1.0, generator: Generator | None = None) -> Any:
    """Pastes a box of another image of the batch into each image; targets are mixed by the box's area.

    Args:
        x: batch of images (N, C, H, W), an array or a tensor of any dtype.
        y: classes (N,), integers, or soft targets (N, num_classes), floats.
        num_classes: number of classes; needed where y holds classes.
        alpha: above 0; the part that stays is drawn from Beta(alpha, alpha) for the batch.
        generator: where box and partners are drawn from; by default the run-time generator.

    Returns:
        (x, y): the mixed batch, and soft targets (N, num_classes) as cross_entropy takes them; of the kind that x and y are.

    Source: Yun et al. 2019, CutMix: regularization strategy to train strong classifiers with localizable features.
    """
    images, soft, part, partner = _draw("cutmix", x, y, num_classes, alpha, generator)
    if images.ndim != 4:
        raise ValueError(f"cutmix expected a batch of images (N, C, H, W), got shape {images.shape}")
    height, width = images.shape[2:]
    middle = stream_of(generator).uniform((2,), dtypes.float64, "cpu") * (height, width)
    half = np.sqrt(1 - part) * np.array([height, width]) / 2
    start, end = (np.clip(np.rint(edge), 0, (height, width)) for edge in (middle - half, middle + half))
    box = in_boxes((start[0], end[0]), (start[1], end[1]), height, width)
    part = 1 - float(box.mean()) if box.size else 1.0
    return kind_of(x, np.where(box, images[partner], images)), kind_of(y, _mix(soft, soft[partner], part))


def _draw(name: str, x: Any, y: Any, num_classes: int | None, alpha: float, generator: Generator | None) -> tuple:
    """The batch, its soft targets, the part that stays, and each sample's partner."""
    if not alpha > 0:
        raise ValueError(f"{name} expected alpha above 0, got {alpha}")
    images, targets = array_of(name, x), array_of(name, y)
    if images.ndim < 1 or targets.ndim not in (1, 2) or len(images) != len(targets):
        raise ValueError(f"{name} expected a batch (N, ...) and targets (N,) or (N, num_classes), got shapes {images.shape} "
                         f"and {targets.shape}")
    soft = _one_hot(name, targets, num_classes)
    if images.dtype == dtypes.float64:
        soft = soft.astype(np.float64)
    stream = stream_of(generator)
    return images, soft, float(stream.numpy.beta(alpha, alpha)), stream.permutation(len(images), dtypes.int64, "cpu")


def _one_hot(name: str, targets: np.ndarray, num_classes: int | None) -> np.ndarray:
    if targets.ndim == 2:
        if targets.dtype not in dtypes.FLOATING or num_classes not in (None, targets.shape[1]):
            raise ValueError(f"{name} expected soft targets (N, {num_classes or 'num_classes'}) of a floating dtype, got shape "
                             f"{targets.shape} and {targets.dtype}")
        return targets.astype(np.result_type(targets.dtype, np.float32), copy=False)
    if targets.dtype.kind not in "iu" or num_classes is None:
        raise ValueError(f"{name} expected integer classes (N,) and num_classes, got {targets.dtype} and "
                         f"num_classes={num_classes}")
    if targets.size and not (0 <= targets.min() and targets.max() < num_classes):
        raise ValueError(f"{name} expected classes in [0, {num_classes}), got some in [{targets.min()}, {targets.max()}]")
    return (targets[:, None] == np.arange(num_classes)).astype(np.float32)


def _mix(first: np.ndarray, second: np.ndarray, part: float) -> np.ndarray:
    wide = dtypes.accumulation_dtype(first.dtype)
    return (first * wide.type(part) + second * wide.type(1 - part)).astype(first.dtype, copy=False)
