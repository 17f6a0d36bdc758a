"""The dataset that the readers of image files share: images and class numbers in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .dataset import Dataset


class LabelledImages(Dataset):
    """Images with a class number each.

    `dataset[i]` is (image (C, H, W), int); with a slice or an array of indices it is the batch (images (N, C, H, W), classes
    (N,)), and the transform is given the whole batch.

    Args:
        images: (N, C, H, W), uint8.
        targets: (N,), integers.
        transform: called with the image or the batch.
        target_transform: called with the class number or numbers.
        classes: names of the classes, where they are known.
    """

    def __init__(self, images: np.ndarray, targets: np.ndarray, transform: Callable[[Any], Any] | None = None,
                 target_transform: Callable[[Any], Any] | None = None, *, classes: Sequence[str] = ()):
        if images.ndim != 4 or targets.shape != images.shape[:1]:
            raise ValueError(f"{type(self).__name__} expected images (N, C, H, W) and targets (N,), got shapes "
                             f"{images.shape} and {targets.shape}")
        self.images, self.targets = images, targets.astype(np.int64)
        self.transform, self.target_transform = transform, target_transform
        self.classes = list(classes)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        images, targets = self.images[index], self.targets[index]
        if images.ndim == 3:
            targets = int(targets)
        if self.transform is not None:
            images = self.transform(images)
        return images, targets if self.target_transform is None else self.target_transform(targets)
