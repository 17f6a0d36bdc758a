"""What all optimizers share: groups, flat arrays, half parameters, missing gradients, state dicts, hooks."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import minidl
from minidl.nn.parameter import Parameter
from minidl.optim import SGD, Adam, AdamW, Optimizer

DTYPES = [minidl.float16, minidl.bfloat16, minidl.float32, minidl.float64]


def parameters(dtype=minidl.float32):
    return [Parameter(minidl.tensor(np.linspace(-1, 1, n).reshape(shape), dtype=dtype))
            for n, shape in ((6, (2, 3)), (5, (5,)), (1, ()), (8, (2, 2, 2)))]


def train(optimizer, ps, steps, skip=lambda t, i: False):
    for t in range(steps):
        optimizer.zero_grad()
        sum((p.float() * p.float() * (i + 1)).sum() for i, p in enumerate(ps) if not skip(t, i)).backward()
        optimizer.step()


def values(ps):
    return [p.double().tolist() for p in ps]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_parameters_and_gradients_share_flat_arrays_and_stay_tensors_of_their_own(dtype):
    ps = parameters(dtype)
    optimizer = Adam(ps)
    train(optimizer, ps, 1)
    assert len({id(p.array.base) for p in ps}) == 1 and len({id(p.grad.array.base) for p in ps}) == 1
    version = ps[1]._version
    with minidl.no_grad():
        ps[0].mul_(2)
    assert ps[1]._version == version


def test_an_older_gradient_that_somebody_holds_stays_what_it_was():
    for hold in (lambda g: g, lambda g: g.detach().view(-1), lambda g: g.numpy(), lambda g: g[:1]):
        p = Parameter(minidl.ones(3))
        optimizer = SGD([p], lr=0.1)
        (p * 2).sum().backward()
        held = hold(p.grad)
        optimizer.zero_grad()
        (p * 5).sum().backward()
        assert np.asarray(held).ravel()[0] == 2 and p.grad[0].item() == 5
        optimizer.step()
        assert p.tolist() == pytest.approx([0.5] * 3)


def test_parameters_without_a_gradient_stay_and_their_state_too():
    ps, qs = parameters(), parameters()
    optimizer = AdamW(ps, lr=0.1)
    train(optimizer, ps, 6, skip=lambda t, i: i == 1 and t % 2)
    alone = AdamW([qs[1]], lr=0.1)
    for _ in range(3):
        alone.zero_grad()
        (qs[1] * qs[1] * 2).sum().backward()
        alone.step()
    assert values(ps)[1] == values(qs)[1]
    assert optimizer.state[ps[1]]["step"] == 3 and optimizer.state[ps[0]]["step"] == 6


def test_one_optimizer_over_many_equals_one_for_each():
    ps, qs = parameters(), parameters()
    train(Adam(ps, lr=0.1), ps, 5)
    for i, q in enumerate(qs):
        one = Adam([q], lr=0.1)
        for _ in range(5):
            one.zero_grad()
            (q * q * (i + 1)).sum().backward()
            one.step()
    assert values(ps) == values(qs)


def test_groups_have_options_of_their_own_that_may_change():
    a, b = Parameter(minidl.ones(1)), Parameter(minidl.ones(1))
    optimizer = SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    optimizer.add_param_group({"params": [Parameter(minidl.ones(1))], "momentum": 0.9})
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.5, 0.1] and optimizer.param_groups[2]["momentum"] == 0.9
    optimizer.param_groups[0]["lr"] = 1.0
    a.grad, b.grad = minidl.ones(1), minidl.ones(1)
    optimizer.step()
    assert a.item() == 0 and b.item() == 0.5


def test_named_parameters():
    optimizer = SGD([("w", Parameter(minidl.ones(1))), ("b", Parameter(minidl.ones(1)))], lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["w", "b"]


@pytest.mark.parametrize("params, error, message", [
    (lambda: Parameter(minidl.ones(1)), TypeError, "wrap it in a list"),
    (lambda: [], ValueError, "empty"),
    (lambda: [3], TypeError, "got int"),
    (lambda: [Parameter(minidl.ones(1)) * 2], ValueError, "leaves"),
    (lambda: [minidl.ones(1, dtype=minidl.int64)], ValueError, "int64"),
    (lambda: [Parameter(minidl.ones(1))] * 2, ValueError, "twice"),
    (lambda: [{"params": {Parameter(minidl.ones(1))}}], TypeError, "a set"),
])
def test_what_is_no_list_of_parameters_is_refused(params, error, message):
    with pytest.raises(error, match=message):
        SGD(params(), lr=0.1)


# Half parameters

@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16], ids=str)
def test_small_updates_of_half_parameters_add_up_in_the_master(dtype):
    p = Parameter(minidl.ones(3, dtype=dtype))
    optimizer = SGD([p], lr=2.0 ** -14)
    p.grad = minidl.ones(3, dtype=dtype)
    optimizer.step()
    assert optimizer.state[p]["master"].tolist() == [1 - 2.0 ** -14] * 3 and p.tolist() == [1.0] * 3
    for _ in range(2 ** 9 - 1):
        optimizer.step()
    assert p.tolist() == [1 - 2.0 ** -5] * 3


def test_without_masters_small_updates_are_rounded_away():
    p = Parameter(minidl.ones(3, dtype=minidl.float16))
    optimizer = SGD([p], lr=2.0 ** -14, master_weights=False)
    p.grad = minidl.ones(3, dtype=minidl.float16)
    optimizer.step()
    assert p.tolist() == [1.0] * 3 and "master" not in optimizer.state[p]


def test_the_master_follows_edits_of_the_half_parameter_and_keeps_what_was_not_edited():
    p = Parameter(minidl.ones(3, dtype=minidl.float16))
    optimizer = SGD([p], lr=2.0 ** -14)
    p.grad = minidl.ones(3, dtype=minidl.float16)
    optimizer.step()
    with minidl.no_grad():
        p[0] = 3
    optimizer.step()
    assert optimizer.state[p]["master"].tolist() == [3 - 2.0 ** -14, 1 - 2.0 ** -13, 1 - 2.0 ** -13]


def test_half_training_follows_float32():
    ps, qs = parameters(minidl.float16), parameters()
    train(Adam(ps, lr=0.01), ps, 30)
    train(Adam(qs, lr=0.01), qs, 30)
    for p, q in zip(ps, qs):
        np.testing.assert_allclose(p.float().numpy(), q.numpy(), atol=2e-3)


def test_float32_gradients_of_half_parameters_keep_their_precision():
    p = Parameter(minidl.ones(2, dtype=minidl.float16))
    optimizer = SGD([p], lr=1.0)
    p.node.grad = minidl.tensor([1e-8, 1e-3])  # as an unscaled gradient is
    optimizer.step()
    np.testing.assert_allclose(optimizer.state[p]["master"].numpy(), np.float32([1, 1]) - np.float32([1e-8, 1e-3]), rtol=0)


# Changes from outside

def test_a_replaced_or_converted_parameter_keeps_its_state():
    ps = parameters()
    optimizer = Adam(ps, lr=0.1)
    train(optimizer, ps, 2)
    before = optimizer.state[ps[0]]["exp_avg"].tolist()
    ps[0].data = minidl.zeros(2, 3)
    ps[1].data = ps[1].data.double()
    train(optimizer, [ps[2], ps[3]], 1)
    assert optimizer.state[ps[0]]["exp_avg"].tolist() == before
    train(optimizer, ps, 1)
    assert ps[1].dtype == minidl.float64 and optimizer.state[ps[1]]["exp_avg"].dtype == minidl.float64
    assert ps[0].tolist() == [[0.0] * 3] * 2 or abs(ps[0].numpy()).max() < 0.2


def test_state_written_by_the_user_counts():
    p = Parameter(minidl.ones(2))
    optimizer = SGD([p], lr=1.0, momentum=0.5)
    p.grad = minidl.ones(2)
    optimizer.step()
    optimizer.state[p]["momentum_buffer"] = minidl.full((2,), 4.0)
    optimizer.step()
    assert p.tolist() == [1 - 1 - 3.0] * 2
    optimizer.state.clear()
    optimizer.step()
    assert p.tolist() == [-4.0] * 2 and optimizer.state[p]["step"] == 1


def test_an_option_that_needs_more_state_may_be_switched_on_later():
    p = Parameter(minidl.ones(2))
    optimizer = SGD([p], lr=1.0)
    p.grad = minidl.ones(2)
    optimizer.step()
    optimizer.param_groups[0].update(momentum=0.5, dampening=0.5)
    optimizer.step()
    optimizer.step()
    assert p.tolist() == [1 - 1 - 1 - 1.0] * 2


def test_two_optimizers_may_share_a_parameter():
    p = Parameter(minidl.ones(2))
    one, two = SGD([p], lr=1.0), SGD([p, Parameter(minidl.ones(1))], lr=10.0)
    for _ in range(2):
        for optimizer in (one, two):
            optimizer.zero_grad()
            (p * 1.0).sum().backward()
            optimizer.step()
    assert p.tolist() == [1 - 22.0] * 2


def test_freezing_and_thawing():
    p = Parameter(minidl.ones(2))
    optimizer = SGD([p], lr=1.0)
    p.requires_grad_(False)
    optimizer.step()
    p.requires_grad_()
    p.sum().backward()
    optimizer.step()
    assert p.tolist() == [0.0] * 2


def test_gradients_set_by_the_user_and_empty_parameters():
    p, q = Parameter(minidl.ones(2)), Parameter(minidl.ones(0, 3))
    optimizer = Adam([p, q], lr=0.1)
    p.grad, q.grad = minidl.ones(2), minidl.ones(0, 3)
    optimizer.step()
    np.testing.assert_allclose(p.numpy(), 0.9, rtol=1e-5)


def test_a_step_does_not_change_gradients():
    for maximize in (False, True):
        p = Parameter(minidl.ones(2))
        optimizer = Adam([p], weight_decay=0.1, maximize=maximize)
        p.grad = minidl.ones(2)
        optimizer.step()
        assert p.grad.tolist() == [1.0] * 2


def test_an_edit_by_a_step_is_seen_by_backward():
    p = Parameter(minidl.ones(2))
    optimizer = SGD([p], lr=1.0)
    loss = (p * p).sum()
    p.grad = minidl.ones(2)
    optimizer.step()
    with pytest.raises(RuntimeError, match="edited in place"):
        loss.backward()


def test_state_of_dead_gradients_ends_at_zero_and_not_in_subnormal_numbers():
    for make in (lambda ps: SGD(ps, lr=0.1, momentum=0.9), lambda ps: Adam(ps, betas=(0.9, 0.9))):
        p = Parameter(minidl.ones(3))
        optimizer = make([p])
        p.grad = minidl.tensor([1.0, 1e-30, 1.0])
        for _ in range(1040):
            optimizer.step()
            p.grad = minidl.tensor([0.0, 0.0, 1.0])
        for name, tensor in optimizer.state[p].items():
            if isinstance(tensor, minidl.Tensor):
                assert tensor[:2].tolist() == [0.0, 0.0] and tensor[2].item() > 0.9, name


# Parameters that come, go and are copied

def test_a_parameter_that_was_frozen_stays_where_it_is():
    ps = parameters()
    optimizer = Adam(ps, lr=0.1)
    train(optimizer, ps, 2)
    ps[0].requires_grad_(False)
    before = ps[0].tolist(), ps[1].tolist()
    optimizer.zero_grad()
    sum((p * p).sum() for p in ps).backward()
    optimizer.step()
    assert ps[0].tolist() == before[0] and ps[1].tolist() != before[1]
    ps[0].requires_grad_()
    optimizer.zero_grad()
    sum((p * p).sum() for p in ps).backward()
    optimizer.step()
    assert ps[0].tolist() != before[0]


def test_a_parameter_put_into_a_group_in_place_of_another_is_optimized():
    old, new = Parameter(minidl.ones(2)), Parameter(minidl.ones(2))
    optimizer = SGD([old], lr=0.5)
    optimizer.param_groups[0]["params"][0] = new
    old.grad, new.grad = minidl.ones(2), minidl.ones(2)
    optimizer.step()
    assert old.tolist() == [1.0, 1.0] and new.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_optimizer_is_copied_with_its_parameters(copied, dtype):
    ps = parameters(dtype)
    optimizer = Adam(ps, lr=0.1)
    optimizer.register_step_post_hook(lambda *args: None)
    train(optimizer, ps, 3)
    qs, other = copied((ps, optimizer))
    before = values(ps)
    train(other, qs, 3)
    assert values(ps) == before
    train(optimizer, ps, 3)
    assert values(ps) == values(qs) and other.taken_steps == 6


# State dicts

@pytest.mark.parametrize("make", [lambda ps: SGD(ps, lr=0.1, momentum=0.9), lambda ps: Adam(ps, lr=0.1, amsgrad=True)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_resuming_is_bit_equal(make, dtype):
    ps = parameters(dtype)
    optimizer = make(ps)
    train(optimizer, ps, 3, skip=lambda t, i: i == 2 and t == 1)
    qs = copy.deepcopy(ps)
    other = make(qs)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(optimizer, ps, 3)
    train(other, qs, 3)
    assert values(ps) == values(qs)
    assert [p.array.tobytes() for p in ps] == [q.array.tobytes() for q in qs]


def test_the_state_dict_has_pytorchs_layout():
    ps = parameters()
    optimizer = Adam([{"params": ps[:2]}, {"params": ps[2:], "lr": 0.5}])
    train(optimizer, ps, 1)
    state = optimizer.state_dict()
    assert [g["params"] for g in state["param_groups"]] == [[0, 1], [2, 3]] and state["param_groups"][1]["lr"] == 0.5
    assert set(state["state"]) == {0, 1, 2, 3} and set(state["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}


def test_state_of_pytorch_loads():
    p = Parameter(minidl.ones(2))
    optimizer = Adam([p])
    optimizer.load_state_dict({
        "state": {0: {"step": np.float32(4.0), "exp_avg": np.ones(2, np.float32), "exp_avg_sq": np.ones(2, np.float32)}},
        "param_groups": [{"lr": 0.25, "betas": (0.5, 0.5), "eps": 0.0, "weight_decay": 0, "amsgrad": False, "params": [0]}]})
    p.grad = minidl.ones(2)
    optimizer.step()
    assert optimizer.state[p]["step"] == 5
    np.testing.assert_allclose(p.numpy(), 1 - 0.25 / (1 - 2.0 ** -5) * np.sqrt(1 - 2.0 ** -5), rtol=1e-6)


@pytest.mark.parametrize("change, message", [
    (lambda s: s.pop("state"), "state and param_groups"),
    (lambda s: s["param_groups"].append({"params": [4]}), r"\[4\] parameters, got \[4, 1\]"),
    (lambda s: s["param_groups"][0]["params"].pop(), r"got \[3\]"),
    (lambda s: s["state"][0].update(exp_avg=minidl.ones(7)), r"exp_avg of the parameter 0 of shape \(2, 3\), got \(7,\)"),
    (lambda s: s["state"].update({9: {}}), "parameter 9"),
    (lambda s: s["state"].update({0: {"momentum_buffer": minidl.ones(2, 3)}}), "saved by another optimizer"),
])
def test_a_state_dict_that_does_not_fit_changes_nothing(change, message):
    ps = parameters()
    optimizer = Adam(ps)
    train(optimizer, ps, 1)
    state = copy.deepcopy(optimizer.state_dict())
    change(state)
    with pytest.raises(ValueError, match=message):
        optimizer.load_state_dict(state)
    assert optimizer.state[ps[0]]["step"] == 1


def test_closures_hooks_and_zero_grad():
    p, seen = Parameter(minidl.ones(1)), []
    optimizer = SGD([p], lr=1.0)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(p.item()))

    def closure():
        optimizer.zero_grad()
        loss = (p * 1.0).sum()
        loss.backward()
        return loss

    with minidl.no_grad():
        assert optimizer.step(closure).item() == 1
    assert seen == ["before", 0.0]
    handle.remove()
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.item() == 0
    optimizer.zero_grad()
    assert p.grad is None
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: {k: v for k, v in state.items() if k != "more"})
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)


def test_a_subclass_in_pytorchs_style():
    class Halve(Optimizer):
        def __init__(self, params):
            super().__init__(params, {"rate": 0.5})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    self.state[p]["count"] = self.state[p].get("count", 0) + 1
                    with minidl.no_grad():
                        p.mul_(group["rate"])

    p = Parameter(minidl.ones(1))
    optimizer = Halve([p])
    optimizer.step(), optimizer.step()
    assert p.item() == 0.25 and optimizer.state_dict()["state"][0]["count"] == 2


def test_a_formula_is_an_optimizer():
    class Sign(Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def update(self, xp, group, now, p, g, state):
            p -= group["lr"] * xp.sign(g)

    ps = parameters(minidl.float16)
    optimizer = Sign(ps, 0.25)
    train(optimizer, ps, 2)
    assert ps[0].tolist()[0][0] == -0.5


def test_repr_shows_the_groups():
    assert "lr: 0.5" in repr(SGD(parameters(), lr=0.5))
