"""Module: parts, names, modes, state dicts, hooks, text."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import minidl
from minidl.nn.container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from minidl.nn.module import Module, register_module_forward_hook
from minidl.nn.parameter import Parameter


class Scale(Module):
    """y = weight * x + offset."""

    def __init__(self, n: int = 3, value: float = 2.0):
        super().__init__()
        self.weight = Parameter(minidl.full((n,), value))
        self.register_buffer("offset", minidl.zeros(n))
        self.register_buffer("calls", minidl.tensor(0), persistent=False)

    def forward(self, x):
        return x * self.weight + self.offset

    def extra_repr(self):
        return f"n={self.weight.shape[0]}"


def net():
    return Sequential(Scale(), ModuleList([Scale(value=3.0)]).append(Scale()), Scale())


def test_names_follow_the_order_of_assignment_with_parameters_before_buffers():
    model = ModuleDict({"a": Scale(), "b": Sequential(Scale())})
    assert list(model.state_dict()) == ["a.weight", "a.offset", "b.0.weight", "b.0.offset"]
    assert [name for name, _ in model.named_parameters()] == ["a.weight", "b.0.weight"]
    assert [name for name, _ in model.named_buffers()] == ["a.offset", "a.calls", "b.0.offset", "b.0.calls"]
    assert [name for name, _ in model.named_modules()] == ["", "a", "b", "b.0"]


def test_a_shared_part_is_listed_once_and_stored_under_each_of_its_names():
    shared = Scale()
    model = Sequential(shared, shared)
    assert [name for name, _ in model.named_parameters()] == ["0.weight"]
    assert len(list(model.named_parameters(remove_duplicate=False))) == 2
    assert list(model.state_dict()) == ["0.weight", "0.offset", "1.weight", "1.offset"]


def test_parts_can_be_replaced_by_their_kind_only():
    model = Scale()
    with pytest.raises(TypeError, match="weight expected a Parameter or None, got Tensor"):
        model.weight = minidl.ones(3)
    with pytest.raises(TypeError, match="expected a Tensor or None as the buffer, got float"):
        model.offset = 1.0
    with pytest.raises(KeyError, match="has an attribute 'weight' already"):
        model.register_buffer("weight", minidl.ones(3))
    model.weight = None
    assert list(model.parameters()) == []


def test_a_buffer_before_init_is_refused_and_reaches_no_other_module():
    class Early(Module):
        def __init__(self):
            self.register_buffer("offset", minidl.zeros(3))

    with pytest.raises(AttributeError, match=r"Early expected super\(\).__init__\(\) before 'offset'"):
        Early()
    assert not Module._buffer_names
    outer = Sequential(Scale())
    with pytest.raises(TypeError, match="expected a Module or None"):
        setattr(outer, "0", 3)


def test_forgetting_super_init_is_an_error():
    class Bad(Module):
        def __init__(self):
            self.weight = Parameter(minidl.ones(2))

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\)"):
        Bad()


@pytest.mark.parametrize("name, error", [("", KeyError), ("a.b", KeyError), ("forward", KeyError), (3, TypeError)])
def test_bad_names_are_refused(name, error):
    with pytest.raises(error):
        Scale().register_parameter(name, Parameter(minidl.ones(1)))
    with pytest.raises(error):
        Scale().register_buffer(name, minidl.ones(1))


def test_registering_what_is_no_parameter_is_refused():
    with pytest.raises(TypeError, match="got Tensor"):
        Scale().register_parameter("w", minidl.ones(1))
    with pytest.raises(TypeError, match="got int"):
        Scale().register_buffer("w", 3)
    with pytest.raises(ValueError, match="leaf"):
        computed = Parameter(minidl.ones(1))
        computed.node = (Parameter(minidl.ones(1)) * 2).node
        Scale().register_parameter("w", computed)


def test_train_and_eval_reach_every_module():
    model = net()
    assert not any(m.training for m in model.eval().modules())
    assert all(m.training for m in model.train().modules())
    with pytest.raises(ValueError, match="True or False"):
        model.train(1)


def test_getting_parts_by_dotted_name():
    model = net()
    assert model.get_submodule("1.0") is model[1][0]
    assert model.get_parameter("1.0.weight") is model[1][0].weight
    assert model.get_buffer("0.offset") is model[0].offset
    with pytest.raises(AttributeError, match="no sub-module '7'"):
        model.get_submodule("1.7")
    with pytest.raises(AttributeError, match="no parameter 'offset'"):
        model.get_parameter("0.none.offset".replace("none.", ""))


def test_conversions_keep_parameters_their_gradients_and_integers():
    model = Scale()
    weight = model.weight
    (model(minidl.ones(3)) ** 2).sum().backward()
    assert model.half() is model
    assert model.weight is weight and weight.dtype == minidl.float16 and weight.grad.dtype == minidl.float16
    assert model.offset.dtype == minidl.float16 and model.calls.dtype == minidl.int64
    assert model.to(minidl.float64).weight.dtype == minidl.float64
    assert model.to(minidl.zeros(1)).weight.dtype == minidl.float32
    assert model.to("cpu", minidl.float16).weight.dtype == minidl.float16
    assert model.to("cpu").weight.dtype == minidl.float16
    model.float()(minidl.ones(3)).sum().backward()
    assert weight.grad is not None
    with pytest.raises(TypeError, match="floating dtype, got int32"):
        model.to(minidl.int32)


def test_loading_copies_values_and_keeps_the_parameter():
    source, target = Scale(value=5.0), Scale()
    weight = target.weight
    assert repr(target.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert target.weight is weight and weight.tolist() == [5.0] * 3
    source.weight.data.fill_(0)
    assert weight.tolist() == [5.0] * 3


def test_loading_takes_numpy_arrays_and_casts():
    model = Scale().half()
    model.load_state_dict({"weight": np.array([1.0, 2.0, 3.0]), "offset": np.zeros(3, np.float32)})
    assert model.weight.dtype == minidl.float16 and model.weight.tolist() == [1, 2, 3]


def test_one_error_lists_all_that_does_not_fit_and_nothing_is_loaded():
    model = Sequential(Scale(), Scale(), Scale())
    before = model.state_dict()["0.weight"].tolist()
    given = {"0.weight": minidl.ones(3), "1.weight": minidl.ones(4), "nonsense": minidl.ones(1), "2.weight": minidl.ones(3)}
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(given)
    for part in ("0.offset", "1.offset", "2.offset", "nonsense", "1.weight: expected shape (3,), got (4,)"):
        assert part in str(caught.value)
    assert model.state_dict()["0.weight"].tolist() == before


def test_loading_without_strict_returns_what_did_not_match():
    result = Scale().load_state_dict({"weight": minidl.ones(3), "more": minidl.ones(1)}, strict=False)
    assert result.missing_keys == ["offset"] and result.unexpected_keys == ["more"]
    with pytest.raises(RuntimeError, match="weight: expected shape"):
        Scale().load_state_dict({"weight": minidl.ones(2)}, strict=False)


@pytest.mark.parametrize("given, message", [([1], "expected a dict, got list"), ({"weight": "x", "offset": 1}, "'weight'")])
def test_loading_what_is_no_state_dict(given, message):
    with pytest.raises(TypeError, match=message):
        Scale().load_state_dict(given)


def test_assign_puts_the_tensors_themselves():
    model = Scale()
    given = {"weight": minidl.ones(3, dtype=minidl.float64), "offset": minidl.ones(3)}
    model.load_state_dict(given, assign=True)
    assert isinstance(model.weight, Parameter) and model.weight.dtype == minidl.float64 and model.offset is given["offset"]


def test_extra_state_travels():
    class Counting(Scale):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    source, target = Counting(), Counting()
    source.count = 7
    target.load_state_dict(source.state_dict())
    assert target.count == 7
    with pytest.raises(RuntimeError, match="missing: _extra_state"):
        target.load_state_dict(Scale().state_dict())


def test_state_hooks():
    model, seen = Scale(), []
    model.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append("pre"))
    model.register_state_dict_post_hook(lambda m, state, prefix, meta: state.update(extra=minidl.ones(1)))
    state = model.state_dict()
    assert seen == ["pre"] and "extra" in state
    model.register_load_state_dict_pre_hook(lambda m, state, *rest: state.pop("extra"))
    model.register_load_state_dict_post_hook(lambda m, keys: seen.append(keys))
    model.load_state_dict(state)
    assert seen[-1] == ([], []) and "extra" in state


def test_forward_hooks_may_replace_arguments_and_output():
    model, x = Scale(), minidl.ones(3)
    first = model.register_forward_pre_hook(lambda m, args: args[0] + 1)
    second = model.register_forward_hook(lambda m, args, out: out * 10)
    assert model(x).tolist() == [40.0] * 3
    model.register_forward_pre_hook(lambda m, args: args[0] * 2, prepend=True)
    assert model(x).tolist() == [60.0] * 3
    first.remove(), second.remove()
    assert model(x).tolist() == [4.0] * 3


def test_hooks_with_kwargs():
    class Sum(Module):
        def forward(self, x, *, y):
            return x + y

    model, seen = Sum(), []
    model.register_forward_pre_hook(lambda m, args, kwargs: (args, {"y": kwargs["y"] * 2}), with_kwargs=True)
    model.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs["y"]), with_kwargs=True)
    assert model(1, y=2) == 5 and seen == [4]


def test_an_always_called_hook_sees_a_failing_forward():
    class Bad(Module):
        def forward(self, x):
            raise ZeroDivisionError

    model, seen = Bad(), []
    model.register_forward_hook(lambda *args: seen.append("always"), always_call=True)
    model.register_forward_hook(lambda *args: seen.append("never"))
    with pytest.raises(ZeroDivisionError):
        model(1)
    assert seen == ["always"]


def test_a_hook_of_every_module():
    seen = []
    with register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__)):
        Sequential(Scale())(minidl.ones(3))
    assert seen == ["Scale", "Sequential"]
    Scale()(minidl.ones(3))
    assert len(seen) == 2


def test_backward_hooks_see_and_replace_gradients():
    model, x, seen = Scale(), minidl.ones(3, requires_grad=True), []
    model.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 2,))

    def hook(m, grad_input, grad_output):
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    model.register_full_backward_hook(hook)
    model(x).sum().backward()
    assert seen == [([4.0] * 3, [2.0] * 3)]
    assert x.grad.tolist() == [40.0] * 3 and model.weight.grad.tolist() == [2.0] * 3


def test_a_backward_hook_without_inputs_that_require_grad():
    model, seen = Scale(), []
    model.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, grad_output[0].tolist())))
    model(minidl.ones(3)).sum().backward()
    assert seen == [((None,), [1.0] * 3)]


def test_backward_hooks_are_outside_forward_hooks():
    model, x, seen = Scale(value=3.0), minidl.ones(3, requires_grad=True), []
    model.register_forward_pre_hook(lambda m, args: (args[0] * 5,))
    model.register_forward_hook(lambda m, args, out: out * 2)
    model.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append(
        (grad_input[0].tolist(), grad_output[0].tolist())))
    model(x).sum().backward()
    assert seen == [([6.0] * 3, [1.0] * 3)] and x.grad.tolist() == [30.0] * 3


@pytest.mark.parametrize("args, kwargs", [((), {"x": minidl.ones(3)}), ((minidl.ones(3),), {})])
def test_a_backward_hook_sees_a_gradient_per_positional_input(args, kwargs):
    model, seen = Scale(), []
    model.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append(grad_input))
    model(*args, **kwargs).sum().backward()
    assert seen == [(None,) * len(args)]


def test_deepcopy_and_pickle_make_independent_models():
    model = net()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert list(other.state_dict()) == list(model.state_dict())
        with minidl.no_grad():
            other[0].weight.fill_(9)
        assert model[0].weight.tolist() == [2.0] * 3


def test_apply_requires_grad_and_zero_grad():
    model, seen = net(), []
    model.apply(lambda m: seen.append(type(m).__name__))
    assert seen[-1] == "Sequential" and len(seen) == 6
    model.requires_grad_(False)
    assert not any(p.requires_grad for p in model.parameters())
    model.requires_grad_()
    model[0](minidl.ones(3)).sum().backward()
    model.zero_grad(set_to_none=False)
    assert model[0].weight.grad.tolist() == [0.0] * 3
    model.zero_grad()
    assert model[0].weight.grad is None


def test_repr_shows_the_tree():
    text = repr(Sequential(Scale(), Sequential(Scale())))
    assert text == ("Sequential(\n  (0): Scale(n=3)\n  (1): Sequential(\n    (0): Scale(n=3)\n  )\n)")
    assert repr(ModuleList([Scale(), Scale(), Scale(2)])) == (
        "ModuleList(\n  (0-1): 2 x Scale(n=3)\n  (2): Scale(n=2)\n)")
    assert repr(Parameter(minidl.ones(1))).startswith("Parameter containing:\ntensor([1.]")


# Containers

def test_sequential_runs_slices_and_edits():
    model = Sequential(Scale(value=1.0), Scale(value=2.0), Scale(value=3.0))
    assert model(minidl.ones(3)).tolist() == [6.0] * 3
    assert model[1:](minidl.ones(3)).tolist() == [6.0] * 3 and len(model[:2]) == 2
    model.append(Scale(value=4.0)).insert(0, Scale(value=5.0))
    assert [m.weight[0].item() for m in model] == [5, 1, 2, 3, 4]
    del model[0]
    model[0] = Scale(value=7.0)
    assert [m.weight[0].item() for m in model] == [7, 2, 3, 4] and list(model._modules) == ["0", "1", "2", "3"]
    assert len(model + Sequential(Scale())) == 5
    assert model.pop(-1).weight[0].item() == 4
    named = Sequential({"first": Scale(), "second": Scale()})
    assert named.first is named[0] and list(named.state_dict())[0] == "first.weight"


def test_sequential_keeps_names_of_its_own():
    named = Sequential({"first": Scale(), "second": Scale()}).append(Scale()).extend([Scale()])
    assert list(named._modules) == ["first", "second", "2", "3"]
    with pytest.raises(ValueError, match="without names of their own, got first, second"):
        named.insert(0, Scale())
    with pytest.raises(KeyError, match="no part of the name '1' yet"):
        Sequential({"1": Scale()}).append(Scale())


def test_sequential_several_times_over():
    twice = 2 * Sequential(Scale(value=2.0), Scale(value=3.0))
    assert len(twice) == 4 and twice(minidl.ones(3)).tolist() == [36.0] * 3
    assert twice[0] is twice[2]


def test_text_of_containers_of_parameters():
    assert repr(ParameterDict({"a": minidl.ones(2, 3)})) == (
        "ParameterDict(\n  (a): Parameter containing: [float32 of size 2x3]\n)")
    assert repr(ParameterList([minidl.ones(2).half()])) == (
        "ParameterList(\n  (0): Parameter containing: [float16 of size 2]\n)")


def test_module_list():
    parts = ModuleList(Scale(value=float(i)) for i in range(3))
    parts += [Scale(value=9.0)]
    parts[0] = Scale(value=5.0)
    assert [m.weight[0].item() for m in parts] == [5, 1, 2, 9] and len(parts[1:3]) == 2 and parts[-1].weight[0].item() == 9
    del parts[1]
    assert list(parts._modules) == ["0", "1", "2"]
    with pytest.raises(IndexError, match="-3 to 2, got 3"):
        parts[3]
    with pytest.raises(TypeError, match="expected Modules, got int"):
        parts.append(3)


def test_module_dict():
    parts = ModuleDict({"a": Scale()})
    parts["b"] = Scale(value=7.0)
    assert list(parts.keys()) == ["a", "b"] and "a" in parts and len(parts) == 2
    assert parts.pop("a").weight[0].item() == 2 and [k for k in parts] == ["b"]
    with pytest.raises(KeyError):
        parts["forward"] = Scale()
    with pytest.raises(KeyError):
        parts["none"]
    parts.clear()
    assert len(parts) == 0


def test_parameter_containers():
    holder = Module()
    holder.list = ParameterList([minidl.ones(2), Parameter(minidl.ones(3))])
    holder.dict = ParameterDict({"a": minidl.ones(4)})
    assert [(name, p.shape) for name, p in holder.named_parameters()] == [
        ("list.0", (2,)), ("list.1", (3,)), ("dict.a", (4,))]


def test_a_module_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="Module expected a method forward"):
        Module()(1)
