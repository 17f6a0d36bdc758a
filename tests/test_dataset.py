"""Data sets: joining, cutting, splitting."""

from __future__ import annotations

import numpy as np
import pytest

import minidl
from minidl.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Numbers(Dataset):
    def __init__(self, *values):
        self.values = list(values)

    def __getitem__(self, index):
        return self.values[index]

    def __len__(self):
        return len(self.values)


class Batched(Numbers):
    def __getitems__(self, indices):
        return [-self.values[index] for index in indices]


class Short(Numbers):
    def __getitems__(self, indices):
        return [0]


class Stream(IterableDataset):
    def __init__(self, *values):
        self.values = values

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)


def test_a_data_set_needs_getitem():
    with pytest.raises(NotImplementedError, match="__getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterableDataset())


def test_tensor_dataset_gives_tuples_of_entries():
    data = TensorDataset(minidl.arange(6).reshape(3, 2), minidl.tensor([5, 6, 7]))
    x, y = data[-1]
    assert len(data) == 3 and x.tolist() == [4, 5] and y.item() == 7


@pytest.mark.parametrize("tensors", [(minidl.zeros(3), minidl.zeros(4, 3)), (), (minidl.tensor(1.0),)])
def test_tensor_dataset_refuses(tensors):
    with pytest.raises(ValueError, match="TensorDataset expected tensors .* got shapes"):
        TensorDataset(*tensors)


@pytest.mark.parametrize("index, value", [(0, 1), (2, 3), (3, 4), (4, 5), (-1, 5), (-5, 1)])
def test_concat_finds_the_sample(index, value):
    data = Numbers(1, 2, 3) + Numbers() + Numbers(4, 5)
    assert isinstance(data, ConcatDataset) and len(data) == 5 and data[index] == value


@pytest.mark.parametrize("index, kind", [(5, IndexError), (-6, ValueError)])
def test_concat_refuses_an_index_out_of_range(index, kind):
    with pytest.raises(kind, match="ConcatDataset expected an index"):
        ConcatDataset([Numbers(1, 2, 3), Numbers(4, 5)])[index]


def test_concat_is_a_sequence():
    assert list(ConcatDataset([Numbers(1, 2), Numbers(3)])) == [1, 2, 3]


def test_concat_refuses_streams_and_nothing():
    with pytest.raises(ValueError, match="at least one"):
        ConcatDataset([])
    with pytest.raises(TypeError, match="ChainDataset"):
        ConcatDataset([Numbers(1), Stream(1)])


def test_chain_goes_through_one_after_the_other():
    data = Stream(1, 2) + Stream(3)
    assert isinstance(data, ChainDataset) and list(data) == [1, 2, 3] and len(data) == 3
    with pytest.raises(TypeError, match="ConcatDataset"):
        list(ChainDataset([Numbers(1)]))


def test_subset():
    data = Subset(Numbers(10, 11, 12, 13), [3, 1])
    assert len(data) == 2 and [data[0], data[1], data[-1]] == [13, 11, 11]
    assert data.__getitems__([1, 0]) == [11, 13]
    assert Subset(Batched(1, 2, 3), [2, 0]).__getitems__([0, 1]) == [-3, -1]


def test_stack_gives_tuples_or_dicts():
    assert StackDataset(Numbers(1, 2), Numbers(3, 4))[1] == (2, 4)
    named = StackDataset(a=Numbers(1, 2), b=Batched(3, 4))
    assert named[0] == {"a": 1, "b": 3} and len(named) == 2
    assert named.__getitems__([1, 0]) == [{"a": 2, "b": -4}, {"a": 1, "b": -3}]


@pytest.mark.parametrize("args, kwargs, message", [
    ((), {}, "by position"), ((Numbers(1),), {"b": Numbers(1)}, "by position"), ((Numbers(1), Numbers()), {}, r"\[1, 0\]")])
def test_stack_refuses(args, kwargs, message):
    with pytest.raises(ValueError, match=message):
        StackDataset(*args, **kwargs)


def test_stack_refuses_a_batch_of_wrong_length():
    with pytest.raises(ValueError, match="expected 2 samples"):
        StackDataset(Short(1, 2)).__getitems__([0, 1])


@pytest.mark.parametrize("lengths, sizes", [
    ([3, 7], [3, 7]), ([0.3, 0.7], [3, 7]), ([0.33, 0.33, 0.34], [4, 3, 3]), ([0.25] * 4, [3, 3, 2, 2]), ([10], [10])])
def test_random_split_is_a_partition(lengths, sizes):
    parts = random_split(Numbers(*range(10)), lengths)
    assert [len(part) for part in parts] == sizes
    assert sorted(value for part in parts for value in part) == list(range(10))


def test_random_split_depends_on_the_generator_only():
    def split(seed):
        return [list(p) for p in random_split(Numbers(*range(50)), [20, 30], minidl.Generator().manual_seed(seed))]

    minidl.manual_seed(0)
    state = minidl.get_rng_state().tolist()
    assert split(1) == split(1) != split(2)
    assert minidl.get_rng_state().tolist() == state


@pytest.mark.parametrize("lengths", [[3, 8], [0.5, 0.6], [-1, 11], [2.5, 7.5]])
def test_random_split_refuses_lengths(lengths):
    with pytest.raises(ValueError, match="random_split expected lengths"):
        random_split(Numbers(*range(10)), lengths)


def test_random_split_refuses_a_negative_fraction():
    with pytest.raises(ValueError, match="fractions between 0 and 1"):
        random_split(Numbers(1, 2), [-0.5, 1.5])


def test_random_split_warns_of_an_empty_part():
    with pytest.warns(UserWarning, match="part 1 gets no sample"):
        random_split(Numbers(1), [0.9, 0.1])


def test_samples_of_a_tensor_dataset_share_memory():
    x = minidl.zeros(2, 3)
    assert np.shares_memory(TensorDataset(x)[0][0].numpy(), x.numpy())
