"""Each optimizer against its formula in NumPy, for one parameter at a time; and on halves, on resuming, on a GPU."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import minidl
from minidl import optim
from minidl.nn.parameter import Parameter
from tests import fake_cuda

SHAPES = [(2, 3), (5,), (), (2, 2, 2), (0, 3)]
MATRICES = [(2, 3), (5, 2), (3, 3), (0, 2)]


# The formulas: a parameter and its gradients, one after the other; they return the parameter after the last

def sgd(p, gradients, lr, momentum=0.0):
    b = 0.0
    for g in gradients:
        b = momentum * b + g
        p = p - lr * b
    return p


def nadam(p, gradients, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
          decoupled_weight_decay=False):
    m, v, product = 0, 0, 1
    for t, g in enumerate(gradients, 1):
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        mu = betas[0] * (1 - 0.96 ** (t * momentum_decay) / 2)
        following = betas[0] * (1 - 0.96 ** ((t + 1) * momentum_decay) / 2)
        product *= mu
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g ** 2
        m_hat = following * m / (1 - product * following) + (1 - mu) * g / (1 - product)
        p = p - lr * m_hat / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return p


def radam(p, gradients, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False):
    m, v = 0, 0
    for t, g in enumerate(gradients, 1):
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g ** 2
        m_hat = m / (1 - betas[0] ** t)
        rho_inf = 2 / (1 - betas[1]) - 1
        rho = rho_inf - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
        if rho > 5:
            r = np.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
            m_hat = m_hat * r * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)
        p = p - lr * m_hat
    return p


def adamax(p, gradients, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
    m, u = 0, 0
    for t, g in enumerate(gradients, 1):
        g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        u = np.maximum(betas[1] * u, abs(g) + eps)
        p = p - lr / (1 - betas[0] ** t) * m / u
    return p


def adagrad(p, gradients, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10):
    total = initial_accumulator_value
    for t, g in enumerate(gradients):
        g = g + weight_decay * p
        total = total + g ** 2
        p = p - lr / (1 + t * lr_decay) * g / (np.sqrt(total) + eps)
    return p


def adadelta(p, gradients, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0):
    v, u = 0, 0
    for g in gradients:
        g = g + weight_decay * p
        v = rho * v + (1 - rho) * g ** 2
        d = np.sqrt(u + eps) / np.sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d ** 2
        p = p - lr * d
    return p


def rmsprop(p, gradients, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False):
    v, mean, b = 0, 0, 0
    for g in gradients:
        g = g + weight_decay * p
        v = alpha * v + (1 - alpha) * g ** 2
        mean = alpha * mean + (1 - alpha) * g
        b = momentum * b + g / (np.sqrt(v - mean ** 2 if centered else v) + eps)
        p = p - lr * b
    return p


def rprop(p, gradients, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50)):
    previous, size = np.zeros_like(p), np.full_like(p, lr)
    for g in gradients:
        size = size * np.choose(np.sign(g * previous).astype(int) + 1, [etas[0], 1, etas[1]])
        size = np.minimum(np.maximum(size, step_sizes[0]), step_sizes[1])
        previous = np.where(g * previous < 0, 0, g)
        p = p - np.sign(previous) * size
    return p


def asgd(p, gradients, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0):
    for t, g in enumerate(gradients):
        eta = lr / (1 + lambd * lr * t) ** alpha
        p = p - eta * (g + weight_decay * p + lambd * p)
    return p


def lamb(p, gradients, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=1e-2, max_trust_ratio=None):
    m, v = 0, 0
    for t, g in enumerate(gradients, 1):
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g ** 2
        d = m / (1 - betas[0] ** t) / (np.sqrt(v / (1 - betas[1] ** t)) + eps) + weight_decay * p
        sizes = np.linalg.norm(np.ravel(p)), np.linalg.norm(np.ravel(d))
        ratio = sizes[0] / sizes[1] if all(sizes) else 1
        p = p - lr * min(ratio, max_trust_ratio or np.inf) * d
    return p


def lars(p, gradients, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, trust_coefficient=1e-3, eps=1e-8,
         exclude_1d=False):
    b = None
    for g in gradients:
        sizes = np.linalg.norm(np.ravel(p)), np.linalg.norm(np.ravel(g))
        if all(sizes) and not (exclude_1d and p.ndim < 2):
            ratio = trust_coefficient * sizes[0] / (sizes[1] + weight_decay * sizes[0] + eps)
            g = ratio * (g + weight_decay * p)
        b = g if b is None else momentum * b + (1 - dampening) * g
        p = p - lr * (g + momentum * b if nesterov else b)
    return p


def muon(p, gradients, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=(3.4445, -4.775, 2.0315),
         eps=1e-7, ns_steps=5, adjust_lr_fn=None):
    a, b, c = ns_coefficients
    mean = 0
    rows, columns = p.shape
    rate = 0.2 * max(p.shape) ** 0.5 if adjust_lr_fn == "match_rms_adamw" else max(1, rows / columns) ** 0.5
    for g in gradients:
        mean = momentum * mean + (1 - momentum) * g
        u, s, v = np.linalg.svd(momentum * mean + (1 - momentum) * g if nesterov else mean, full_matrices=False)
        s = s / max(np.sqrt((s ** 2).sum()), eps)
        for _ in range(ns_steps):
            s = a * s + b * s ** 3 + c * s ** 5
        p = p * (1 - lr * weight_decay) - lr * rate * (u * s) @ v
    return p


TABLE = [
    (optim.SGD, sgd, dict(lr=0.1, momentum=0.9)),
    (optim.NAdam, nadam, {}),
    (optim.NAdam, nadam, dict(lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, momentum_decay=0.1)),
    (optim.NAdam, nadam, dict(lr=0.1, weight_decay=0.3, decoupled_weight_decay=True)),
    (optim.RAdam, radam, {}),
    (optim.RAdam, radam, dict(lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)),
    (optim.RAdam, radam, dict(lr=0.1, betas=(0.5, 0.8), weight_decay=0.3, decoupled_weight_decay=True)),
    (optim.Adamax, adamax, {}),
    (optim.Adamax, adamax, dict(lr=0.1, betas=(0.8, 0.95), eps=1e-1, weight_decay=0.1)),
    (optim.Adagrad, adagrad, {}),
    (optim.Adagrad, adagrad, dict(lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.3, eps=1e-3)),
    (optim.Adadelta, adadelta, {}),
    (optim.Adadelta, adadelta, dict(lr=0.5, rho=0.7, eps=1e-3, weight_decay=0.1)),
    (optim.RMSprop, rmsprop, {}),
    (optim.RMSprop, rmsprop, dict(lr=0.1, alpha=0.7, eps=1e-3, weight_decay=0.1, momentum=0.9)),
    (optim.RMSprop, rmsprop, dict(eps=1e-2, momentum=0.5, centered=True)),
    (optim.Rprop, rprop, {}),
    (optim.Rprop, rprop, dict(lr=0.1, etas=(0.3, 1.7), step_sizes=(1e-2, 0.2))),
    (optim.ASGD, asgd, {}),
    (optim.ASGD, asgd, dict(lr=0.1, lambd=0.1, alpha=0.6, t0=3, weight_decay=0.1)),
    (optim.LAMB, lamb, {}),
    (optim.LAMB, lamb, dict(lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0, max_trust_ratio=0.7)),
    (optim.LARS, lars, dict(lr=10.0)),
    (optim.LARS, lars, dict(lr=10.0, momentum=0.9, weight_decay=0.1, nesterov=True, trust_coefficient=0.01, eps=0.1)),
    (optim.LARS, lars, dict(lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.1, exclude_1d=True)),
    (optim.Muon, muon, {}),
    (optim.Muon, muon, dict(lr=0.1, weight_decay=0.3, momentum=0.7, nesterov=False, ns_coefficients=(2, -1.5, 0.5), eps=0.1,
                            ns_steps=3, adjust_lr_fn="match_rms_adamw")),
]
each_row = pytest.mark.parametrize("kind, formula, options", TABLE, ids=lambda v: getattr(v, "__name__", None))
each_kind = pytest.mark.parametrize("kind", list(dict.fromkeys(row[0] for row in TABLE)), ids=lambda v: v.__name__)


def start(kind, dtype=minidl.float64):
    rng = np.random.default_rng(1)
    return [Parameter(minidl.tensor(rng.standard_normal(shape), dtype=dtype))
            for shape in (MATRICES if kind is optim.Muon else SHAPES)]


def gradients(ps, steps=20):
    """For each step a gradient or None for each parameter: values that float16 and bfloat16 have."""
    rng = np.random.default_rng(2)
    return [[None if rng.random() < 0.2 else np.asarray(rng.integers(-100, 100, p.shape) / 64.0) for p in ps]
            for _ in range(steps)]


def follow(optimizer, ps, steps):
    for step in steps:
        for p, g in zip(ps, step):
            p.grad = None if g is None else minidl.tensor(g, dtype=p.dtype, device=p.device)
        optimizer.step()


@each_row
def test_an_optimizer_follows_its_formula(kind, formula, options):
    ps = start(kind)
    steps = gradients(ps)
    wanted = [formula(p.detach().numpy().copy(), [step[i] for step in steps if step[i] is not None], **options)
              for i, p in enumerate(ps) if p.numel()]
    optimizer = kind(ps, **options)
    follow(optimizer, ps, steps)
    for p, value in zip(ps, wanted):
        np.testing.assert_allclose(p.detach().numpy(), value, rtol=1e-12, atol=1e-12)


@each_kind
def test_maximizing_is_minimizing_with_the_gradient_turned(kind):
    if kind is optim.Muon:
        pytest.skip("Muon has no option maximize, in PyTorch neither")
    ps, qs = start(kind), start(kind)
    options = dict(lr=0.1) if kind in (optim.Rprop, optim.LAMB) else dict(lr=0.1, weight_decay=0.1)
    follow(kind(ps, **options, maximize=True), ps, gradients(ps))
    follow(kind(qs, **options), qs, [[None if g is None else -g for g in step] for step in gradients(qs)])
    assert [p.tolist() for p in ps] == [q.tolist() for q in qs]


@each_row
@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16], ids=str)
def test_masters_of_halves_go_the_way_of_float32(kind, formula, options, dtype):
    ps = start(kind, dtype)
    qs = [Parameter(p.detach().float()) for p in ps]
    optimizer = kind(ps, **options)
    follow(optimizer, ps, gradients(ps))
    follow(kind(qs, **options), qs, gradients(qs))
    for p, q in zip(ps, qs):
        assert optimizer.state[p]["master"].tolist() == q.tolist() and p.tolist() == q.to(dtype=dtype).tolist()
        assert all(value.dtype == minidl.float32 for value in optimizer.state[p].values() if isinstance(value, minidl.Tensor))


@each_row
@pytest.mark.parametrize("dtype", [minidl.float16, minidl.float32], ids=str)
def test_resuming_is_bit_equal(kind, formula, options, dtype, tmp_path):
    ps = start(kind, dtype)
    steps = gradients(ps)
    optimizer = kind(ps, **options)
    follow(optimizer, ps, steps[:9])
    qs = copy.deepcopy(ps)
    other = kind(qs)
    minidl.save(optimizer.state_dict(), tmp_path / "state")
    other.load_state_dict(minidl.load(tmp_path / "state"))
    follow(optimizer, ps, steps[9:])
    follow(other, qs, steps[9:])
    assert [p.array.tobytes() for p in ps] == [q.array.tobytes() for q in qs]


@each_kind
def test_the_same_on_a_gpu(kind):
    ps = start(kind)
    follow(kind(ps, lr=0.1), ps, gradients(ps, 3))
    with fake_cuda.installed():
        qs = [Parameter(p.to("cuda")) for p in start(kind)]
        follow(kind(qs, lr=0.1), qs, gradients(qs, 3))
        for p, q in zip(ps, qs):
            np.testing.assert_allclose(q.detach().cpu().numpy(), p.detach().numpy(), rtol=1e-12)


STATES = {
    optim.NAdam: {"exp_avg", "exp_avg_sq", "mu_product"}, optim.RAdam: {"exp_avg", "exp_avg_sq"},
    optim.Adamax: {"exp_avg", "exp_inf"}, optim.Adagrad: {"sum"}, optim.Adadelta: {"square_avg", "acc_delta"},
    optim.RMSprop: {"square_avg"}, optim.Rprop: {"prev", "step_size"}, optim.ASGD: {"ax", "eta", "mu"},
}


@pytest.mark.parametrize("kind", STATES, ids=lambda v: v.__name__)
def test_state_has_pytorchs_names_and_loads_with_its_numbers_as_arrays(kind):
    ps = start(kind, minidl.float32)
    steps = gradients(ps)
    optimizer = kind(ps, lr=0.1)
    follow(optimizer, ps, steps[:5])
    state = optimizer.state_dict()
    assert set(state["state"][2]) == STATES[kind] | {"step"}
    as_pytorch = {i: {name: np.asarray(value.numpy() if isinstance(value, minidl.Tensor) else np.float64(value)).copy()
                      for name, value in entry.items()} for i, entry in state["state"].items()}
    qs = copy.deepcopy(ps)
    other = kind(qs)
    other.load_state_dict({"state": as_pytorch, "param_groups": state["param_groups"]})
    follow(optimizer, ps, steps[5:])
    follow(other, qs, steps[5:])
    assert [p.tolist() for p in ps] == [q.tolist() for q in qs]
    assert optimizer.state[ps[2]].keys() == other.state[qs[2]].keys()


def test_pytorchs_sgd_counts_no_steps_and_its_momentum_counts():
    p = Parameter(minidl.zeros(()))
    optimizer = optim.SGD([p], lr=1.0, momentum=0.5)
    optimizer.load_state_dict({"state": {0: {"momentum_buffer": np.float32(4.0)}},
                               "param_groups": optimizer.state_dict()["param_groups"]})
    p.grad = minidl.ones(())
    optimizer.step()
    assert p.item() == -3.0


@pytest.mark.parametrize("make, message", [
    (lambda ps: optim.NAdam(ps, momentum_decay=-1), "NAdam expected momentum_decay >= 0, got -1"),
    (lambda ps: optim.NAdam(ps, betas=(1.0, 0.5)), r"NAdam expected betas\[0\] in \[0, 1\), got 1"),
    (lambda ps: optim.RAdam(ps, betas=(0.5, -0.5)), r"RAdam expected betas\[1\]"),
    (lambda ps: optim.Adamax(ps, lr=-1), "Adamax expected lr >= 0"),
    (lambda ps: optim.Adagrad(ps, lr_decay=-1), "Adagrad expected lr_decay"),
    (lambda ps: optim.Adagrad(ps, initial_accumulator_value=-1), "initial_accumulator_value"),
    (lambda ps: optim.Adadelta(ps, rho=1.5), "Adadelta expected rho in"),
    (lambda ps: optim.RMSprop(ps, alpha=-1), "RMSprop expected alpha"),
    (lambda ps: optim.Rprop(ps, etas=(1.1, 1.2)), r"Rprop expected etas .* got \(1.1, 1.2\)"),
    (lambda ps: optim.Rprop(ps, step_sizes=(2, 1)), "Rprop expected step_sizes"),
    (lambda ps: optim.ASGD(ps, weight_decay=-1), "ASGD expected weight_decay"),
    (lambda ps: optim.LAMB(ps, max_trust_ratio=-1), "LAMB expected max_trust_ratio"),
    (lambda ps: optim.LARS(ps, trust_coefficient=-1), "LARS expected trust_coefficient"),
    (lambda ps: optim.LARS(ps, nesterov=True), "LARS expected momentum > 0"),
    (lambda ps: optim.Muon(ps[1:2]), r"Muon expected matrices as parameters, got one of shape \(5,\)"),
    (lambda ps: optim.Muon(ps[:1], adjust_lr_fn="own"), "Muon expected adjust_lr_fn"),
    (lambda ps: optim.Muon(ps[:1], ns_steps=100), "Muon expected ns_steps"),
    (lambda ps: optim.Muon(ps[:1], ns_coefficients=(1, 2)), "Muon expected three ns_coefficients"),
])
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(start(None))


def test_a_refused_group_leaves_the_optimizer_as_it_was():
    p, bias = Parameter(minidl.ones(2, 2)), Parameter(minidl.ones(2))
    optimizer = optim.Muon([p])
    with pytest.raises(ValueError, match="matrices"):
        optimizer.add_param_group({"params": [bias]})
    follow(optimizer, [p], [[np.eye(2)]])
    assert len(optimizer.param_groups) == 1


# What is special about one

def test_averaging_begins_after_t0():
    p = Parameter(minidl.zeros(1))
    optimizer = optim.ASGD([p], lr=1.0, lambd=0.0, t0=2)
    seen = []
    for _ in range(6):
        follow(optimizer, [p], [[np.ones(1)]])
        seen.append(optimizer.state[p]["ax"].item())
    assert seen == [-1, -2, -3, -4, pytest.approx(-4.5), pytest.approx(-5)]


def test_rprop_starts_with_the_lr_of_its_first_step():
    p = Parameter(minidl.zeros(1))
    optimizer = optim.Rprop([p], lr=1.0)
    optimizer.param_groups[0]["lr"] = 0.25
    follow(optimizer, [p], [[np.ones(1)]])
    assert p.item() == -0.25


def test_rprop_sees_signs_of_gradients_whose_product_underflows():
    p = Parameter(minidl.zeros(1))
    follow(optim.Rprop([p], lr=1.0), [p], [[np.full(1, 1e-30)], [np.full(1, 1e-30)]])
    assert p.item() == pytest.approx(-2.2)


def test_a_variance_of_zero_is_not_negative():
    p = Parameter(minidl.zeros(64))
    follow(optim.RMSprop([p], lr=1e-3, alpha=0.3, centered=True), [p], [[np.linspace(0.1, 1, 64)]] * 50)
    assert np.isfinite(p.detach().numpy()).all()


def test_where_a_norm_is_zero_the_trust_ratio_is_one():
    p, q = Parameter(minidl.zeros(2, 2)), Parameter(minidl.zeros(2, 2))
    follow(optim.LAMB([p], lr=0.5, eps=0.0), [p], [[np.ones((2, 2))]])
    follow(optim.LARS([q], lr=0.5, weight_decay=0.1), [q], [[np.ones((2, 2))], [np.zeros((2, 2))]])
    np.testing.assert_allclose(p.tolist(), -0.5)
    assert q.tolist() == [[-0.5] * 2] * 2


def test_muons_step_is_orthogonal():
    p = Parameter(minidl.zeros(6, 4))
    g = np.random.default_rng(0).standard_normal((6, 4))
    follow(optim.Muon([p], lr=1.0, ns_coefficients=(1.5, -0.5, 0.0), ns_steps=40), [p], [[g]])
    u, _, v = np.linalg.svd(g, full_matrices=False)
    np.testing.assert_allclose(p.detach().numpy(), -np.sqrt(1.5) * u @ v, atol=1e-5)
