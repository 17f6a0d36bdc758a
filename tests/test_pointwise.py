"""Dtypes, special values and refusals of functions of real numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minidl
from minidl.tensor.backend import Backend

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
INT = minidl.tensor([1, 2, -3])


def gradient(function, values):
    x = minidl.tensor(np.array(values, np.float64), requires_grad=True)
    function(x).sum().backward()
    return x.grad.numpy()


@pytest.mark.parametrize("name", ["exp", "sin", "sqrt", "sigmoid", "erf", "atan", "log1p", "reciprocal", "deg2rad"])
def test_integers_become_floating(name):
    assert getattr(minidl, name)(INT).dtype == minidl.float32


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "square", "nan_to_num"])
def test_integers_stay(name):
    assert getattr(minidl, name)(INT).dtype == minidl.int64


@pytest.mark.parametrize("function, values, want", [
    (lambda x: x ** 2, [0, 3], [0, 6]),
    (lambda x: x ** 1, [0, 3], [1, 1]),
    (lambda x: x ** 0, [0, 3], [0, 0]),
    (lambda x: x ** minidl.tensor([0.0, 0.0]), [0, 3], [0, 0]),
    (lambda x: 0 ** x, [0, 2, -1], [0, 0, -math.inf]),
    (lambda x: minidl.tensor([0.0, 0.0]) ** x, [0, 2], [0, 0]),
    (minidl.sqrt, [0, 4], [math.inf, 0.25]),
    (minidl.abs, [0, -2], [0, -1]),
    (lambda x: minidl.xlogy(x, 0.0), [0], [0]),
    (lambda x: minidl.clamp(x, -1, 1), [-1, 1, 2, math.nan], [1, 1, 0, 0]),
    (lambda x: minidl.clamp(x, 2, 1), [0, 1, 2, 3], [0, 0, 0, 0]),
    (minidl.sinc, [0.0], [0.0]),
    (lambda x: minidl.atan2(x, minidl.zeros(1)), [0.0], [0.0]),
    (minidl.nan_to_num, [math.nan, math.inf, 1], [0, 0, 1]),
    (lambda x: minidl.logit(x, 0.1), [0.05, 0.5], [0, 4]),
])
def test_gradients_at_special_points(function, values, want):
    np.testing.assert_allclose(gradient(function, values), want)


def test_powers_of_integers():
    exponents = minidl.tensor([3, 0, -2])
    np.testing.assert_array_equal(minidl.pow(INT, minidl.tensor([3, 2, 2])).numpy(), [1, 4, 9])
    np.testing.assert_array_equal(minidl.pow(minidl.tensor([-1, 1, -1]), -exponents + 1).numpy(), [1, 1, -1])
    np.testing.assert_array_equal((2 ** exponents).numpy(), [8, 1, 0])
    assert (INT ** 0.5).dtype == minidl.float32
    with pytest.raises(RuntimeError, match="negative"):
        INT ** -1


@pytest.mark.parametrize("call, error", [
    (lambda: minidl.clamp(INT), RuntimeError),
    (lambda: minidl.floor(minidl.tensor([True])), NotImplementedError),
    (lambda: minidl.frac(INT), NotImplementedError),
    (lambda: minidl.round(INT, decimals=1), NotImplementedError),
    (lambda: minidl.pow(minidl.tensor([True]), minidl.tensor([True])), NotImplementedError),
    (lambda: minidl.exp(INT).copy_("a"), TypeError),
])
def test_refusals(call, error):
    with pytest.raises(error):
        call()


def test_round_goes_to_even():
    np.testing.assert_array_equal(minidl.round(minidl.tensor([0.5, 1.5, -2.5])).numpy(), [0, 2, -2])


def test_clamp_promotes():
    assert minidl.clamp(INT, min=0.5).dtype == minidl.float32
    np.testing.assert_array_equal(minidl.clamp(INT, 0, 1).numpy(), [1, 1, 0])
    np.testing.assert_array_equal(minidl.clamp(minidl.tensor([1.0, math.nan]), max=0.0).numpy(), [0, math.nan])


def test_nan_to_num_uses_the_limits_of_the_dtype():
    for dtype in (minidl.float16, minidl.bfloat16, minidl.float32, minidl.float64):
        x = minidl.tensor([math.nan, math.inf, -math.inf, 1.0], dtype=dtype)
        limits = minidl.finfo(dtype)
        found = minidl.nan_to_num(x)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy().astype(np.float64), [0, limits.max, limits.min, 1])
    np.testing.assert_array_equal(minidl.nan_to_num(x, 2.0, 3.0, -4.0).numpy(), [2, 3, -4, 1])


@pytest.mark.parametrize("name, tolerance", [("erf", 1e-15), ("erfc", 2e-15)])
def test_error_function_in_float64(name, tolerance):
    x = np.concatenate([np.linspace(-6, 6, 4001), [1e-300, 26.0, -30.0]])
    want = np.array([getattr(math, name)(v) for v in x])
    np.testing.assert_allclose(getattr(minidl, name)(minidl.tensor(x)).numpy(), want, rtol=tolerance, atol=1e-300)


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_function_in_float32(name):
    x = np.linspace(-9, 9, 4001).astype(np.float32)
    want = np.array([getattr(math, name)(float(v)) for v in x])
    found = getattr(minidl, name)(minidl.tensor(x))
    assert found.dtype == minidl.float32
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-6, atol=1e-38)


def test_erfinv_inverts_erf():
    y = np.concatenate([np.linspace(-0.999, 0.999, 999), 1 - np.logspace(-16, -3, 40), [1e-12]])
    x = minidl.erfinv(minidl.tensor(y)).numpy()
    tail = np.array([math.erfc(abs(v)) for v in x])
    np.testing.assert_allclose(tail, 1 - np.abs(y), rtol=1e-13)
    ends = minidl.erfinv(minidl.tensor([1.0, -1.0, 2.0, 0.0]))
    np.testing.assert_array_equal(ends.numpy(), [math.inf, -math.inf, math.nan, 0])


def test_sigmoid_keeps_small_values():
    found = minidl.sigmoid(minidl.tensor([-80.0, -1000.0, 1000.0])).numpy()
    np.testing.assert_allclose(found, [1.8048513e-35, 0, 1], rtol=1e-5)


def test_half_precision_goes_through_float32():
    x = minidl.tensor([11.0], dtype=minidl.float16)
    assert minidl.exp(x).item() == np.float16(math.exp(11))
    assert minidl.exp(x).dtype == minidl.float16
    assert math.isinf(minidl.exp(x + 1).item())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("shapes", [((60, 50), (60, 50), (60, 50)), ((50,), (60, 1), (60, 50)), ((60, 50), (), (1, 50))])
def test_select_agrees_with_where(dtype, shapes):
    xp = Backend(np)
    rng = np.random.default_rng(0)
    a, b = (np.asarray(rng.integers(0, 9, shape)).astype(dtype) for shape in shapes[:2])
    condition = rng.random(shapes[2]) > 0.5
    for u, v in ((a, b), (a, 0), (0, b), (2, b), (a, 0.5), (True, b)):
        want, found = np.where(condition, u, v), xp.select(condition, u, v)
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(("other", "by_input", "mixed"), [
    (0, 0, 0), (2, math.log(2), 0.5), (-1, 0, None), (math.inf, math.inf, 0)])
def test_xlogy_of_zero_has_no_slope_in_other(other, by_input, mixed):
    x, y = (minidl.tensor(v, dtype=minidl.float64, requires_grad=True) for v in (0.0, float(other)))
    gx, gy = minidl.autograd.grad(minidl.xlogy(x, y), (x, y), create_graph=True)
    assert gx.item() == by_input and gy.item() == 0
    if mixed is not None:
        assert minidl.autograd.grad(gx, y, retain_graph=True)[0].item() == mixed
        assert [g.item() for g in minidl.autograd.grad(gy, (x, y))] == [mixed, 0]
