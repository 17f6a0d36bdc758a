"""Reader of folders of image files, one folder for each class; it needs Pillow."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .dataset import Dataset

__all__ = ["ImageFolder", "read_image"]

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class ImageFolder(Dataset):
    """Images in files `root/class/.../name.png`; sample i is (image uint8 (C, H, W), int), read when it is asked for.

    Args:
        root: a folder that holds a folder for each class; the sorted names of these are the classes.
        transform: called with the image.
        target_transform: called with the class number.
        loader: makes an image of a path; by default read_image, which needs Pillow.
        extensions: endings of the names of image files, in lower case; other files are passed over.
        allow_empty: a class without images is no error.

    Attributes:
        classes: names of the classes; class_to_idx: their numbers; samples: (path, class number) of each image, sorted;
        targets: the class numbers.

    Raises:
        FileNotFoundError: if root is no folder or has no folders, or a class has no images.
        ImportError: if Pillow is missing and no loader given.
    """

    def __init__(self, root: str | os.PathLike, transform: Callable[[Any], Any] | None = None,
                 target_transform: Callable[[Any], Any] | None = None, loader: Callable[[Path], Any] | None = None,
                 extensions: Sequence[str] = EXTENSIONS, *, allow_empty: bool = False):
        if loader is None:
            _pillow()
        self.root = Path(root)
        if not self.root.is_dir():
            raise FileNotFoundError(f"ImageFolder expected a folder at {root}, found none there")
        self.transform, self.target_transform = transform, target_transform
        self.loader = read_image if loader is None else loader
        self.classes = sorted(entry.name for entry in self.root.iterdir() if entry.is_dir() and not entry.name.startswith("."))
        if not self.classes:
            raise FileNotFoundError(f"ImageFolder expected a folder for each class in {root}, found none")
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self.samples: list[tuple[Path, int]] = []
        for name, number in self.class_to_idx.items():
            found = sorted(path for path in (self.root / name).rglob("*")
                           if path.name.lower().endswith(tuple(extensions)) and path.is_file())
            if not found and not allow_empty:
                raise FileNotFoundError(f"ImageFolder found no image in {self.root / name}; it looked for names that end in "
                                        f"{', '.join(extensions)}")
            self.samples += [(path, number) for path in found]
        self.targets = [number for _, number in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        image = self.loader(path)
        return (image if self.transform is None else self.transform(image),
                target if self.target_transform is None else self.target_transform(target))


def read_image(path: str | os.PathLike, mode: str = "RGB") -> np.ndarray:
    """The image in a file.

    Args:
        path: the file.
        mode: "RGB" (3 channels), "L" (1, grey) or "RGBA" (4, with transparency); the image is converted.

    Returns:
        uint8 (C, H, W).

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming the path, if the file is damaged or no image.
        ImportError: if Pillow is missing.
    """
    if mode not in ("RGB", "L", "RGBA"):
        raise ValueError(f"read_image expected mode 'RGB', 'L' or 'RGBA', got {mode!r}")
    pillow = _pillow()
    if not os.path.isfile(path):
        raise FileNotFoundError(f"read_image expected an image at {path}, found no file there")
    try:
        with pillow.open(path) as image:
            pixels = np.asarray(image.convert(mode))
    except Exception as error:  # Pillow's decoders raise errors of many types
        raise ValueError(f"{path} is no image that Pillow can read, or a damaged one ({error})") from error
    return np.ascontiguousarray(np.atleast_3d(pixels).transpose(2, 0, 1))


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("reading image files needs Pillow; pip install pillow") from error
    return Image
