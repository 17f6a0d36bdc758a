"""Streams of samples in flat arrays, and the padded minibatches made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tensor.creation import arange, as_tensor, from_numpy
from ..tensor.tensor import Tensor


@dataclass(frozen=True)
class StreamInformation:
    """What a stream gives: one sample's shape and dtype, and how its source holds it.

    Attributes:
        name: by which minibatches know it.
        shape: of one sample.
        dtype: of the tensors in a minibatch.
        is_sparse: whether the source gives indices and values; minibatches are dense.
        is_sequence: whether minibatches hold Sequences rather than tensors.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any
    is_sparse: bool = False
    is_sequence: bool = False


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of different lengths, padded at their ends. len() is the number of sequences.

    `nn.utils.rnn.pack_padded_sequence(s.data, s.lengths, batch_first=True, enforce_sorted=False)` packs them.

    Attributes:
        data: (N, T, ...), T the largest length.
        lengths: (N,) int64, on the CPU.
    """

    data: Tensor
    lengths: Tensor

    @classmethod
    def pad(cls, arrays: Sequence[Any], padding_value: float = 0.0) -> Sequences:
        """Sequences of arrays of shapes (T_i, ...)."""
        if not len(arrays):
            raise ValueError("Sequences.pad expected at least one array, got none")
        parts = [np.asarray(array) for array in arrays]
        return cls.from_flat(np.concatenate(parts), np.array([len(part) for part in parts]), padding_value)

    @classmethod
    def from_flat(cls, values: np.ndarray, lengths: np.ndarray, padding_value: float = 0.0) -> Sequences:
        """Sequences of the samples of all of them, joined: values (sum of lengths, ...), lengths (N,)."""
        longest = int(lengths.max(initial=0))
        data = np.full((len(lengths), longest, *values.shape[1:]), padding_value, values.dtype)
        data[np.arange(longest) < lengths[:, None]] = values
        return cls(from_numpy(data), from_numpy(lengths.astype(np.int64, copy=False)))

    @property
    def mask(self) -> Tensor:
        """(N, T) bool: True where data holds a sample, False where padding."""
        steps = arange(self.data.shape[1], device=self.data.device)
        return steps < as_tensor(self.lengths, device=self.data.device).unsqueeze(1)

    def to(self, device: Any) -> Sequences:
        """The same with data on another device."""
        return Sequences(self.data.to(device), self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)


class DenseSamples:
    """Samples as rows of one array (samples, ...)."""

    def __init__(self, values: np.ndarray):
        self._values = values
        self.shape, self.dtype = values.shape[1:], values.dtype

    def take(self, positions: Any) -> np.ndarray:
        """Some of them, (len(positions), ...)."""
        return self._values[positions]


class SparseSamples:
    """Samples as the indices and values of their entries in compressed rows.

    Args:
        counts: (samples,) entries of each.
        indices: (entries,) flat index in the sample.
        values: (entries,).
        shape: of a sample.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, counts: np.ndarray, indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...]):
        self._offsets, self._indices, self._values = offsets_of(counts), indices, values
        self.shape = shape

    def take(self, positions: Any) -> np.ndarray:
        """Some of them as dense arrays, (len(positions), ...)."""
        entries, counts = ranges(self._offsets, positions)
        dense = np.zeros((len(positions), int(np.prod(self.shape))), self.dtype)
        dense[np.repeat(np.arange(len(positions)), counts), self._indices[entries]] = self._values[entries]
        return dense.reshape(len(positions), *self.shape)


@dataclass
class Stream:
    """The samples of all sequences of a stream.

    Attributes:
        samples: of all sequences, joined.
        lengths: (sequences,) samples of each.
        info: its name, a sample's shape and dtype; whether it is read as Sequences or as one sample a sequence.
        padding_value: fills up shorter sequences.
    """

    samples: DenseSamples | SparseSamples
    lengths: np.ndarray
    info: StreamInformation
    padding_value: float

    def __post_init__(self) -> None:
        self._offsets = offsets_of(self.lengths)

    def item(self, sequence: int) -> np.ndarray:
        """One sequence: (T, ...), or a single sample (...)."""
        begin, end = self._offsets[sequence:sequence + 2]
        values = self.samples.take(np.arange(begin, end))
        return values if self.info.is_sequence else values[0]

    def read(self, sequences: np.ndarray) -> Tensor | Sequences:
        """Some sequences: Sequences of (N, T, ...), or a tensor (N, ...) of a sample each."""
        positions, lengths = ranges(self._offsets, sequences)
        values = self.samples.take(positions)
        return Sequences.from_flat(values, lengths, self.padding_value) if self.info.is_sequence else from_numpy(values)

    def collate(self, items: list) -> Tensor | Sequences:
        """What read gives, of items that item gave."""
        return Sequences.pad(items, self.padding_value) if self.info.is_sequence else from_numpy(np.stack(items))


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """Where each of some joined runs begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def ranges(offsets: np.ndarray, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positions of some runs' members, joined, and the length of each run."""
    begins, lengths = offsets[:-1][runs], np.diff(offsets)[runs]
    before = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(begins - before, lengths), lengths
