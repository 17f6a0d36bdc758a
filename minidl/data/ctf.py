"""Data in CNTK text format (CTF): how its streams are declared, and the deserializer that reads a file of it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass

import numpy as np

from ..tensor.tensor import Tensor
from .ctf_block import Block, dense_values, read_blocks, sparse_values
from .ctf_streams import DenseSamples, Sequences, SparseSamples, Stream, StreamInformation
from .dataset import Dataset


@dataclass(frozen=True)
class StreamDef:
    """The declaration of a stream of a CTF file. The keyword-only options are minidl's own.

    Args:
        field: the name in the file, without the pipe; by default the stream's own name.
        shape: of a sample: a number of values, or axes that they fill in row-major order.
        is_sparse: whether samples are written `index:value ...` rather than as all their values.
        is_sequence: True gives Sequences, False one sample a sequence (more are an error), None what the file has: Sequences
            if some sequence has more than one sample of the stream.
        as_indices: read one-hot samples, sparse or dense, as their int64 class indices, as nn.Embedding and cross_entropy
            want them; a sample's shape is then ().
        padding_value: fills up shorter sequences of a minibatch; -100 is what cross_entropy ignores.
    """

    field: str | None = None
    shape: int | tuple[int, ...] = ()
    is_sparse: bool = False
    _: KW_ONLY
    is_sequence: bool | None = None
    as_indices: bool = False
    padding_value: float = 0.0

    def __post_init__(self) -> None:
        axes = self.shape if isinstance(self.shape, (tuple, list)) else (self.shape,)
        if not axes or not all(hasattr(n, "__index__") and not isinstance(n, bool) and n > 0 for n in axes):
            raise ValueError(f"StreamDef expected as shape a positive integer or a tuple of them, got {self.shape!r}")
        if self.as_indices and self.padding_value != int(self.padding_value):
            raise ValueError(f"StreamDef expected an integer as padding_value of class indices, got {self.padding_value!r}")
        object.__setattr__(self, "shape", tuple(n.__index__() for n in axes))

    @property
    def size(self) -> int:
        """Number of values of a sample."""
        return math.prod(self.shape)  # type: ignore[arg-type]


class StreamDefs(Mapping):
    """Streams by name: `StreamDefs(features=StreamDef(field="x", shape=2), labels=StreamDef(field="y", shape=5))`.

    A mapping from names to StreamDef; `streams.features` is `streams["features"]`.
    """

    def __init__(self, **streams: StreamDef):
        if not streams:
            raise ValueError("StreamDefs expected at least one stream, got none")
        for name, definition in streams.items():
            if not isinstance(definition, StreamDef):
                raise TypeError(f"StreamDefs expected a StreamDef for {name}, got {type(definition).__name__}")
            field = name if definition.field is None else definition.field
            if not field or field.startswith("#") or set(field) & set(" \t\r\n|"):
                raise ValueError(f"StreamDefs expected for {name} a field without blanks, pipes and a leading #, got {field!r}")
        self._streams = streams

    def __getitem__(self, name: str) -> StreamDef:
        return self._streams[name]

    def __getattr__(self, name: str) -> StreamDef:
        try:
            return self.__dict__["_streams"][name]
        except KeyError:
            raise AttributeError(f"StreamDefs has no stream {name!r}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams)

    def __len__(self) -> int:
        return len(self._streams)


class CTFDeserializer(Dataset[tuple[np.ndarray, ...]]):
    """The sequences of a file in CNTK text format, for MinibatchSource, or as a Dataset: len() is their number, and [i] a
    tuple of NumPy arrays, one a stream, of shape (T, ...) where the stream is one of sequences, else (...).

    A line is `[sequence id](|name value value ... or |name index:value ...)+`, and `|#` begins a comment up to the next pipe
    that no # follows. Lines of one id in a row are a sequence, and so are lines without an id that follow; if the first line
    has none, each line is a sequence and ids are skipped. Every sequence needs a sample of every declared stream; other
    streams are skipped, and so are lines that are blank or hold only comments. Values are float32, in flat arrays.
    `DataLoader(data, batch_size=8, collate_fn=data.collate)` gives what a minibatch has.

    Args:
        filename: the file, UTF-8, lines ended by LF or CRLF.
        streams: StreamDefs, or another mapping from names to StreamDef.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not in this format; the message names file, line, column (from 1) and stream.

    Source: CNTK's CNTKTextFormatReader, which warns and fills up with zeros where this one raises.
    """

    def __init__(self, filename: str | os.PathLike, streams: Mapping[str, StreamDef]):
        self.filename = os.fspath(filename)
        self.streams = streams if isinstance(streams, StreamDefs) else StreamDefs(**streams)
        numbering = _Numbering()
        parts: dict[str, list[_Part]] = {name: [] for name in self.streams}
        for block in read_blocks(self.filename):
            sequence_of_line = numbering.number(block)
            for name, definition in self.streams.items():
                parts[name].append(_read_part(block, sequence_of_line, name, definition))
        first_lines = numbering.first_lines()
        if not len(first_lines):
            raise ValueError(f"{self.filename}, line 1, column 1: expected lines such as |name 1 2, got a file without any")
        self._streams = [self._assemble(name, definition, parts.pop(name), first_lines)
                         for name, definition in self.streams.items()]
        self.lengths = np.maximum.reduce([stream.lengths for stream in self._streams])

    def stream_infos(self) -> tuple[StreamInformation, ...]:
        """Name, shape and dtype of each stream, in the order of their declaration."""
        return tuple(stream.info for stream in self._streams)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> tuple[np.ndarray, ...]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"CTFDeserializer expected an index of {len(self)} sequences, got {index}")
        return tuple(stream.item(index % len(self)) for stream in self._streams)

    def read(self, sequences: np.ndarray) -> tuple[Tensor | Sequences, ...]:
        """Some sequences, one tensor or Sequences a stream."""
        return tuple(stream.read(sequences) for stream in self._streams)

    def collate(self, items: list[tuple]) -> tuple[Tensor | Sequences, ...]:
        """Items of this data set, one tensor or Sequences a stream: DataLoader's collate_fn."""
        return tuple(stream.collate(list(column)) for stream, column in zip(self._streams, zip(*items)))

    def _assemble(self, name: str, definition: StreamDef, parts: list[_Part], first_lines: np.ndarray) -> Stream:
        lengths = np.bincount(_join([part.sequences for part in parts]), minlength=len(first_lines))
        for sequence in np.flatnonzero(lengths == 0)[:1]:
            raise ValueError(f"{self.filename}, line {first_lines[sequence]}, column 1: expected at least one sample in the "
                             f"sequence that begins here, got none (stream {_called(name, definition)})")
        several = np.flatnonzero(lengths > 1)
        if definition.is_sequence is False and several.size:
            raise ValueError(f"{self.filename}, line {first_lines[several[0]]}, column 1: expected one sample in the sequence "
                             f"that begins here, as is_sequence=False says, got {lengths[several[0]]} (stream "
                             f"{_called(name, definition)})")
        values = _join([part.values for part in parts])
        samples: DenseSamples | SparseSamples
        if definition.as_indices:
            samples = DenseSamples(values)
        elif definition.is_sparse:
            counts, indices = (_join([getattr(part, key) for part in parts]) for key in ("counts", "indices"))
            samples = SparseSamples(counts, indices, values, definition.shape)  # type: ignore[arg-type]
        else:
            samples = DenseSamples(values.reshape(-1, *definition.shape))  # type: ignore[misc]
        is_sequence = bool(several.size) if definition.is_sequence is None else definition.is_sequence
        info = StreamInformation(name, samples.shape, samples.dtype, definition.is_sparse, is_sequence)
        return Stream(samples, lengths, info, definition.padding_value)


class _Numbering:
    """Gives each line the number of the sequence that it belongs to."""

    def __init__(self) -> None:
        self._uses_ids: bool | None = None
        self._last_id = -1
        self._count = 0
        self._first_lines: list[np.ndarray] = []

    def number(self, block: Block) -> np.ndarray:
        """(lines,) the sequence of each."""
        starts = block.is_active.copy()
        if self._uses_ids is None and starts.any():
            self._uses_ids = bool(block.has_id[starts.argmax()])
        if self._uses_ids:
            starts[:] = False
            starts[block.has_id] = block.ids != np.concatenate([[self._last_id], block.ids[:-1]])[:len(block.ids)]
            self._last_id = block.ids[-1] if len(block.ids) else self._last_id
        numbers = self._count - 1 + np.cumsum(starts)
        self._count += int(starts.sum())
        self._first_lines.append(block.first_line + np.flatnonzero(starts))
        return numbers

    def first_lines(self) -> np.ndarray:
        """(sequences,) the line of the file at which each begins."""
        return _join(self._first_lines)


@dataclass(frozen=True)
class _Part:
    """A block's samples of a stream: the sequence of each, all values, and of sparse ones the indices of the values and how
    many each sample has."""

    sequences: np.ndarray
    values: np.ndarray
    counts: np.ndarray | None = None
    indices: np.ndarray | None = None


def _read_part(block: Block, sequence_of_line: np.ndarray, name: str, definition: StreamDef) -> _Part:
    try:
        lines, begins, ends, counts = block.find(name if definition.field is None else definition.field)
        sequences = sequence_of_line[lines]
        if not definition.is_sparse:
            for sample in np.flatnonzero(counts != definition.size)[:1]:
                raise block.error(begins[sample], f"expected {definition.size} values of a sample, got {counts[sample]}")
            values = dense_values(block, begins, ends, counts.sum())
            if not definition.as_indices:
                return _Part(sequences, values)
            sample_of, indices = np.divmod(np.flatnonzero(values), definition.size)
            return _Part(sequences, _classes(block, begins, sample_of, indices, values[values != 0]))
        indices, values = sparse_values(block, begins, ends, counts.sum(), definition.size)
        sample_of = np.repeat(np.arange(len(begins)), counts)
        _check_distinct(block, begins, sample_of, indices)
        if definition.as_indices:
            return _Part(sequences, _classes(block, begins, sample_of, indices, values))
        return _Part(sequences, values, counts, indices)
    except ValueError as error:
        raise ValueError(f"{error} (stream {_called(name, definition)})") from None


def _classes(block: Block, begins: np.ndarray, sample_of: np.ndarray, indices: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The indices of samples of which each has one entry, a 1."""
    wrong = np.bincount(sample_of, minlength=len(begins)) != 1
    wrong[sample_of[values != 1]] = True
    for sample in np.flatnonzero(wrong)[:1]:
        found = ", ".join(f"{i}:{v:g}" for i, v in zip(indices[sample_of == sample], values[sample_of == sample]))
        raise block.error(begins[sample], f"expected a single 1, as as_indices=True needs, got {found or 'nothing'}")
    return indices


def _check_distinct(block: Block, begins: np.ndarray, sample_of: np.ndarray, indices: np.ndarray) -> None:
    if not ((np.diff(indices) <= 0) & (np.diff(sample_of) == 0)).any():
        return
    order = np.lexsort((indices, sample_of))
    same = (np.diff(indices[order]) == 0) & (np.diff(sample_of[order]) == 0)
    for entry in order[1:][same][:1]:
        raise block.error(begins[sample_of[entry]], f"expected each index once in a sample, got {indices[entry]} twice")


def _called(name: str, definition: StreamDef) -> str:
    return f"{name!r}" if definition.field in (None, name) else f"{name!r}, field |{definition.field}"


def _join(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
