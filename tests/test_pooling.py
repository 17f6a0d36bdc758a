"""Pooling: ties, infinities, nans, halves, dtypes, empties, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl.tensor.ops import pooling as F

INF, NAN = math.inf, math.nan


def row(*values, dtype=minidl.float64, requires_grad=False):
    return minidl.tensor(np.array([[values]], dtype), requires_grad=requires_grad)


@pytest.mark.parametrize("values, value, index", [
    ([1, 3, 3], 3, 1),          # the first of equal ones
    ([-INF] * 3, -INF, 0),      # the first, where nothing is larger than the lowest
    ([NAN, 5, 1], NAN, 0),
    ([5, NAN, NAN], NAN, 2),    # the last nan, as in PyTorch
    ([INF, NAN, INF], NAN, 1),
])
@pytest.mark.parametrize("dtype", [minidl.float64, minidl.float32, minidl.float16, minidl.bfloat16], ids=str)
@pytest.mark.parametrize("pool", [lambda x: F.max_pool1d(x, 3, return_indices=True),
                                  lambda x: F.adaptive_max_pool1d(x, 1, return_indices=True)])
def test_which_element_is_the_largest(pool, values, value, index, dtype):
    x = row(*values, dtype=dtype, requires_grad=True)
    found, indices = pool(x)
    np.testing.assert_equal(float(found.item()), float(value))
    assert indices.dtype == minidl.int64 and indices.item() == index
    found.sum().backward()
    assert x.grad.numpy().astype(float).ravel().tolist() == [float(i == index) for i in range(3)]


def test_uneven_windows_choose_the_same():
    value, indices = F.adaptive_max_pool1d(row(2, 2, NAN, NAN, -INF), 2, return_indices=True)
    assert np.isnan(value.numpy()).all() and indices.numpy().tolist() == [[[2, 3]]]


def test_padding_never_wins():
    value, indices = F.max_pool1d(row(-INF, -INF), 2, 1, 1, return_indices=True)
    assert value.numpy().tolist() == [[[-INF] * 3]] and indices.numpy().tolist() == [[[0, 0, 1]]]
    assert F.max_pool1d(minidl.tensor(np.full((1, 1, 2), -128, np.int8)), 2, 1, 1).numpy().tolist() == [[[-128] * 3]]


@pytest.mark.parametrize("g, want", [(INF, [0, INF, 0]), (NAN, [0, NAN, 0])])
def test_gradients_stay_with_their_element(g, want):
    x = row(1, 3, 2, requires_grad=True)
    F.max_pool1d(x, 3).backward(row(g))
    np.testing.assert_array_equal(x.grad.numpy().ravel(), want)


@pytest.mark.parametrize("pool", [lambda x: F.avg_pool1d(x, 2), lambda x: F.adaptive_avg_pool1d(x, 3)])
def test_infinities_stay_in_their_windows(pool):
    assert np.isfinite(pool(row(1, 2, 3, 4, INF, 6)).numpy()).ravel().tolist() == [True, True, False]


def test_more_taps_than_a_byte_holds():
    x = minidl.tensor(np.arange(400.0).reshape(1, 1, 20, 20), requires_grad=True)
    value, indices = F.max_pool2d(x, 20, return_indices=True)
    value.sum().backward()
    assert indices.item() == 399 and x.grad.numpy().ravel().nonzero()[0].tolist() == [399]


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16], ids=str)
@pytest.mark.parametrize("pool", [lambda x: F.avg_pool1d(x, 4096), lambda x: F.avg_pool1d(x, 4096, padding=1),
                                  lambda x: F.adaptive_avg_pool1d(x, 1)])
def test_halves_are_summed_in_float32(pool, dtype):
    y = pool(minidl.full((1, 1, 4096), 32.0, dtype=dtype))  # a sum of 131072, above float16's largest number
    assert y.dtype == dtype and abs(float(y.numpy().astype(float).max()) - 32) < 0.1


def test_powers_of_halves_do_not_overflow():
    assert F.lp_pool1d(row(300, 400, dtype=minidl.float16), 2, 2).item() == 500


def test_gradients_of_overlapping_halves_are_summed_in_float32():
    x = minidl.zeros(1, 1, 2047, dtype=minidl.float16).numpy()
    x[..., 1023] = 1
    x = minidl.tensor(x, requires_grad=True)
    y = F.max_pool1d(x, 1024, 1)
    y.backward(minidl.full(y.shape, 1 + 2**-10, dtype=minidl.float16))
    assert x.grad.numpy()[0, 0, 1023] == 1025


def test_norm_of_zeros_has_gradient_zero():
    x = row(0, 0, 3, 4, requires_grad=True)
    y = F.lp_pool1d(x, 2, 2)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy().ravel(), [0, 0, 0.6, 0.8])


def test_without_gradients_the_values_are_the_same():
    x = minidl.tensor(np.random.default_rng(0).standard_normal((2, 3, 7, 9)), requires_grad=True)
    for arguments in ((2,), (3, 2, 1), (3, 1, 1, 2), (2, 3, 0, 1, True)):
        with minidl.no_grad():
            plain = F.max_pool2d(x, *arguments).numpy()
        np.testing.assert_array_equal(plain, F.max_pool2d(x, *arguments).numpy())


def test_many_images_are_pooled_in_blocks():
    x = minidl.tensor(np.random.default_rng(0).standard_normal((40, 8, 32, 32)), requires_grad=True)
    blocks = x.numpy().reshape(40, 8, 16, 2, 16, 2)
    y = F.max_pool2d(x, 2)
    np.testing.assert_array_equal(y.numpy(), blocks.max((3, 5)))
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), (blocks == blocks.max((3, 5), keepdims=True)).reshape(x.shape))
    np.testing.assert_allclose(F.avg_pool2d(x, 2).numpy(), blocks.mean((3, 5)))


def test_pooling_and_unpooling_are_inverse():
    x = minidl.tensor(np.random.default_rng(0).standard_normal((2, 3, 5, 5)))
    value, indices = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(value, indices, 2, output_size=x.shape)
    assert back.shape == x.shape
    np.testing.assert_array_equal(F.max_pool2d(back.abs(), 2).numpy(), value.abs().numpy())


@pytest.mark.parametrize("call, shape", [
    (lambda: F.max_pool2d(minidl.zeros(0, 3, 4, 4), 2), (0, 3, 2, 2)),
    (lambda: F.max_pool2d(minidl.zeros(0, 3, 4, 4), 2, return_indices=True)[1], (0, 3, 2, 2)),
    (lambda: F.avg_pool2d(minidl.zeros(0, 3, 4, 4), 2), (0, 3, 2, 2)),
    (lambda: F.adaptive_avg_pool2d(minidl.zeros(2, 0, 4, 4), 3), (2, 0, 3, 3)),
    (lambda: F.adaptive_avg_pool2d(minidl.zeros(2, 3, 4, 4), (0, 2)), (2, 3, 0, 2)),
    (lambda: F.adaptive_max_pool2d(minidl.zeros(0, 3, 4, 4), 3), (0, 3, 3, 3)),
    (lambda: F.adaptive_max_pool2d(minidl.zeros(2, 3, 4, 4), 0, return_indices=True)[1], (2, 3, 0, 0)),
])
def test_empty_axes(call, shape):
    assert call().shape == shape


@pytest.mark.parametrize("dtype", [minidl.int64, minidl.uint8], ids=str)
def test_integers_have_maxima(dtype):
    value = F.max_pool1d(row(1, 7, 3, 2, dtype=dtype), 2)
    assert value.dtype == dtype and value.numpy().tolist() == [[[7, 3]]]


X = minidl.ones(1, 2, 6, 6)
PLACES = minidl.zeros(1, 2, 6, 6, dtype=minidl.int64)


@pytest.mark.parametrize("call, error", [
    (lambda: F.max_pool2d(X, 0), RuntimeError),
    (lambda: F.max_pool2d(X, 2, 0), RuntimeError),
    (lambda: F.max_pool2d(X, 2, padding=2), RuntimeError),
    (lambda: F.max_pool2d(X, 3, padding=2, dilation=2), RuntimeError),
    (lambda: F.max_pool2d(X, 2, padding=-1), RuntimeError),
    (lambda: F.max_pool2d(X, 2, dilation=0), RuntimeError),
    (lambda: F.max_pool2d(minidl.ones(1, 1, 2, 2), 2, padding=1, dilation=3), RuntimeError),
    (lambda: F.max_pool2d(X, (2, 2, 2)), RuntimeError),
    (lambda: F.max_pool2d(X, 2.0), TypeError),
    (lambda: F.max_pool2d(X, 9), RuntimeError),
    (lambda: F.max_pool2d(X[0, 0], 2), RuntimeError),
    (lambda: F.max_pool2d(minidl.zeros(1, 0, 4, 4), 2), RuntimeError),
    (lambda: F.max_pool2d(X.bool(), 2), NotImplementedError),
    (lambda: F.avg_pool2d(X, 2, padding=2), RuntimeError),
    (lambda: F.avg_pool2d(X, 2, divisor_override=0), RuntimeError),
    (lambda: F.avg_pool2d(X.int(), 2), NotImplementedError),
    (lambda: F.lp_pool2d(X, 2, (2, 2, 2)), ValueError),
    (lambda: F.adaptive_avg_pool2d(X, -1), RuntimeError),
    (lambda: F.adaptive_avg_pool2d(X, (2,)), RuntimeError),
    (lambda: F.adaptive_avg_pool2d(X, None), TypeError),
    (lambda: F.adaptive_avg_pool2d(X.long(), 2), NotImplementedError),
    (lambda: F.adaptive_max_pool2d(X, (2, 2, 2, 2)), ValueError),
    (lambda: F.adaptive_max_pool2d(minidl.zeros(1, 0, 4, 4), 2), RuntimeError),
    (lambda: F.max_unpool2d(X, PLACES.int(), 2), RuntimeError),
    (lambda: F.max_unpool2d(X, PLACES[:, :1], 2), RuntimeError),
    (lambda: F.max_unpool2d(X, PLACES + 144, 2), RuntimeError),
    (lambda: F.max_unpool2d(X, PLACES - 1, 2), RuntimeError),
    (lambda: F.max_unpool2d(X, PLACES, 2, output_size=(14, 12)), ValueError),
    (lambda: F.max_unpool2d(X, PLACES, 2, output_size=(12,)), ValueError),
])
def test_errors(call, error):
    with pytest.raises(error, match="expected"):
        call()
