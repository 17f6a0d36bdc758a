"""Counting memory, and that backward leaves nothing behind."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import minidl
from minidl.tensor.memory import memory_stats, track_memory
from tests import fake_cuda

SIZE = 1 << 20  # bytes of the tensors below
COUNT = SIZE // 4


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def cpu():
    return memory_stats()["cpu"]


def near(bytes_, units):
    return abs(bytes_ - units * SIZE) < 0.1 * SIZE


def test_current_and_peak():
    with track_memory():
        kept = minidl.zeros(COUNT) + 1
        assert near(cpu()["current"], 1) and near(cpu()["peak"], 2)
        del kept
        assert near(cpu()["current"], 0) and near(cpu()["peak"], 2)


def test_memory_from_before_does_not_count():
    before = minidl.ones(COUNT)
    with track_memory():
        assert near(cpu()["current"], 0)
        del before
        assert near(cpu()["current"], 0) and near(cpu()["peak"], 0)


def test_nested_blocks_have_peaks_of_their_own():
    with track_memory() as outer:
        (minidl.zeros(3 * COUNT) + 1).sum()
        with track_memory() as inner:
            kept = minidl.ones(COUNT)
            assert near(cpu()["peak"], 1)
        assert near(outer.stats()["cpu"]["peak"], 6) and near(cpu()["current"], 1)
    assert near(inner.stats()["cpu"]["peak"], 1) and near(outer.stats()["cpu"]["peak"], 6)
    del kept


def test_a_peak_in_an_inner_block_is_the_outer_ones_too():
    with track_memory():
        kept = minidl.ones(COUNT)
        with track_memory():
            minidl.ones(4 * COUNT)
        assert near(cpu()["peak"], 5)
        del kept


def test_a_running_tracemalloc_goes_on():
    tracemalloc.start()
    try:
        with track_memory():
            pass
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    with track_memory():
        assert tracemalloc.is_tracing()
    assert not tracemalloc.is_tracing()


def test_an_error_inside_ends_the_count():
    with pytest.raises(ZeroDivisionError), track_memory():
        raise ZeroDivisionError
    assert not tracemalloc.is_tracing()
    with pytest.raises(RuntimeError, match="track_memory"):
        memory_stats()


def test_backward_frees_what_the_forward_kept(no_collector):
    x = minidl.ones(COUNT, requires_grad=True)
    with track_memory():
        y = (x * 2).exp() * x
        assert near(cpu()["current"], 2)  # the value and exp's value, which both pullbacks need
        y.sum().backward()
        del y
        assert near(cpu()["current"], 1)  # the gradient


@pytest.mark.parametrize("compute", [
    lambda x: (x.exp() * x).sum(),
    lambda x: (x.reshape(2, -1)[0] ** 2).mean(),
    lambda x: minidl.cat([x, x * 2]).sum(),
    lambda x: (x * 1).mul_(x.detach()).sum(),
    lambda x: x.to("float64").half().sum(),
    lambda x: minidl.zeros(COUNT).copy_(x).sum(),
], ids=["product", "views", "cat", "in place", "casts", "copy"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_no_cycle_keeps_arrays_alive(no_collector, compute, create_graph):
    x = minidl.from_numpy(np.linspace(0, 1, COUNT, dtype=np.float32)).requires_grad_()
    compute(x).backward()  # caches fill
    x.grad = None
    with track_memory():
        g, = minidl.autograd.grad(compute(x), x, create_graph=create_graph)
        del g
        assert near(cpu()["current"], 0)


def test_cuda_memory_is_counted():
    with fake_cuda.installed():
        before = minidl.zeros(COUNT, device="cuda")
        with track_memory() as block:
            kept = before + 1
            (kept * 2).sum()
            found = memory_stats()["cuda:0"]
            assert near(found["current"], 1) and near(found["peak"], 2)
            del kept
            with track_memory():
                on_second = minidl.zeros(COUNT, device="cuda:1")
                assert near(memory_stats()["cuda:1"]["peak"], 1)
            del on_second
        assert near(block.stats()["cuda:0"]["current"], 0) and near(block.stats()["cuda:0"]["peak"], 2)
        assert near(block.stats()["cuda:1"]["peak"], 1)
        assert minidl.cuda.memory_allocated() >= SIZE
