"""Special cases of ops/reduction.py: dtypes, overloads, empty tensors, halves that would overflow, points without slope."""

import math
import tracemalloc

import numpy as np
import pytest

import minidl
from minidl import float16, float32, float64, int64, tensor


def gradient(function, values, dtype=float64):
    x = tensor(values, dtype=dtype, requires_grad=True)
    function(x).sum().backward()
    return x.grad.numpy()


@pytest.mark.parametrize("function", [minidl.sum, minidl.prod, minidl.nansum, lambda x: minidl.cumsum(x, 0)])
@pytest.mark.parametrize("dtype", [minidl.int8, minidl.uint8, minidl.int32, minidl.bool])
def test_integers_add_up_in_int64(function, dtype):
    assert function(tensor([1, 1, 0], dtype=dtype)).dtype == int64


@pytest.mark.parametrize("function", [minidl.mean, minidl.nanmean, minidl.var, minidl.std, minidl.var_mean])
def test_means_of_integers_are_an_error(function):
    with pytest.raises(RuntimeError, match="floating"):
        function(tensor([1, 2]))


def test_mean_takes_a_dtype_for_integers():
    assert minidl.mean(tensor([1, 2]), dtype=float32).item() == 1.5
    with pytest.raises(RuntimeError):
        minidl.mean(tensor([1.0]), dtype=int64)


@pytest.mark.parametrize(("function", "want"), [
    (minidl.sum, 0), (minidl.prod, 1), (minidl.mean, math.nan), (minidl.var, math.nan), (minidl.all, True),
    (minidl.any, False), (minidl.count_nonzero, 0), (lambda x: minidl.logsumexp(x, 0), -math.inf)])
def test_no_elements(function, want):
    np.testing.assert_equal(function(tensor(np.zeros(0))).numpy(), want)


@pytest.mark.parametrize(("arguments", "keywords", "ddof", "axis"), [
    ((), {}, 1, None), ((False,), {}, 0, None), ((0, False), {}, 0, 0), ((1,), {"correction": 2}, 2, 1),
    ((), {"dim": 1, "unbiased": True}, 1, 1), ((), {"correction": 0.5}, 0.5, None), ((None,), {"correction": 0}, 0, None)])
def test_overloads_of_var(arguments, keywords, ddof, axis):
    x = np.arange(12.0).reshape(3, 4) ** 2
    np.testing.assert_allclose(tensor(x).var(*arguments, **keywords).numpy(), x.var(axis, ddof=ddof))
    np.testing.assert_allclose(minidl.std_mean(tensor(x), *arguments, **keywords)[0].numpy(), x.std(axis, ddof=ddof))


@pytest.mark.parametrize("keywords", [{"unbiased": True, "correction": 1}, {"dim": True, "unbiased": False}])
def test_var_refuses_two_corrections(keywords):
    with pytest.raises(TypeError):
        minidl.var(tensor([1.0, 2.0]), **keywords)


@pytest.mark.parametrize(("dim", "error"), [(2, IndexError), (-3, IndexError), ((0, 0), RuntimeError), (0.5, TypeError)])
@pytest.mark.parametrize("function", [minidl.sum, minidl.mean, minidl.var, minidl.logsumexp, minidl.all, minidl.amax])
def test_wrong_dims(function, dim, error):
    with pytest.raises(error, match="dim"):
        function(tensor(np.ones((2, 3))), dim)


def test_prod_takes_one_dim():
    with pytest.raises(TypeError):
        minidl.prod(tensor(np.ones((2, 3))), (0, 1))


@pytest.mark.parametrize(("function", "values", "want"), [
    (minidl.mean, np.full(100, 6e4), 6e4),
    (minidl.mean, np.ones(70000), 1),
    (minidl.nanmean, np.full(100, 6e4), 6e4),
    (minidl.std, np.tile([-6e4, 6e4], 50), 6e4),
    (lambda x: minidl.logsumexp(x, 0), np.full(8, 100.0), 100 + math.log(8)),
    (lambda x: minidl.amin(minidl.cumsum(x, 0)), np.tile([6e4, 6e4, -6e4, -6e4], 50), 0),
    (minidl.sum, np.tile([6e4, 6e4, -6e4, -6e4], 50), 0),
    (minidl.sum, np.ones(4096), 4096),
    (minidl.sum, np.full(9, 6e4), math.inf)])
def test_float16_is_accumulated_in_float32(function, values, want):
    found = function(tensor(values.astype(np.float16)))
    assert found.dtype == float16
    np.testing.assert_allclose(found.item(), want, rtol=1e-2)


@pytest.mark.parametrize("function", [minidl.sum, minidl.mean])
def test_float16_sums_make_no_float32_copy(function):
    x = tensor(np.ones(1 << 20, np.float16))
    tracemalloc.start()
    try:
        function(x)
        assert tracemalloc.get_traced_memory()[1] < x.numel()
    finally:
        tracemalloc.stop()


def test_mean_over_more_elements_than_float16_can_count():
    np.testing.assert_allclose(gradient(lambda x: minidl.mean(x) * 1024, np.ones(100000), float16), 1024 / 100000, rtol=0.01)


@pytest.mark.parametrize("function", [minidl.std, minidl.var, lambda x: minidl.std(x, correction=0)])
@pytest.mark.parametrize("dtype", [float64, float16])
def test_no_slope_at_constant_input(function, dtype):
    np.testing.assert_array_equal(gradient(function, np.full(4, 3.0), dtype), 0)


@pytest.mark.parametrize(("values", "want"), [([2, 0, 3], [0, 6, 0]), ([0, 0, 3], [0, 0, 0]), ([0], [1])])
def test_gradient_of_prod_with_zeros(values, want):
    np.testing.assert_array_equal(gradient(minidl.prod, np.array(values, float)), want)


def test_logsumexp_of_infinities():
    rows = np.array([[-np.inf, -np.inf], [np.inf, 1], [-np.inf, 2], [1000, 1000]])
    found = minidl.logsumexp(tensor(rows), 1).numpy()
    np.testing.assert_allclose(found, [-np.inf, np.inf, 2, 1000 + math.log(2)])
    np.testing.assert_allclose(gradient(lambda x: minidl.logsumexp(x, 1), rows[[0, 2, 3]]), [[0, 0], [0, 1], [0.5, 0.5]])


def test_nan_gets_no_gradient_from_nansum():
    np.testing.assert_array_equal(gradient(minidl.nansum, np.array([np.nan, 1, 2])), [0, 1, 1])


def test_truth_of_uint8_is_uint8():
    x = tensor([[1, 0], [2, 3]], dtype=minidl.uint8)
    assert minidl.all(x, 1).dtype == minidl.uint8
    assert minidl.any(x).item() == 1
    assert minidl.all(tensor([math.nan])).dtype == minidl.bool
