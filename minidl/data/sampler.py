"""Samplers: in which order a DataLoader takes the samples of a data set, and which of them make a batch.

A sampler with randomness draws from its generator, by default the run-time generator. What the order of the next epoch
depends on is its state: `state_dict()` gives it before an epoch, and `load_state_dict()` makes the epoch repeatable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from ..tensor.creation import as_tensor
from ..tensor.dtypes import float64
from ..tensor.ops.sampling import multinomial
from ..tensor.random import Generator, default_generator

Index = TypeVar("Index", covariant=True)


class Sampler(Generic[Index]):
    """The order of an epoch: a subclass defines `__iter__()`, which gives indices, and where it can `__len__()`.

    Args:
        data_source: not used; PyTorch's samplers take it.
    """

    generator: Generator | None = None

    def __init__(self, data_source: Any = None):
        pass

    def __iter__(self) -> Iterator[Index]:
        raise NotImplementedError(f"{type(self).__name__} expected a method __iter__(); define it")

    def state_dict(self) -> dict[str, Any]:
        """What decides the order of the epochs to come: the state of the generator, where the sampler has its own."""
        return {} if self.generator is None else {"generator": self.generator.get_state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state of state_dict().

        Raises:
            ValueError: if the state is of a sampler with a generator and this one has none, or the other way round.
        """
        if ("generator" in state_dict) != (self.generator is not None):
            have, want = ("no ", "a ") if self.generator is None else ("a ", "no ")
            raise ValueError(f"{type(self).__name__} with {have}generator of its own got the state of a sampler with {want}"
                             f"generator; make it as the one that was saved")
        if self.generator is not None:
            self.generator.set_state(state_dict["generator"])

    def _random(self) -> Any:
        return (self.generator or default_generator()).numpy


class SequentialSampler(Sampler[int]):
    """0, 1, ..., the length of the data source minus 1."""

    def __init__(self, data_source: Any):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order.

    Args:
        data_source: the data set, of which the length counts.
        replacement: each index is drawn from all, so some come twice and some not at all.
        num_samples: how many indices an epoch has, by default as many as the data source. Without replacement, more than
            that gives one order of all of them after the other.
        generator: by default the run-time generator.

    Raises:
        TypeError: if replacement is not a bool.
        ValueError: if num_samples, or the length of the data source in its place, is not positive.
    """

    def __init__(self, data_source: Any, replacement: bool = False, num_samples: int | None = None,
                 generator: Generator | None = None):
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler expected replacement as a bool, got {replacement!r}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if num_samples is None and not len(data_source):
            raise ValueError("RandomSampler expected num_samples as a positive integer, got a data set without samples; "
                             "an empty one has no order to shuffle")
        check_count("RandomSampler", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices an epoch has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, random = len(self.data_source), self._random()
        if self.replacement:
            yield from random.integers(0, n, self.num_samples).tolist()
            return
        left = self.num_samples
        while left > 0 and n:
            yield from random.permutation(n)[:left].tolist()
            left -= n

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order, each once."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in self._random().permutation(len(self.indices)).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices 0, 1, ... drawn with given weights.

    Args:
        weights: one number per index; they need not sum to 1.
        num_samples: how many indices an epoch has.
        replacement: an index may be drawn again.
        generator: by default the run-time generator.

    Raises:
        ValueError: if num_samples is not a positive integer, replacement not a bool, or weights not one sequence.
        RuntimeError: while iterating, if without replacement there are fewer than num_samples weights.
    """

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True,
                 generator: Generator | None = None):
        check_count("WeightedRandomSampler", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"WeightedRandomSampler expected replacement as a bool, got {replacement!r}")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(f"WeightedRandomSampler expected one sequence of weights, got shape {self.weights.shape}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler.

    Args:
        sampler: any iterable of indices.
        drop_last: leave out a last batch that is not full.

    Raises:
        ValueError: if batch_size is not a positive integer or drop_last not a bool.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        check_count("BatchSampler", batch_size, "batch_size")
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler expected drop_last as a bool, got {drop_last!r}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        samples = len(self.sampler)  # type: ignore[arg-type]
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """The state of the sampler inside, where it has one."""
        return self.sampler.state_dict() if hasattr(self.sampler, "state_dict") else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state of state_dict()."""
        if hasattr(self.sampler, "load_state_dict"):
            self.sampler.load_state_dict(state_dict)
        elif state_dict:
            raise ValueError(f"BatchSampler over a {type(self.sampler).__name__} without load_state_dict got a state with "
                             f"{sorted(state_dict)}; make it as the one that was saved")


def check_count(name: str, count: Any, argument: str = "num_samples") -> None:
    """Refuse what is no positive integer."""
    if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
        raise ValueError(f"{name} expected {argument} as a positive integer, got {count!r}")
