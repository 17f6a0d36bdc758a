"""Padding and packing of sequences of different lengths."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import minidl
from minidl.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)
from tests import fake_cuda


def sequences(*lengths, features=(2,), start=1):
    """Sequences whose elements are all different."""
    found = []
    for n in lengths:
        size = n * int(np.prod(features))
        found.append(minidl.arange(start, start + size, dtype=minidl.float32).reshape(n, *features))
        start += size
    return found


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("features", [(), (2,), (2, 3)])
def test_padded(side, batch_first, features):
    parts = sequences(2, 0, 3, features=features)
    want = np.full((3, 3, *features), -1, np.float32)
    for row, part in zip(want, parts):
        if len(part):
            row[slice(None, len(part)) if side == "right" else slice(-len(part), None)] = part.numpy()
    found = pad_sequence(parts, batch_first, -1, side)
    same(found, want if batch_first else want.swapaxes(0, 1))


def test_padding_keeps_the_dtype_and_sends_gradients_back():
    assert pad_sequence([minidl.tensor([1, 2]), minidl.tensor([3])]).dtype == minidl.int64
    parts = [minidl.ones(n, requires_grad=True) for n in (2, 1)]
    (pad_sequence(parts) * minidl.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    same(parts[0].grad, [1, 3])
    same(parts[1].grad, [2])


@pytest.mark.parametrize("call", [
    lambda: pad_sequence([]), lambda: pad_sequence(3), lambda: pad_sequence([minidl.tensor(1.0)]),
    lambda: pad_sequence([minidl.ones(2, 3), minidl.ones(2, 4)]), lambda: pad_sequence([minidl.ones(2)], padding_side="top"),
])
def test_what_cannot_be_padded(call):
    with pytest.raises(RuntimeError, match="expected"):
        call()


def test_packed_by_hand():
    a, b, c = (x.numpy() for x in sequences(1, 3, 2))
    packed = pack_sequence(sequences(1, 3, 2), enforce_sorted=False)
    same(packed.data, [b[0], c[0], a[0], b[1], c[1], b[2]])
    same(packed.batch_sizes, [3, 2, 1])
    same(packed.sorted_indices, [1, 2, 0])
    same(packed.unsorted_indices, [2, 0, 1])
    assert packed.batch_sizes.dtype == packed.sorted_indices.dtype == minidl.int64


def test_sorted_sequences_need_no_order():
    packed = pack_sequence(sequences(3, 2, 2))
    assert packed.sorted_indices is None and packed.unsorted_indices is None
    same(packed.batch_sizes, [3, 3, 1])


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [[4, 3, 1], [1, 4, 3], [2, 2, 2], [1]])
def test_packing_and_padding_undo_each_other(lengths, batch_first):
    parts = sequences(*lengths)
    padded = pad_sequence(parts, batch_first)
    packed = pack_padded_sequence(padded, minidl.tensor(lengths), batch_first, enforce_sorted=False)
    assert packed.data.shape == (sum(lengths), 2)
    again, found = pad_packed_sequence(packed, batch_first)
    same(again, padded)
    same(found, lengths)
    for a, b in zip(unpack_sequence(packed), parts):
        same(a, b)
    for a, b in zip(unpad_sequence(padded, found, batch_first), parts):
        same(a, b)


def test_total_length_and_padding_value():
    padded, lengths = pad_packed_sequence(pack_sequence(sequences(2, 1, features=())), padding_value=-5, total_length=4)
    same(padded, [[1, 3], [2, -5], [-5, -5], [-5, -5]])
    same(lengths, [2, 1])
    with pytest.raises(ValueError, match="at least the longest length, 2, got 1"):
        pad_packed_sequence(pack_sequence(sequences(2, 1)), total_length=1)


def test_steps_after_the_longest_sequence_are_left_out():
    packed = pack_padded_sequence(minidl.ones(5, 2, 1), [2, 1])
    assert packed.data.shape == (3, 1) and len(packed.batch_sizes) == 2


def test_gradients_pass_through_packing():
    x = minidl.ones(3, 2, requires_grad=True)
    packed = pack_padded_sequence(x, [1, 3], enforce_sorted=False)
    (pad_packed_sequence(packed)[0] * minidl.arange(6.0).reshape(3, 2)).sum().backward()
    same(x.grad, [[0, 1], [0, 3], [0, 5]])


def test_unpadding_copies():
    padded = minidl.ones(2, 2)
    unpad_sequence(padded, minidl.tensor([2, 1]))[0].zero_()
    assert (padded == 1).all()
    assert [len(x) for x in unpad_sequence(padded, [0, 2])] == [0, 2]
    with pytest.raises(ValueError, match="a length for each of the 2 sequences"):
        unpad_sequence(padded, [1])


@pytest.mark.parametrize("lengths, message", [
    ([2, 0], "lengths from 1 to 3, got 0 to 2"), ([4, 1], "lengths from 1 to 3, got 1 to 4"), ([1, 2], "enforce_sorted=False"),
    ([1], "one length for each of the 2 sequences"), ([], "one length"), ([[1], [1]], "one length"),
])
def test_lengths_that_do_not_fit(lengths, message):
    with pytest.raises(RuntimeError, match=message):
        pack_padded_sequence(minidl.ones(3, 2, 1), lengths)


def test_an_input_without_a_batch():
    with pytest.raises(RuntimeError, match="at least 2 axes"):
        pack_padded_sequence(minidl.ones(3), [3])


def test_a_packed_sequence_is_a_tuple_of_four():
    packed = pack_sequence(sequences(1, 2), enforce_sorted=False)
    data, sizes, order, back = packed
    assert data is packed.data and back is packed.unsorted_indices
    same(PackedSequence(data, sizes, order).unsorted_indices, back)
    assert PackedSequence((data, sizes)).batch_sizes is sizes
    with pytest.raises(TypeError, match="one pair"):
        PackedSequence(data)


@pytest.mark.parametrize("method, dtype", [
    ("half", minidl.float16), ("double", minidl.float64), ("bfloat16", minidl.bfloat16), ("long", minidl.int64),
    ("int", minidl.int32), ("short", minidl.int16), ("char", minidl.int8), ("byte", minidl.uint8), ("float", minidl.float32),
])
def test_casts_leave_sizes_and_order(method, dtype):
    packed = pack_sequence(sequences(1, 2), enforce_sorted=False)
    cast = getattr(packed, method)()
    assert isinstance(cast, PackedSequence) and cast.data.dtype == dtype and cast.sorted_indices.dtype == minidl.int64
    assert cast.batch_sizes is packed.batch_sizes
    assert (cast is packed) == (dtype == minidl.float32)


def test_devices():
    packed = pack_sequence(sequences(2, 1))
    assert packed.to("cpu") is packed and packed.cpu() is packed and not packed.is_cuda
    assert packed.to(minidl.float64).data.dtype == minidl.float64


def test_on_a_gpu_sizes_and_lengths_stay_on_the_cpu():
    with fake_cuda.installed():
        packed = pack_sequence([x.to("cuda") for x in sequences(1, 2)], enforce_sorted=False)
        assert packed.is_cuda and packed.sorted_indices.is_cuda and packed.batch_sizes.is_cpu
        padded, lengths = pad_packed_sequence(packed, total_length=4)
        assert padded.is_cuda and lengths.is_cpu and all(x.is_cuda for x in unpack_sequence(packed))
        assert packed.cpu().sorted_indices.is_cpu and packed.cpu().cuda().unsorted_indices.is_cuda


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(duplicate):
    packed = pack_sequence(sequences(1, 2), enforce_sorted=False)
    other = duplicate(packed)
    assert type(other) is PackedSequence and other.data is not packed.data
    for a, b in zip(other, packed):
        same(a, b)


def test_inverse_permutation():
    same(invert_permutation(minidl.tensor([2, 0, 1])), [1, 2, 0])
    assert invert_permutation(None) is None
