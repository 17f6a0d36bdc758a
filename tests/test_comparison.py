"""Ties, special values and refusals of comparisons and choices."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minidl

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
FLOAT = minidl.tensor([1.0, 2.0])
INT = minidl.tensor([1, 2])
MASK = minidl.tensor([True, False])


def gradients(function, a, b):
    a, b = (minidl.tensor(np.array(v, np.float64), requires_grad=True) for v in (a, b))
    function(a, b).sum().backward()
    return a.grad.numpy(), b.grad.numpy()


@pytest.mark.parametrize("function, a, b, first, second", [
    (minidl.maximum, [1, 2, 3], [1, 3, 2], [0.5, 0, 1], [0.5, 1, 0]),
    (minidl.minimum, [1, 2, 3], [1, 3, 2], [0.5, 1, 0], [0.5, 0, 1]),
    (minidl.fmax, [1, math.nan, 3], [1, 2, math.nan], [1, 0, 1], [0, 1, 0]),
    (minidl.fmin, [1, math.nan, 3], [1, 2, math.nan], [1, 0, 1], [0, 1, 0]),
    (minidl.copysign, [0, -2, 3], [1, 1, -1], [0, -1, -1], [0, 0, 0]),
])
def test_gradients_at_ties(function, a, b, first, second):
    found = gradients(function, a, b)
    np.testing.assert_array_equal(found[0], first)
    np.testing.assert_array_equal(found[1], second)


def test_nan_wins_or_loses():
    a, b = minidl.tensor([math.nan, 1.0]), minidl.tensor([1.0, math.nan])
    assert minidl.isnan(minidl.maximum(a, b)).all() and minidl.isnan(minidl.minimum(a, b)).all()
    np.testing.assert_array_equal(minidl.fmax(a, b).numpy(), [1, 1])
    np.testing.assert_array_equal(minidl.fmin(a, b).numpy(), [1, 1])


def test_where_gives_nothing_to_the_branch_not_taken():
    x = minidl.tensor([math.inf, 1.0], requires_grad=True)
    y = minidl.tensor([1.0, math.nan], requires_grad=True)
    minidl.where(minidl.tensor([False, True]), x, y).backward(minidl.tensor([math.inf, 1.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [0, 1])
    np.testing.assert_array_equal(y.grad.numpy(), [math.inf, 0])


@pytest.mark.parametrize("args, values, dtype", [
    ((MASK, FLOAT.half(), -1e9), [1, -65504], "float16"),
    ((MASK, 10 ** 9, FLOAT.half()), [65504, 2], "float16"),
    ((MASK, FLOAT.half(), -math.inf), [1, -math.inf], "float16"),
    ((MASK, FLOAT.double(), -1e300), [1, -1e300], "float64"),
    ((MASK, INT, 1e39), [1, float(np.finfo(np.float32).max)], "float32"),
    ((MASK, 1, 2), [1, 2], "int64"),
    ((MASK, 1.0, 2), [1, 2], "float32"),
    ((MASK, FLOAT, INT), [1, 2], "float32"),
    ((MASK, FLOAT.half(), 0), [1, 0], "float16"),
    ((MASK, INT, 0.5), [1, 0.5], "float32"),
    ((minidl.tensor([1, 0], dtype=minidl.uint8), FLOAT, 0), [1, 0], "float32"),
])
def test_where_promotes(args, values, dtype):
    found = minidl.where(*args)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found.numpy(), values)


def test_where_keeps_bfloat16():
    assert minidl.where(MASK, FLOAT.bfloat16(), 0.5).dtype == minidl.bfloat16


def test_where_as_a_method_and_alone():
    np.testing.assert_array_equal(FLOAT.where(MASK, 0.0).numpy(), [1, 0])
    rows, columns = minidl.where(minidl.tensor([[0, 1], [1, 0]]))
    np.testing.assert_array_equal(rows.numpy(), [0, 1])
    np.testing.assert_array_equal(columns.numpy(), [1, 0])


@pytest.mark.parametrize("call, error", [
    (lambda: minidl.where(FLOAT, FLOAT, FLOAT), RuntimeError),
    (lambda: minidl.where(MASK, FLOAT), TypeError),
    (lambda: minidl.isclose(FLOAT, FLOAT.double()), RuntimeError),
    (lambda: minidl.isclose(FLOAT, FLOAT, rtol=-1), RuntimeError),
    (lambda: minidl.heaviside(FLOAT, FLOAT.double()), RuntimeError),
])
def test_refusals(call, error):
    with pytest.raises(error):
        call()


def test_closeness():
    a = minidl.tensor([math.nan, math.inf, -math.inf, 1.0, 100.0])
    b = minidl.tensor([math.nan, math.inf, math.inf, 1.0 + 1e-6, 101.0])
    np.testing.assert_array_equal(minidl.isclose(a, b).numpy(), [False, True, False, True, False])
    np.testing.assert_array_equal(minidl.isclose(a, b, rtol=0.1, equal_nan=True).numpy(), [True, True, False, True, True])
    assert minidl.allclose(b[3:], b[3:]) is True and minidl.allclose(a, b) is False
    small = minidl.tensor([0, 255], dtype=minidl.uint8)
    np.testing.assert_array_equal(minidl.isclose(small, minidl.tensor([255, 254], dtype=minidl.uint8), 0, 1).numpy(),
                                  [False, True])


def test_equal_is_a_python_bool():
    assert minidl.equal(FLOAT, INT) is True
    assert minidl.equal(FLOAT, FLOAT + 1) is False
    assert minidl.equal(FLOAT, minidl.ones(2, 2)) is False


def test_logic_takes_any_dtype():
    np.testing.assert_array_equal(minidl.logical_and(minidl.tensor([0.5, 0.0]), MASK).numpy(), [True, False])
    np.testing.assert_array_equal(minidl.logical_not(INT - 1).numpy(), [True, False])
    assert minidl.logical_xor(INT, FLOAT).dtype == minidl.bool


def test_where_as_a_method_takes_y():
    x = minidl.tensor([1.0, -1.0])
    assert x.where(x > 0, y=x * 0).tolist() == x.where(x > 0, other=x * 0).tolist() == [1.0, 0.0]
    with pytest.raises(TypeError, match="one of other and y"):
        x.where(x > 0)
