"""Readers of CIFAR-10 and CIFAR-100: the binary and the Python version, unpacked or as the .tar.gz they come in."""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .files import read_bytes
from .labelled_images import LabelledImages
from .safe_pickle import load_plain

__all__ = ["CIFAR10", "CIFAR100"]


class CIFAR10(LabelledImages):
    """CIFAR-10: images uint8 (3, 32, 32) of 10 classes, in memory. The pickles of the Python version are read, never run.

    `dataset[i]` is (image, int); a slice or an array of indices gives a batch. Turn images into floats with
    ConvertImageDtype() as the transform. `classes` holds the names of the classes where the archive has them.

    Args:
        root: the archive (.tar.gz), its unpacked folder, or a folder that holds either.
        train: True for the 50,000 training images, False for the 10,000 test images.
        transform: called with an image or a batch.
        target_transform: called with a class number or an array of them.

    Raises:
        FileNotFoundError: if the files are not there; the message names them.
        ValueError: if a file is damaged or is not what it should be.

    Source: Krizhevsky 2009, Learning multiple layers of features from tiny images, and its web page.
    """

    def __init__(self, root: str | os.PathLike, train: bool = True, transform: Callable[[Any], Any] | None = None,
                 target_transform: Callable[[Any], Any] | None = None):
        names = [f"data_batch_{number}" for number in range(1, 6)] if train else ["test_batch"]
        versions = (_Version("cifar-10-batches-py", "cifar-10-python.tar.gz", names, "batches.meta"),
                    _Version("cifar-10-batches-bin", "cifar-10-binary.tar.gz", [f"{name}.bin" for name in names],
                             "batches.meta.txt"))
        labels = _Labels("labels", "label_names", 10, column=0, columns=1)
        images, targets, classes = _load("CIFAR10", Path(root), versions, labels)
        super().__init__(images, targets, transform, target_transform, classes=classes)


class CIFAR100(LabelledImages):
    """CIFAR-100: images uint8 (3, 32, 32) of 100 classes in 20 groups, in memory; otherwise as CIFAR10.

    Args:
        root: the archive (.tar.gz), its unpacked folder, or a folder that holds either.
        train: True for the 50,000 training images, False for the 10,000 test images.
        transform: called with an image or a batch.
        target_transform: called with a class number or an array of them.
        coarse: targets are the 20 groups instead of the 100 classes.

    Raises:
        FileNotFoundError: if the files are not there; the message names them.
        ValueError: if a file is damaged or is not what it should be.

    Source: as for CIFAR10.
    """

    def __init__(self, root: str | os.PathLike, train: bool = True, transform: Callable[[Any], Any] | None = None,
                 target_transform: Callable[[Any], Any] | None = None, *, coarse: bool = False):
        name, kind = "train" if train else "test", "coarse" if coarse else "fine"
        versions = (_Version("cifar-100-python", "cifar-100-python.tar.gz", [name], "meta"),
                    _Version("cifar-100-binary", "cifar-100-binary.tar.gz", [f"{name}.bin"], f"{kind}_label_names.txt"))
        labels = _Labels(f"{kind}_labels", f"{kind}_label_names", 20 if coarse else 100, column=0 if coarse else 1, columns=2)
        images, targets, classes = _load("CIFAR100", Path(root), versions, labels)
        super().__init__(images, targets, transform, target_transform, classes=classes)


class _Version(NamedTuple):
    """Where a version of the data lies: its folder, or its archive; the files of images and that of class names."""

    folder: str
    archive: str
    files: list[str]
    names: str


class _Labels(NamedTuple):
    """Where labels are found: their keys in the pickles; their column among the label bytes of a binary record."""

    key: str
    names_key: str
    classes: int
    column: int
    columns: int


def _load(reader: str, root: Path, versions: tuple[_Version, ...], labels: _Labels) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Images (N, 3, 32, 32), labels (N,) and names of the first version found."""
    looked = []
    for version in versions:
        for place in (root,) if root.is_file() else (root, root / version.folder, root / version.archive):
            looked.append(place)
            contents = _contents(place, (*version.files, version.names))
            if not any(file in contents for file in version.files):
                continue
            missing = [file for file in version.files if file not in contents]
            if missing:
                raise FileNotFoundError(f"{reader} found no {', '.join(missing)} in {place}; unpack or fetch the archive again")
            parts = [_batch(contents[file], f"{place}: {file}", labels) for file in version.files]
            images, targets = (np.concatenate(part) for part in zip(*parts))
            names = contents.get(version.names)
            return images, targets, _names(names, f"{place}: {version.names}", labels) if names else []
    raise FileNotFoundError(f"{reader} found no {versions[0].files[0]} or {versions[1].files[0]} in "
                            f"{', '.join(map(str, dict.fromkeys(looked)))}; put the archive there or pass another root")


def _contents(place: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    """The files of these names in a folder or an archive, by name."""
    if place.is_dir():
        return {name: read_bytes(place / name) for name in names if (place / name).is_file()}
    if not place.is_file():
        return {}
    contents = {}
    try:
        with tarfile.open(place) as archive:
            for member in archive:
                name = member.name.rpartition("/")[2]
                if name in names and member.isfile():
                    contents[name] = archive.extractfile(member).read()  # type: ignore[union-attr]
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{place} is a damaged or truncated archive ({error}); fetch it again") from error
    return contents


def _batch(content: bytes, source: str, labels: _Labels) -> tuple[np.ndarray, np.ndarray]:
    images, targets = (_binary if source.endswith(".bin") else _pickled)(content, source, labels)
    if targets.size and not (0 <= targets.min() and targets.max() < labels.classes):
        raise ValueError(f"{source}: expected labels in [0, {labels.classes}), got some in [{targets.min()}, {targets.max()}]")
    return images.reshape(-1, 3, 32, 32), targets


def _binary(content: bytes, source: str, labels: _Labels) -> tuple[np.ndarray, np.ndarray]:
    record = labels.columns + _PIXELS
    if not content or len(content) % record:
        raise ValueError(f"{source} is truncated or of another data set: expected a multiple of {record} bytes, "
                         f"{labels.columns} of labels and {_PIXELS} of pixels each, got {len(content)}")
    records = np.frombuffer(content, np.uint8).reshape(-1, record)
    return records[:, labels.columns:], records[:, labels.column].astype(np.int64)


def _pickled(content: bytes, source: str, labels: _Labels) -> tuple[np.ndarray, np.ndarray]:
    batch = _dict(content, source)
    images = batch.get("data")
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim != 2 or images.shape[1] != _PIXELS:
        raise ValueError(f"{source}: expected images under 'data', uint8 (N, {_PIXELS}), got keys {sorted(batch)}")
    try:
        targets = np.asarray(batch.get(labels.key))
    except ValueError:
        targets = np.empty(0, object)
    if targets.dtype.kind not in "iu" or targets.shape != images.shape[:1]:
        raise ValueError(f"{source}: expected {len(images)} integers under {labels.key!r}, got keys {sorted(batch)} and "
                         f"labels of shape {targets.shape}")
    return images, targets.astype(np.int64)


def _names(content: bytes, source: str, labels: _Labels) -> list[str]:
    if source.endswith(".txt"):
        return content.decode("utf-8", "replace").split()
    names = _dict(content, source).get(labels.names_key)
    if not isinstance(names, list) or not all(isinstance(name, (bytes, str)) for name in names):
        raise ValueError(f"{source}: expected a list of names under {labels.names_key!r}")
    return [_text(name) for name in names]


def _dict(content: bytes, source: str) -> dict[str, Any]:
    """The dict in a pickle, whose keys are bytes if Python 2 wrote it."""
    plain = load_plain(content, source)
    if not isinstance(plain, dict):
        raise ValueError(f"{source}: expected a pickled dict, got a {type(plain).__name__}")
    return {_text(key): value for key, value in plain.items()}


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


_PIXELS = 3 * 32 * 32
