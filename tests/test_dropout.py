"""Dropout: rates, moments, channels, generators, in-place forms, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl.tensor import random
from minidl.tensor.ops.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)

ALL = (dropout, dropout1d, dropout2d, dropout3d, alpha_dropout, feature_alpha_dropout)
SHAPES = {dropout1d: (2, 3, 4), dropout2d: (2, 3, 2, 2), dropout3d: (2, 3, 1, 2, 2)}
each = pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)


def ones(*shape, dtype=minidl.float32):
    return minidl.tensor(np.ones(shape), dtype=dtype)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_rate_and_scale(p):
    random.manual_seed(0)
    y = dropout(ones(200, 500), p).numpy()
    assert abs((y == 0).mean() - p) < 0.01
    np.testing.assert_array_equal(y[y != 0], np.float32(1 / (1 - p)))


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16], ids=str)
def test_the_scale_of_halves_is_rounded_once(dtype):
    x = minidl.tensor(np.full(1000, 3.0), dtype=dtype)
    y = dropout(x, 0.1).numpy()
    assert y.dtype == dtype
    np.testing.assert_array_equal(y[y != 0], np.float32(3 / 0.9).astype(dtype))


@pytest.mark.parametrize("function", [alpha_dropout, feature_alpha_dropout])
def test_alpha_dropout_keeps_mean_and_variance(function):
    random.manual_seed(0)
    x = minidl.tensor(np.random.Generator(np.random.Philox(0)).standard_normal((500, 400, 1)).astype(np.float32))
    y = function(x, 0.3, training=True).numpy()
    assert abs(y.mean()) < 0.02 and abs(y.var() - 1) < 0.03


@each
def test_evaluation_and_p_0_change_nothing(function):
    x = ones(*SHAPES.get(function, (4, 5)))
    assert function(x, 0.5, training=False) is x
    np.testing.assert_array_equal(function(x, 0.0, training=True).numpy(), x.numpy())


@each
def test_p_1_gives_zeros_even_of_what_is_not_finite(function):
    x = minidl.tensor(np.full(SHAPES.get(function, (4, 5)), np.inf), requires_grad=True)
    y = function(x, 1.0, training=True)
    y.backward(minidl.ones_like(y))
    assert not y.numpy().any() and not x.grad.numpy().any()


@pytest.mark.parametrize("function", SHAPES, ids=lambda f: f.__name__)
def test_channels_are_dropped_whole(function):
    random.manual_seed(1)
    y = function(ones(*(20, 10, *SHAPES[function][2:])), 0.5).numpy().reshape(200, -1)
    assert (y == y[:, :1]).all() and 0 < (y[:, 0] == 0).sum() < 200


def test_one_sample_has_no_batch_axis():
    y = dropout1d(ones(50, 7)).numpy()
    assert (y == y[:, :1]).all()


@pytest.mark.filterwarnings("error")
def test_three_axes_of_dropout2d_count_as_sequences_with_a_warning():
    with pytest.warns(UserWarning, match="dropout1d"):
        y = dropout2d(ones(5, 6, 7)).numpy().reshape(30, 7)
    assert (y == y[:, :1]).all()


@each
def test_a_seed_gives_the_same_mask(function):
    x = ones(*SHAPES.get(function, (4, 5)))
    draws = [function(x, 0.5, training=True, generator=random.Generator().manual_seed(5)).numpy() for _ in range(2)]
    np.testing.assert_array_equal(*draws)
    random.manual_seed(7)
    first = function(x, 0.5, training=True).numpy()
    random.manual_seed(7)
    np.testing.assert_array_equal(function(x, 0.5, training=True).numpy(), first)


@each
def test_in_place(function):
    leaf = minidl.tensor(np.ones(SHAPES.get(function, (4, 5)), np.float32), requires_grad=True)
    x = leaf * 1
    y = function(x, 0.5, training=True, inplace=True, generator=random.Generator().manual_seed(5))
    again = function(leaf, 0.5, training=True, generator=random.Generator().manual_seed(5))
    assert y is x
    np.testing.assert_array_equal(x.numpy(), again.numpy())
    gradients = [minidl.autograd.grad(out, leaf, minidl.ones_like(out))[0].numpy() for out in (x, again)]
    np.testing.assert_array_equal(*gradients)


def test_the_mask_is_all_that_backward_keeps():
    x = minidl.tensor(np.ones((4, 5), np.float32), requires_grad=True)
    node = dropout(x).grad_fn
    held = [cell.cell_contents for cell in node.pullback.__closure__]
    assert [a.dtype for a in held if isinstance(a, np.ndarray)] == [np.bool_]


@each
@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_p_outside_of_0_to_1(function, p):
    for training in (True, False):
        with pytest.raises(ValueError, match="expected p"):
            function(ones(*SHAPES.get(function, (4, 5))), p, training)


@pytest.mark.parametrize("call", [lambda: dropout1d(ones(3)), lambda: dropout1d(ones(1, 2, 3, 4)),
                                  lambda: feature_alpha_dropout(ones(3), training=True),
                                  lambda: dropout(ones(3, dtype=minidl.int64))])
def test_bad_inputs(call):
    with pytest.raises(RuntimeError, match="expected"):
        call()
