"""Minibatch sources: every sample once a sweep over all shards, orders, limits, exact resume, kinds of data."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minidl
from minidl.data.ctf import CTFDeserializer, StreamDef
from minidl.data.ctf_streams import Sequences, StreamInformation
from minidl.data.dataset import Dataset, IterableDataset, TensorDataset
from minidl.data.source import ArraySource, DatasetSource, Minibatch, MinibatchSource


class Ragged:
    """Sequences of given lengths; a minibatch holds their numbers."""

    def __init__(self, lengths):
        self.lengths = np.array(lengths)

    def stream_infos(self):
        return (StreamInformation("number", (), minidl.int64),)

    def read(self, sequences):
        return (minidl.from_numpy(sequences.astype(np.int64)),)


def numbers(minibatches):
    return [mb[0].numpy().tolist() for mb in minibatches]


def take(source, count, samples, *shard):
    return [source.next_minibatch(samples, *shard) for _ in range(count)]


def rest(source, samples, *shard):
    return list(iter(lambda: source.next_minibatch(samples, *shard), None))


def source_of(n=10, **options):
    return MinibatchSource(np.arange(n), **options)


# Sweeps

def test_minibatches_come_in_order_and_end_with_their_sweep():
    minibatches = take(source_of(5, randomize=False), 4, 2)
    assert numbers(minibatches) == [[0, 1], [2, 3], [4], [0, 1]]
    assert [mb.end_of_sweep for mb in minibatches] == [False, False, True, False]
    assert [mb.sample_count for mb in minibatches] == [mb.number_of_sequences for mb in minibatches] == [2, 2, 1, 2]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=20), st.integers(1, 9), st.integers(1, 5), st.booleans())
def test_every_sequence_is_seen_once_a_sweep_over_all_shards(lengths, samples, num_shards, randomize):
    shards = [rest(MinibatchSource(Ragged(lengths), randomize, max_sweeps=2), samples, num_shards, shard)
              for shard in range(num_shards)]
    assert len({len(shard) for shard in shards}) == 1
    sweeps, seen = [], []
    for parts in zip(*shards):
        assert len({mb.end_of_sweep for mb in parts}) == 1
        whole = sum(mb.sample_count for mb in parts)
        assert whole <= samples or sum(mb.number_of_sequences for mb in parts) == 1
        assert max(mb.number_of_sequences for mb in parts) - min(mb.number_of_sequences for mb in parts) <= 1
        seen += sum(numbers(parts), [])
        if parts[0].end_of_sweep:
            sweeps.append(sorted(seen))
            seen = []
    assert sweeps == [list(range(len(lengths)))] * 2 and not seen


def test_the_order_does_not_depend_on_minibatches_and_shards():
    whole = [n for mb in take(source_of(), 2, 10) for n in mb[0].tolist()]
    single = [mb[0].item() for mb in take(source_of(), 20, 1)]
    parts = [take(source_of(), 5 * 2, 2, 2, shard) for shard in range(2)]
    mixed = [n for pair in zip(*parts) for n in sum(numbers(pair), [])]
    assert whole == single == mixed


def test_each_sweep_and_each_seed_has_its_own_order():
    orders = [tuple(mb[0].tolist()) for seed in (0, 1, -1, 1 << 40) for mb in take(source_of(20, seed=seed), 3, 20)]
    assert len(set(orders)) == 12 and all(sorted(order) == list(range(20)) for order in orders)


def test_shuffling_is_even_and_leaves_the_default_generator_alone():
    state = minidl.get_rng_state().numpy().copy()
    source = source_of(4)
    first = [mb[0].tolist()[0] for mb in take(source, 800, 4)]
    assert all(150 < first.count(n) < 250 for n in range(4))
    assert np.array_equal(minidl.get_rng_state().numpy(), state)


def test_a_shard_without_samples_gets_empty_tensors_and_stays_in_step():
    source = MinibatchSource((np.zeros((3, 2), np.float32), np.zeros(3, np.int64)), max_sweeps=1)
    minibatch = source.next_minibatch(8, 4, 3)
    assert [tensor.shape for tensor in minibatch] == [(0, 2), (0,)]
    assert [tensor.dtype for tensor in minibatch] == [minidl.float32, minidl.int64]
    assert (minibatch.sample_count, minibatch.number_of_sequences, minibatch.end_of_sweep) == (0, 0, True)
    assert source.next_minibatch(8, 4, 3) is None


# Limits

@pytest.mark.parametrize("limits, counts", [
    ({"max_sweeps": 1}, [4, 1]), ({"max_sweeps": 2}, [4, 1, 4, 1]), ({"max_samples": 3}, [3]), ({"max_samples": 4}, [4]),
    ({"max_samples": 7}, [4, 1, 2]), ({"max_samples": 7, "max_sweeps": 1}, [4, 1]), ({"max_samples": 3, "max_sweeps": 1}, [3]),
])
def test_the_data_ends_at_its_limit_and_stays_ended(limits, counts):
    source = source_of(5, **limits)
    assert [mb.sample_count for mb in rest(source, 4)] == counts
    assert source.next_minibatch(4) is None


def test_sequences_are_not_cut_by_limits():
    minibatches = rest(MinibatchSource(Ragged([3, 1, 9, 2]), randomize=False, max_samples=12), 5)
    assert [mb.sample_count for mb in minibatches] == [4, 9]


# Sequences

def test_as_many_whole_sequences_as_fit_and_at_least_one():
    source = MinibatchSource(Ragged([2, 3, 1, 9, 1, 1, 4]), randomize=False)
    assert numbers(take(source, 5, 5)) == [[0, 1], [2], [3], [4, 5], [6]]
    assert len(source) == 21


def test_a_file_is_read_by_stream_names(tmp_path):
    (tmp_path / "data.ctf").write_text("0 |w 3:1 |c 1\n0 |w 1:1\n1 |w 2:1 |c 0\n")
    data = CTFDeserializer(tmp_path / "data.ctf", {"words": StreamDef("w", 4, True), "c": StreamDef(shape=1)})
    source = MinibatchSource(data, randomize=False)
    assert [info.name for info in source.stream_infos()] == ["words", "c"]
    minibatch = source.next_minibatch(3)
    assert isinstance(minibatch.words, Sequences) and minibatch.words.data.shape == (2, 2, 4)
    assert minibatch["c"].tolist() == [[1], [0]] and minibatch.c is minibatch[1]
    assert (minibatch.sample_count, minibatch.number_of_sequences) == (3, 2)
    empty = source.next_minibatch(2, 2, 1)
    assert empty.words.data.shape == (0, 0, 4) and empty.c.shape == (0, 1)


def test_tensors_go_to_a_device(tmp_path):
    (tmp_path / "data.ctf").write_text("0 |w 3:1 |c 1\n0 |w 1:1\n")
    data = CTFDeserializer(tmp_path / "data.ctf", {"w": StreamDef(shape=4, is_sparse=True), "c": StreamDef(shape=1)})
    minibatch = MinibatchSource(data).next_minibatch(2, device="cpu")
    assert minibatch.w.data.device == minibatch.c.device == minidl.device("cpu")


# Resume

@settings(max_examples=40, deadline=None)
@given(st.integers(0, 12), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_a_source_goes_on_where_it_was_also_with_other_shards(before, shards_before, shards_after, randomize):
    options = {"randomize": randomize, "seed": 3, "max_samples": 40}
    whole, interrupted = source_of(11, **options), source_of(11, **options)
    take(whole, before, 3)
    take(interrupted, before, 3, shards_before, shards_before - 1)
    state = interrupted.state_dict()
    assert all(type(value) is int for value in state.values())
    parts = []
    for shard in range(shards_after):
        resumed = source_of(11, **options)
        resumed.load_state_dict(dict(state))
        parts.append(rest(resumed, 3, shards_after, shard))
    joined = [sorted(sum(numbers(pieces), [])) for pieces in zip(*parts)]
    assert joined == [sorted(mb) for mb in numbers(rest(whole, 3))]


def test_a_state_can_be_loaded_after_the_end():
    source = source_of(4, max_sweeps=1)
    state = source.state_dict()
    first = numbers(rest(source, 3))
    source.load_state_dict(state)
    assert numbers(rest(source, 3)) == first


@pytest.mark.parametrize("change, words", [
    ({"seed": 1}, "has seed=0, but the state was saved with seed=1"),
    ({"randomize": 0}, "has randomize=1, but the state was saved with randomize=0"),
    ({"sequences": 9}, "has sequences=10, but"),
    ({"position": 10}, "a position in 10 sequences"),
    ({"sweep": -1}, "a position in 10 sequences"),
    ({"extra": 1}, "expected a state with position"),
])
def test_a_state_that_does_not_fit_is_refused(change, words):
    source = source_of()
    with pytest.raises(ValueError, match=words):
        source.load_state_dict({**source.state_dict(), **change})
    assert source.state_dict() == source_of().state_dict()


# Kinds of data

class Pairs(Dataset):
    def __init__(self, item):
        self.item = item

    def __getitem__(self, index):
        return self.item(index)

    def __len__(self):
        return 3


@pytest.mark.parametrize("data, names", [
    ((np.arange(3.0), minidl.arange(3)), ("stream0", "stream1")),
    ([np.arange(3.0), minidl.arange(3)], ("stream0", "stream1")),
    ({"x": np.arange(3.0), "y": [0, 1, 2]}, ("x", "y")),
    (ArraySource({"x": np.arange(3.0), "y": minidl.arange(3)}), ("x", "y")),
    ([ArraySource({"x": np.arange(3.0), "y": minidl.arange(3)})], ("x", "y")),
    (TensorDataset(minidl.tensor([0.0, 1, 2]), minidl.arange(3)), ("stream0", "stream1")),
    (Pairs(lambda i: (float(i), i)), ("stream0", "stream1")),
    (Pairs(lambda i: (minidl.tensor(float(i)), np.int64(i))), ("stream0", "stream1")),
    (Pairs(lambda i: {"x": np.float32(i), "y": np.array(i)}), ("x", "y")),
    ([(0.0, 0), (1.0, 1), (2.0, 2)], ("stream0", "stream1")),
    (DatasetSource([[0.0, 0], [1.0, 1], [2.0, 2]]), ("stream0", "stream1")),
])
def test_kinds_of_data(data, names):
    source = MinibatchSource(data, randomize=False)
    assert tuple(info.name for info in source.stream_infos()) == names and len(source) == 3
    x, y = minibatch = source.next_minibatch(2)
    assert x.tolist() == [0, 1] and y.tolist() == [0, 1] and y.dtype == minidl.int64
    assert minibatch[names[1]] is y
    assert [tensor.dtype for tensor in source.next_minibatch(1, 2, 1)] == [info.dtype for info in source.stream_infos()]


@pytest.mark.parametrize("data", [np.arange(6).reshape(3, 2), minidl.arange(6).reshape(3, 2)])
def test_one_array_is_one_stream(data):
    (x,) = MinibatchSource(data, randomize=False).next_minibatch(2)
    assert x.tolist() == [[0, 1], [2, 3]]


def test_minibatches_of_parameters_have_no_history():
    weight = minidl.ones(3, requires_grad=True)
    assert not MinibatchSource((weight,)).next_minibatch(2)[0].requires_grad


class Endless(IterableDataset):
    def __iter__(self):
        yield 1


@pytest.mark.parametrize("make, error, words", [
    (lambda: MinibatchSource((np.zeros(3), np.zeros(4))), ValueError, "as many samples in each array, got {'stream0': 3"),
    (lambda: MinibatchSource({}), ValueError, "at least one array"),
    (lambda: MinibatchSource((np.zeros(()),)), ValueError, "none of them 0-d"),
    (lambda: MinibatchSource(np.zeros((0, 2))), ValueError, "at least one sample, got empty data"),
    (lambda: MinibatchSource([]), ValueError, "at least one sample, got empty data"),
    (lambda: MinibatchSource("train.ctf"), TypeError, "got the name 'train.ctf'; a file in CNTK's text format is CTFDes"),
    (lambda: MinibatchSource(Endless()), TypeError, "expected a data set with len.* got Endless"),
    (lambda: MinibatchSource(3), TypeError, "got int"),
    (lambda: MinibatchSource([ArraySource([np.zeros(2)])] * 2), ValueError, "one deserializer, got 2"),
    (lambda: MinibatchSource(Pairs(lambda i: np.zeros(i + 1)), randomize=False).next_minibatch(2), RuntimeError, "one shape"),
    (lambda: source_of(max_sweeps=0), ValueError, "max_sweeps of at least 1, got 0"),
    (lambda: source_of(max_samples=-1), ValueError, "max_samples of at least 1"),
    (lambda: source_of(seed=0.5), TypeError, "float"),
    (lambda: source_of().next_minibatch(0), ValueError, "samples of at least 1, got 0"),
    (lambda: source_of().next_minibatch(1.5), TypeError, "float"),
    (lambda: source_of().next_minibatch(1, 0), ValueError, "num_shards of at least 1"),
    (lambda: source_of().next_minibatch(1, 2, 2), ValueError, "a shard from 0 to 1, got 2"),
    (lambda: source_of().next_minibatch(1, 2, -1), ValueError, "a shard from 0 to 1, got -1"),
    (lambda: source_of().next_minibatch(1)["x"], KeyError, "one of the streams stream0, got 'x'"),
    (lambda: source_of().next_minibatch(1).x, AttributeError, "no stream 'x'"),
])
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("again", [copy.copy, lambda mb: pickle.loads(pickle.dumps(mb))])
def test_a_minibatch_is_copied_whole(again):
    minibatch = again(MinibatchSource({"a": np.arange(2), "b": np.arange(2)}, randomize=False).next_minibatch(2))
    assert type(minibatch) is Minibatch and minibatch.b.tolist() == [0, 1]
    assert (minibatch.sample_count, minibatch.end_of_sweep) == (2, True)
