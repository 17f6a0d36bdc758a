"""Sequences of different lengths: padded to one tensor, or packed, step by step, without padding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...tensor import dtypes
from ...tensor.creation import arange, as_tensor, empty_like, full
from ...tensor.ops.flipping import flip
from ...tensor.ops.gathering import index_copy, index_select
from ...tensor.ops.joining import cat
from ...tensor.ops.ordering import sort
from ...tensor.ops.reduction import sum as sum_of
from ...tensor.ops.selection import nonzero
from ...tensor.ops.shape import reshape, squeeze, transpose, unsqueeze
from ...tensor.ops.splitting import narrow, split
from ...tensor.tensor import Tensor

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
           "pad_sequence", "unpack_sequence", "unpad_sequence"]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """The elements of a batch of sequences, all first ones, then all second ones, and so on, the longest sequence first.

    pack_padded_sequence and pack_sequence make them; the recurrent layers take and return them.

    Args:
        data: the elements (sum of lengths, *).
        batch_sizes: how many sequences have a first, a second, ... element; int64, on the CPU.
        sorted_indices: where the sequences lay in the batch before they were sorted; None where they came in order.
        unsorted_indices: the inverse permutation; computed if not given.
    """

    def __new__(cls, data: Any, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
                unsorted_indices: Tensor | None = None) -> PackedSequence:
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise TypeError(f"PackedSequence expected data and batch_sizes, or one pair of them, got "
                                f"{type(data).__name__} alone")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(f"PackedSequence expected batch_sizes on the CPU, got them on {batch_sizes.device}; make packed "
                             f"sequences with pack_padded_sequence or pack_sequence")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequence in another dtype or on another device (arguments as in Tensor.to); itself where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        places = [None if index is None else index.to(data.device) for index in self[2:]]
        return PackedSequence(data, self.batch_sizes, *places)

    def cuda(self, device: Any = "cuda", **kwargs: Any) -> PackedSequence:
        """The sequence on a CUDA device, by default the current one."""
        return self.to(device=device, **kwargs)

    def cpu(self) -> PackedSequence:
        """The sequence on the CPU."""
        return self.to(device="cpu")

    def double(self) -> PackedSequence:
        """The sequence in float64."""
        return self.to(dtype=dtypes.float64)

    def float(self) -> PackedSequence:
        """The sequence in float32."""
        return self.to(dtype=dtypes.float32)

    def half(self) -> PackedSequence:
        """The sequence in float16."""
        return self.to(dtype=dtypes.float16)

    def bfloat16(self) -> PackedSequence:
        """The sequence in bfloat16."""
        return self.to(dtype=dtypes.bfloat16)

    def long(self) -> PackedSequence:
        """The sequence in int64."""
        return self.to(dtype=dtypes.int64)

    def int(self) -> PackedSequence:
        """The sequence in int32."""
        return self.to(dtype=dtypes.int32)

    def short(self) -> PackedSequence:
        """The sequence in int16."""
        return self.to(dtype=dtypes.int16)

    def char(self) -> PackedSequence:
        """The sequence in int8."""
        return self.to(dtype=dtypes.int8)

    def byte(self) -> PackedSequence:
        """The sequence in uint8."""
        return self.to(dtype=dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """True where the data lies on a GPU."""
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation (N,) that undoes another; None of None."""
    if permutation is None:
        return None
    places = arange(permutation.shape[0], dtype=permutation.dtype, device=permutation.device)
    return index_copy(empty_like(permutation), 0, permutation, places)


# Packed

def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
                         ) -> PackedSequence:
    """Pack a batch of padded sequences.

    Args:
        lengths: of each sequence, a tensor on the CPU or a list; at least 1.
        enforce_sorted: the lengths must not grow. Without it the sequences are sorted, and the result remembers their order.

    Shapes: input (T, N, *), or (N, T, *) with batch_first.

    Raises:
        RuntimeError: for lengths that are too few or too many, in no order, less than 1 or more than T.
    """
    lengths = as_tensor(lengths, dtype=dtypes.int64, device=None if isinstance(lengths, Tensor) else "cpu")
    if input.ndim < 2:
        raise RuntimeError(f"pack_padded_sequence expected an input of at least 2 axes, got shape {input.shape}")
    input = transpose(input, 0, 1) if batch_first else input
    order = None
    if not enforce_sorted:
        lengths, order = sort(lengths, descending=True, stable=True)
        order = order.to(input.device)
    _check_lengths(input, lengths)
    if order is not None:
        input = index_select(input, 1, order)
    longest = int(lengths.max())
    seen = unsqueeze(arange(longest, device="cpu"), 1) < lengths
    return PackedSequence(_taken(narrow(input, 0, 0, longest), seen), sum_of(seen, 1), order, None)


def _check_lengths(input: Tensor, lengths: Tensor) -> None:
    name = "pack_padded_sequence"
    steps, count = input.shape[:2]
    if lengths.device.type != "cpu":
        raise RuntimeError(f"{name} expected lengths on the CPU, got them on {lengths.device}; use lengths.cpu()")
    if lengths.shape != (count,) or not count:
        raise RuntimeError(f"{name} expected one length for each of the {count} sequences, got shape {lengths.shape}")
    values = lengths.tolist()
    if min(values) < 1 or max(values) > steps:
        raise RuntimeError(f"{name} expected lengths from 1 to {steps}, got {min(values)} to {max(values)}; empty sequences "
                           f"cannot be packed, leave them out")
    if any(after > before for before, after in zip(values, values[1:])):
        raise RuntimeError(f"{name} expected lengths that do not grow, got {values}; sort the batch, longest first, or pass "
                           f"enforce_sorted=False")


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """The padded batch (T, N, *), or (N, T, *) with batch_first, of a packed one, and the lengths (N,) on the CPU; sequences
    in the order that they had before packing.

    Args:
        total_length: T; default the longest length.

    Raises:
        ValueError: for a total_length that is less than the longest length.
    """
    data, sizes, _, order = sequence
    steps = sizes.shape[0] if total_length is None else total_length
    if steps < sizes.shape[0]:
        raise ValueError(f"pad_packed_sequence expected total_length of at least the longest length, {sizes.shape[0]}, got "
                         f"{total_length}")
    seen = arange(int(sizes.max()), device="cpu") < unsqueeze(sizes, 1)
    lengths = sum_of(seen, 0)
    padded = _put(data, cat([seen, full((steps - sizes.shape[0], seen.shape[1]), False, device="cpu")]), padding_value)
    if order is not None:
        padded, lengths = index_select(padded, 1, order), index_select(lengths, 0, order.cpu())
    return (transpose(padded, 0, 1) if batch_first else padded), lengths


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L, *) of different lengths; arguments as in pack_padded_sequence."""
    sequences = list(sequences)
    return pack_padded_sequence(pad_sequence(sequences), [len(x) for x in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences (L, *) of a packed batch, in the order that they had before packing."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


# Padded

def pad_sequence(sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """One tensor (T, N, *), or (N, T, *) with batch_first, of N sequences (L, *) of lengths up to T.

    Args:
        padding_side: "right" or "left" of each sequence.

    Raises:
        RuntimeError: if there are no sequences, the lengths of their other axes differ, or for another padding_side.
    """
    if padding_side not in ("right", "left"):
        raise RuntimeError(f"pad_sequence expected the padding_side left or right, got {padding_side!r}")
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence expected a sequence of tensors, got {type(sequences).__name__}")
    sequences = list(sequences)
    if not sequences or not all(isinstance(x, Tensor) and x.ndim for x in sequences):
        raise RuntimeError(f"pad_sequence expected at least one tensor, all with a first axis, got "
                           f"{[getattr(x, 'shape', type(x).__name__) for x in sequences]}")
    lengths = as_tensor([x.shape[0] for x in sequences], device="cpu")
    seen = arange(int(lengths.max()), device="cpu") < unsqueeze(lengths, 1)
    padded = _put(cat(sequences), flip(seen, (1,)) if padding_side == "left" else seen, padding_value)
    return padded if batch_first else transpose(padded, 0, 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences (L, *) of a batch (T, N, *), or (N, T, *) with batch_first, that is padded on the right.

    Raises:
        ValueError: if there are not as many lengths as sequences.
    """
    padded = padded_sequences if batch_first else transpose(padded_sequences, 0, 1)
    lengths = as_tensor(lengths).cpu()
    if lengths.shape != padded.shape[:1]:
        raise ValueError(f"unpad_sequence expected a length for each of the {padded.shape[0]} sequences, got shape "
                         f"{lengths.shape}")
    seen = arange(padded.shape[1], device="cpu") < unsqueeze(lengths, 1)
    return list(split(_taken(padded, seen), sum_of(seen, 1).tolist()))


# Between the elements at some places (A, B) of a tensor (A, B, *), in order, and that tensor

def _places(seen: Tensor, device: Any) -> Tensor:
    return squeeze(nonzero(reshape(seen, (-1,))), 1).to(device)


def _taken(input: Tensor, seen: Tensor) -> Tensor:
    return index_select(reshape(input, (seen.numel(), *input.shape[2:])), 0, _places(seen, input.device))


def _put(data: Tensor, seen: Tensor, padding: float) -> Tensor:
    blank = full((seen.numel(), *data.shape[1:]), padding, dtype=data.dtype, device=data.device)
    return reshape(index_copy(blank, 0, _places(seen, data.device), data), (*seen.shape, *data.shape[1:]))
