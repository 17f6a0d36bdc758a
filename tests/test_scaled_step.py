"""A step under a loss scaler: the order of its parts, and gradients that carry the scale they were made with."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import minidl
import minidl.nn.functional as F
from minidl import nn
from minidl.amp import GradScaler, StaticScaler
from minidl.nn.utils import clip_grad_norm_, clip_grad_value_
from minidl.optim import LBFGS, SGD

INF = math.inf


def parameter(*values, dtype=minidl.float32):
    return minidl.tensor(values, dtype=dtype, requires_grad=True)


def loss_of(p, *gradient):
    """A loss whose gradient is the one given."""
    return (p * minidl.tensor(gradient, dtype=p.dtype)).sum()


# The order of a step

def test_the_clip_sees_true_gradients():
    p = parameter(0.0, 0.0)
    scaler, optimizer = GradScaler(), SGD([p], lr=1.0)
    scaler.scale(loss_of(p, 3.0, 4.0)).backward()
    assert clip_grad_norm_([p], 1.0, scaler=scaler, optimizer=optimizer).item() == 5
    assert scaler.step(optimizer)
    scaler.update()
    np.testing.assert_allclose(p.tolist(), [-0.6, -0.8], rtol=1e-5)


@pytest.mark.parametrize("through", [lambda loss: loss, lambda loss: loss / 4, lambda loss: loss + loss])
@pytest.mark.parametrize("clip", [clip_grad_norm_, clip_grad_value_])
def test_a_clip_of_scaled_gradients_is_refused(clip, through):
    p = parameter(0.0)
    scaler, optimizer = GradScaler(), SGD([p], lr=1.0)
    through(scaler.scale(loss_of(p, 12.0))).backward()
    with pytest.raises(RuntimeError, match=r"loss scale 65536.*unscale_"):
        clip([p], 1.0)
    scaler.unscale_(optimizer)
    clip([p], 1.0)
    assert p.grad.item() == pytest.approx(1.0)


def test_masters_take_what_half_parameters_cannot():
    """The master proof: an update of 2^-14 is lost in fp16, the master has it."""
    p = parameter(1.0, dtype=minidl.float16)
    scaler, optimizer = GradScaler(), SGD([p], lr=1.0)
    scaler.scale(p.float().sum() * 2.0 ** -14).backward()
    assert scaler.step(optimizer)
    assert optimizer.state[p]["master"].item() == 1 - 2 ** -14 and p.item() == 1


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16])
def test_half_gradients_become_float32_and_keep_what_is_tiny(dtype):
    p = parameter(1.0, dtype=dtype)
    scaler, optimizer = GradScaler(), SGD([p], lr=1.0)
    scaler.scale(p.float().sum() * 1e-8).backward()
    assert p.grad.dtype == dtype
    scaler.unscale_(optimizer)
    assert p.grad.dtype == minidl.float32
    assert p.grad.item() == pytest.approx(1e-8, rel=0.01)
    scaler.step(optimizer)
    assert optimizer.state[p]["master"].item() == np.float32(1) - np.float32(p.grad.item())
    scaler.update()
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.item() == 0


@pytest.mark.parametrize("replaced", [False, True], ids=["in the optimizer's array", "elsewhere"])
def test_unscaling_wherever_the_gradient_lies(replaced):
    p, q = parameter(1.0, 2.0), parameter(3.0)
    scaler, optimizer = StaticScaler(4.0), SGD([p, q], lr=1.0)
    scaler.scale(loss_of(p, 0.25, 0.5) + loss_of(q, 1.0)).backward()
    if replaced:
        p.grad, q.grad = p.grad.clone(), q.grad * 1
    assert scaler.step(optimizer)
    assert p.tolist() == [0.75, 1.5] and q.item() == 2


def test_the_order_of_calls_is_checked():
    p = parameter(1.0)
    scaler, optimizer = GradScaler(), SGD([p], lr=0.0)
    with pytest.raises(RuntimeError, match=r"update\(\) was called before step"):
        scaler.update()
    scaler.scale(loss_of(p, 1.0)).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="unscale_ was called on this optimizer already"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"update\(\) was called before step"):
        scaler.update()
    with pytest.raises(RuntimeError, match="has been unscaled already"):
        scaler.scale(loss_of(p, 1.0)).backward()
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="step was called on this optimizer already"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_ is called after step\(\)"):
        scaler.unscale_(optimizer)
    scaler.update()
    with pytest.raises(RuntimeError, match=r"update\(\) was called before step"):
        scaler.update()
    with pytest.raises(RuntimeError, match="zero_grad first"):  # nobody has cleared the gradients
        scaler.scale(loss_of(p, 1.0)).backward()


def test_backward_after_unscale_is_an_error_at_scale_1_too():
    p = parameter(1.0)
    scaler, optimizer = GradScaler(init_scale=1.0), SGD([p], lr=0.0)
    scaler.scale(loss_of(p, 1.0)).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="has been unscaled already"):
        scaler.scale(loss_of(p, 1.0)).backward()


def test_gradients_zeroed_by_hand_after_a_step_are_no_error():
    p = parameter(1.0)
    scaler, optimizer = GradScaler(), SGD([p], lr=1.0)
    for _ in range(2):
        scaler.scale(loss_of(p, 0.25)).backward()
        scaler.step(optimizer)
        scaler.update()
        p.grad.zero_()
    assert p.item() == 0.5


@pytest.mark.parametrize("make", [lambda p: SGD([p], lr=0.1), lambda p: LBFGS([p])])
def test_closures_are_refused(make):
    p = parameter(1.0)
    with pytest.raises(RuntimeError, match="takes no closure.*without a scaler"):
        GradScaler().step(make(p), lambda: loss_of(p, 1.0))


def test_an_optimizer_that_needs_a_closure_is_refused_without_one():
    with pytest.raises(RuntimeError, match="takes no closure.*LBFGS without a scaler"):
        GradScaler().step(LBFGS([parameter(1.0)]))


def test_a_step_without_gradients_does_nothing_with_a_warning_and_satisfies_update():
    asked = []

    class Asked(SGD):
        def agree(self, flag):
            asked.append(flag)
            return flag

    p = parameter(1.0)
    scaler = GradScaler(init_scale=4, growth_interval=1)
    with pytest.warns(UserWarning, match="no parameter of the Asked has a gradient"):
        assert scaler.step(Asked([p], lr=1.0))
    scaler.update()
    assert asked == [False] and p.item() == 1 and scaler.get_scale() == 8


def test_an_optimizer_may_be_gone_before_update():
    p = parameter(1.0)
    scaler = GradScaler()
    scaler.scale(loss_of(p, 1.0)).backward()
    scaler.step(SGD([p], lr=0.5))
    scaler.update()
    assert p.item() == 0.5


# Gradients carry their scale

def test_accumulation_over_a_change_of_scale():
    p, q = parameter(0.0), parameter(0.0)
    scaler = GradScaler(init_scale=4, growth_interval=1)
    every, second = SGD([p], lr=1.0), SGD([q], lr=1.0)
    for batch in range(2):
        every.zero_grad()
        scaler.scale(loss_of(p, 1.0) + loss_of(q, 0.25)).backward()
        scaler.step(every)
        if batch == 1:
            assert q.grad.item() == 0.5 * 8
            scaler.step(second)
        scaler.update()
    assert p.item() == -2 and q.item() == -0.5 and scaler.get_scale() == 16


def test_a_gradient_of_an_earlier_scale_is_unscaled_by_that():
    p, q = parameter(0.0), parameter(0.0)
    scaler = GradScaler(init_scale=4)
    optimizer = SGD([p, q], lr=1.0)
    scaler.scale(loss_of(p, 1.0)).backward()
    scaler.update(1024.0)
    scaler.scale(loss_of(q, 1.0)).backward()
    scaler.step(optimizer)
    assert p.item() == q.item() == -1


def test_a_parameter_of_two_optimizers_is_unscaled_once():
    p = parameter(0.0)
    scaler, optimizers = GradScaler(), [SGD([p], lr=1.0), SGD([p], lr=10.0)]
    scaler.scale(loss_of(p, 0.5)).backward()
    for optimizer in optimizers:
        assert scaler.step(optimizer)
    scaler.update()
    assert p.item() == -5.5


def test_two_losses():
    p = parameter(0.0)
    scaler, optimizer = GradScaler(), SGD([p], lr=1.0)
    for loss in scaler.scale([loss_of(p, 0.5), loss_of(p, 0.25)]):
        loss.backward(retain_graph=True)
    scaler.step(optimizer)
    assert p.item() == -0.75


def test_one_backward_of_two_scales_is_refused():
    p = parameter(0.0)
    with pytest.raises(RuntimeError, match="losses of the scales"):
        (StaticScaler(2.0).scale(loss_of(p, 1.0)) + StaticScaler(4.0).scale(loss_of(p, 1.0))).backward()
    p.grad = None
    loss_of(p, 1.0).backward()
    assert not hasattr(p.grad, "grad_scale")


def test_a_true_gradient_may_be_added_after_unscale():
    p = parameter(0.0)
    scaler, optimizer = GradScaler(), SGD([p], lr=1.0)
    scaler.scale(loss_of(p, 0.5)).backward()
    scaler.unscale_(optimizer)
    loss_of(p, 0.25).backward()
    scaler.step(optimizer)
    assert p.item() == -0.75


def test_gradients_set_by_hand_count_as_scaled():
    p = parameter(1.0)
    scaler, optimizer = StaticScaler(4.0), SGD([p], lr=1.0)
    p.grad = minidl.tensor([2.0])
    scaler.step(optimizer)
    assert p.item() == 0.5


def test_a_gradient_penalty():
    def penalized(scaler):
        minidl.manual_seed(3)
        model, x = nn.Linear(4, 2), minidl.randn(5, 4)
        optimizer = SGD(model.parameters(), lr=0.1)
        loss = F.cross_entropy(model(x).tanh(), minidl.tensor([0, 1, 0, 1, 1]))
        scaled = minidl.autograd.grad(scaler.scale(loss), list(model.parameters()), create_graph=True)
        true = [g * (1 / scaler.get_scale()) for g in scaled]
        scaler.scale(loss + sum((g ** 2).sum() for g in true)).backward()
        assert scaler.step(optimizer)
        return [p.tolist() for p in model.parameters()]

    assert penalized(GradScaler()) == penalized(GradScaler(enabled=False))


# Not enabled

@pytest.mark.parametrize("make", [lambda: GradScaler(enabled=False), lambda: StaticScaler(4.0, enabled=False)])
def test_not_enabled_is_the_identity(make):
    scaler = make()
    p = parameter(1.0)
    optimizer, loss = SGD([p], lr=1.0), loss_of(p, INF)
    assert scaler.scale(loss) is loss and scaler.scale("anything") == "anything"
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)
    clip_grad_value_([p], 0.5)
    assert scaler.step(optimizer) and p.item() == 0.5
    scaler.update()
    assert not scaler.is_enabled() and scaler.get_scale() == 1 and scaler.state_dict() == {}
    scaler.load_state_dict({"scale": 3.0})
    assert scaler.step(LBFGS([p], lr=0.0), lambda: loss_of(p, 1.0))
    assert not pickle.loads(pickle.dumps(scaler)).is_enabled()




def test_a_gradient_made_without_a_scale_does_not_meet_scaled_ones():
    p = parameter(1.0)
    loss_of(p, 1.0).backward()
    with pytest.raises(RuntimeError, match="made without a scale"):
        GradScaler().scale(loss_of(p, 1.0)).backward()
