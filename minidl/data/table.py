"""Readers of tables: CSV files and NumPy's .npz archives."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..tensor import dtypes
from .dataset import Dataset
from .files import read_text

__all__ = ["Table", "read_csv", "read_npz"]


class Table(Dataset):
    """Rows of features, with a target each where there is one.

    `table[i]` is (features (F,), target), or the features alone; a slice or an array of indices gives a batch.

    Attributes:
        features: (N, F), of one floating dtype.
        targets: (N,), or None. int64 for whole numbers and for classes, floating for other numbers.
        feature_names: a name for each feature.
        classes: names of the classes, sorted, where the target is text; else empty.
    """

    def __init__(self, features: np.ndarray, targets: np.ndarray | None = None, feature_names: Sequence[str] = (),
                 classes: Sequence[str] = ()):
        if features.ndim != 2 or (targets is not None and targets.shape != features.shape[:1]):
            raise ValueError(f"Table expected features (N, F) and targets (N,), got shapes {features.shape} and "
                             f"{getattr(targets, 'shape', None)}")
        self.features, self.targets = features, targets
        self.feature_names, self.classes = list(feature_names), list(classes)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: Any) -> Any:
        features = self.features[index]
        return features if self.targets is None else (features, self.targets[index])


def read_csv(path: str | os.PathLike, target: str | int | None = None, *, delimiter: str = ",", header: bool = True,
             columns: Sequence[str | int] | None = None, classes: Sequence[str] | None = None, missing: float | None = None,
             dtype: Any = dtypes.float32) -> Table:
    """A table of numbers from a text file of UTF-8, gzip or not; blank lines are passed over.

    Args:
        path: the file.
        target: the column of the targets, by name or number from 0 (negative from the last): numbers, or names of classes.
        delimiter: what separates fields; fields may be quoted.
        header: the first line names the columns; without one they are called "0", "1", ...
        columns: the columns of the features; by default all but the target.
        classes: names of the classes in the order of their numbers, so that two files agree; by default a target of numbers is
            taken as it is, and the names in one of text are sorted.
        missing: what an empty field of a feature stands for, such as NaN; by default it is an error.
        dtype: of the features, floating.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file, line and column: for what is no number or does not fit dtype, an unknown class, a line of too
            few or too many fields, a column that is not there; or if the file has no rows.
    """
    dtype = dtypes.as_dtype(dtype)
    if dtype not in dtypes.FLOATING:
        raise TypeError(f"read_csv expected a floating dtype, got {dtype}")
    lines, rows = _rows(path, delimiter)
    names = [name.strip() for name in rows.pop(0)] if header else [str(number) for number in range(len(rows[0]))]
    lines = lines[1:] if header else lines
    if not rows:
        raise ValueError(f"{path} has no rows but its header")
    for line, row in zip(lines, rows):
        if len(row) != len(names):
            raise ValueError(f"{path}, line {line}: expected {len(names)} fields, got {len(row)}; "
                             f"is the delimiter {delimiter!r}?")
    chosen = None if target is None else _column(path, names, target)
    used = [at for at in range(len(names)) if at != chosen] if columns is None else [_column(path, names, c) for c in columns]
    fields = [_Column(path, at, names[at], lines, [row[at].strip() for row in rows]) for at in range(len(names))]
    features = np.stack([fields[at].numbers(missing, dtype) for at in used], 1) if used else np.empty((len(rows), 0), dtype)
    targets, found = (None, []) if chosen is None else fields[chosen].targets(classes)
    return Table(features, targets, [names[at] for at in used], found)


def read_npz(path: str | os.PathLike, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of an .npz archive by name; pickled objects are refused.

    Args:
        path: the archive.
        names: the arrays wanted; by default all.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming the file, if it is no .npz archive, is damaged, holds objects, or lacks an array.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(f"read_npz expected an .npz archive at {path}, found no file there")
    try:
        archive = np.load(path, allow_pickle=False)
    except Exception as error:  # a damaged file raises whatever the reader of the part that is hit raises
        raise ValueError(f"{path} is no .npz archive, or a damaged one ({error})") from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError(f"{path} is a single array, not an .npz archive; read it with numpy.load(path, allow_pickle=False)")
    arrays = {}
    with archive:
        for name in archive.files if names is None else names:
            if name not in archive.files:
                raise ValueError(f"{path} has no array {name!r}; it has {', '.join(archive.files) or 'none'}")
            try:
                arrays[name] = archive[name]
            except Exception as error:
                raise ValueError(f"{path}: the array {name!r} cannot be read ({error})") from error
    return arrays


def _rows(path: str | os.PathLike, delimiter: str) -> tuple[list[int], list[list[str]]]:
    """Line numbers and fields of the lines that are not blank."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True)
    lines, rows = [], []
    try:
        for row in reader:
            if any(field.strip() for field in row):
                lines.append(reader.line_num)
                rows.append(row)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from error
    if not rows:
        raise ValueError(f"{path} has no lines but blank ones")
    return lines, rows


def _column(path: Any, names: list[str], column: str | int) -> int:
    """The number of a column given by name or number."""
    if isinstance(column, int) and -len(names) <= column < len(names):
        return column % len(names)
    if names.count(column) == 1:  # type: ignore[arg-type]
        return names.index(column)  # type: ignore[arg-type]
    raise ValueError(f"{path} has {'several columns' if column in names else 'no column'} {column!r}; it has {names}")


class _Column(NamedTuple):
    """The fields of a column, and where they stand in the file."""

    path: Any
    number: int
    name: str
    lines: list[int]
    fields: list[str]

    def error(self, row: int, expected: str) -> ValueError:
        return ValueError(f"{self.path}, line {self.lines[row]}, column {self.number} ({self.name!r}): expected {expected}, "
                          f"got {self.fields[row]!r}")

    def numbers(self, missing: float | None, dtype: np.dtype) -> np.ndarray:
        """The column as features; empty fields are `missing`."""
        values = [missing if not field else _parse(field, float) for field in self.fields]
        if None in values:
            raise self.error(values.index(None), "a number")
        wide = np.array(values, np.float64)
        with np.errstate(over="ignore"):
            kept = wide.astype(dtype)
        lost = np.isinf(kept) & ~np.isinf(wide)
        if lost.any():
            raise self.error(int(lost.argmax()), f"a number that {dtype} holds")
        return kept

    def targets(self, classes: Sequence[str] | None) -> tuple[np.ndarray, list[str]]:
        """Whole numbers as int64, other numbers as float32, text as class numbers and the names of the classes."""
        if "" in self.fields:
            raise self.error(self.fields.index(""), "a target")
        values = [_parse(field, float) for field in self.fields]
        if classes is None and None not in values:
            whole = [_parse(field, int) for field in self.fields]
            fits = None not in whole and max(map(abs, whole)) < 1 << 63
            return np.array(whole, np.int64) if fits else np.array(values, np.float32), []
        if classes is None and any(value is not None for value in values):
            raise self.error(values.index(None), "a number, as on other lines, or a list classes= of all classes")
        names = sorted(set(self.fields)) if classes is None else list(classes)
        numbers = {name: number for number, name in enumerate(names)}
        for row, field in enumerate(self.fields):
            if field not in numbers:
                raise self.error(row, f"one of the classes {names}")
        return np.array([numbers[field] for field in self.fields], np.int64), names


def _parse(field: str, kind: Callable[[str], Any]) -> Any:
    """The number in a field, None for what is no number."""
    try:
        return kind(field)
    except ValueError:
        return None
