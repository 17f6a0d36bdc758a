"""Linear, Bilinear, Identity: values and gradients, initial values, state, text."""

import math

import numpy as np
import pytest

import minidl
from minidl.nn.linear import Bilinear, Identity, Linear
from tests.table import sample

TOLERANCE = {minidl.float64: 1e-12, minidl.float32: 1e-5, minidl.float16: 5e-3}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lead", [(), (4,), (2, 3), (2, 0)])
def test_linear(lead, bias, dtype):
    layer = Linear(5, 3, bias, dtype=dtype)
    x = minidl.tensor(sample(*lead, 5), dtype=dtype)
    y = layer(x)
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy() if bias else 0
    assert y.dtype == dtype and y.shape == (*lead, 3)
    np.testing.assert_allclose(y.detach().numpy(), x.numpy().astype(float) @ w.astype(float).T + b, atol=TOLERANCE[dtype])


def test_gradients_of_linear_reach_its_parameters():
    layer, x = Linear(3, 2, dtype=minidl.float64), sample(4, 3)
    g = sample(4, 2, seed=1)
    layer(minidl.tensor(x)).backward(minidl.tensor(g))
    np.testing.assert_allclose(layer.weight.grad.numpy(), g.T @ x)
    np.testing.assert_allclose(layer.bias.grad.numpy(), g.sum(0))


@pytest.mark.parametrize("bias", [True, False])
def test_bilinear(bias):
    layer = Bilinear(3, 4, 2, bias, dtype=minidl.float64)
    a, b = sample(5, 6, 3), sample(5, 6, 4, seed=1)
    y = layer(minidl.tensor(a), minidl.tensor(b))
    expected = np.einsum("nmi,kij,nmj->nmk", a, layer.weight.detach().numpy(), b)
    np.testing.assert_allclose(y.detach().numpy(), expected + (layer.bias.detach().numpy() if bias else 0))


def test_identity_takes_any_arguments_and_returns_its_input():
    layer, x = Identity(54, unused=True), minidl.ones(2)
    assert layer(x) is x and not layer.state_dict()


@pytest.mark.parametrize("layer, bound", [(Linear(100, 50), 0.1), (Bilinear(25, 10, 20), 0.2)])
def test_initial_values_are_uniform_up_to_the_bound(layer, bound):
    for parameter in layer.parameters():
        values = parameter.detach().numpy()
        assert 0.8 * bound < abs(values).max() <= bound
        assert abs(values.std() * math.sqrt(3) / bound - 1) < 0.35
    assert abs(layer.weight.detach().numpy().std() * math.sqrt(3) / bound - 1) < 0.05


def test_initial_values_depend_on_the_seed_only():
    weights = []
    for _ in range(2):
        minidl.manual_seed(7)
        weights.append(Linear(4, 4).weight.detach().numpy())
    np.testing.assert_array_equal(*weights)


def test_no_inputs_leave_the_bias():
    layer = Linear(0, 3)
    np.testing.assert_array_equal(layer(minidl.ones(2, 0)).detach().numpy(), [layer.bias.detach().numpy()] * 2)


@pytest.mark.parametrize("layer, keys, text", [
    (Linear(5, 3), ["weight", "bias"], "Linear(in_features=5, out_features=3, bias=True)"),
    (Linear(5, 3, False), ["weight"], "Linear(in_features=5, out_features=3, bias=False)"),
    (Bilinear(5, 4, 3), ["weight", "bias"], "Bilinear(in1_features=5, in2_features=4, out_features=3, bias=True)"),
    (Identity(), [], "Identity()"),
])
def test_state_and_text(layer, keys, text):
    assert list(layer.state_dict()) == keys and repr(layer) == text


def test_errors():
    with pytest.raises(RuntimeError, match="last axis of 5"):
        Linear(5, 3)(minidl.ones(2, 4))
    with pytest.raises(ValueError, match="positive in1_features"):
        Bilinear(0, 3, 2)
    with pytest.raises(RuntimeError, match="bilinear"):
        Bilinear(2, 3, 2)(minidl.ones(4, 2), minidl.ones(4, 2))
