"""Generators and default streams: pinned numbers, exact states, one pair of streams per thread."""

import copy
import pickle
import threading

import numpy as np
import pytest

import minidl
from minidl.tensor import random
from minidl.tensor.random import Generator, default_generator, initialization_generator, manual_seed, set_rank

F64, F32, F16, I64 = minidl.float64, minidl.float32, minidl.float16, minidl.int64


@pytest.fixture(autouse=True)
def fresh_streams():
    """Every test starts from seed 0 and leaves the streams so."""
    manual_seed(0)
    yield
    set_rank(0)
    manual_seed(0)


PINNED = {
    0: ([0.011546754286331562, 0.24154919656271812, 0.11142585551493822],
        [0.18685460090637207, 0.5644146203994751, 0.5321277976036072], [0.501953125, 0.90625, 0.27734375],
        [0.7421875, 0.9453125, 0.40234375], [0.039767608363902945, 0.37032801372491, 1.367442088886462],
        [1.3485920429229736, 1.8410409688949585, -0.23517897725105286], [71, 57, 52, 25, 28], [0, 4, 5, 2, 1, 3]),
    1: ([0.3035680343067586, 0.8487087496857769, 0.1561347780434731],
        [0.4141312837600708, 0.031106412410736084, 0.7383471727371216], [0.89990234375, 0.3388671875, 0.0517578125],
        [0.8125, 0.7421875, 0.33203125], [0.12337059705640581, 0.8173446308164533, -0.03168605710922687],
        [0.49207210540771484, -0.7791869044303894, -1.2865244150161743], [16, 73, 4, 60, 57], [5, 0, 3, 1, 4, 2]),
}


def draws(g):
    """Some of everything: whole and half words of the stream, and rejection sampling."""
    return [g.uniform((3,), F64), g.uniform((3,), F32), g.uniform((3,), F16), g.uniform((3,), minidl.bfloat16),
            g.normal((3,), F64), g.normal((3,), F32), g.integers(0, 100, (5,), I64), g.permutation(6, I64)]


@pytest.mark.parametrize("seed", PINNED)
def test_a_seed_means_the_same_numbers_everywhere_and_always(seed):
    for found, want in zip(draws(Generator().manual_seed(seed)), PINNED[seed], strict=True):
        np.testing.assert_allclose(found.astype(np.float64), want, rtol=1e-6)


@pytest.mark.parametrize("seed, rank, run_time, initialization", [
    (0, 0, [975, 813, 297, 751], [34, 11, 611, 241]), (1, 0, [213, 75, 285, 983], [458, 303, 729, 848]),
    (0, 1, [624, 814, 993, 439], [34, 11, 611, 241]), (1, 1, [708, 309, 131, 356], [458, 303, 729, 848]),
])
def test_default_streams_of_a_seed_and_rank(seed, rank, run_time, initialization):
    set_rank(rank)
    manual_seed(seed)
    assert default_generator().integers(0, 1000, (4,), I64).tolist() == run_time
    assert initialization_generator().integers(0, 1000, (4,), I64).tolist() == initialization


def test_learning_the_rank_restarts_the_run_time_stream_only():
    manual_seed(7)
    whole = initialization_generator().integers(0, 1000, (6,), I64).tolist()
    manual_seed(7)
    first = initialization_generator().integers(0, 1000, (3,), I64).tolist()
    default_generator().integers(0, 1000, (3,), I64)
    set_rank(2)
    assert first + initialization_generator().integers(0, 1000, (3,), I64).tolist() == whole
    found = default_generator().integers(0, 1000, (3,), I64).tolist()
    manual_seed(7)
    assert default_generator().integers(0, 1000, (3,), I64).tolist() == found


@pytest.mark.parametrize("advance", range(9))
def test_a_state_is_exact_at_every_place_of_the_buffers(advance):
    g = Generator().manual_seed(11)
    for _ in range(advance):
        g.uniform((1,), F32)  # half a word: every other call leaves the other half in the buffer
    state = g.get_state()
    want = draws(g)
    other = Generator()
    other.set_state(state)
    g.set_state(state.numpy())
    for again in draws(other), draws(g):
        for a, b in zip(again, want):
            np.testing.assert_array_equal(a, b)
    assert other.initial_seed() == 11 and state.dtype == minidl.uint8


def test_a_state_does_not_follow_its_generator():
    g = Generator()
    state = g.get_state()
    before = state.numpy().copy()
    g.normal((5,), F64)
    np.testing.assert_array_equal(state.numpy(), before)


@pytest.mark.parametrize("copying", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_generators_are_copied_with_their_state(copying):
    g = Generator().manual_seed(3)
    g.uniform((3,), F32)
    np.testing.assert_array_equal(copying(g).normal((4,), F64), g.normal((4,), F64))


def test_rng_state_of_the_default_stream():
    state = random.get_rng_state()
    want = minidl.rand(3).numpy()
    random.set_rng_state(state)
    np.testing.assert_array_equal(minidl.rand(3).numpy(), want)


@pytest.mark.parametrize("seed", [0, 1, -1, -(2**63), 2**64 - 1, 2**64, 2**100, np.int64(5)])
def test_every_integer_is_a_seed_and_is_remembered(seed):
    g = Generator().manual_seed(seed)
    assert g.initial_seed() == seed
    other = Generator()
    other.set_state(g.get_state())
    assert other.initial_seed() == seed
    assert manual_seed(seed).initial_seed() == random.initial_seed() == seed


def test_different_seeds_give_different_streams():
    streams = [Generator().manual_seed(seed).uniform((2,), F64).tolist() for seed in (0, 1, -1, 2**64, 2**64 + 1, 2**32)]
    assert len({tuple(s) for s in streams}) == len(streams)


def test_a_seed_of_the_operating_system_s():
    g = Generator()
    assert g.seed() == g.initial_seed() != Generator().seed()
    assert random.seed() == random.initial_seed()


@pytest.mark.parametrize("bad", [1.5, "1", None, True])
def test_what_is_no_seed(bad):
    before = random.get_rng_state().numpy()
    with pytest.raises(TypeError, match="manual_seed"):
        manual_seed(bad)
    np.testing.assert_array_equal(random.get_rng_state().numpy(), before)


@pytest.mark.parametrize("bad", [np.zeros(3, np.uint8), np.zeros(120, np.int64)])
def test_what_is_no_state(bad):
    with pytest.raises(ValueError, match="get_state"):
        Generator().set_state(bad)


def test_each_thread_has_streams_of_its_own():
    """They start from the default seed, are seeded on their own, and do not disturb each other."""
    def draw(rank, found):
        untouched = minidl.rand(2).numpy().tolist()
        set_rank(rank)
        manual_seed(5)
        barrier.wait()
        found[rank] = (untouched, [minidl.rand(1).numpy()[0] for _ in range(3)],
                       initialization_generator().uniform((2,), F64).tolist())

    barrier = threading.Barrier(2)
    found = {}
    manual_seed(5)
    want = minidl.rand(2).numpy().tolist()
    manual_seed(5)
    threads = [threading.Thread(target=draw, args=(rank, found)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert minidl.rand(2).numpy().tolist() == want
    manual_seed(0)
    assert found[0][0] == found[1][0] == minidl.rand(2).numpy().tolist()
    assert found[0][1] != found[1][1] and found[0][1][:2] == want
    assert found[0][2] == found[1][2]


def test_the_manual_seed_of_initialization_does_not_depend_on_what_was_drawn_at_run_time():
    want = initialization_generator().normal((3,), F32).tolist()
    manual_seed(0)
    minidl.rand(100)
    assert initialization_generator().normal((3,), F32).tolist() == want
