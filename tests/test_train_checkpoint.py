"""Checkpoint: a resumed run equals the uninterrupted one bit for bit, and a file that does not fit changes nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest
import safetensors.numpy

import minidl
from minidl.tensor.random import default_generator, initialization_generator
from minidl.tensor.serialization import load, save
from minidl.train.checkpoint import Checkpoint


class Model:
    """One weight, with dropout from the run-time stream."""

    def __init__(self, size=4):
        self.weight = minidl.randn(size, generator=initialization_generator(), requires_grad=True)

    def __call__(self, x):
        return minidl.nn.functional.dropout(x * self.weight, 0.5)

    def state_dict(self):
        return {"0.weight": self.weight.detach()}

    def load_state_dict(self, state):
        if state["0.weight"].shape != self.weight.shape:
            raise RuntimeError(f"expected shape {self.weight.shape}, got {state['0.weight'].shape}")
        with minidl.no_grad():
            self.weight.copy_(state["0.weight"])


class Momentum:
    """An optimizer whose state is keyed by numbers and appears with its first step."""

    def __init__(self, model, lr=0.1):
        self.model, self.state, self.group = model, {}, {"lr": lr, "betas": (0.9, 0.999), "params": [0]}

    def step(self):
        weight, grad = self.model.weight, self.model.weight.grad
        buffer = self.state.setdefault(0, {"step": 0, "momentum": minidl.zeros_like(grad)})
        buffer["step"] += 1
        buffer["momentum"] = buffer["momentum"] * self.group["betas"][0] + grad
        with minidl.no_grad():
            weight.sub_(buffer["momentum"] * self.group["lr"])
        weight.grad = None

    def state_dict(self):
        return {"state": self.state, "param_groups": [self.group]}

    def load_state_dict(self, state):
        self.state, self.group = state["state"], state["param_groups"][0]


class Refusing:
    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        if state:
            raise KeyError("scale")


class Counter:
    def __init__(self, value=0):
        self.value = value

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.safetensors"


def make(seed):
    minidl.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    model = Model()
    return model, Momentum(model)


def train(model, optimizer, steps):
    losses = []
    for _ in range(steps):
        noise = float(np.random.rand()) + random.random() + np.random.standard_normal()
        loss = ((model(minidl.rand(4)) - noise) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_resumed_run_is_bit_equal_to_the_uninterrupted_one(path):
    model, optimizer = make(1)
    train(model, optimizer, 5)
    Checkpoint(model=model, optimizer=optimizer).save(path, step=5)
    expected = train(model, optimizer, 5)
    fresh_weight = minidl.randn(3, generator=initialization_generator())

    other, other_optimizer = make(2)
    train(other, other_optimizer, 1)
    extra = Checkpoint(model=other, optimizer=other_optimizer).restore(path)
    assert extra == {"step": 5}
    assert train(other, other_optimizer, 5) == expected
    assert other.weight.numpy().tobytes() == model.weight.numpy().tobytes()
    assert other_optimizer.state[0]["step"] == 10 and other_optimizer.group == optimizer.group
    assert minidl.equal(minidl.randn(3, generator=initialization_generator()), fresh_weight)


def test_saving_does_not_change_the_run(path):
    model, optimizer = make(1)
    expected = train(model, optimizer, 4)
    model, optimizer = make(1)
    losses = train(model, optimizer, 2)
    Checkpoint(model=model, optimizer=optimizer).save(path)
    assert losses + train(model, optimizer, 2) == expected


def test_the_state_is_the_one_at_the_time_of_saving(path):
    model, optimizer = make(1)
    checkpoint = Checkpoint(model=model, optimizer=optimizer)
    checkpoint.save(path)
    before = model.weight.numpy().copy()
    train(model, optimizer, 2)
    checkpoint.restore(path)
    assert (model.weight.numpy() == before).all() and optimizer.state == {}


def test_weights_have_readable_names(path):
    model, optimizer = make(1)
    train(model, optimizer, 1)
    Checkpoint(model=model, optimizer=optimizer).save(path)
    found = safetensors.numpy.load_file(path)
    assert (found["model.0.weight"] == model.weight.numpy()).all() and "optimizer.state.0.momentum" in found


def test_the_file_tells_its_version(path):
    Checkpoint().save(path)
    assert load(path)["version"] == {"minidl": minidl.__version__}


def test_extra_is_any_tree(path):
    extra = {"epoch": 3, "losses": [0.5, float("inf")], "mean": minidl.ones(2), "best": None}
    Checkpoint(model=Counter()).save(path, **extra)
    found = Checkpoint(model=Counter()).restore(path)
    assert found.pop("mean").tolist() == [1, 1] and extra.pop("mean") is not None and found == extra


def test_names_of_arguments_are_free_for_parts_and_extra(path):
    Checkpoint(path=Counter(1), device=Counter(2)).save(path, path="x", keep=3)
    a, b = Counter(), Counter()
    assert Checkpoint(path=a, device=b).restore(path) == {"path": "x", "keep": 3} and (a.value, b.value) == (1, 2)


def test_parts_that_are_none_are_left_out(path):
    Checkpoint(model=Counter(4), scaler=None).save(path)
    model = Counter()
    Checkpoint(model=model).restore(path)
    assert model.value == 4


def test_a_state_that_cannot_be_stored_is_named(path):
    with pytest.raises(TypeError, match="a function at 'model.value'"):
        Checkpoint(model=Counter(lambda: 0)).save(path)
    with pytest.raises(TypeError, match="a set at 'extra.seen'"):
        Checkpoint(model=Counter()).save(path, seen={1})
    assert not path.exists()


@pytest.mark.parametrize("options, error, message", [
    ({"model": 3}, TypeError, "got int without state_dict as model; give counters"),
    ({"extra": Counter()}, ValueError, "cannot name a part 'extra'"), ({"random": Counter()}, ValueError, "'random'"),
    ({"keep": 0}, ValueError, "keep as a number of files of at least 1"), ({"keep": True}, ValueError, "got True"),
    ({"keep": 1.5}, ValueError, "got 1.5")])
def test_what_it_cannot_be_made_of(options, error, message):
    with pytest.raises(error, match=message):
        Checkpoint(**options)


# Files that do not fit

def states():
    return (default_generator().get_state().tolist(), initialization_generator().get_state().tolist(), random.getstate(),
            np.random.get_state()[1].tolist(), np.random.get_state()[2:])


def test_other_names_are_one_error_and_change_nothing(path):
    Checkpoint(model=Counter(1), scaler=Counter(2), loader=Counter(3)).save(path)
    model = Counter(7)
    make(3)
    before = states()
    with pytest.raises(RuntimeError, match="missing ema, optimizer, unexpected loader, scaler; make the Checkpoint of"):
        Checkpoint(model=model, optimizer=Counter(), ema=Counter()).restore(path)
    assert model.value == 7 and states() == before


@pytest.mark.parametrize("parts, message", [(["model"], "missing .none., unexpected scaler"),
                                            (["model", "scaler", "ema"], "missing ema, unexpected .none.")])
def test_one_part_more_or_less(parts, message, path):
    Checkpoint(model=Counter(), scaler=Counter()).save(path)
    with pytest.raises(RuntimeError, match=message):
        Checkpoint(**{name: Counter() for name in parts}).restore(path)


def test_a_part_that_refuses_its_state_changes_nothing(path):
    Checkpoint(counter=Counter(1), model=Counter(2), optimizer=Counter(3)).save(path)
    counter, optimizer = Counter(7), Counter(8)
    before = states()
    with pytest.raises(RuntimeError, match=r"could not give model its state from .*run.safetensors.*KeyError: 'scale'"):
        Checkpoint(counter=counter, model=Refusing(), optimizer=optimizer).restore(path)
    assert counter.value == 7 and optimizer.value == 8 and states() == before


def test_weights_that_were_loaded_before_a_refusal_are_put_back(path):
    model, _ = make(1)
    Checkpoint(model=model, scaler=Counter(1)).save(path)
    other, _ = make(2)
    weight = other.weight.numpy().copy()
    with pytest.raises(RuntimeError, match="could not give scaler its state"):
        Checkpoint(model=other, scaler=Refusing()).restore(path)
    assert (other.weight.numpy() == weight).all()


def test_random_streams_that_do_not_fit_change_nothing(path):
    Checkpoint(counter=Counter(1)).save(path)
    content = load(path)
    content["random"]["python"] = "MT19937"
    save(content, path)
    make(3)
    counter, before = Counter(7), states()
    with pytest.raises(RuntimeError, match="could not give random its state"):
        Checkpoint(counter=counter).restore(path)
    assert counter.value == 7 and states() == before


def test_weights_of_another_shape_change_nothing(path):
    model, optimizer = make(1)
    train(model, optimizer, 1)
    Checkpoint(optimizer=optimizer, model=model).save(path)
    wide = Model(5)
    weight, momentum = wide.weight.numpy().copy(), Momentum(wide)
    with pytest.raises(RuntimeError, match=r"expected shape \(5,\), got \(4,\)"):
        Checkpoint(optimizer=momentum, model=wide).restore(path)
    assert (wide.weight.numpy() == weight).all() and momentum.state == {}


def test_a_damaged_file_changes_nothing(path):
    Checkpoint(model=Counter(1)).save(path)
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    model = Counter(7)
    with pytest.raises(RuntimeError, match="checksum"):
        Checkpoint(model=model).restore(path)
    assert model.value == 7


@pytest.mark.parametrize("content", [{"model": {"value": 1}}, [1], 3])
def test_a_file_that_is_no_checkpoint(content, path):
    save(content, path)
    with pytest.raises(RuntimeError, match="expected a file of Checkpoint.save.*use minidl.load"):
        Checkpoint(model=Counter()).restore(path)


def test_a_missing_file(path):
    for keep in (None, 2):
        with pytest.raises(FileNotFoundError, match="run.safetensors"):
            Checkpoint(model=Counter(), keep=keep).restore(path)


# Rotation

def names(path):
    return sorted(entry.name for entry in path.parent.iterdir())


def test_without_keep_one_file_is_overwritten(path):
    counter = Counter()
    for counter.value in range(3):
        assert Checkpoint(model=counter).save(path) == str(path)
    assert names(path) == ["run.safetensors"] and load(path)["model"] == {"value": 2}


def test_keep_keeps_the_newest_files(path):
    counter = Counter()
    checkpoint = Checkpoint(model=counter, keep=2)
    written = []
    for counter.value in range(1, 5):
        written.append(checkpoint.save(path))
    assert names(path) == ["run.000003.safetensors", "run.000004.safetensors"]
    assert written[-1] == str(path.parent / "run.000004.safetensors") == Checkpoint.latest(path)


def test_numbers_go_on_in_a_new_process_and_restore_takes_the_newest(path):
    Checkpoint(model=Counter(1), keep=1).save(path)
    assert Checkpoint(model=Counter(2), keep=1).save(path).endswith("run.000002.safetensors")
    counter = Counter()
    Checkpoint(model=counter, keep=1).restore(path)
    assert counter.value == 2 and names(path) == ["run.000002.safetensors"]


def test_numbers_beyond_six_digits(path):
    Checkpoint(model=Counter(), keep=2).save(path)
    (path.parent / "run.000001.safetensors").rename(path.parent / "run.999999.safetensors")
    Checkpoint(model=Counter(), keep=2).save(path)
    assert Checkpoint.latest(path).endswith("run.1000000.safetensors")


def test_a_numbered_file_can_be_restored_by_its_name(path):
    counter = Counter()
    checkpoint = Checkpoint(model=counter, keep=3)
    for counter.value in (1, 2):
        checkpoint.save(path)
    checkpoint.restore(path.parent / "run.000001.safetensors")
    assert counter.value == 1


def test_files_of_other_names_are_left_alone(path):
    others = ["run-1.safetensors", "run.01.safetensors", "run.safetensors", "xrun.000001.safetensors", "run.000001.txt",
              "runx000001.safetensors"]
    for name in others:
        (path.parent / name).touch()
    checkpoint = Checkpoint(model=Counter(), keep=1)
    for _ in range(3):
        checkpoint.save(path)
    assert names(path) == sorted([*others, "run.000003.safetensors"])


def test_a_failing_save_deletes_no_older_file(path):
    counter = Counter()
    checkpoint = Checkpoint(model=counter, keep=1)
    checkpoint.save(path)
    counter.value = object()
    with pytest.raises(TypeError):
        checkpoint.save(path)
    assert names(path) == ["run.000001.safetensors"]


def test_latest_of_nothing(path):
    assert Checkpoint.latest(path) is None and Checkpoint.latest(path / "no" / "folder") is None
    path.touch()
    assert Checkpoint.latest(path) == str(path)
