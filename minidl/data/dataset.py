"""Data sets: collections of samples by index or as a stream, and how they are joined, cut and split."""

from __future__ import annotations

import itertools
import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ..tensor.random import Generator, default_generator
from ..tensor.tensor import Tensor

Sample = TypeVar("Sample", covariant=True)


class Dataset(Generic[Sample]):
    """Samples by index: a subclass defines `__getitem__(index)` and, for samplers, `__len__()`.

    A subclass may also define `__getitems__(indices)`, which returns the samples of a whole batch as a list.
    """

    def __getitem__(self, index: Any) -> Sample:
        raise NotImplementedError(f"{type(self).__name__} expected a method __getitem__(index); define it")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Sample]):
    """A stream of samples: a subclass defines `__iter__()`.

    Each worker of a DataLoader goes through the whole stream; use `get_worker_info()` to give each its own part.
    """

    def __iter__(self) -> Iterator[Sample]:
        raise NotImplementedError(f"{type(self).__name__} expected a method __iter__(); define it")

    def __add__(self, other: Dataset) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample i is the tuple of the i-th entries of the tensors.

    Args:
        tensors: of one length along their first axis.

    Raises:
        ValueError: if their lengths differ.
    """

    def __init__(self, *tensors: Tensor):
        if not tensors or any(not tensor.ndim for tensor in tensors):
            raise ValueError(f"TensorDataset expected tensors with a first axis of samples, got shapes "
                             f"{[tuple(tensor.shape) for tensor in tensors]}")
        if len({len(tensor) for tensor in tensors}) > 1:
            raise ValueError(f"TensorDataset expected tensors of one length along their first axis, got shapes "
                             f"{[tuple(tensor.shape) for tensor in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Sample i is the tuple, or with keywords the dict, of the i-th samples of several data sets of one length.

    Raises:
        ValueError: if there are none, both kinds, or their lengths differ.
    """

    def __init__(self, *args: Dataset, **kwargs: Dataset):
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset expected data sets either by position (samples are tuples) or by keyword (samples "
                             f"are dicts), got {len(args)} and {len(kwargs)}")
        self.datasets: Any = args or kwargs
        lengths = [len(part) for part in self._parts()]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset expected data sets of one length, got lengths {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        return self._sample([part[index] for part in self._parts()])

    def __getitems__(self, indices: list) -> list:
        columns = []
        for part in self._parts():
            samples = samples_of(part, indices)
            if len(samples) != len(indices):
                raise ValueError(f"StackDataset expected {len(indices)} samples from {type(part).__name__}.__getitems__, got "
                                 f"{len(samples)}")
            columns.append(samples)
        return [self._sample(row) for row in zip(*columns)]

    def __len__(self) -> int:
        return self._length

    def _parts(self) -> list:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _sample(self, row: Sequence) -> Any:
        return dict(zip(self.datasets, row)) if isinstance(self.datasets, dict) else tuple(row)


class ConcatDataset(Dataset[Sample]):
    """Data sets one after the other.

    Raises:
        ValueError: if there are none.
        TypeError: if one is an IterableDataset.
    """

    datasets: list[Dataset[Sample]]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset expected at least one data set, got none")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise TypeError(f"ConcatDataset expected data sets with an index, got the IterableDataset "
                                f"{type(dataset).__name__}; use ChainDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> Sample:
        if index < -len(self):
            raise ValueError(f"ConcatDataset expected an index of at least {-len(self)}, got {index}")
        if index >= len(self):
            raise IndexError(f"ConcatDataset expected an index below {len(self)}, got {index}")
        index = index + len(self) if index < 0 else index
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Sample]):
    """Streams one after the other.

    Raises:
        TypeError: while iterating, if a part is no IterableDataset.
    """

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = datasets

    def __iter__(self) -> Iterator[Sample]:
        for dataset in self._parts():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._parts())  # type: ignore[arg-type, misc]

    def _parts(self) -> Iterator[IterableDataset]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise TypeError(f"ChainDataset expected IterableDatasets, got {type(dataset).__name__}; use ConcatDataset")
            yield dataset


class Subset(Dataset[Sample]):
    """The samples of a data set at some indices."""

    dataset: Dataset[Sample]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[Sample], indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list) -> list:
        return samples_of(self.dataset, [self.indices[index] for index in indices])

    def __len__(self) -> int:
        return len(self.indices)


def samples_of(dataset: Any, indices: list) -> list:
    """The samples at some indices, through `__getitems__` where the data set has it."""
    many = getattr(dataset, "__getitems__", None)
    return [dataset[index] for index in indices] if many is None else many(indices)


def random_split(dataset: Dataset[Sample], lengths: Sequence[int | float],
                 generator: Generator | None = None) -> list[Subset[Sample]]:
    """Split a data set at random into disjoint parts.

    Args:
        lengths: of the parts, either numbers of samples or fractions that sum to 1; of fractions the first parts get the
            samples that rounding down leaves over, one each in turn.
        generator: decides the split; by default the run-time generator.

    Raises:
        ValueError: if the lengths do not sum to the length of the data set, or a fraction is not in [0, 1].
    """
    total = len(dataset)  # type: ignore[arg-type]
    counts: list[Any] = list(lengths)
    if math.isclose(sum(counts), 1) and sum(counts) <= 1:
        counts = _counts(counts, total)
    if sum(counts) != total or any(count < 0 or count != int(count) for count in counts):
        raise ValueError(f"random_split expected lengths that sum to the {total} samples of the data set, or fractions that "
                         f"sum to 1, got {list(lengths)}")
    order = (generator or default_generator()).numpy.permutation(total).tolist()
    ends = itertools.accumulate(int(count) for count in counts)
    return [Subset(dataset, order[end - int(count):end]) for count, end in zip(counts, ends)]


def _counts(fractions: list, total: int) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"random_split expected fractions between 0 and 1, got {fraction} at place {i}")
    counts = [math.floor(total * fraction) for fraction in fractions]
    for i in range(total - sum(counts)):
        counts[i % len(counts)] += 1
    for i, count in enumerate(counts):
        if not count:
            warnings.warn(f"random_split: part {i} gets no sample", stacklevel=3)
    return counts
