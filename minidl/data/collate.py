"""From samples to a batch: collating, converting, and copying into page-locked memory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ..tensor.creation import as_tensor, tensor
from ..tensor.dtypes import float64
from ..tensor.ops.joining import stack
from ..tensor.tensor import Tensor, make_tensor


def default_collate(batch: Sequence[Any]) -> Any:
    """Samples as one batch: tensors, arrays and numbers are stacked along a new first axis.

    Python floats become float64, integers int64. Mappings, named tuples, tuples and lists are collated by entry, tuples to a
    list; strings and bytes stay as they are.

    Args:
        batch: a sequence of samples of one structure.

    Raises:
        IndexError: if it is empty.
        RuntimeError: if shapes or lengths differ.
        TypeError: for what is neither of these; write a collate_fn then.
    """
    if not len(batch):
        raise IndexError("default_collate expected at least one sample, got none")
    first = batch[0]
    if isinstance(first, (Tensor, np.ndarray, np.generic)):
        return _stack(batch)
    if isinstance(first, (int, float)):
        for sample in batch:
            if not isinstance(sample, (int, float, np.number)):
                raise _unknown(type(sample))
        return tensor(list(batch), dtype=float64 if isinstance(first, float) else None)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _rebuild_mapping(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        lengths = [len(sample) for sample in batch]
        if len(set(lengths)) > 1:
            raise RuntimeError(f"default_collate: each element in list of batch should be of equal size, got sequences of "
                               f"lengths {lengths}; give the DataLoader a collate_fn that pads them")
        return _rebuild_sequence(first, [default_collate(column) for column in zip(*batch)])
    raise _unknown(type(first))


def default_convert(data: Any) -> Any:
    """A sample with its arrays as tensors that share their memory; everything else stays, tuples become lists."""
    if isinstance(data, (np.ndarray, np.generic)) and not _is_text(data):
        return as_tensor(data)
    return _map(default_convert, data)


def pin(data: Any) -> Any:
    """A batch with its CPU tensors copied into page-locked memory, from which copies to a GPU are faster (needs CuPy)."""
    if isinstance(data, Tensor) and data.device.type == "cpu":
        import cupyx
        pinned = cupyx.empty_pinned(data.shape, data.dtype)
        pinned[...] = data.array
        return make_tensor(pinned, None)
    if hasattr(data, "pin_memory") and not isinstance(data, Tensor):
        return data.pin_memory()
    return _map(pin, data, tuples=True)


def _shape(sample: Any) -> tuple:
    return sample.shape if isinstance(sample, Tensor) else np.shape(sample)  # which is slow for a Tensor


def _stack(batch: Sequence[Any]) -> Tensor:
    for sample in batch:
        if not isinstance(sample, Tensor) and _is_text(sample):
            raise _unknown(sample.dtype if isinstance(sample, (np.ndarray, np.generic)) else type(sample))
    if len({_shape(sample) for sample in batch}) > 1:
        shapes = [tuple(_shape(sample)) for sample in batch]
        listed = ", ".join(map(str, shapes[:16])) + (", ..." if len(shapes) > 16 else "")
        raise RuntimeError(f"default_collate: stack expects samples of one shape, got shapes {listed}; give the DataLoader a "
                           f"collate_fn that pads or crops them")
    if any(isinstance(sample, Tensor) for sample in batch):
        return stack([as_tensor(sample) for sample in batch])
    return as_tensor(np.stack(batch))


def _is_text(sample: Any) -> bool:
    """True for arrays of strings and objects, which are no tensors; also for what is no array at all."""
    return getattr(sample, "dtype", np.dtype(object)).kind in "SUO" and not isinstance(sample, (int, float))


def _unknown(kind: Any) -> TypeError:
    return TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}; give "
                     f"the DataLoader a collate_fn that knows it")


def _map(function: Callable[[Any], Any], data: Any, *, tuples: bool = False) -> Any:
    """A container of the same kind with the function applied to its entries; anything else as it is."""
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {key: function(value) for key, value in data.items()})
    if isinstance(data, (str, bytes)) or not isinstance(data, Sequence):
        return data
    made = [function(value) for value in data]
    return tuple(made) if tuples and type(data) is tuple else _rebuild_sequence(data, made)


def _rebuild_mapping(like: Mapping, entries: dict) -> Any:
    try:
        if isinstance(like, MutableMapping):
            made = copy.copy(like)
            made.update(entries)
            return made
        return type(like)(entries)  # type: ignore[call-arg]
    except TypeError:  # a mapping that cannot be filled or made from a dict
        return entries


def _rebuild_sequence(like: Sequence, entries: list) -> Any:
    if isinstance(like, tuple):
        return type(like)(*entries) if hasattr(like, "_fields") else entries
    try:
        if isinstance(like, MutableSequence):
            made = copy.copy(like)
            made[:] = entries
            return made
        return type(like)(entries)  # type: ignore[call-arg]
    except TypeError:  # a sequence that cannot be made from a list, as range
        return entries
