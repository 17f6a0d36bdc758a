"""Special cases of ops/cumulative.py: zeros in products, infinities, ties, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl import tensor

INF, NAN = math.inf, math.nan


def gradient(function, values):
    x = tensor(np.array(values, float), requires_grad=True)
    (function(x) * minidl.tensor(np.arange(1.0, len(values) + 1))).sum().backward()
    return x.grad.numpy()


@pytest.mark.parametrize("values", [[2, 0, 3, 4], [0, 0, 3, 2], [0.5, 2, 3, 0]])
def test_gradient_of_cumprod_with_zeros(values):
    values, want = np.array(values, float), np.zeros(4)
    for j in range(4):  # the product is linear in each factor
        step = values.copy()
        step[j] += 1
        want[j] = ((np.cumprod(step) - np.cumprod(values)) * np.arange(1, 5)).sum()
    np.testing.assert_allclose(gradient(lambda x: minidl.cumprod(x, 0), values), want)


def test_logcumsumexp_of_infinities():
    values = [-INF, -INF, 1, 1]
    np.testing.assert_allclose(minidl.logcumsumexp(tensor(values), 0).numpy(), [-INF, -INF, 1, 1 + math.log(2)], rtol=1e-6)
    np.testing.assert_allclose(gradient(lambda x: minidl.logcumsumexp(x, 0), values), [0, 0, 5, 2])


@pytest.mark.parametrize(("function", "values", "indices"), [
    (minidl.cummax, [1, 2, 2, 2, NAN, NAN, NAN], [0, 1, 2, 2, 4, 4, 6]),
    (minidl.cummin, [1, 1, 1, 1, NAN, NAN, NAN], [0, 0, 0, 3, 4, 4, 6])])
def test_ties_and_nans(function, values, indices):
    found = function(tensor([1, 2, 2, 1, NAN, 3, NAN]), 0)
    np.testing.assert_array_equal(found.values.numpy(), values)
    np.testing.assert_array_equal(found.indices.numpy(), indices)


def test_gradients_of_cummax_add_up():
    np.testing.assert_array_equal(gradient(lambda x: minidl.cummax(x, 0).values, [1, 3, 2, 0]), [1, 9, 0, 0])


@pytest.mark.parametrize(("dtype", "want"), [
    (None, minidl.int64), (minidl.int8, minidl.int8), (minidl.float32, minidl.float32)])
@pytest.mark.parametrize("function", [minidl.cumsum, minidl.cumprod])
def test_dtypes(function, dtype, want):
    assert function(tensor([1, 2], dtype=minidl.int32), 0, dtype=dtype).dtype == want


def test_float16_is_accumulated_in_float32():
    x = tensor(np.full(4096, 1.0, np.float16))
    assert minidl.cumsum(x, 0).numpy()[-1] == 4096


def test_0d_and_empty():
    assert minidl.cumsum(tensor(2.0), 0).shape == ()
    assert minidl.cummax(tensor(2.0), -1).indices.shape == ()
    assert minidl.cumprod(tensor(np.zeros((2, 0))), 1).shape == (2, 0)
    assert minidl.diff(tensor([1.0, 2.0]), 5).shape == (0,)
    assert minidl.trapezoid(tensor(np.zeros((0, 3))), dim=0).shape == (3,)


def test_diff_of_bool():
    np.testing.assert_array_equal(minidl.diff(tensor([True, False, False])).numpy(), [True, False])


@pytest.mark.parametrize(("call", "error"), [
    (lambda: minidl.diff(tensor(1.0)), RuntimeError),
    (lambda: minidl.diff(tensor([1.0]), -1), RuntimeError),
    (lambda: minidl.diff(tensor([1.0]), prepend=tensor([[1.0]])), RuntimeError),
    (lambda: minidl.cumsum(tensor([1.0]), 1), IndexError),
    (lambda: minidl.cumsum(tensor([1.0]), (0,)), TypeError),
    (lambda: minidl.logcumsumexp(tensor([1]), 0), NotImplementedError),
    (lambda: minidl.logcumsumexp(tensor([1]), 5), IndexError),
    (lambda: minidl.trapezoid(tensor([1.0]), tensor([1.0]), dx=1), TypeError),
    (lambda: minidl.trapezoid(tensor([1.0, 2.0]), tensor([1.0])), RuntimeError)])
def test_errors(call, error):
    with pytest.raises(error, match="expected"):
        call()
