"""Policies of modules and of the whole process: which dtype is computed in, and that parameters stay float32."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import minidl
from minidl import amp, nn

HALVES = [("mixed_float16", minidl.float16), ("mixed_bfloat16", minidl.bfloat16)]
Pair = namedtuple("Pair", "left right")


@pytest.fixture
def globally():
    """set_global_policy, undone afterwards."""
    try:
        yield amp.set_global_policy
    finally:
        amp.set_global_policy("float32")


class Show(nn.Module):
    """Returns what it gets, by keyword too."""

    def forward(self, *args, **kwargs):
        return (*args, kwargs)


def x(*shape):
    return minidl.tensor(np.linspace(-1, 1, int(np.prod(shape))).reshape(shape).astype(np.float32))


@pytest.mark.parametrize("name, compute, variable", [
    ("mixed_float16", "float16", "float32"), ("mixed_bfloat16", "bfloat16", "float32"), ("float32", "float32", "float32"),
    ("float64", "float64", "float64"), ("float16", "float16", "float16"), ("bfloat16", "bfloat16", "bfloat16")])
def test_dtypes_of_a_policy(name, compute, variable):
    policy = amp.Policy(name)
    assert policy.name == name and policy.compute_dtype == getattr(minidl, compute)
    assert policy.variable_dtype == getattr(minidl, variable)
    assert policy == amp.Policy(name) and repr(policy) == f"Policy({name!r})" and len({policy, amp.Policy(name)}) == 1


@pytest.mark.parametrize("name", ["mixed_float32", "half", "", None, 16, minidl.float16])
def test_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match="Policy expected one of mixed_float16"):
        amp.Policy(name)


@pytest.mark.parametrize("name, half", HALVES)
def test_a_module_with_a_mixed_policy_computes_in_half(name, half):
    model = nn.Linear(3, 2)
    model.policy = amp.Policy(name)
    out = model(x(4, 3))
    assert out.dtype == half and model.weight.dtype == minidl.float32
    out.float().sum().backward()
    assert model.weight.grad.dtype == minidl.float32
    assert nn.Linear(3, 2)(x(4, 3)).dtype == minidl.float32


def test_nested_modules_follow_unless_they_have_their_own():
    seen = {}
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3)), nn.Linear(3, 3), nn.Softmax(-1))
    model.policy = amp.Policy("mixed_float16")
    model[2].policy = amp.Policy("mixed_bfloat16")
    model[3].policy = amp.Policy("float32")
    for i, module in enumerate(model):
        module.register_forward_hook(lambda module, args, out, i=i: seen.update({i: out.dtype}))
    out = model(x(2, 3))
    assert seen == {0: minidl.float16, 1: minidl.float16, 2: minidl.bfloat16, 3: minidl.float32}
    assert out.dtype == minidl.float32
    np.testing.assert_allclose(out.sum(-1).numpy(), 1, atol=1e-6)  # float16 would be 1e-3 off


@pytest.mark.parametrize("name, before, after", [
    ("float32", minidl.float16, minidl.float32), ("float32", minidl.bfloat16, minidl.float32),
    ("float32", minidl.float64, minidl.float64), ("float32", minidl.int64, minidl.int64),
    ("float64", minidl.float32, minidl.float64), ("float16", minidl.float32, minidl.float16),
    ("mixed_float16", minidl.float32, minidl.float32)])
def test_inputs_of_a_plain_policy_are_cast_at_the_door(name, before, after):
    module = Show()
    module.policy = amp.Policy(name)
    t = minidl.ones(2, dtype=before)
    first, nested, kwargs = module(t, [Pair(t, (t, 3)), OrderedDict(a=t)], option={"b": t}, text="word")
    assert {first.dtype, nested[0].left.dtype, nested[0].right[0].dtype, nested[1]["a"].dtype,
            kwargs["option"]["b"].dtype} == {np.dtype(after)}
    assert type(nested[0]) is Pair and type(nested[1]) is OrderedDict
    assert nested[0].right[1] == 3 and kwargs["text"] == "word"


def test_a_float32_policy_ends_a_region_around_it():
    model = nn.Linear(3, 2)
    model.policy = amp.Policy("float32")
    with amp.autocast():
        assert model(x(4, 3)).dtype == minidl.float32
        assert nn.Linear(3, 2)(x(4, 3)).dtype == minidl.float16


def test_a_policy_is_copied_and_pickled_with_its_module_and_not_in_the_state_dict():
    model = nn.Linear(3, 2)
    names = list(model.state_dict())
    model.policy = amp.Policy("mixed_float16")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other(x(4, 3)).dtype == minidl.float16
    assert list(model.state_dict()) == names
    del model.policy
    assert model(x(4, 3)).dtype == minidl.float32


def test_hooks_run_inside_the_policy():
    model = nn.Linear(3, 2)
    model.policy = amp.Policy("mixed_float16")
    model.register_forward_hook(lambda module, args, out: out @ out.T.float())
    assert model(x(4, 3)).dtype == minidl.float16


def test_an_error_inside_leaves_the_region():
    model = nn.Linear(3, 2)
    model.policy = amp.Policy("mixed_float16")
    with pytest.raises(RuntimeError):
        model(x(4, 5))
    assert nn.Linear(3, 2)(x(4, 3)).dtype == minidl.float32


def test_an_attribute_policy_that_is_a_network_is_an_ordinary_part():
    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.policy = nn.Linear(3, 2)

        def forward(self, observation):
            return self.policy(observation)

    agent = Agent()
    assert list(agent.state_dict()) == ["policy.weight", "policy.bias"]
    assert agent(x(4, 3)).dtype == minidl.float32


@pytest.mark.parametrize("name, half", HALVES)
def test_the_global_policy_concerns_everything_until_it_is_reset(globally, name, half):
    model = nn.Linear(3, 2)
    globally(name)
    assert amp.global_policy() == amp.Policy(name)
    assert model(x(4, 3)).dtype == half and minidl.softmax(model(x(4, 3)), -1).dtype == minidl.float32
    assert model.weight.dtype == minidl.float32
    globally(amp.Policy("float32"))
    assert model(x(4, 3)).dtype == minidl.float32 and amp.global_policy().name == "float32"


def test_the_global_policy_is_that_of_all_threads_and_yields_to_regions_and_modules(globally):
    model, out = nn.Linear(3, 2), {}
    exempt = nn.Linear(3, 2)
    exempt.policy = amp.Policy("float32")
    globally("mixed_float16")

    def run():
        out["plain"] = model(x(4, 3)).dtype
        out["exempt"] = exempt(x(4, 3)).dtype
        with amp.autocast(enabled=False):
            out["off"] = model(x(4, 3)).dtype
        with amp.autocast(dtype=minidl.bfloat16):
            out["region"] = model(x(4, 3)).dtype

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert out == {"plain": minidl.float16, "exempt": minidl.float32, "off": minidl.float32, "region": minidl.bfloat16}


def test_lists_move_ops_under_the_global_policy_too(globally):
    globally("mixed_float16")
    with amp.lists(add_full=[nn.functional.linear]):
        assert nn.Linear(3, 2)(x(4, 3)).dtype == minidl.float32
    assert nn.Linear(3, 2)(x(4, 3)).dtype == minidl.float16


def test_the_half_copy_of_a_weight_follows_edits_under_the_global_policy(globally):
    globally("mixed_float16")
    model = nn.Linear(1, 1, bias=False)
    for value in (1.0, 2.0):
        with minidl.no_grad():
            model.weight.fill_(value)
        for _ in range(2):
            assert model(minidl.ones(1, 1)).item() == value


def test_the_global_policy_keeps_no_dead_weights_and_drops_half_copies_at_its_end(globally):
    globally("mixed_float16")
    model = nn.Linear(3, 2)
    model(x(4, 3))
    half = weakref.ref(model.weight.node.half[2])
    leaf = weakref.ref(model.weight.node)
    kept = nn.Linear(3, 2)
    kept(x(4, 3))
    del model
    gc.collect()
    assert half() is None and leaf() is None
    assert kept.weight.node.half is not None
    globally("float32")
    assert kept.weight.node.half is None


@pytest.mark.parametrize("policy, error, message", [
    ("half", ValueError, "Policy expected one of"), ("float16", ValueError, "mixed policy or float32, got float16"),
    ("float64", ValueError, "mixed policy or float32"), (minidl.float16, TypeError, "Policy or its name"),
    (None, TypeError, "Policy or its name, got NoneType")])
def test_global_policies_that_cannot_be_are_refused(globally, policy, error, message):
    with pytest.raises(error, match=message):
        globally(policy)
    assert amp.global_policy().name == "float32"
