"""Reader of the idx files in which MNIST and its kin come."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .files import read_bytes
from .labelled_images import LabelledImages

__all__ = ["MNIST", "read_idx"]


def read_idx(path: str | os.PathLike) -> np.ndarray:
    """The array in an idx file, gzip or not, in native byte order.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming the file, if it is no idx file, truncated, or longer than its header says.

    Source: the format's description on the web page of MNIST (LeCun, Cortes, Burges).
    """
    content = read_bytes(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES or not content[3]:
        raise ValueError(f"{path} is no idx file: expected two zero bytes, a type of "
                         f"{', '.join(f'{code:#04x}' for code in _TYPES)} and a number of axes, got {content[:4].hex(' ')}")
    dtype, axes = np.dtype(_TYPES[content[2]]), content[3]
    start = 4 + 4 * axes
    if len(content) < start:
        raise ValueError(f"{path} is truncated: its header of {axes} axes takes {start} bytes, got {len(content)}")
    shape = tuple(int(length) for length in np.frombuffer(content, ">u4", axes, 4))
    expected = start + math.prod(shape) * dtype.itemsize
    if len(content) != expected:
        raise ValueError(f"{path} is {'truncated' if len(content) < expected else 'too long'}: its header says shape {shape} "
                         f"of {dtype.newbyteorder('=')}, {expected} bytes in all, got {len(content)}; fetch it again")
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


class MNIST(LabelledImages):
    """MNIST, Fashion-MNIST or KMNIST: images uint8 (1, 28, 28) of 10 classes, in memory.

    `dataset[i]` is (image, int); a slice or an array of indices gives a batch. Turn images into floats with
    ConvertImageDtype() as the transform.

    Args:
        root: folder of the files, which may also lie in its folder MNIST/raw; packed (.gz) or not.
        train: True for the 60,000 training images, False for the 10,000 test images, or the names of two files within root:
            (images, labels).
        transform: called with an image or a batch.
        target_transform: called with a class number or an array of them.

    Raises:
        FileNotFoundError: if the files are not there; the message names them.
        ValueError: if a file is damaged, or images and labels do not fit each other.
    """

    def __init__(self, root: str | os.PathLike, train: bool | Sequence[str] = True,
                 transform: Callable[[Any], Any] | None = None, target_transform: Callable[[Any], Any] | None = None):
        if isinstance(train, bool):
            prefix = "train" if train else "t10k"
            names = f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"
        else:
            names = tuple(train)  # type: ignore[assignment]
            if isinstance(train, str) or len(names) != 2:
                raise ValueError(f"MNIST expected train as True, False or two names of files (images, labels), got {train!r}")
        self.files = tuple(_find(Path(root), name) for name in names)
        images, targets = map(read_idx, self.files)
        if images.ndim != 3 or images.dtype != np.uint8:
            raise ValueError(f"{self.files[0]}: expected images uint8 (N, H, W), got {images.dtype} of shape {images.shape}")
        if targets.ndim != 1 or targets.dtype != np.uint8 or len(targets) != len(images):
            raise ValueError(f"{self.files[1]}: expected labels uint8 ({len(images)},), as many as {self.files[0]} has images, "
                             f"got {targets.dtype} of shape {targets.shape}")
        super().__init__(images[:, None], targets, transform, target_transform, classes=[str(digit) for digit in range(10)])


def _find(root: Path, name: str) -> Path:
    dotted = name.replace("-idx", ".idx")
    places = [root / folder / file for folder in ("", "MNIST/raw") for base in dict.fromkeys((name, dotted))
              for file in (base, base + ".gz")]
    for path in places:
        if path.is_file():
            return path
    raise FileNotFoundError(f"MNIST found none of {', '.join(map(str, places))}; put the file there or pass another root")


_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
