"""Special cases of ops/ordering.py: nans, ties, halves, 0-d tensors, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl import tensor

HOLES = [math.nan, 1, math.inf, -math.inf, 2]


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16, minidl.float32, minidl.float64], ids=str)
def test_a_nan_is_the_largest(dtype):
    x = tensor(HOLES, dtype=dtype)
    np.testing.assert_array_equal(minidl.argsort(x).numpy(), [3, 1, 4, 2, 0])
    np.testing.assert_array_equal(minidl.argsort(x, descending=True).numpy(), [0, 2, 4, 1, 3])
    np.testing.assert_array_equal(minidl.topk(x, 2).indices.numpy(), [0, 2])
    assert minidl.kthvalue(x, 5).indices.item() == 0
    assert minidl.sort(x).values.dtype == dtype


def test_topk_of_many_with_nans():
    x = np.arange(100.0)
    x[7] = np.nan
    np.testing.assert_array_equal(minidl.topk(tensor(x), 3).indices.numpy(), [7, 99, 98])
    np.testing.assert_array_equal(minidl.topk(tensor(x), 3, largest=False).indices.numpy(), [0, 1, 2])


@pytest.mark.parametrize("descending", [False, True])
def test_equal_elements_keep_their_order(descending):
    x = np.arange(64) % 3
    want = np.argsort(-x if descending else x, kind="stable")
    np.testing.assert_array_equal(minidl.sort(tensor(x), descending=descending, stable=True).indices.numpy(), want)


def test_0d():
    for found in (minidl.sort(tensor(2.0)), minidl.topk(tensor(2.0), 1), minidl.kthvalue(tensor(2.0), 1)):
        assert found.values.shape == found.indices.shape == ()
        assert found.indices.dtype == minidl.int64


@pytest.mark.parametrize(("call", "error"), [
    (lambda: minidl.topk(tensor([1.0]), 2), RuntimeError), (lambda: minidl.topk(tensor([1.0]), -1), RuntimeError),
    (lambda: minidl.kthvalue(tensor([1.0]), 0), RuntimeError), (lambda: minidl.sort(tensor([1.0]), 1), IndexError),
    (lambda: minidl.kthvalue(tensor(np.zeros((0, 2))), 1, 0), IndexError)])
def test_errors(call, error):
    with pytest.raises(error, match="expected"):
        call()
