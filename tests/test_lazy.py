"""Lazy layers: they become the plain ones at the first forward, and their state dicts work before it."""

import copy

import numpy as np
import pytest

import minidl
from minidl.nn import convolution, lazy
from minidl.nn.container import Sequential
from minidl.nn.linear import Linear
from minidl.nn.parameter import Parameter, is_uninitialized

LAYERS = [(lazy.LazyLinear, (3,), {}, (2, 4), Linear, (3, 4))]
for axes in (1, 2, 3):
    image = (2, 4) + (5,) * axes
    LAYERS += [
        (getattr(lazy, f"LazyConv{axes}d"), (6, 3), {"groups": 2, "padding": 1}, image,
         getattr(convolution, f"Conv{axes}d"), (6, 2) + (3,) * axes),
        (getattr(lazy, f"LazyConvTranspose{axes}d"), (6, 3, 2), {"groups": 2, "bias": False}, image,
         getattr(convolution, f"ConvTranspose{axes}d"), (4, 3) + (3,) * axes),
    ]
each_layer = pytest.mark.parametrize("kind, args, how, shape, plain, weight", LAYERS, ids=lambda v: getattr(v, "__name__", ""))


@each_layer
def test_becomes_the_plain_layer(kind, args, how, shape, plain, weight):
    layer, x = kind(*args, **how), minidl.randn(shape)
    parameters = list(layer.parameters())
    assert all(map(is_uninitialized, parameters)) and layer.has_uninitialized_params()
    minidl.manual_seed(1)
    y = layer(x)
    assert type(layer) is plain and layer.weight.shape == weight
    assert [id(p) for p in layer.parameters()] == [id(p) for p in parameters]
    assert all(type(p) is Parameter and p.requires_grad for p in parameters)
    minidl.manual_seed(1)
    same = plain(4, *args, **how)
    assert repr(layer) == repr(same)
    np.testing.assert_array_equal(y.detach().numpy(), same(x).detach().numpy())


@each_layer
def test_state_of_a_plain_layer_can_be_loaded_before_the_first_forward(kind, args, how, shape, plain, weight):
    layer, trained, x = kind(*args, **how), plain(4, *args, **how), minidl.randn(shape)
    layer.load_state_dict(trained.state_dict())
    assert not layer.has_uninitialized_params() and type(layer) is kind
    np.testing.assert_array_equal(layer(x).detach().numpy(), trained(x).detach().numpy())
    assert type(layer) is plain and repr(layer) == repr(trained)


@each_layer
def test_state_without_shapes_goes_into_another_lazy_layer(kind, args, how, shape, plain, weight):
    state = kind(*args, **how).state_dict()
    assert list(state) == ["weight", "bias"][:len(state)] and all(map(is_uninitialized, state.values()))
    other = kind(*args, **how)
    other.load_state_dict(state)
    assert other.has_uninitialized_params() and other(minidl.ones(shape)).shape


def test_a_loaded_weight_is_kept_where_the_bias_is_not_given():
    layer = lazy.LazyLinear(3)
    layer.load_state_dict({"weight": np.ones((3, 4), np.float32)}, strict=False)
    layer(minidl.ones(2, 4))
    np.testing.assert_array_equal(layer.weight.detach().numpy(), np.ones((3, 4)))
    assert layer.bias.shape == (3,) and abs(layer.bias.detach().numpy()).max() <= 0.5


def test_a_loaded_weight_tells_the_number_of_inputs():
    layer = lazy.LazyLinear(3)
    layer.load_state_dict(Linear(4, 3).state_dict())
    with pytest.raises(RuntimeError, match="last axis of 4"):
        layer(minidl.ones(2, 5))


def test_dtype_given_or_changed_before_the_first_forward():
    for layer in (lazy.LazyLinear(3, dtype=minidl.float64), lazy.LazyLinear(3).double()):
        assert layer(minidl.ones((2, 4), dtype=minidl.float64)).dtype == minidl.float64


def test_a_copy_is_lazy_by_itself():
    layer = lazy.LazyConv2d(3, 3)
    other = copy.deepcopy(layer)
    layer(minidl.ones(1, 2, 5, 5))
    assert other(minidl.ones(1, 7, 5, 5)).shape == (1, 3, 3, 3) and layer.in_channels == 2


def test_training_and_gradients_within_a_model():
    model = Sequential(lazy.LazyConv2d(3, 3), lazy.LazyConvTranspose2d(2, 3, stride=2), lazy.LazyLinear(5))
    model(minidl.ones(4, 6, 6)).sum().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in model.parameters())


def test_the_input_may_have_no_batch_and_be_named():
    layer = lazy.LazyConvTranspose1d(3, 3, stride=2)
    assert layer(input=minidl.ones(4, 5), output_size=[12]).shape == (3, 12) and layer.in_channels == 4


def test_reset_before_the_first_forward_does_nothing():
    layer = lazy.LazyLinear(3)
    layer.reset_parameters()
    assert layer.has_uninitialized_params()


def test_initialize_parameters_needs_no_forward():
    layer = lazy.LazyLinear(3)
    layer.initialize_parameters(minidl.ones(2, 4))
    assert layer.weight.shape == (3, 4) and not layer.has_uninitialized_params()


@pytest.mark.parametrize("kind, message, layer, shape", [
    (RuntimeError, "LazyConv2d expected input of 4 axes", lazy.LazyConv2d(3, 3), (5, 5)),
    (ValueError, "2 groups divide", lazy.LazyConv2d(4, 3, groups=2), (1, 3, 5, 5)),
    (RuntimeError, "at least one axis", lazy.LazyLinear(3), ()),
])
def test_a_bad_first_input_leaves_the_layer_lazy(kind, message, layer, shape):
    with pytest.raises(kind, match=message):
        layer(minidl.ones(shape))
    assert layer.has_uninitialized_params()


def test_errors_of_the_constructor():
    with pytest.raises(ValueError, match="groups"):
        lazy.LazyConv2d(3, 3, groups=2)
