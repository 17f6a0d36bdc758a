"""L-BFGS and its line search: against dense matrices, the Wolfe conditions, known minima; and halves, state, errors."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import minidl
from minidl.nn.parameter import Parameter
from minidl.optim import LBFGS
from tests import fake_cuda


def rosenbrock(p):
    x, y = p[0].double(), p[1].double()
    return (1 - x) ** 2 + 100 * (y - x ** 2) ** 2


def bowl(p):
    weights = minidl.tensor([1.0, 5.0, 20.0], dtype=p.dtype, device=p.device)
    target = minidl.tensor([1.0, -2.0, 0.5], dtype=p.dtype, device=p.device)
    return (weights * (p - target) ** 2).sum()


def closure_of(optimizer, loss, counts=None):
    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        if counts is not None:
            counts.append(value.item())
        return value
    return closure


@pytest.mark.parametrize("history", [1, 3, 100])
def test_directions_are_those_of_the_dense_inverse_hessian(history):
    p = Parameter(minidl.tensor([3.0, 1.0, -1.0], dtype=minidl.float64))
    optimizer = LBFGS([p], lr=0.3, max_iter=8, history_size=history)
    gradient = lambda x: 2 * np.array([1.0, 5.0, 20.0]) * (x - np.array([1.0, -2.0, 0.5]))  # noqa: E731
    x, pairs = p.detach().numpy().copy(), []
    g = gradient(x)
    for step in range(8):
        if step:
            s, y = pairs[-1]
            inverse = np.eye(3) * (s @ y) / (y @ y)
            for s, y in pairs[-history:]:
                v = np.eye(3) - np.outer(y, s) / (s @ y)
                inverse = v.T @ inverse @ v + np.outer(s, s) / (s @ y)
            s = -0.3 * inverse @ g
        else:
            s = -0.3 * min(1, 1 / abs(g).sum()) * g
        x, old = x + s, g
        g = gradient(x)
        pairs.append((s, g - old))
    optimizer.step(closure_of(optimizer, lambda: bowl(p)))
    np.testing.assert_allclose(p.detach().numpy(), x, rtol=1e-9)


@pytest.mark.parametrize("start", [(-1.2, 1.0), (0.0, 0.0), (3.0, -3.0), (-1.0, -1.0)])
def test_the_line_search_finds_the_bottom_of_the_valley(start):
    p = Parameter(minidl.tensor(start, dtype=minidl.float64))
    optimizer = LBFGS([p], max_iter=100, line_search_fn="strong_wolfe")
    optimizer.step(closure_of(optimizer, lambda: rosenbrock(p)))
    np.testing.assert_allclose(p.detach().numpy(), 1, rtol=1e-4)


@pytest.mark.parametrize("lr", [1e-3, 0.1, 1.0, 50.0])
def test_a_step_of_the_line_search_satisfies_the_strong_wolfe_conditions(lr):
    p = Parameter(minidl.tensor([-1.2, 1.0], dtype=minidl.float64))
    optimizer = LBFGS([p], lr=lr, max_iter=1, max_eval=30, line_search_fn="strong_wolfe")
    for _ in range(6):
        x = p.detach().numpy().copy()
        before = optimizer.step(closure_of(optimizer, lambda: rosenbrock(p))).item()
        g, t = optimizer.state[p]["prev_flat_grad"].numpy(), optimizer.state[p]["t"]
        d = optimizer.state[p]["d"].numpy()
        np.testing.assert_allclose(p.detach().numpy(), x + t * d, rtol=1e-12)
        after = closure_of(optimizer, lambda: rosenbrock(p))().item()
        assert after <= before + 1e-4 * t * g @ d and abs(p.grad.numpy() @ d) <= 0.9 * abs(g @ d)


@pytest.mark.parametrize("lr", [1.0, 30.0, 1000.0])
def test_the_line_search_comes_back_from_where_there_is_no_loss(lr):
    p = Parameter(minidl.tensor(3.0, dtype=minidl.float64))
    optimizer = LBFGS([p], lr=lr, max_iter=50, line_search_fn="strong_wolfe")
    optimizer.step(closure_of(optimizer, lambda: p - p.log()))
    assert p.item() == pytest.approx(1, rel=1e-4)


def test_the_first_loss_is_returned_and_evaluations_are_bounded():
    p, losses = Parameter(minidl.tensor([3.0, 1.0, -1.0])), []
    optimizer = LBFGS([p], lr=0.01, max_iter=20, max_eval=7)
    first = optimizer.step(closure_of(optimizer, lambda: bowl(p), losses))
    assert first.item() == losses[0] and len(losses) == 7
    assert optimizer.state[p]["func_evals"] == 7 and optimizer.state[p]["n_iter"] == 6
    assert LBFGS([p], max_iter=8).param_groups[0]["max_eval"] == 10


@pytest.mark.parametrize("options, iterations", [
    (dict(tolerance_grad=1e3), None), (dict(tolerance_change=1e3), 1), (dict(max_iter=4), 4)])
def test_it_stops(options, iterations):
    p = Parameter(minidl.tensor([3.0, 1.0, -1.0]))
    optimizer = LBFGS([p], lr=0.01, **options)
    optimizer.step(closure_of(optimizer, lambda: bowl(p)))
    assert optimizer.state[p]["n_iter"] == (iterations or 0)


def test_parameters_without_gradient_and_without_elements_stay():
    p, q, empty = Parameter(minidl.tensor([3.0, 1.0, -1.0])), Parameter(minidl.ones(2)), Parameter(minidl.ones(0, 2))
    optimizer = LBFGS([q, p, empty], line_search_fn="strong_wolfe")
    optimizer.step(closure_of(optimizer, lambda: bowl(p)))
    np.testing.assert_allclose(p.tolist(), [1, -2, 0.5], atol=1e-4)
    assert q.tolist() == [1, 1]
    alone = LBFGS([empty])
    alone.step(closure_of(alone, lambda: empty.sum()))


# Halves

@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16], ids=str)
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_half_parameters_reach_the_minimum_of_their_precision(dtype, search):
    p, q = Parameter(minidl.tensor([3.0, 1.0], dtype=dtype)), Parameter(minidl.tensor([-1.0], dtype=minidl.float32))
    optimizer = LBFGS([p, q], lr=0.5, line_search_fn=search)
    for _ in range(3):
        optimizer.step(closure_of(optimizer, lambda: bowl(minidl.cat([p.float(), q]))))
    np.testing.assert_allclose(p.float().tolist() + q.tolist(), [1, -2, 0.5], atol=0.03)
    master = optimizer.state[p]["master"]
    assert master.dtype == minidl.float32 and master[:2].to(dtype=dtype).tolist() == p.tolist()


def test_small_steps_of_halves_add_up_and_edits_count():
    p = Parameter(minidl.ones(2, dtype=minidl.float16))
    optimizer = LBFGS([p], lr=2.0 ** -14, max_iter=1, tolerance_change=0)
    for _ in range(4):
        optimizer.step(closure_of(optimizer, lambda: (p * 0.5).sum()))
    moved = optimizer.state[p]["master"].tolist()[0]
    assert 1 - 2.0 ** -12 < moved < 1 and p.tolist() == [1, 1]
    with minidl.no_grad():
        p[0] = 3
    optimizer.step(closure_of(optimizer, lambda: (p * 0.5).sum()))
    master = optimizer.state[p]["master"].tolist()
    assert 2.999 < master[0] < 3 and master[1] < moved
    rough = LBFGS([p], max_iter=1, master_weights=False)
    rough.step(closure_of(rough, lambda: (p * 0.5).sum()))
    assert "master" not in rough.state[p]


# State

@pytest.mark.parametrize("dtype", [minidl.float16, minidl.float32, minidl.float64], ids=str)
def test_resuming_is_bit_equal(dtype, tmp_path):
    p = Parameter(minidl.tensor([-1.2, 1.0, 0.3], dtype=dtype))
    make = lambda q: LBFGS([q], lr=0.2, max_iter=4, history_size=5)  # noqa: E731
    one = make(p)
    one.step(closure_of(one, lambda: bowl(p)))
    q = copy.deepcopy(p)
    two = make(q)
    minidl.save(one.state_dict(), tmp_path / "state")
    two.load_state_dict(minidl.load(tmp_path / "state"))
    for _ in range(2):
        one.step(closure_of(one, lambda: bowl(p)))
        two.step(closure_of(two, lambda: bowl(q)))
    assert p.array.tobytes() == q.array.tobytes()


def test_state_of_pytorch_loads():
    p = Parameter(minidl.zeros(2))
    optimizer = LBFGS([p], lr=1.0, max_iter=1)
    vector = lambda *v: np.array(v, np.float32)  # noqa: E731
    optimizer.load_state_dict({"param_groups": optimizer.state_dict()["param_groups"], "state": {0: {
        "func_evals": 3, "n_iter": 2, "d": vector(1, 0), "t": 1.0, "old_dirs": [vector(1, 1)], "old_stps": [vector(1, 0)],
        "ro": [vector(1)[0]], "H_diag": np.asarray(0.5, np.float32), "prev_flat_grad": vector(-2, 0), "prev_loss": 1.0,
        "al": [None] * 100}}})
    optimizer.step(closure_of(optimizer, lambda: (p * minidl.tensor([-1.0, 1.0])).sum()))
    # y = (1, 1), s = (1, 0) once more: after it H = V' V' V V / 2 + V' s s' V + s s', V = I - y s', and g = (-1, 1)
    v = np.eye(2) - np.outer([1, 1], [1, 0])
    inverse = np.eye(2) * 0.5
    for _ in range(2):
        inverse = v.T @ inverse @ v + np.outer([1, 0], [1, 0])
    np.testing.assert_allclose(p.tolist(), -inverse @ [-1, 1], rtol=1e-6)
    assert optimizer.state[p]["n_iter"] == 3


def test_a_state_of_another_size_is_refused():
    p = Parameter(minidl.zeros(3))
    optimizer = LBFGS([p], lr=0.1)
    optimizer.step(closure_of(optimizer, lambda: bowl(p)))
    state = copy.deepcopy(optimizer.state_dict())
    state["state"][0]["old_stps"][0] = minidl.zeros(7)
    with pytest.raises(ValueError, match=r"LBFGS.load_state_dict expected old_stps of shape \(3,\), got \(7,\)"):
        optimizer.load_state_dict(state)


def test_hooks_are_called_and_the_closure_may_run_under_no_grad():
    p, seen = Parameter(minidl.tensor([3.0, 1.0, -1.0])), []
    optimizer = LBFGS([p], line_search_fn="strong_wolfe")
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    with minidl.no_grad():
        optimizer.step(closure_of(optimizer, lambda: bowl(p)))
    assert seen == ["before", "after"] and abs(p[0].item() - 1) < 1e-4


def test_on_a_gpu():
    with fake_cuda.installed():
        p = Parameter(minidl.tensor([3.0, 1.0, -1.0]).to("cuda"))
        optimizer = LBFGS([p], line_search_fn="strong_wolfe")
        optimizer.step(closure_of(optimizer, lambda: bowl(p)))
        np.testing.assert_allclose(p.detach().cpu().numpy(), [1, -2, 0.5], atol=1e-4)


@pytest.mark.parametrize("call, error, message", [
    (lambda p: LBFGS([p]).step(), TypeError, "expected a closure"),
    (lambda p: LBFGS([{"params": [p]}, {"params": [Parameter(minidl.ones(1))]}]), ValueError, "one group"),
    (lambda p: LBFGS([p], line_search_fn="armijo"), ValueError, "'strong_wolfe', got 'armijo'"),
    (lambda p: LBFGS([p], lr=-1), ValueError, "lr >= 0"),
    (lambda p: LBFGS([p], history_size=0), ValueError, "history_size >= 1"),
    (lambda p: LBFGS([p], lr=math.nan), ValueError, "lr >= 0, got nan"),
])
def test_what_cannot_be_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(Parameter(minidl.ones(1)))
