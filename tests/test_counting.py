"""Special cases of ops/counting.py: nans, empty tensors, ranges, errors."""

import numpy as np
import pytest

import minidl
from minidl import tensor


def test_each_nan_is_unique():
    values, counts = minidl.unique(tensor([np.nan, 1.0, np.nan]), return_counts=True)
    np.testing.assert_array_equal(values.numpy(), [1, np.nan, np.nan])
    np.testing.assert_array_equal(counts.numpy(), [1, 1, 1])


def test_what_unique_returns():
    x = tensor([[2, 1], [1, 2]])
    assert isinstance(minidl.unique(x), minidl.Tensor)
    assert minidl.unique(x, return_inverse=True)[1].shape == (2, 2)
    assert [part.shape for part in minidl.unique(tensor(np.zeros(0)), True, True, True)] == [(0,)] * 3
    assert minidl.unique(tensor(np.zeros((0, 3))), dim=0).shape == (0, 3)


@pytest.mark.parametrize(("dtype", "want"), [
    (minidl.float32, minidl.float32), (minidl.float16, minidl.float64), (minidl.int64, minidl.float64)])
def test_dtype_of_weighted_counts(dtype, want):
    found = minidl.bincount(tensor([0, 1, 1]), tensor([1, 2, 3], dtype=dtype))
    assert found.dtype == want
    np.testing.assert_array_equal(found.numpy(), [1, 5])


@pytest.mark.parametrize(("arguments", "want"), [
    ((4,), [1, 1, 1, 2]), ((2, 1, 2), [1, 1]), ((2, 5, 5), [2, 3])])
def test_histc(arguments, want):
    found = minidl.histc(tensor([0.0, 1, 2, 3, 4]), *arguments)
    np.testing.assert_array_equal(found.numpy(), want)
    assert found.dtype == minidl.float32


def test_histc_of_equal_elements_and_nan():
    np.testing.assert_array_equal(minidl.histc(tensor([2.0, 2.0]), 3).numpy(), [0, 2, 0])
    np.testing.assert_array_equal(minidl.histc(tensor([np.nan, 1.0]), 3, 0, 2).numpy(), [0, 1, 0])


@pytest.mark.parametrize("call", [
    lambda: minidl.bincount(tensor([-1])), lambda: minidl.bincount(tensor([[1]])), lambda: minidl.bincount(tensor([1.0])),
    lambda: minidl.bincount(tensor([1]), minlength=-1), lambda: minidl.bincount(tensor([1]), tensor([1.0, 2.0])),
    lambda: minidl.histc(tensor([1])), lambda: minidl.histc(tensor([1.0]), 0), lambda: minidl.histc(tensor([1.0]), 3, 2, 1),
    lambda: minidl.histc(tensor([np.inf, 1.0])), lambda: minidl.unique(tensor(np.zeros((0, 3))), dim=1)])
def test_errors(call):
    with pytest.raises(RuntimeError, match="expected"):
        call()
