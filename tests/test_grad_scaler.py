"""Loss scalers: how the scale moves, what scale() takes, arguments, state."""

from __future__ import annotations

import copy
import math
import pickle
from collections import namedtuple

import numpy as np
import pytest

import minidl
import minidl.nn.functional as F
from minidl import nn
from minidl.amp import GradScaler, StaticScaler
from minidl.optim import SGD, AdamW
from minidl.train import Trainer

INF, NAN = math.inf, math.nan
Losses = namedtuple("Losses", "first second")


def parameter(*values, dtype=minidl.float32):
    return minidl.tensor(values, dtype=dtype, requires_grad=True)


def loss_of(p, *gradient):
    """A loss whose gradient is the one given."""
    return (p * minidl.tensor(gradient, dtype=p.dtype)).sum()


def iterate(scaler, optimizer, p, *gradient):
    optimizer.zero_grad()
    scaler.scale(loss_of(p, *gradient)).backward()
    taken = scaler.step(optimizer)
    scaler.update()
    return taken


def scales(scaler, pattern):
    """(scale, growth tracker) after each iteration: "." is a clean one, "x" an overflow."""
    p = parameter(1.0)
    optimizer = SGD([p], lr=0.0)
    seen = []
    for kind in pattern:
        assert iterate(scaler, optimizer, p, INF if kind == "x" else 1.0) is (kind == ".")
        seen.append((scaler.get_scale(), scaler.state_dict()["_growth_tracker"]))
    return seen


# How the scale moves

MOVES = [
    (dict(init_scale=4, growth_factor=2, backoff_factor=0.25, growth_interval=2), "..x", [(4, 1), (8, 0), (2, 0)]),
    (dict(init_scale=8, growth_interval=3), "..x..", [(8, 1), (8, 2), (4, 0), (4, 1), (4, 2)]),
    (dict(init_scale=2), "xxx", [(1, 0), (1, 0), (1, 0)]),
    (dict(init_scale=3), "xx", [(1.5, 0), (1, 0)]),
    (dict(init_scale=1, min_scale=0.125, backoff_factor=0.25), "xxx", [(0.25, 0), (0.125, 0), (0.125, 0)]),
    (dict(init_scale=2.0 ** 23, growth_interval=1), "...", [(2.0 ** 24, 0)] * 3),
    (dict(init_scale=48, max_scale=64, growth_interval=1), "..", [(64, 0)] * 2),
    (dict(init_scale=4, growth_factor=1e300, growth_interval=1), ".", [(2.0 ** 24, 0)]),
    # hysteresis: every overflow that finds the counter at 0 or below backs off; a clean step sets the counter back
    (dict(init_scale=64, hysteresis=2), "xxx", [(64, 0), (32, 0), (16, 0)]),
    (dict(init_scale=64, hysteresis=2), "x.x.xx", [(64, 0), (64, 1), (64, 0), (64, 1), (64, 0), (32, 0)]),
    (dict(init_scale=64, hysteresis=3, growth_interval=2), ".x..", [(64, 1), (64, 0), (64, 1), (128, 0)]),
]


@pytest.mark.parametrize("options, pattern, expected", MOVES)
def test_the_scale_moves(options, pattern, expected):
    assert scales(GradScaler(**options), pattern) == expected


def test_the_defaults():
    scaler = GradScaler()
    assert scaler.get_scale() == 65536 and scaler.is_enabled() and scaler.max_consecutive_skips == 50
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (2, 0.5, 2000)
    assert (scaler.min_scale, scaler.max_scale, scaler.hysteresis) == (1, 2 ** 24, 1)


def test_the_scale_grows_only_to_what_float32_holds():
    scaler = GradScaler(init_scale=1e38, growth_factor=16, growth_interval=1, max_scale=INF)
    p = parameter(0.0)
    optimizer = SGD([p], lr=0.0)
    for _ in range(3):
        assert iterate(scaler, optimizer, p, 1.0)
        assert np.isfinite(np.float32(scaler.get_scale()))


def test_a_shorter_interval_than_the_tracker_grows_at_the_next_clean_step():
    scaler = GradScaler(init_scale=4, growth_interval=10)
    scales(scaler, "....")
    scaler.set_growth_interval(3)
    assert scales(scaler, ".") == [(8, 0)]


def test_setters_count_from_the_next_update():
    scaler = GradScaler(init_scale=16, growth_interval=1)
    scaler.set_growth_factor(4.0)
    scaler.set_backoff_factor(0.125)
    assert scales(scaler, ".x") == [(64, 0), (8, 0)]


def test_update_to_a_new_scale():
    scaler = GradScaler()
    scaler.update(8.0)
    assert scaler.get_scale() == 8
    scaler.update(minidl.tensor(16.0))
    assert scaler.get_scale() == 16
    assert iterate(scaler, SGD([p := parameter(1.0)], lr=1.0), p, 0.5) and p.item() == 0.5


def test_the_control_run():
    """One inf in four batches: the parameters are those of a run without that batch."""
    gradients = [(0.5, -1.0), (0.25, 3.0), (INF, 1.0), (-2.0, 0.125)]
    p, control = parameter(1.0, 2.0), parameter(1.0, 2.0)
    scaler = GradScaler(init_scale=128, growth_factor=2, growth_interval=1)
    optimizer, plain = (AdamW([q], lr=0.1) for q in (p, control))
    for g in gradients:
        iterate(scaler, optimizer, p, *g)
    for g in gradients[:2] + gradients[3:]:
        plain.zero_grad()
        loss_of(control, *g).backward()
        plain.step()
    assert p.tolist() == control.tolist()
    assert scaler.get_scale() == 512


def test_a_static_scale_stays_and_skips():
    scaler = StaticScaler(128.0)
    p = parameter(1.0)
    optimizer = SGD([p], lr=1.0)
    assert [iterate(scaler, optimizer, p, g) for g in (0.25, INF, 0.25)] == [True, False, True]
    assert p.item() == 0.5 and scaler.get_scale() == 128


# scale()

def test_scale_multiplies_nested_losses():
    scaler = StaticScaler(8.0)
    one, two = minidl.tensor(1.0), minidl.tensor(2.0)
    made = scaler.scale({"a": [one, (two,)], "b": Losses(one, two)})
    assert made["a"][0].item() == 8 and isinstance(made["a"], list)
    assert made["a"][1][0].item() == 16 and isinstance(made["a"][1], tuple)
    assert type(made["b"]) is Losses and made["b"].second.item() == 16
    assert one.item() == 1


def test_a_half_loss_becomes_float32():
    made = GradScaler().scale(minidl.tensor(2.0, dtype=minidl.float16))
    assert made.dtype == minidl.float32 and made.item() == 131072
    assert GradScaler().scale(minidl.tensor(2.0, dtype=minidl.float64)).dtype == minidl.float64


@pytest.mark.parametrize("what", [minidl.tensor(1), 1.0, None, "loss"])
def test_scale_refuses_what_is_no_floating_loss(what):
    with pytest.raises(TypeError, match="GradScaler.scale expected"):
        GradScaler().scale(what)


# Arguments

BAD = [
    dict(init_scale=0), dict(init_scale=-1.0), dict(init_scale=INF), dict(init_scale=NAN), dict(init_scale=0.5),
    dict(init_scale=2.0 ** 25), dict(init_scale="2"), dict(init_scale=True), dict(init_scale=1e39, max_scale=INF),
    dict(growth_factor=1.0), dict(growth_factor=INF), dict(growth_factor=NAN), dict(growth_factor=None),
    dict(backoff_factor=0.0), dict(backoff_factor=1.0), dict(backoff_factor=-0.5), dict(backoff_factor=NAN),
    dict(growth_interval=0), dict(growth_interval=1.5), dict(growth_interval=True),
    dict(min_scale=0.0), dict(min_scale=-1.0), dict(min_scale=NAN), dict(min_scale=4, max_scale=2), dict(max_scale="1"),
    dict(hysteresis=0), dict(hysteresis=1.5), dict(hysteresis=True),
    dict(max_consecutive_skips=0), dict(max_consecutive_skips=2.5), dict(device=1024.0), dict(device="gpu"),
]


@pytest.mark.parametrize("options", BAD, ids=str)
def test_bad_arguments(options):
    with pytest.raises(ValueError, match="expected"):
        GradScaler(**options)


@pytest.mark.parametrize("options", [
    dict(device="cuda"), dict(device="cpu"), dict(init_scale=2), dict(init_scale=np.float32(2)), dict(max_scale=INF),
    dict(growth_interval=np.int64(3)), dict(max_consecutive_skips=None), dict(init_scale=0.5, min_scale=0.25)], ids=str)
def test_good_arguments(options):
    GradScaler(**options)


@pytest.mark.parametrize("name, bad", [("growth_factor", 1), ("growth_factor", "2"), ("backoff_factor", 1.0),
                                       ("backoff_factor", 0), ("growth_interval", 0), ("growth_interval", 2.0)])
def test_bad_arguments_of_setters(name, bad):
    scaler = GradScaler()
    before = scaler.state_dict()
    with pytest.raises(ValueError, match=f"GradScaler expected {name}.*got"):
        getattr(scaler, f"set_{name}")(bad)
    assert scaler.state_dict() == before


@pytest.mark.parametrize("scale", [0.0, -1.0, INF, NAN, 0.5, 2.0 ** 25, "4"])
def test_bad_new_scales(scale):
    scaler = GradScaler()
    with pytest.raises(ValueError, match="GradScaler expected new_scale"):
        scaler.update(scale)
    assert scaler.get_scale() == 65536


@pytest.mark.parametrize("scale", [0.0, -1.0, INF, NAN, 1e39, None])
def test_bad_static_scales(scale):
    with pytest.raises(ValueError, match="StaticScaler expected scale"):
        StaticScaler(scale)


# State

@pytest.mark.parametrize("again", [lambda s: _loaded(s), lambda s: pickle.loads(pickle.dumps(s)), copy.deepcopy],
                         ids=["state_dict", "pickle", "deepcopy"])
@pytest.mark.parametrize("before, after", [("...", ".x.."), ("x.x", "xx."), ("", "..")])
def test_a_restored_scaler_goes_on_alike(again, before, after):
    scaler = GradScaler(init_scale=64, growth_interval=4, hysteresis=2)
    scales(scaler, before)
    other = again(scaler)
    assert other.state_dict() == scaler.state_dict()
    assert scales(other, after) == scales(scaler, after)


def _loaded(scaler):
    other = GradScaler(hysteresis=2)
    other.load_state_dict(scaler.state_dict())
    return other


def test_the_row_of_skips_is_part_of_the_state():
    scaler = GradScaler(max_consecutive_skips=3)
    scales(scaler, "xx")
    other = GradScaler(max_consecutive_skips=3)
    other.load_state_dict(scaler.state_dict())
    with pytest.raises(RuntimeError, match="3 steps in a row"):
        scales(other, "x")


def test_pytorchs_state_is_accepted():
    scaler = GradScaler()
    scaler.load_state_dict({"scale": 1024.0, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 3,
                            "_growth_tracker": 2})
    assert scales(scaler, ".x") == [(4096, 0), (1024, 0)]


@pytest.mark.parametrize("changed, error", [
    ({"scale": INF}, ValueError), ({"scale": 0.5}, ValueError), ({"growth_factor": 0.5}, ValueError),
    ({"backoff_factor": 2}, ValueError), ({"growth_interval": 0}, ValueError), ({"_growth_tracker": -1}, ValueError),
    ({"hysteresis_left": "1"}, ValueError), ({"skips": 1.5}, ValueError)], ids=str)
def test_a_bad_state_changes_nothing(changed, error):
    scaler = GradScaler()
    before = scaler.state_dict()
    with pytest.raises(error, match="expected"):
        scaler.load_state_dict({**GradScaler(init_scale=8.0, growth_interval=7).state_dict(), **changed})
    assert scaler.state_dict() == before


@pytest.mark.parametrize("state", [{}, {"growth_factor": 2.0}])
@pytest.mark.parametrize("make", [GradScaler, StaticScaler])
def test_a_state_without_scale_is_refused(make, state):
    with pytest.raises(RuntimeError, match="was not enabled"):
        make().load_state_dict(state)


def test_a_scaler_in_the_middle_of_a_step_cannot_be_pickled():
    p = parameter(1.0)
    scaler, optimizer = GradScaler(), SGD([p], lr=1.0)
    scaler.scale(loss_of(p, 1.0)).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"after update\(\)"):
        pickle.dumps(scaler)


def test_a_trainers_checkpoint_restores_the_scaler(tmp_path):
    def trainer():
        model = nn.Linear(1, 1)
        return Trainer(model, F.mse_loss, SGD(model.parameters(), lr=0.1), scaler=GradScaler(init_scale=8.0, hysteresis=2))

    first, second = trainer(), trainer()
    first.train_minibatch((minidl.ones(2, 1), minidl.ones(2, 1)))
    for _ in range(3):
        first.train_minibatch((minidl.full((2, 1), INF), minidl.ones(2, 1)))
    first.save_checkpoint(tmp_path / "run.safetensors")
    second.restore_from_checkpoint(tmp_path / "run.safetensors")
    assert second.scaler.state_dict() == first.scaler.state_dict()
    assert second.scaler.get_scale() == 2
