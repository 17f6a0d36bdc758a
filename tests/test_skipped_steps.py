"""A step whose gradients overflow: it is found out wherever it happens, skipped as if it had never been, and reported."""

from __future__ import annotations

import logging
import math
import threading

import numpy as np
import pytest

import minidl
from minidl import amp, nn
from minidl.amp import GradScaler, StaticScaler
from minidl.nn.utils import clip_grad_norm_, clip_grad_value_
from minidl.optim import SGD, AdamW
from minidl.optim.lr_scheduler import StepLR
from minidl.train import Trainer
from tests import fake_cuda

INF, NAN = math.inf, math.nan


def parameter(*values, dtype=minidl.float32):
    return minidl.tensor(values, dtype=dtype, requires_grad=True)


def backward(scaler, *pairs):
    """A scaled loss in which each parameter has the gradient given with it."""
    scaler.scale(sum((p * minidl.tensor(g, dtype=p.dtype)).sum() for p, g in pairs)).backward()


def skipped(scaler, optimizer):
    taken = scaler.step(optimizer)
    scaler.update()
    return not taken


# What is found out

@pytest.mark.parametrize("bad", [INF, -INF, NAN])
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("make", [GradScaler, StaticScaler])
def test_what_is_not_finite_before_unscale(make, place, bad):
    p, q = parameter(1.0, 2.0), parameter(3.0)
    scaler, optimizer = make(), SGD([p, q], lr=1.0)
    gradients = [0.5, 0.5, 0.5]
    gradients[place] = bad
    backward(scaler, (p, gradients[:2]), (q, gradients[2:]))
    assert skipped(scaler, optimizer)
    assert p.tolist() == [1, 2] and q.item() == 3 and p.grad is None and q.grad is None


@pytest.mark.parametrize("dtype, gradient", [(minidl.float16, 65504.0), (minidl.float32, 3e38)])
def test_what_the_scale_makes_overflow(dtype, gradient):
    p = parameter(1.0, dtype=dtype)
    scaler, optimizer = GradScaler(init_scale=2.0 ** 24), SGD([p], lr=1.0)
    backward(scaler, (p, [gradient]))
    assert skipped(scaler, optimizer) and p.item() == 1


@pytest.mark.parametrize("scale, gradient", [(1e-30, 3e38), (1e-320, 1.0), (1e-310, 0.0)])
def test_what_unscaling_makes_overflow(scale, gradient):
    p = parameter(1.0)
    scaler, optimizer = StaticScaler(scale), SGD([p], lr=1.0)
    p.grad = minidl.tensor([gradient])
    assert skipped(scaler, optimizer) and p.item() == 1


def test_gradients_near_the_limit_are_kept():
    p = parameter(1.0)
    scaler, optimizer = GradScaler(), SGD([p], lr=1e-38)
    p.grad = minidl.tensor([3e38])
    scaler.unscale_(optimizer)
    assert p.grad.item() == pytest.approx(3e38 / 65536)
    assert not skipped(scaler, optimizer)


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.float32])
@pytest.mark.parametrize("bad", [INF, NAN])
def test_gradients_broken_after_unscale(dtype, bad):
    p = parameter(1.0, 2.0, dtype=dtype)
    scaler, optimizer = GradScaler(init_scale=4.0), SGD([p], lr=1.0)
    backward(scaler, (p, [0.5, 0.5]))
    scaler.unscale_(optimizer)
    p.grad[1] = bad
    assert skipped(scaler, optimizer) and p.tolist() == [1, 2]


@pytest.mark.parametrize("clip", [
    lambda p, scaler, optimizer: clip_grad_norm_([p], 1.0, scaler=scaler, optimizer=optimizer),
    lambda p, scaler, optimizer: (scaler.unscale_(optimizer), clip_grad_norm_([p], 0.0)),
    lambda p, scaler, optimizer: (scaler.unscale_(optimizer), clip_grad_norm_([p], 1.0, INF)),
    lambda p, scaler, optimizer: (scaler.unscale_(optimizer), clip_grad_value_([p], 1.0)),
    lambda p, scaler, optimizer: (scaler.unscale_(optimizer), p.grad.zero_()),
])
@pytest.mark.parametrize("bad", [INF, NAN])
def test_a_clip_cannot_hide_it(clip, bad):
    p = parameter(1.0, 2.0)
    scaler, optimizer = GradScaler(), SGD([p], lr=1.0)
    backward(scaler, (p, [0.5, bad]))
    clip(p, scaler, optimizer)
    assert skipped(scaler, optimizer) and p.tolist() == [1, 2] and scaler.get_scale() == 32768


# What does not advance

def test_optimizer_state_and_counts_stay():
    p, control = parameter(1.0, 2.0), parameter(1.0, 2.0)
    scaler, optimizer, plain = GradScaler(), AdamW([p], lr=0.1), AdamW([control], lr=0.1)
    for g in ([1.0, 2.0], [INF, 1.0], [NAN, NAN], [3.0, 0.5]):
        optimizer.zero_grad()
        backward(scaler, (p, g))
        skipped(scaler, optimizer)
        if np.isfinite(g).all():
            control.grad = minidl.tensor(g)
            plain.step()
    assert (optimizer.taken_steps, optimizer.skipped_steps) == (2, 2)
    assert p.tolist() == control.tolist() and optimizer.state[p]["step"] == plain.state[control]["step"] == 2
    assert optimizer.state[p]["exp_avg_sq"].tolist() == plain.state[control]["exp_avg_sq"].tolist()


def test_a_schedule_stays_while_every_step_is_skipped(recwarn):
    p = parameter(1.0)
    scaler, optimizer = GradScaler(), SGD([p], lr=1.0)
    schedule = StepLR(optimizer, 1, gamma=0.5)
    lrs = []
    for epoch in ([INF, INF], [INF, 1.0], [NAN], [1.0]):
        for g in epoch:
            optimizer.zero_grad()
            backward(scaler, (p, [g]))
            skipped(scaler, optimizer)
        schedule.step()
        lrs.append(optimizer.param_groups[0]["lr"])
    assert lrs == [1, 0.5, 0.5, 0.25]
    assert not recwarn.list


def statistics(model):
    return {name: buffer.tolist() for name, buffer in model.named_buffers()}


def normalized(kind):
    minidl.manual_seed(0)
    if kind == "batch":
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)), (6, 3)
    if kind == "batch, cumulative":
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, momentum=None), nn.Linear(4, 1)), (6, 3)
    if kind == "half":
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).half(), (6, 3)
    if kind == "instance":
        return nn.Sequential(nn.Conv1d(3, 4, 1), nn.InstanceNorm1d(4, affine=True, track_running_stats=True)), (2, 3, 5)
    block = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
    return Checkpointed(block, nn.Linear(4, 1)), (6, 3)


class Checkpointed(nn.Module):
    def __init__(self, block, last):
        super().__init__()
        self.block, self.last = block, last

    def forward(self, x):
        return self.last(minidl.autograd.checkpoint(self.block, x))


@pytest.mark.parametrize("forwards", [1, 3])
@pytest.mark.parametrize("kind", ["batch", "batch, cumulative", "half", "instance", "checkpointed"])
def test_running_statistics_do_not_move(kind, forwards):
    model, shape = normalized(kind)
    half = kind == "half"
    scaler, optimizer = GradScaler(init_scale=8.0), SGD(model.parameters(), lr=0.1)

    def step(factor):
        optimizer.zero_grad()
        for _ in range(forwards):
            x = minidl.randn(*shape)
            y = model(x.half() if half else x)
            scaler.scale(y.float().sum() * factor).backward()
        return skipped(scaler, optimizer)

    assert not step(1.0)
    before = statistics(model)
    assert step(INF) and statistics(model) == before
    assert step(NAN) and statistics(model) == before
    assert not step(1.0)
    after = statistics(model)
    assert all(after[name] != before[name] for name in before if "running" in name)
    if kind != "instance":  # which counts no batches
        assert after[next(n for n in after if "num_batches" in n)] == 2 * forwards


def test_statistics_that_the_forward_has_broken_recover():
    """Activations beyond fp16 make the running mean inf, for good if the skipped step kept it."""
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    scaler, optimizer = GradScaler(), SGD(model.parameters(), lr=0.1)
    before = statistics(model)
    scaler.scale(model(minidl.tensor([[1e38, -3e38], [3e38, 3e38]]) * 10).sum()).backward()
    assert not np.isfinite(model[1].running_mean.tolist()).all()
    assert skipped(scaler, optimizer) and statistics(model) == before


def test_evaluation_moves_nothing_and_is_not_undone():
    model, shape = normalized("batch")
    scaler, optimizer = GradScaler(), SGD(model.parameters(), lr=0.1)
    before = statistics(model)
    model.eval()
    scaler.scale(model(minidl.randn(*shape)).sum() * INF).backward()
    assert skipped(scaler, optimizer) and statistics(model) == before


def test_only_what_moved_since_the_last_step_is_undone():
    """A warm-up without scaler, after the scaler was made, stays."""
    model, shape = normalized("batch")
    scaler, optimizer = GradScaler(), SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        model(minidl.randn(*shape)).sum().backward()
        optimizer.step()
    before = statistics(model)
    optimizer.zero_grad()
    scaler.scale(model(minidl.randn(*shape)).sum() * INF).backward()
    assert skipped(scaler, optimizer) and statistics(model) == before and before["1.num_batches_tracked"] == 3


def test_statistics_of_a_thread_that_uses_a_scaler_made_elsewhere():
    scaler = GradScaler()
    seen = []

    def train():
        model, shape = normalized("batch")
        optimizer = SGD(model.parameters(), lr=0.1)
        before = statistics(model)
        scaler.scale(model(minidl.randn(*shape)).sum() * INF).backward()
        seen.append(skipped(scaler, optimizer) and statistics(model) == before)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert seen == [True]


def test_statistics_without_overflow_are_those_without_scaler():
    found = []
    for enabled in (True, False):
        model, shape = normalized("batch")
        scaler, optimizer = GradScaler(enabled=enabled), SGD(model.parameters(), lr=0.1)
        minidl.manual_seed(1)
        for _ in range(2):
            optimizer.zero_grad()
            scaler.scale(model(minidl.randn(*shape)).sum()).backward()
            skipped(scaler, optimizer)
        found.append(statistics(model))
    assert found[0] == found[1]


def test_gradients_are_cleared_before_the_next_step():
    p = parameter(1.0)
    scaler, optimizer = GradScaler(), SGD([p], lr=1.0)
    backward(scaler, (p, [INF]))
    assert skipped(scaler, optimizer) and p.grad is None
    backward(scaler, (p, [0.5]))  # without zero_grad
    assert not skipped(scaler, optimizer) and p.item() == 0.5


# Several optimizers and ranks

@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_one_of_two_optimizers_skips_and_the_scale_moves_once(order):
    good, bad = parameter(1.0), parameter(1.0)
    scaler = GradScaler(init_scale=64.0, growth_interval=1)
    optimizers = [SGD([good], lr=1.0), SGD([bad], lr=1.0)]
    backward(scaler, (good, [0.5]), (bad, [INF]))
    taken = {i: scaler.step(optimizers[i]) for i in order}
    scaler.update()
    assert taken == {0: True, 1: False} and good.item() == 0.5 and bad.item() == 1
    assert scaler.get_scale() == 32
    assert [o.skipped_steps for o in optimizers] == [0, 1]


def test_all_ranks_skip_where_one_must(caplog):
    asked = []

    class OneOfTwo(SGD):
        def agree(self, flag):
            asked.append(flag)
            return True  # the other rank's gradients are not finite

    p = parameter(1.0)
    scaler, optimizer = GradScaler(), OneOfTwo([p], lr=1.0)
    backward(scaler, (p, [0.5]))
    assert skipped(scaler, optimizer)
    assert asked == [False] and p.item() == 1 and p.grad is None
    assert scaler.get_scale() == 32768 and optimizer.skipped_steps == 1
    assert "a parameter on another rank" in caplog.text


def test_all_ranks_are_told_before_one_branches():
    asked = []

    class Asked(SGD):
        def agree(self, flag):
            asked.append((flag, self.taken_steps, self.param_groups[0]["params"][0].grad is None))
            return flag

    p = parameter(1.0)
    scaler, optimizer = GradScaler(), Asked([p], lr=1.0)
    for g in (1.0, INF):
        backward(scaler, (p, [g]))
        skipped(scaler, optimizer)
        optimizer.zero_grad()
    assert asked == [(False, 0, False), (True, 1, False)]


# What is reported

@pytest.mark.parametrize("named, expected", [(True, "1.bias"), (False, "parameter 3 of group 0, of shape (2,),")])
def test_the_first_parameter_is_named_in_the_log(caplog, named, expected):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    scaler = GradScaler(init_scale=512.0)
    optimizer = SGD(model.named_parameters() if named else model.parameters(), lr=0.1)
    for p in model.parameters():
        p.grad = minidl.ones(*p.shape)
    model[1].bias.grad[0] = NAN
    model[2].weight.grad[0, 0] = INF
    with caplog.at_level(logging.INFO, "minidl.amp"):
        assert skipped(scaler, optimizer)
    assert f"the gradient of {expected} is not finite at loss scale 512" in caplog.text
    assert "2.weight" not in caplog.text


def test_the_smallest_scale_is_reported(caplog):
    p = parameter(1.0)
    scaler, optimizer = GradScaler(init_scale=2.0), SGD([p], lr=1.0)
    for _ in range(2):
        assert "smallest loss scale" not in caplog.text
        backward(scaler, (p, [INF]))
        skipped(scaler, optimizer)
    assert "overflow at the smallest loss scale, 1" in caplog.text


@pytest.mark.parametrize("make", [GradScaler, StaticScaler])
def test_too_many_skips_in_a_row_are_an_error(make):
    p = parameter(1.0)
    scaler, optimizer = make(max_consecutive_skips=3), SGD([("weight", p)], lr=1.0)
    for g in (INF, INF, 0.0, INF, INF):
        optimizer.zero_grad()
        backward(scaler, (p, [g]))
        skipped(scaler, optimizer)
    backward(scaler, (p, [INF]))
    with pytest.raises(RuntimeError, match=rf"3 steps in a row.*of weight is not finite at loss scale {scaler.get_scale():g}"):
        scaler.step(optimizer)


def test_fifty_skips_are_the_default_and_none_is_no_limit():
    p = parameter(1.0)
    for limit, expected in (({}, 50), ({"max_consecutive_skips": None}, None)):
        scaler, optimizer = GradScaler(**limit), SGD([p], lr=1.0)
        raised = None
        for i in range(1, 60):
            backward(scaler, (p, [INF]))
            try:
                skipped(scaler, optimizer)
            except RuntimeError:
                raised = i
                break
        assert raised == expected


def test_an_iteration_counts_as_one_skip_however_many_optimizers_skip_in_it():
    p, q, good = parameter(1.0), parameter(1.0), parameter(1.0)
    scaler = GradScaler(max_consecutive_skips=2)
    optimizers = [SGD([r], lr=0.0) for r in (p, q, good)]
    for expected in (1, 2):
        backward(scaler, (p, [INF]), (q, [INF]), (good, [1.0]))
        if expected == 2:  # a step that is taken beside does not end the row
            with pytest.raises(RuntimeError, match="2 steps in a row"):
                scaler.step(optimizers[0])
            break
        assert [scaler.step(o) for o in optimizers] == [False, False, True]
        scaler.update()
        good.grad = None


def test_a_trainer_says_that_a_step_was_skipped():
    model = nn.Linear(2, 1)
    trainer = Trainer(model, lambda y, t: ((y - t) ** 2).mean(), SGD(model.parameters(), lr=0.1), scaler=GradScaler())
    good, bad = minidl.ones(3, 2), minidl.full((3, 2), INF)
    seen = []
    for x in (good, bad, good):
        assert trainer.train_minibatch((x, minidl.ones(3, 1)))
        seen.append(trainer.previous_step_skipped)
    assert seen == [False, True, False] and trainer.scaler.get_scale() == 32768


def test_all_this_on_a_gpu():
    with fake_cuda.installed():
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).to("cuda")
        scaler, optimizer = GradScaler(init_scale=8.0, growth_interval=1), SGD(model.parameters(), lr=0.1)
        x, before = minidl.randn(6, 3).to("cuda"), statistics(model)
        scaler.scale(model(x).sum() * INF).backward()
        assert skipped(scaler, optimizer) and statistics(model) == before
        scaler.scale(model(x).sum()).backward()
        scaler.update(2.0)
        scaler.scale(model(x).sum()).backward()
        clip_grad_norm_(model.parameters(), 1.0, scaler=scaler, optimizer=optimizer)
        assert not skipped(scaler, optimizer) and statistics(model) != before and scaler.get_scale() == 4


# What scaling is for

def test_scaling_saves_gradients_that_vanish_in_fp16():
    """The gradient of a small part of a loss is below the smallest fp16 number, 6e-8."""
    def trained(scaler):
        minidl.manual_seed(0)
        model = nn.Linear(4, 1, bias=False)
        start = model.weight.tolist()
        optimizer = SGD(model.parameters(), lr=2e7)
        x = minidl.randn(64, 4)
        target = x @ minidl.tensor([[1.0], [-2.0], [3.0], [0.5]])
        for _ in range(60):
            optimizer.zero_grad()
            with amp.autocast(dtype=minidl.float16):
                y = model(x)
            scaler.scale(((y.float() - target) ** 2).mean() * 1e-8).backward()
            scaler.step(optimizer)
            scaler.update()
        return start, model.weight.tolist()

    start, end = trained(GradScaler())
    np.testing.assert_allclose(end, [[1, -2, 3, 0.5]], atol=0.01)
    start, end = trained(GradScaler(enabled=False))
    assert start == end
