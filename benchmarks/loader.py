"""Batches per second of a DataLoader with no workers, two threads and two processes, over an augmentation in NumPy.

A sample is a 3 x 64 x 64 image, shifted, flipped, blurred and normalized; a batch has 64. The first epoch, which starts the
workers, is not counted. The ways are measured in turn, and the median of the rounds is printed.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import minidl
from minidl.data import DataLoader, Dataset

WAYS = {
    "no workers": {},
    "2 threads": {"num_workers": 2, "worker_type": "thread", "persistent_workers": True},
    "2 processes": {"num_workers": 2, "persistent_workers": True},
}


class Augmented(Dataset):
    """Random images, augmented."""

    def __init__(self, n: int = 1024):
        self.images = np.random.default_rng(0).integers(0, 256, (n, 3, 64, 64), np.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        down, right, flip = minidl.randint(0, 9, (3,)).tolist()
        padded = np.pad(self.images[index], ((0, 0), (4, 4), (4, 4)))
        image = padded[:, down:down + 64, right:right + 64].astype(np.float32) / 255
        image = image[:, :, ::-1] if flip % 2 else image
        for axis in (1, 2):
            image = 0.25 * np.roll(image, 1, axis) + 0.5 * image + 0.25 * np.roll(image, -1, axis)
        return (image - image.mean()) / image.std(), index % 10


def main() -> None:
    loaders = {name: DataLoader(Augmented(), 64, shuffle=True, **way) for name, way in WAYS.items()}
    speeds: dict[str, list[float]] = {name: [] for name in WAYS}
    for turn in range(6):
        for name, loader in loaders.items():
            start = time.perf_counter()
            batches = sum(1 for _ in loader)
            if turn:
                speeds[name].append(batches / (time.perf_counter() - start))
    base = statistics.median(speeds["no workers"])
    for name, speed in speeds.items():
        median = statistics.median(speed)
        print(f"{name:12} {median:7.1f} batches/s, {median / base:.2f} x no workers")


if __name__ == "__main__":
    main()
