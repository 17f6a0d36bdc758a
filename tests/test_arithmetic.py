"""Dtypes, special values and refusals of arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import minidl

BOOL = minidl.tensor([True, False])
INT = minidl.tensor([7, -7])
FLOAT = minidl.tensor([7.0, -7.0])


@pytest.mark.parametrize("function, args, values, dtype", [
    (minidl.add, (BOOL, BOOL), [True, False], "bool"),
    (minidl.add, (BOOL, 1), [2, 1], "int64"),
    (minidl.add, (INT, 0.5), [7.5, -6.5], "float32"),
    (minidl.mul, (INT, True), [7, -7], "int64"),
    (minidl.div, (INT, 2), [3.5, -3.5], "float32"),
    (minidl.div, (INT, INT), [1, 1], "float32"),
    (minidl.floor_divide, (INT, 2), [3, -4], "int64"),
    (minidl.floor_divide, (FLOAT, 2), [3, -4], "float32"),
    (minidl.floor_divide, (FLOAT, 0), [np.inf, -np.inf], "float32"),
    (minidl.remainder, (INT, 4), [3, 1], "int64"),
    (minidl.remainder, (INT, -4), [-1, -3], "int64"),
    (minidl.remainder, (9, INT), [2, -5], "int64"),
    (minidl.fmod, (INT, 4), [3, -3], "int64"),
    (minidl.sign, (minidl.tensor([np.nan, -0.0]),), [0, 0], "float32"),
    (minidl.sign, (BOOL,), [True, False], "bool"),
    (minidl.add, (minidl.tensor([1], dtype=minidl.int8), 300), [45], "int8"),
    (minidl.sub, (minidl.tensor([1], dtype=minidl.uint8), 2), [255], "uint8"),
])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_and_their_dtypes(function, args, values, dtype):
    found = function(*args)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found.numpy(), values)


def test_rounding_modes_of_integers():
    for mode, want in (("trunc", [3, -3]), ("floor", [3, -4])):
        found = minidl.div(INT, 2, rounding_mode=mode)
        assert found.dtype == minidl.int64
        np.testing.assert_array_equal(found.numpy(), want)
    large = minidl.tensor([2 ** 62 + 1])
    assert minidl.div(large, 1, rounding_mode="trunc").item() == 2 ** 62 + 1


@pytest.mark.parametrize("function, args, kwargs, error", [
    (minidl.sub, (BOOL, BOOL), {}, RuntimeError),
    (minidl.sub, (FLOAT, True), {}, RuntimeError),
    (minidl.neg, (BOOL,), {}, RuntimeError),
    (minidl.positive, (BOOL,), {}, RuntimeError),
    (minidl.abs, (BOOL,), {}, NotImplementedError),
    (minidl.floor_divide, (BOOL, BOOL), {}, NotImplementedError),
    (minidl.floor_divide, (INT, 0), {}, RuntimeError),
    (minidl.remainder, (INT, minidl.tensor([1, 0])), {}, RuntimeError),
    (minidl.fmod, (INT, 0), {}, RuntimeError),
    (minidl.div, (INT, 0), {"rounding_mode": "trunc"}, RuntimeError),
    (minidl.div, (INT, 2), {"rounding_mode": "up"}, RuntimeError),
    (minidl.add, (INT, INT), {"alpha": 0.5}, RuntimeError),
    (minidl.add, (FLOAT, FLOAT), {"alpha": True}, RuntimeError),
    (minidl.add, (FLOAT, "a"), {}, TypeError),
    (minidl.add, (FLOAT, None), {}, TypeError),
    (minidl.addcdiv, (FLOAT, INT, INT), {}, RuntimeError),
    (minidl.addcmul, (INT, INT, INT), {"value": 0.5}, RuntimeError),
    (minidl.lerp, (FLOAT, FLOAT.double(), 0.5), {}, RuntimeError),
    (minidl.lerp, (INT, INT, 0.5), {}, NotImplementedError),
    (minidl.bitwise_and, (FLOAT, FLOAT), {}, NotImplementedError),
    (minidl.bitwise_left_shift, (BOOL, BOOL), {}, NotImplementedError),
])
def test_refusals(function, args, kwargs, error):
    with pytest.raises(error):
        function(*args, **kwargs)


def test_numbers_meet_halves_in_float32():
    half = minidl.tensor([0.001, 2.0], dtype=minidl.float16)
    np.testing.assert_allclose((half * 65536).numpy()[0], 65.56, rtol=1e-3)
    assert (minidl.tensor([-20000.0], dtype=minidl.float16) + 70000).item() == np.float16(50000)
    assert (half * 65536).dtype == minidl.float16


def test_a_numpy_number_does_not_widen():
    for number in (np.float64(2), np.float32(2), np.int64(2)):
        for found in (FLOAT * number, number * FLOAT, minidl.mul(FLOAT, number)):
            assert isinstance(found, minidl.Tensor) and found.dtype == minidl.float32
            np.testing.assert_array_equal(found.numpy(), [14, -14])


def test_shifts_out_of_range():
    values = minidl.tensor([1, -8], dtype=minidl.int8)
    np.testing.assert_array_equal(minidl.bitwise_left_shift(values, 9).numpy(), [0, 0])
    np.testing.assert_array_equal(minidl.bitwise_right_shift(values, 9).numpy(), [0, -1])
    np.testing.assert_array_equal((3 << minidl.tensor([0, 2])).numpy(), [3, 12])


def test_gradients_of_rounded_quotients_are_zero():
    x = minidl.tensor([7.0, -7.0], requires_grad=True)
    y = minidl.tensor([2.0, 2.0], requires_grad=True)
    (minidl.floor_divide(x, y) + minidl.div(x, y, rounding_mode="trunc")).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0])
    np.testing.assert_array_equal(y.grad.numpy(), [0, 0])


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "floor_divide", "remainder", "maximum", "pow"])
def test_empty_tensors(name):
    found = getattr(minidl, name)(minidl.zeros(0, 3), minidl.ones(3))
    assert found.shape == (0, 3)
