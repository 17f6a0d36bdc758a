"""Samplers: which indices, in which order, how many."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minidl
from minidl.data import (
    BatchSampler,
    ClassBalancedSampler,
    DistributedSampler,
    DownSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

LABELS = [0] * 10 + [1] * 3 + [2] * 50


def seeded(seed=0):
    return minidl.Generator().manual_seed(seed)


RANDOM = {
    "random": lambda g: RandomSampler(range(20), generator=g),
    "replacement": lambda g: RandomSampler(range(20), replacement=True, generator=g),
    "subset": lambda g: SubsetRandomSampler(list(range(5, 25)), generator=g),
    "weighted": lambda g: WeightedRandomSampler([1.0] * 20, 20, generator=g),
    "balanced": lambda g: ClassBalancedSampler(LABELS, generator=g),
    "down": lambda g: DownSampler(LABELS, generator=g),
    "batch": lambda g: BatchSampler(RandomSampler(range(20), generator=g), 3, False),
}


@pytest.mark.parametrize("make", RANDOM.values(), ids=RANDOM)
def test_the_order_is_decided_by_the_generator_and_changes(make):
    sampler = make(seeded(1))
    first, second = list(sampler), list(sampler)
    assert first == list(make(seeded(1))) and first != second and first != list(make(seeded(2)))
    assert len(first) == len(sampler)


@pytest.mark.parametrize("make", RANDOM.values(), ids=RANDOM)
def test_without_a_generator_the_default_one_decides(make):
    minidl.manual_seed(5)
    first = list(make(None))
    minidl.manual_seed(5)
    assert list(make(None)) == first


@pytest.mark.parametrize("make", RANDOM.values(), ids=RANDOM)
def test_a_state_brings_the_order_back(make):
    sampler = make(seeded(1))
    list(sampler)
    state = sampler.state_dict()
    expected = [list(sampler), list(sampler)]
    other = make(seeded(9))
    other.load_state_dict(state)
    assert [list(other), list(other)] == expected


def test_a_state_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="generator"):
        RandomSampler(range(3)).load_state_dict(RandomSampler(range(3), generator=seeded()).state_dict())
    with pytest.raises(ValueError, match="generator"):
        RandomSampler(range(3), generator=seeded()).load_state_dict({})
    with pytest.raises(ValueError, match="without load_state_dict"):
        BatchSampler([1, 2], 1, False).load_state_dict({"epoch": 1})


def test_sequential():
    sampler = SequentialSampler("abcd")
    assert list(sampler) == [0, 1, 2, 3] and len(sampler) == 4


def test_a_sampler_needs_iter():
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(Sampler())


@pytest.mark.parametrize("count", [None, 1, 7, 20, 21, 45])
def test_random_without_replacement_repeats_no_index_within_a_round(count):
    order = list(RandomSampler(range(20), num_samples=count, generator=seeded()))
    assert len(order) == (count or 20)
    assert max(Counter(order).values()) - min([Counter(order)[i] for i in range(20)]) <= 1


def test_random_with_replacement_stays_in_range():
    order = list(RandomSampler(range(4), True, 1000, seeded()))
    assert len(order) == 1000 and set(order) == {0, 1, 2, 3}


@pytest.mark.parametrize("arguments, kind", [
    ((range(3), "yes"), TypeError), ((range(3), False, 0), ValueError), ((range(3), False, -1), ValueError),
    ((range(3), False, 2.0), ValueError), (([],), ValueError), ((range(3), True, True), ValueError)])
def test_random_refuses(arguments, kind):
    with pytest.raises(kind, match="RandomSampler expected"):
        RandomSampler(*arguments)


def test_subset_random_gives_each_index_once():
    sampler = SubsetRandomSampler([7, 3, 9], generator=seeded())
    assert sorted(sampler) == [3, 7, 9] and len(sampler) == 3


def test_weighted_follows_the_weights():
    order = list(WeightedRandomSampler([0, 1, 3], 8000, generator=seeded()))
    counts = Counter(order)
    assert counts[0] == 0 and abs(counts[1] / 8000 - 0.25) < 0.03


def test_weighted_without_replacement_repeats_nothing():
    assert sorted(WeightedRandomSampler([1, 2, 3], 3, replacement=False)) == [0, 1, 2]
    with pytest.raises(RuntimeError):
        list(WeightedRandomSampler([1, 2, 3], 4, replacement=False))


@pytest.mark.parametrize("arguments", [([1], 0), ([1], 1.5), ([1], True), ([1], 1, None), ([[1, 2]], 1)])
def test_weighted_refuses(arguments):
    with pytest.raises(ValueError, match="WeightedRandomSampler expected"):
        WeightedRandomSampler(*arguments)


@pytest.mark.parametrize("drop_last, batches", [(False, [[0, 1, 2], [3, 4, 5], [6]]), (True, [[0, 1, 2], [3, 4, 5]])])
def test_batches(drop_last, batches):
    sampler = BatchSampler(SequentialSampler(range(7)), 3, drop_last)
    assert list(sampler) == batches and len(sampler) == len(batches)


@pytest.mark.parametrize("batch_size, drop_last", [(0, False), (-1, False), (2.5, False), (True, False), (2, 1)])
def test_batches_refuse(batch_size, drop_last):
    with pytest.raises(ValueError, match="BatchSampler expected"):
        BatchSampler(range(4), batch_size, drop_last)


# Ranks

@settings(max_examples=60, deadline=None)
@given(st.integers(0, 30), st.integers(1, 7), st.booleans())
def test_unpadded_ranks_share_each_sample_once(n, ranks, shuffle):
    parts = [list(DistributedSampler(range(n), ranks, rank, shuffle, pad=False)) for rank in range(ranks)]
    assert sorted(sum(parts, [])) == list(range(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 7), st.booleans())
def test_padded_ranks_get_the_same_number_and_all_samples(n, ranks, shuffle):
    samplers = [DistributedSampler(range(n), ranks, rank, shuffle) for rank in range(ranks)]
    parts = [list(sampler) for sampler in samplers]
    assert {len(part) for part in parts} == {-(-n // ranks)} == {len(sampler) for sampler in samplers}
    assert set(sum(parts, [])) == set(range(n))


@pytest.mark.parametrize("arguments, expected", [
    (dict(num_replicas=3, rank=0), [0, 3]), (dict(num_replicas=3, rank=2), [2, 1]),
    (dict(num_replicas=3, rank=1, drop_last=True), [1]), (dict(num_replicas=8, rank=7), [3]),
    (dict(num_replicas=8, rank=7, drop_last=True), []), (dict(num_replicas=3, rank=2, pad=False), [2])])
def test_the_part_of_a_rank(arguments, expected):
    sampler = DistributedSampler(range(4), shuffle=False, **arguments)
    assert list(sampler) == expected and len(sampler) == len(expected)


def test_the_order_depends_on_seed_and_epoch():
    def order(seed, epoch):
        sampler = DistributedSampler(range(40), 2, 1, seed=seed)
        sampler.set_epoch(epoch)
        assert list(sampler) == list(sampler)
        return tuple(sampler)

    assert len({order(seed, epoch) for seed in (0, 1, 2) for epoch in (0, 1, 2)}) == 9


@pytest.mark.parametrize("arguments, message", [
    ({}, "comm.size"), (dict(num_replicas=2), "comm.rank"), (dict(num_replicas=2, rank=2), r"\[0, 1\]"),
    (dict(num_replicas=2, rank=-1), r"\[0, 1\]"), (dict(num_replicas=2, rank=0, drop_last=True, pad=False), "pad=False")])
def test_distributed_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        DistributedSampler(range(4), **arguments)


def test_a_distributed_state():
    sampler = DistributedSampler(range(40), 2, 0, seed=3)
    sampler.set_epoch(4)
    other = DistributedSampler(range(40), 2, 0)
    other.load_state_dict(sampler.state_dict())
    assert list(other) == list(sampler)
    with pytest.raises(ValueError, match="3 ranks got a state of 2"):
        DistributedSampler(range(40), 3, 0).load_state_dict(sampler.state_dict())


# Classes

@pytest.mark.parametrize("labels", [LABELS, np.array(LABELS), minidl.tensor(LABELS), [f"class {i}" for i in LABELS]],
                         ids=["list", "array", "tensor", "strings"])
def test_balanced_classes_come_equally_often(labels):
    order = list(ClassBalancedSampler(labels, 6000, generator=seeded()))
    counts = Counter(LABELS[i] for i in order)
    assert len(order) == 6000 and all(abs(counts[c] - 2000) < 200 for c in (0, 1, 2))
    assert set(order) == set(range(63))


@pytest.mark.parametrize("ratio, counts", [(1.0, {0: 3, 1: 3, 2: 3}), (3.5, {0: 10, 1: 3, 2: 10}), (100, {0: 10, 1: 3, 2: 50})])
def test_down_sampling_keeps_the_rarest_class(ratio, counts):
    sampler = DownSampler(LABELS, ratio, generator=seeded())
    order = list(sampler)
    assert Counter(LABELS[i] for i in order) == counts and len(set(order)) == len(order) == len(sampler)


@pytest.mark.parametrize("make", [lambda: ClassBalancedSampler([]), lambda: DownSampler([[1], [2]]),
                                  lambda: ClassBalancedSampler([1], 0), lambda: DownSampler([1], 0.5)])
def test_class_samplers_refuse(make):
    with pytest.raises(ValueError, match="Sampler expected"):
        make()
