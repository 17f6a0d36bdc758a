"""Kinks, extremes, in-place forms and refusals of activations."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minidl
from minidl.tensor.ops import activation as F

FLOAT = minidl.tensor([-2.0, 0.0, 3.0])
INT = minidl.tensor([-2, 0, 3])


@pytest.mark.parametrize("function, values, want", [
    (F.relu, [0, 1], [0, 1]),
    (F.relu6, [0, 6, 3], [0, 0, 1]),
    (F.hardtanh, [-1, 1, 0], [0, 0, 1]),
    (F.hardsigmoid, [-3, 3, 0], [0, 0, 1 / 6]),
    (F.hardswish, [-3, 3, 0], [0, 1, 0.5]),
    (F.hardshrink, [-0.5, 0.5, 1], [0, 0, 1]),
    (F.softshrink, [-0.5, 0.5, 1], [0, 0, 1]),
    (F.leaky_relu, [0, 1], [0.01, 1]),
    (F.elu, [0, 1, -1000], [1, 1, 0]),
    (lambda x: F.threshold(x, 1, 5), [1, 2], [0, 1]),
    (F.softplus, [1000, -1000, 0], [1, 0, 0.5]),
    (F.logsigmoid, [1000, -1000, 0], [0, 1, 0.5]),
])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gradients_at_kinks_and_extremes(function, values, want):
    x = minidl.tensor(np.array(values, np.float64), requires_grad=True)
    y = function(x)
    (first,) = minidl.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(first.numpy(), want)
    if first.requires_grad:
        (second,) = minidl.autograd.grad(first.sum(), x)
        assert np.isfinite(second.numpy()).all()


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16, minidl.float32], ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_extremes_stay_finite(dtype):
    x = minidl.tensor([-6e4, -100.0, 0.0, 100.0, 6e4], dtype=dtype)
    for function in (F.relu, F.elu, F.selu, F.gelu, F.silu, F.mish, F.softplus, F.logsigmoid, F.softsign, F.hardswish,
                     lambda x: F.gelu(x, "tanh"), F.tanhshrink, F.sigmoid):
        y = function(x)
        assert y.dtype == dtype and np.isfinite(y.numpy().astype(np.float64)).all()


@pytest.mark.parametrize("call", [
    F.relu, F.relu6, F.leaky_relu, F.elu, F.selu, F.celu, F.silu, F.mish, F.hardtanh, F.hardsigmoid, F.hardswish, F.rrelu,
    lambda x, **how: F.threshold(x, 0.5, 2.0, **how),
])
def test_in_place(call):
    x = minidl.tensor([-2.0, 0.25, 3.0], requires_grad=True)
    y = x * 1
    want = call(y)
    (g,) = minidl.autograd.grad(want.sum(), x, retain_graph=True)
    assert call(y, inplace=True) is y
    np.testing.assert_array_equal(y.numpy(), want.numpy())
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), g.numpy())


def test_names_with_an_underscore():
    for function in (F.relu_, F.leaky_relu_, F.elu_, F.selu_, F.celu_, F.hardtanh_, F.rrelu_):
        y = FLOAT * 1
        assert function(y) is y
    y = FLOAT * 1
    assert F.threshold_(y, 0.5, 9.0) is y
    np.testing.assert_array_equal(y.numpy(), [9, 9, 3])
    np.testing.assert_array_equal((FLOAT * 1).relu_().numpy(), [0, 0, 3])


@pytest.mark.parametrize("call, error", [
    (lambda: F.relu(minidl.tensor([True])), NotImplementedError),
    (lambda: F.gelu(FLOAT, "fast"), RuntimeError),
    (lambda: F.gelu(INT), NotImplementedError),
    (lambda: F.leaky_relu(INT), NotImplementedError),
    (lambda: F.hardtanh(FLOAT, 1, -1), ValueError),
    (lambda: F.softshrink(FLOAT, -1), RuntimeError),
    (lambda: F.celu(FLOAT, 0), RuntimeError),
    (lambda: F.rrelu(FLOAT, 0.5, 0.1), RuntimeError),
    (lambda: F.glu(FLOAT), RuntimeError),
    (lambda: F.glu(minidl.tensor(1.0)), RuntimeError),
    (lambda: F.glu(FLOAT, 3), IndexError),
    (lambda: F.prelu(minidl.ones(2, 3), minidl.ones(2)), RuntimeError),
    (lambda: F.prelu(minidl.ones(2, 3), minidl.ones(3, 1)), RuntimeError),
    (lambda: F.prelu(minidl.ones(2, 3), minidl.ones(3).double()), RuntimeError),
])
def test_refusals(call, error):
    with pytest.raises(error):
        call()


def test_integers():
    for function, want in ((F.relu, [0, 0, 3]), (F.relu6, [0, 0, 3]), (F.hardtanh, [-1, 0, 1]),
                           (lambda x: F.threshold(x, 0.5, 9.5), [9, 9, 3])):
        y = function(INT)
        assert y.dtype == minidl.int64
        np.testing.assert_array_equal(y.numpy(), want)


def test_rrelu_draws_slopes():
    x = minidl.full((1000,), -1.0, requires_grad=True)
    y = F.rrelu(x, 0.1, 0.3, training=True)
    slopes = -y.numpy()
    assert 0.1 <= slopes.min() < 0.11 and 0.29 < slopes.max() <= 0.3
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), slopes)
    np.testing.assert_allclose(F.rrelu(x, 0.1, 0.3).numpy(), -0.2, rtol=1e-6)


def test_prelu_of_one_and_no_axis():
    np.testing.assert_allclose(F.prelu(minidl.tensor(-2.0), minidl.tensor([0.5])).numpy(), -1)
    np.testing.assert_allclose(F.prelu(FLOAT, minidl.tensor(0.5)).numpy(), [-1, 0, 3])


def test_negative_infinity_is_no_nan_where_the_limit_is_finite():
    x = minidl.tensor([-math.inf, math.inf])
    np.testing.assert_array_equal(F.softplus(x).numpy(), [0, math.inf])
    np.testing.assert_array_equal(F.elu(x).numpy(), [-1, math.inf])
    np.testing.assert_array_equal(F.relu(x).numpy(), [0, math.inf])


@pytest.mark.parametrize("inplace", [False, True])
def test_rrelu_of_no_axis(inplace):
    y = F.rrelu(minidl.tensor(-1.0), training=True, inplace=inplace)
    assert y.shape == () and -1 / 3 <= y.item() <= -1 / 8


def test_glu_looks_for_its_axis_before_the_dtype():
    with pytest.raises(IndexError, match="dim"):
        F.glu(INT, 5)
