"""Minibatch sources as CNTK has them: global minibatch sizes, sweeps, sharding by sample, exact resume."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from operator import index as as_int
from typing import Any, Protocol

import numpy as np

from ..tensor.creation import as_tensor
from ..tensor.random import Generator
from ..tensor.tensor import Tensor
from .collate import default_collate
from .ctf_streams import Sequences, StreamInformation
from .dataset import IterableDataset, TensorDataset, samples_of


class Deserializer(Protocol):
    """What MinibatchSource reads: CTFDeserializer, ArraySource, DatasetSource, or a class of your own.

    Attributes:
        lengths: (sequences,) how many samples each counts for; all 1 where the data is not sequential.
    """

    lengths: np.ndarray

    def stream_infos(self) -> tuple[StreamInformation, ...]:
        """The streams, in the order in which read gives them."""
        ...

    def read(self, sequences: np.ndarray) -> tuple[Tensor | Sequences, ...]:
        """The sequences of some numbers (int64, perhaps none), one tensor (N, ...) or Sequences a stream."""
        ...


class ArraySource:
    """In-memory arrays or tensors whose first axis counts samples; they are not copied.

    Args:
        arrays: by stream name, or a sequence of them, called stream0, stream1, ...

    Raises:
        ValueError: if there is none, or their lengths differ.
    """

    def __init__(self, arrays: Mapping[str, Any] | Sequence[Any]):
        named = dict(arrays if isinstance(arrays, Mapping) else _numbered(arrays))
        self._tensors: dict[str, Any] = {name: as_tensor(array).detach() for name, array in named.items()}
        if not named or not all(tensor.ndim for tensor in self._tensors.values()):
            raise ValueError(f"ArraySource expected at least one array, none of them 0-d, got {len(named)} of shapes "
                             f"{[tensor.shape for tensor in self._tensors.values()]}")
        sizes = {name: len(tensor) for name, tensor in self._tensors.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"ArraySource expected as many samples in each array, got {sizes}")
        self.lengths = np.ones(next(iter(sizes.values())), np.int64)

    def stream_infos(self) -> tuple[StreamInformation, ...]:
        """Name, shape and dtype of each stream."""
        return tuple(StreamInformation(name, tensor.shape[1:], tensor.dtype) for name, tensor in self._tensors.items())

    def read(self, sequences: np.ndarray) -> tuple[Tensor, ...]:
        """Some samples, one tensor (N, ...) a stream."""
        return tuple(tensor[as_tensor(sequences, device=tensor.device)] for tensor in self._tensors.values())


class DatasetSource:
    """A Dataset: anything with len() and [i]. Items are tuples (streams stream0, stream1, ...), mappings, or single values,
    made of tensors, arrays or numbers of equal shapes, collated as by DataLoader; item 0 is read once more, to know them.

    Raises:
        TypeError: if it has no length or no index.
    """

    def __init__(self, dataset: Any):
        if isinstance(dataset, (str, bytes, os.PathLike)):
            raise TypeError(f"MinibatchSource expected data, got the name {dataset!r}; a file in CNTK's text format is "
                            f"CTFDeserializer(file, StreamDefs(...)), others have readers such as read_csv")
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__") or isinstance(dataset, IterableDataset):
            raise TypeError(f"DatasetSource expected a data set with len() and [i], got {type(dataset).__name__}; an "
                            f"IterableDataset needs a DataLoader")
        self.dataset = dataset
        self.lengths = np.ones(len(dataset), np.int64)
        self._like = self._stack([dataset[0]]) if len(dataset) else {}

    def stream_infos(self) -> tuple[StreamInformation, ...]:
        """Name, shape and dtype of each stream."""
        return tuple(StreamInformation(name, tensor.shape[1:], tensor.dtype) for name, tensor in self._like.items())

    def read(self, sequences: np.ndarray) -> tuple[Tensor, ...]:
        """Some items, stacked: one tensor (N, ...) a stream."""
        if not len(sequences):
            return tuple(tensor[:0] for tensor in self._like.values())
        return tuple(self._stack(samples_of(self.dataset, sequences.tolist())).values())

    def _stack(self, items: list) -> dict[str, Any]:
        named = [_named(item) for item in items]
        return {name: default_collate([values[name] for values in named]) for name in named[0]}


class Minibatch(tuple):
    """The tensors (or Sequences) of a minibatch, in the order of the streams: `x, y = minibatch`; by name too:
    `minibatch.features` or `minibatch["features"]`.

    Attributes:
        names: of the streams.
        sample_count: samples in this shard; of sequences, their elements, in the longest stream.
        number_of_sequences: in this shard.
        end_of_sweep: whether the sweep ends with this minibatch, the same on all shards.
    """

    names: tuple[str, ...]
    sample_count: int
    number_of_sequences: int
    end_of_sweep: bool

    def __new__(cls, tensors: Iterable[Any] = (), names: tuple[str, ...] = (), sample_count: int = 0,
                number_of_sequences: int = 0, end_of_sweep: bool = False) -> Minibatch:
        self = super().__new__(cls, tensors)
        self.names, self.sample_count = names, sample_count
        self.number_of_sequences, self.end_of_sweep = number_of_sequences, end_of_sweep
        return self

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            raise KeyError(f"Minibatch expected one of the streams {', '.join(self.names)}, got {key!r}")
        return super().__getitem__(self.names.index(key))

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("names", ()):
            raise AttributeError(f"Minibatch has no attribute and no stream {name!r}")
        return self[name]


class MinibatchSource:
    """Minibatches of a data set, sweep by sweep.

    Every rank makes its own source of the same data and asks for the same minibatches with its own shard: each sample is
    then seen by exactly one shard a sweep. A minibatch ends with its sweep, so the last one may be smaller and a shard's part
    of it empty. A sweep's order depends on seed and sweep alone. len() is the number of samples of a sweep.

    Args:
        data: a deserializer such as CTFDeserializer; arrays as a tuple `(x, y)` or mapping; or a Dataset with len() and [i].
        randomize: whether each sweep shuffles all sequences; else they come in the order of the data.
        seed: of the shuffling; any integer.
        max_sweeps: after how many sweeps the data ends; None for never.
        max_samples: after how many samples of all shards the data ends; None for never. Sequences are not cut.

    Raises:
        ValueError: if the data is empty, or a limit is below 1.

    Source: CNTK's MinibatchSource; it lets minibatches cross sweeps, and gives shards whole chunks of a file.
    """

    def __init__(self, data: Any, randomize: bool = True, seed: int = 0, max_sweeps: int | None = None,
                 max_samples: int | None = None):
        self._data = _deserializer(data)
        if not len(self._data.lengths):
            raise ValueError("MinibatchSource expected at least one sample, got empty data")
        self._names = tuple(info.name for info in self._data.stream_infos())
        self._randomize, self._seed = bool(randomize), as_int(seed)
        self._max_sweeps = None if max_sweeps is None else _at_least_one("max_sweeps", max_sweeps)
        self._max_samples = None if max_samples is None else _at_least_one("max_samples", max_samples)
        self._samples_seen = self._sweep = self._position = 0
        self._start_sweep(0)

    def next_minibatch(self, samples: int, num_shards: int = 1, shard: int = 0, *, device: Any = None) -> Minibatch | None:
        """This shard's part of the next minibatch; None when the data has ended, on all shards at once.

        Args:
            samples: of the minibatch, over all shards. As many whole sequences as fit are taken, and at least one.
            num_shards: number of ranks that share the minibatch.
            shard: this rank; it gets the sequences shard, shard + num_shards, ... of the minibatch, perhaps none: tensors of
                shape (0, ...).
            device: where the tensors go; by default they stay where the data gives them.
        """
        samples, num_shards, shard = _at_least_one("samples", samples), _at_least_one("num_shards", num_shards), as_int(shard)
        if not 0 <= shard < num_shards:
            raise ValueError(f"next_minibatch expected a shard from 0 to {num_shards - 1}, got {shard}")
        if self._has_ended():
            return None
        if self._max_samples is not None:
            samples = min(samples, self._max_samples - self._samples_seen)
        before = self._samples_before
        begin = self._position
        end = max(int(np.searchsorted(before, before[begin] + samples, side="right")) - 1, begin + 1)
        sequences = self._order[begin + shard:end:num_shards]
        tensors = self._data.read(sequences)
        ends_sweep = end == len(self._order)
        self._samples_seen += int(before[end] - before[begin])
        self._position = end
        if ends_sweep:
            self._start_sweep(self._sweep + 1)
        return Minibatch(tensors if device is None else [tensor.to(device) for tensor in tensors], self._names,
                         int(self._data.lengths[sequences].sum()), len(sequences), ends_sweep)

    def stream_infos(self) -> tuple[StreamInformation, ...]:
        """Name, shape and dtype of each stream, in the order of a minibatch."""
        return self._data.stream_infos()

    def state_dict(self) -> dict[str, int]:
        """The position in the data, in plain integers, the same on all shards."""
        return {"sweep": self._sweep, "position": self._position, "samples_seen": self._samples_seen, **self._identity()}

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Go on from a state, with any number of shards.

        Raises:
            ValueError: if it is not a state of a source of as much data, with this seed and randomize.
        """
        expected = {"sweep", "position", "samples_seen", *self._identity()}
        if set(state_dict) != expected:
            raise ValueError(f"MinibatchSource expected a state with {', '.join(sorted(expected))}, got "
                             f"{', '.join(sorted(state_dict)) or 'an empty one'}")
        for key, own in self._identity().items():
            if state_dict[key] != own:
                raise ValueError(f"MinibatchSource has {key}={own}, but the state was saved with {key}={state_dict[key]}; make "
                                 f"the source as the saved one was made")
        sweep, position, samples_seen = (int(state_dict[key]) for key in ("sweep", "position", "samples_seen"))
        if sweep < 0 or samples_seen < 0 or not 0 <= position < len(self._order):
            raise ValueError(f"MinibatchSource expected a position in {len(self._order)} sequences, got {dict(state_dict)}")
        self._samples_seen = samples_seen
        self._start_sweep(sweep)
        self._position = position

    def __len__(self) -> int:
        return int(self._data.lengths.sum())

    def _identity(self) -> dict[str, int]:
        """What a state must agree on, or its position would mean other samples."""
        return {"seed": self._seed, "randomize": int(self._randomize), "sequences": len(self._data.lengths)}

    def _has_ended(self) -> bool:
        return (self._max_sweeps is not None and self._sweep >= self._max_sweeps
                or self._max_samples is not None and self._samples_seen >= self._max_samples)

    def _start_sweep(self, sweep: int) -> None:
        self._sweep, self._position = sweep, 0
        sequences = len(self._data.lengths)
        self._order: np.ndarray = _shuffled(sequences, self._seed, sweep) if self._randomize else np.arange(sequences)
        self._samples_before: np.ndarray = np.concatenate([[0], np.cumsum(self._data.lengths[self._order])])


def _shuffled(n: int, seed: int, sweep: int) -> np.ndarray:
    """The numbers 0 ... n-1 in an order of their own for each seed and sweep."""
    words = np.random.SeedSequence((seed % (1 << 64), sweep)).generate_state(2, np.uint64)
    return Generator().manual_seed(int(words[0]) | int(words[1]) << 64).permutation(n, np.int64, "cpu")


def _deserializer(data: Any) -> Deserializer:
    if hasattr(data, "read") and hasattr(data, "stream_infos"):
        return data
    if isinstance(data, (list, tuple)) and any(hasattr(part, "stream_infos") for part in data):
        if len(data) == 1:
            return _deserializer(data[0])
        raise ValueError(f"MinibatchSource expected one deserializer, got {len(data)}; put all streams into one file, or use a "
                         f"StackDataset")
    if isinstance(data, TensorDataset):
        return ArraySource(data.tensors)
    if isinstance(data, (Tensor, np.ndarray)):
        return ArraySource([data])
    are_arrays = isinstance(data, (list, tuple)) and data and all(isinstance(part, (Tensor, np.ndarray)) for part in data)
    return ArraySource(data) if are_arrays or isinstance(data, Mapping) else DatasetSource(data)


def _named(item: Any) -> dict[str, Any]:
    if isinstance(item, Mapping):
        return dict(item)
    return dict(_numbered(item if isinstance(item, (tuple, list)) else [item]))


def _numbered(values: Sequence[Any]) -> Iterable[tuple[str, Any]]:
    return ((f"stream{i}", value) for i, value in enumerate(values))


def _at_least_one(name: str, value: int) -> int:
    count = as_int(value)
    if count < 1:
        raise ValueError(f"MinibatchSource expected {name} of at least 1, got {count}")
    return count
