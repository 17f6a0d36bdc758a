"""Special cases of ops/linalg_norm.py and ops/norm.py: zeros, ties, halves, overloads, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl import tensor
from minidl.tensor.ops.linalg_norm import matrix_norm, norm, vector_norm

INF = math.inf


def gradient(function, values, dtype=minidl.float64):
    x = tensor(values, dtype=dtype, requires_grad=True)
    function(x).sum().backward()
    return x.grad.numpy()


@pytest.mark.parametrize("dtype", [minidl.float64, minidl.float16], ids=str)
@pytest.mark.parametrize("ord", [0, 0.5, 1, 1.5, 2, 3, INF, -INF, -1])
def test_no_slope_at_zero(ord, dtype):
    np.testing.assert_array_equal(gradient(lambda x: vector_norm(x, ord), [0.0, 0.0], dtype), 0)


@pytest.mark.parametrize(("ord", "want"), [(INF, [0, 0.5, -0.5]), (1, [0, 1, -1]), (0.5, [0, 2, -2]), (-INF, [0, 0, 0])])
def test_ties_and_zeros(ord, want):
    np.testing.assert_allclose(gradient(lambda x: vector_norm(x, ord), [0.0, 1, -1]), want)


def test_float16_does_not_overflow():
    x = tensor(np.full(4, 3e4, np.float16))
    assert vector_norm(x).item() == 6e4
    assert minidl.norm(x, 3).dtype == minidl.float16


def test_forms():
    x = tensor(np.arange(24.0).reshape(2, 3, 4))
    assert norm(x).shape == ()
    assert norm(x, keepdim=True).shape == (1, 1, 1)
    assert norm(x, 2, (0, 2)).shape == (3,)
    assert norm(x, 2, 1, True).shape == (2, 1, 4)
    assert matrix_norm(x, "nuc").shape == (2,)
    assert x.norm(p="fro", dim=[0, 1]).shape == (4,)
    assert vector_norm(x.to(minidl.float32), dtype=minidl.float64).dtype == minidl.float64


@pytest.mark.parametrize("call", [
    lambda: vector_norm(tensor([1, 2])), lambda: vector_norm(tensor(np.zeros(0)), INF),
    lambda: vector_norm(tensor(np.zeros(0)), -1),
    lambda: norm(tensor(np.ones((2, 2))), 3), lambda: norm(tensor(np.ones((2, 2))), "foo"),
    lambda: norm(tensor(np.ones(2)), "fro"),
    lambda: norm(tensor(np.ones((2, 2, 2))), 2), lambda: matrix_norm(tensor(np.ones(2))), lambda: minidl.norm(tensor([1])),
    lambda: minidl.norm(tensor([1.0]), "foo"), lambda: matrix_norm(tensor(np.ones((2, 2))), dim=(0, 0))])
def test_errors(call):
    with pytest.raises(RuntimeError, match="expected"):
        call()


def test_no_elements():
    assert vector_norm(tensor(np.zeros(0))).item() == 0
    assert vector_norm(tensor(np.zeros((2, 0))), INF, 0).shape == (0,)


def test_dist_at_equal_tensors_has_no_slope():
    np.testing.assert_array_equal(gradient(lambda x: minidl.dist(x, x.detach()), [1.0, 2.0]), 0)


@pytest.mark.parametrize("ord", ["fro", None])
def test_an_ord_of_vectors_is_a_number(ord):
    with pytest.raises(TypeError, match="vector_norm expected a number as ord"):
        vector_norm(tensor([1.0]), ord)
