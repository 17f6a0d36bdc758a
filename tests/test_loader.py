"""The DataLoader: order, workers, errors of workers, and going on in mid-epoch."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import minidl
from minidl.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    TensorDataset,
    get_worker_info,
)

PROCESSES = dict(num_workers=2)
THREADS = dict(num_workers=3, worker_type="thread")
WORKERS = pytest.mark.parametrize("workers", [{}, THREADS, PROCESSES], ids=["inline", "threads", "processes"])
POOLS = pytest.mark.parametrize("workers", [THREADS, PROCESSES], ids=["threads", "processes"])


class Noisy(Dataset):
    """Sample i is i and a random number of the default generator."""

    def __init__(self, n=11):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return index, minidl.rand(()).item()


class Faulty(Noisy):
    def __getitem__(self, index):
        if index == 3:
            raise KeyError("no three")
        return index


class Ending(Noisy):
    def __getitem__(self, index):
        return next(iter(()))


class Killed(Noisy):
    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGKILL)


class Unsendable(Noisy):
    def __getitem__(self, index):
        return {"made": (i for i in range(3))}


class Waiting(Noisy):
    """Samples from 2 on take a while."""

    def __init__(self, seconds):
        super().__init__(4)
        self.seconds = seconds

    def __getitem__(self, index):
        time.sleep(0 if index < 2 else self.seconds)
        return index


class Informed(Noisy):
    def __getitem__(self, index):
        info = get_worker_info()
        return info.id, info.num_workers, info.seed, len(info.dataset), os.getpid()


class Libraries(Noisy):
    def __getitem__(self, index):
        return random.random(), np.random.rand()


class Images(Noisy):
    def __getitem__(self, index):
        return minidl.full((3, 80, 80), float(index)), f"image {index}"


class Stream(IterableDataset):
    """Numbers below n, shared out over the workers."""

    def __init__(self, n=13):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        for i in range(info.id if info else 0, self.n, info.num_workers if info else 1):
            yield i, minidl.rand(()).item()

    def __len__(self):
        return self.n


class Uneven(IterableDataset):
    def __iter__(self):
        return iter(range(10 * get_worker_info().id, 10 * get_worker_info().id + 2 * get_worker_info().id + 1))


class Reversed(Sampler):
    """A user's sampler: with a state in its epochs, drawing from the default generator too."""

    def __init__(self, n):
        self.n, self.shift = n, 0

    def __iter__(self):
        self.shift += 1
        for i in minidl.randperm(self.n).tolist():
            yield (i + self.shift) % self.n

    def __len__(self):
        return self.n

    def state_dict(self):
        return {"shift": self.shift}

    def load_state_dict(self, state):
        self.shift = state["shift"]


def fail_to_start(number):
    raise OSError(f"worker {number} finds no disk")


def values(batches):
    return [[column.tolist() for column in batch] for batch in batches]


def indices(loader):
    return [i for batch in loader for i in batch[0].tolist()]


# Order

@WORKERS
def test_batches_in_order(workers):
    loader = DataLoader(TensorDataset(minidl.arange(7)), 3, **workers)
    assert [b[0].tolist() for b in loader] == [[0, 1, 2], [3, 4, 5], [6]] and len(loader) == 3


@WORKERS
def test_the_numbers_depend_on_the_seed_and_not_on_the_workers(workers):
    def epochs(**how):
        minidl.manual_seed(4)
        loader = DataLoader(Noisy(), 3, shuffle=True, **how)
        return [values(loader), values(loader)]

    expected = epochs()
    assert epochs(**workers) == expected
    assert expected[0] != expected[1] and sorted(sum((b[0] for b in expected[0]), [])) == list(range(11))


@WORKERS
def test_the_default_generator_is_left_alone_by_loading(workers):
    loader = DataLoader(Noisy(), 3, shuffle=True, generator=minidl.Generator(), **workers)
    before = minidl.get_rng_state().tolist()
    list(loader)
    assert minidl.get_rng_state().tolist() == before


def test_a_new_manual_seed_starts_the_order_anew():
    loader = DataLoader(Noisy(), 3, shuffle=True)
    minidl.manual_seed(1)
    first = values(loader)
    minidl.manual_seed(1)
    assert values(loader) == first != values(loader)


def test_the_generator_decides_the_order():
    generator = minidl.Generator().manual_seed(2)
    loader = DataLoader(Noisy(), 2, shuffle=True, generator=generator)
    first, second = values(loader), values(loader)
    generator.manual_seed(2)
    assert first != second and [values(loader), values(loader)] == [first, second]


def test_an_epoch_does_not_depend_on_how_far_the_one_before_went():
    def second(batches):
        loader = DataLoader(Noisy(), 2, shuffle=True, generator=minidl.Generator().manual_seed(2))
        for _ in zip(range(batches), loader):
            pass
        return values(loader)

    assert second(1) == second(4) == second(99)


@WORKERS
def test_single_samples(workers):
    batches = list(DataLoader(Noisy(3), None, **workers))
    assert [b[0] for b in batches] == [0, 1, 2] and type(batches[0]) is list


def test_batch_sampler_and_collate():
    loader = DataLoader(Faulty(), batch_sampler=[[4, 5], [6]], collate_fn=tuple)
    assert list(loader) == [(4, 5), (6,)] and len(loader) == 2 and loader.batch_size is None


@pytest.mark.parametrize("drop_last, sizes", [(False, [4, 4, 3]), (True, [4, 4])])
def test_drop_last(drop_last, sizes):
    loader = DataLoader(Noisy(), 4, drop_last=drop_last)
    assert [len(b[0]) for b in loader] == sizes and len(loader) == len(sizes)


def test_an_empty_data_set_has_no_batches():
    assert list(DataLoader(Noisy(0), 4)) == [] and len(DataLoader(Noisy(0), 4)) == 0
    with pytest.raises(ValueError, match="num_samples"):
        DataLoader(Noisy(0), 4, shuffle=True)


# Streams

@pytest.mark.parametrize("count, drop_last, sizes", [
    (0, False, [3, 3, 3, 3, 1]), (0, True, [3, 3, 3, 3]), (2, False, [3, 3, 3, 3, 1]), (3, True, [3, 3, 3])])
def test_a_stream_is_cut_into_batches(count, drop_last, sizes):
    loader = DataLoader(Stream(), 3, drop_last=drop_last, num_workers=count, worker_type="thread" if count else "process")
    batches = list(loader)
    assert [len(b[0]) for b in batches] == sizes
    assert len(loader) == (4 if drop_last else 5)


@pytest.mark.parametrize("prefetch", [1, 2, 7])
def test_workers_of_a_stream_take_turns_until_each_has_ended(prefetch):
    loader = DataLoader(Uneven(), 1, num_workers=3, prefetch_factor=prefetch, worker_type="thread")
    assert [b.item() for b in loader] == [0, 10, 20, 11, 21, 12, 22, 23, 24]


def test_a_stream_without_length_has_none():
    with pytest.raises(TypeError):
        len(DataLoader(Uneven()))


def test_single_samples_of_a_stream():
    assert [sample[0] for sample in DataLoader(Stream(3), None)] == [0, 1, 2]


# Workers

def test_large_batches_come_from_processes_unchanged_and_writable():
    loader = DataLoader(Images(), 4, **PROCESSES)
    batches = list(loader)
    assert [b[0].shape for b in batches] == [(4, 3, 80, 80)] * 2 + [(3, 3, 80, 80)]
    assert [x[0, 0, 0].item() for b in batches for x in b[0]] == list(range(11)) and batches[2][1][-1] == "image 10"
    batches[0][0].zero_()


def test_a_view_travels_without_what_it_is_a_view_of():
    from minidl.data.transport import pack
    whole = minidl.zeros(1000, 1000)
    assert sum(len(part) for part in pack(whole[3:5].t())) < 20_000


@POOLS
def test_workers_know_who_they_are(workers):
    generator = minidl.Generator().manual_seed(3)
    batches = [b for b in DataLoader(Informed(), 2, collate_fn=list, generator=generator, **workers)]
    count = workers["num_workers"]
    assert [b[0][0] for b in batches] == [i % count for i in range(6)]
    assert {b[0][1] for b in batches} == {count} and {b[0][3] for b in batches} == {11}
    assert len({b[0][2] - b[0][0] for b in batches}) == 1
    assert len({b[0][4] for b in batches}) == (1 if "worker_type" in workers else count)
    assert get_worker_info() is None


def test_python_and_numpy_are_seeded_in_processes_per_batch():
    def numbers(count):
        loader = DataLoader(Libraries(), 4, num_workers=count, generator=minidl.Generator().manual_seed(1))
        return values(loader)

    assert numbers(1) == numbers(2)
    assert len({x for batch in numbers(1) for column in batch for x in column}) == 22


def test_persistent_processes_stay():
    loader = DataLoader(Informed(), 2, collate_fn=list, persistent_workers=True, **PROCESSES)
    first, second = ({b[0][4] for b in loader} for _ in range(2))
    assert first == second and len(first) == 2
    for _ in loader:
        break
    assert len(list(loader)) == 6
    old, new = iter(loader), iter(loader)
    next(new)
    with pytest.raises(RuntimeError, match="later iterator"):
        next(old)


@POOLS
def test_threads_that_take_persistent_workers_from_each_other(workers):
    loader = DataLoader(Noisy(), 2, persistent_workers=True, **workers)
    outcomes = []

    def go_through():
        try:
            outcomes.append(len(list(loader)))
        except RuntimeError as error:
            outcomes.append("later iterator" in str(error))

    threads = [threading.Thread(target=go_through, daemon=True) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
    assert len(outcomes) == 4 and all(outcomes) and len(list(loader)) == 6


def test_any_order_gives_all_batches():
    loader = DataLoader(Noisy(), 2, in_order=False, **THREADS)
    assert sorted(indices(loader)) == list(range(11))
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(RuntimeError, match="in_order"):
        loader.state_dict()


@POOLS
def test_an_exception_arrives_with_its_traceback_and_sample(workers):
    iterator = iter(DataLoader(Faulty(), 2, **workers))
    assert next(iterator).tolist() == [0, 1]
    with pytest.raises(KeyError, match=r"(?s)KeyError in DataLoader worker .* index 3: .*Traceback.*in __getitem__.*no three"):
        next(iterator)
    assert next(iterator).tolist() == [4, 5]


@WORKERS
def test_stop_iteration_of_a_data_set_does_not_end_the_epoch(workers):
    with pytest.raises(RuntimeError, match="StopIteration"):
        next(iter(DataLoader(Ending(), 2, **workers)))


@POOLS
def test_a_worker_that_cannot_start(workers):
    with pytest.raises(OSError, match=r"(?s)while it started: worker 0 finds no disk.*fail_to_start"):
        next(iter(DataLoader(Noisy(), worker_init_fn=fail_to_start, **workers)))


def test_a_killed_worker_is_an_error_soon():
    start = time.monotonic()
    iterator = iter(DataLoader(Killed(), persistent_workers=True, **PROCESSES))
    with pytest.raises(RuntimeError, match=r"worker \d \(pid \d+\) was killed by SIGKILL"):
        next(iterator)
    assert time.monotonic() - start < 5


def test_a_batch_that_cannot_be_sent():
    with pytest.raises(TypeError, match="(?s)while it sent batch 0.*generator"):
        next(iter(DataLoader(Unsendable(), collate_fn=list, **PROCESSES)))


@pytest.mark.parametrize("arguments, name", [(dict(collate_fn=lambda batch: batch), "collate_fn"),
                                             (dict(worker_init_fn=lambda number: None), "worker_init_fn")])
def test_what_cannot_be_sent_to_a_process(arguments, name):
    with pytest.raises(Exception, match=f"cannot send its {name} .*top level.*worker_type=\"thread\""):
        iter(DataLoader(Noisy(), **arguments, **PROCESSES))


@POOLS
def test_timeout(workers):
    iterator = iter(DataLoader(Waiting(0.6), 2, timeout=5, **workers))
    next(iterator)
    object.__setattr__(iterator._plan, "timeout", 0.1)  # once the workers have started
    with pytest.raises(RuntimeError, match="timed out after 0.1 seconds"):
        next(iterator)


def test_an_iterator_that_is_dropped_leaves_no_process():
    for _ in DataLoader(Images(), 1, **PROCESSES):
        break
    gc.collect()
    assert not [p for p in multiprocessing.active_children() if "minidl" in p.name]


def test_workers_end_with_their_parent():
    code = ("import os, multiprocessing; from tests.test_loader import *\n"
            "it = iter(DataLoader(Waiting(60), 2, num_workers=2)); next(it)\n"
            "print(*[p.pid for p in multiprocessing.active_children()], flush=True); os.kill(os.getpid(), 9)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
    pids = [int(pid) for pid in out.split()]
    assert len(pids) == 2
    end = time.monotonic() + 5
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < end:
        time.sleep(0.02)
    assert not left


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_threads_end_with_their_iterator():
    others = set(threading.enumerate())
    iterator = iter(DataLoader(Noisy(), **THREADS))
    next(iterator)
    started = set(threading.enumerate()) - others
    assert len(started) == 3
    del iterator
    gc.collect()
    end = time.monotonic() + 5
    while (left := started & set(threading.enumerate())) and time.monotonic() < end:
        time.sleep(0.01)
    assert not left


def test_workers_of_a_program_from_standard_input():
    code = "import minidl.data as d; print(list(d.DataLoader([1, 2, 3], None, num_workers=1)), __file__)"
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True, check=True)
    assert done.stdout == "[1, 2, 3] <stdin>\n"


def test_fork_is_refused_once_mpi_is_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", sys)
    with pytest.raises(RuntimeError, match="cannot fork .* mpi4py.*forkserver"):
        DataLoader(Noisy(), multiprocessing_context="fork", **PROCESSES)


def test_importing_the_loader_does_not_load_multiprocessing():
    code = "import sys, minidl.data; assert 'multiprocessing.connection' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Arguments

@pytest.mark.parametrize("arguments, message", [
    (dict(batch_size=0), "batch_size as a positive"), (dict(batch_size=-2), "batch_size"),
    (dict(shuffle=True, sampler=[0]), "mutually exclusive with shuffle"),
    (dict(batch_size=2, batch_sampler=[[0]]), "mutually exclusive"), (dict(shuffle=True, batch_sampler=[[0]]), "exclusive"),
    (dict(drop_last=True, batch_sampler=[[0]]), "exclusive"), (dict(batch_size=None, drop_last=True), "exclusive"),
    (dict(num_workers=-1), "num_workers"), (dict(timeout=-1), "timeout"), (dict(timeout=1), "num_workers=0"),
    (dict(prefetch_factor=2), "num_workers=0"), (dict(persistent_workers=True), "num_workers=0"),
    (dict(prefetch_factor=0, num_workers=1), "prefetch_factor"), (dict(multiprocessing_context="spawn"), "num_workers=0"),
    (dict(multiprocessing_context="warp", num_workers=1), "warp"), (dict(worker_type="fibre"), "fibre"),
    (dict(multiprocessing_context="spawn", num_workers=1, worker_type="thread"), "thread"),
    (dict(pin_memory_device="cpu"), "CUDA")])
def test_arguments_that_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(Noisy(), **arguments)


@pytest.mark.parametrize("arguments", [dict(shuffle=True), dict(sampler=[0]), dict(batch_sampler=[[0]]), dict(batch_size=0)])
def test_arguments_that_a_stream_refuses(arguments):
    with pytest.raises(ValueError, match="|".join(arguments)):
        DataLoader(Stream(), **arguments)


def test_what_a_loader_was_made_with_stays():
    with pytest.raises(ValueError, match="batch_size to stay"):
        DataLoader(Noisy()).batch_size = 3


@pytest.mark.parametrize("argument", ["num_workers", "timeout", "prefetch_factor", "generator"])
def test_arguments_of_a_wrong_kind(argument):
    with pytest.raises(TypeError, match=f"DataLoader expected .*{argument}"):
        DataLoader(Noisy(), **{"num_workers": 1, argument: "2"})


def test_an_empty_data_set_cannot_be_shuffled():
    with pytest.raises(ValueError, match="without samples"):
        DataLoader([], shuffle=True)


def test_a_context_of_a_wrong_type():
    with pytest.raises(TypeError, match="start method"):
        DataLoader(Noisy(), num_workers=1, multiprocessing_context=3)


@pytest.mark.skipif(minidl.cuda.is_available(), reason="this machine has a GPU")
def test_pin_memory_without_a_gpu_warns():
    with pytest.warns(UserWarning, match="pin_memory"):
        loader = DataLoader(Noisy(2), pin_memory=True)
    assert len(list(loader)) == 2


# Going on

@pytest.mark.parametrize("workers, steps", [
    *[({}, steps) for steps in range(5)], *[(THREADS, steps) for steps in range(5)], (PROCESSES, 1),
    (PROCESSES | {"persistent_workers": True}, 2)])
def test_the_rest_of_the_epoch_and_later_ones_are_the_same(workers, steps):
    minidl.manual_seed(8)
    loader = DataLoader(Noisy(), 3, shuffle=True, **workers)
    list(loader)
    iterator = iter(loader)
    for _ in range(steps):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict(), default=lambda tensor: tensor.tolist()))
    state["generator"] = minidl.tensor(state["generator"], dtype=minidl.uint8)
    expected = [values(iterator), values(loader), values(loader)]
    assert len(expected[0]) == 4 - steps

    minidl.manual_seed(99)
    other = DataLoader(Noisy(), 3, shuffle=True, num_workers=1, worker_type="thread")
    other.load_state_dict(state)
    same = other.state_dict()
    assert {k: v for k, v in same.items() if k != "generator"} == {k: v for k, v in state.items() if k != "generator"}
    assert [values(other), values(other), values(other)] == expected


SAMPLERS = {
    "explicit generator": lambda: RandomSampler(range(11), generator=minidl.Generator().manual_seed(5)),
    "replacement": lambda: RandomSampler(range(11), replacement=True),
    "ranks": lambda: DistributedSampler(range(11), 2, 1),
    "own": lambda: Reversed(11),
}


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("finished", [False, True])
def test_samplers_go_on(make, finished):
    loader = DataLoader(Noisy(), 2, sampler=make())
    list(loader)
    iterator = iter(loader)
    next(iterator)
    rest = values(iterator) if finished else None
    state = loader.state_dict()
    expected = [values(loader)] if finished else [values(iterator), values(loader)]
    other = DataLoader(Noisy(), 2, sampler=make())
    other.load_state_dict(state)
    assert [values(other) for _ in expected] == expected and rest != expected[0]


@pytest.mark.parametrize("workers", [{}, THREADS], ids=["inline", "threads"])
@pytest.mark.parametrize("batch_size", [None, 3])
def test_a_stream_goes_on(workers, batch_size):
    generator = minidl.Generator().manual_seed(1)
    loader = DataLoader(Stream(), batch_size, generator=generator, collate_fn=lambda batch: batch, **workers)
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = loader.state_dict()
    expected = [list(iterator), list(loader)]
    other = DataLoader(Stream(), batch_size, generator=minidl.Generator(), collate_fn=lambda batch: batch, **workers)
    other.load_state_dict(state)
    assert [list(other), list(other)] == expected


def test_a_state_is_plain_data():
    loader = DataLoader(Noisy(), 2, sampler=DistributedSampler(range(11), 2, 0))
    next(iter(loader))
    state = loader.state_dict()
    kinds = {type(v) for v in (*state.values(), *state["sampler"].values())}
    assert kinds == {int, str, dict, minidl.Tensor}


@pytest.mark.parametrize("make, message", [
    (lambda: DataLoader(Noisy(12), 2), "length 12, got one with 11"), (lambda: DataLoader(Noisy(), 3), "batch_size 3, got one"),
    (lambda: DataLoader(Noisy(), 2, shuffle=True), "sampler RandomSampler, got one with SequentialSampler"),
    (lambda: DataLoader(Stream(11), 2), "sampler NoneType")])
def test_a_state_of_another_loader_is_refused(make, message):
    state = DataLoader(Noisy(), 2).state_dict()
    with pytest.raises(ValueError, match=message):
        make().load_state_dict(state)


def test_a_state_of_a_stream_with_other_workers_is_refused():
    state = DataLoader(Stream(), 2).state_dict()
    with pytest.raises(ValueError, match="num_workers 2, got one with 0"):
        DataLoader(Stream(), 2, num_workers=2, worker_type="thread").load_state_dict(state)


def test_no_state_is_refused():
    with pytest.raises(ValueError, match="without"):
        DataLoader(Noisy()).load_state_dict({"epoch": 1})


def test_a_sampler_that_has_become_shorter():
    loader = DataLoader(Noisy(), 1, sampler=[1, 2, 3])
    iterator = iter(loader)
    next(iterator), next(iterator)
    other = DataLoader(Noisy(), 1, sampler=[1])
    other.load_state_dict(loader.state_dict())
    with pytest.raises(RuntimeError, match="gives only 1"):
        iter(other)
