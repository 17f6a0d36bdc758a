"""Normalizations where the op table does not reach: running statistics, halves near their limits, errors, empty inputs."""

import numpy as np
import pytest

import minidl
from minidl.tensor.ops.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    rms_norm,
)

HALVES = (minidl.float16, minidl.bfloat16)
half = pytest.mark.parametrize("dtype", HALVES, ids=str)


def ones(*shape, dtype=minidl.float32):
    return minidl.tensor(np.ones(shape), dtype=dtype)


def values(*shape, dtype=minidl.float32, seed=0, requires_grad=False):
    rng = np.random.Generator(np.random.Philox(seed))
    return minidl.tensor(rng.standard_normal(shape), dtype=dtype, requires_grad=requires_grad)


def test_running_statistics_move_towards_mean_and_unbiased_variance():
    x = values(5, 3, 2, dtype=minidl.float64)
    mean, variance = ones(3, dtype=minidl.float64), ones(3, dtype=minidl.float64)
    batch_norm(x, mean, variance, training=True, momentum=0.3)
    rows = np.moveaxis(x.numpy(), 1, 0).reshape(3, -1)
    np.testing.assert_allclose(mean.numpy(), 0.7 + 0.3 * rows.mean(1))
    np.testing.assert_allclose(variance.numpy(), 0.7 + 0.3 * rows.var(1, ddof=1))


def test_running_statistics_of_instances_are_averaged():
    x = values(4, 2, 6, dtype=minidl.float64)
    mean, variance = ones(2, dtype=minidl.float64), ones(2, dtype=minidl.float64)
    instance_norm(x, mean, variance, momentum=0.5)
    np.testing.assert_allclose(mean.numpy(), 0.5 + 0.5 * x.numpy().mean(2).mean(0))
    np.testing.assert_allclose(variance.numpy(), 0.5 + 0.5 * x.numpy().var(2, ddof=1).mean(0))


def test_running_statistics_move_once_though_backward_of_backward_runs_the_op_again():
    x = values(4, 3, dtype=minidl.float64, requires_grad=True)
    mean, variance = ones(3, dtype=minidl.float64), ones(3, dtype=minidl.float64)
    y = batch_norm(x, mean, variance, training=True)
    once = mean.numpy().copy()
    g, = minidl.autograd.grad((y * y * y).sum(), x, create_graph=True)
    (g * g).sum().backward()
    np.testing.assert_array_equal(mean.numpy(), once)


def test_an_empty_batch_leaves_running_statistics_alone():
    mean, variance = ones(3), ones(3)
    assert batch_norm(ones(0, 3, 2), mean, variance, training=True).shape == (0, 3, 2)
    assert mean.numpy().tolist() == variance.numpy().tolist() == [1, 1, 1]


@half
@pytest.mark.parametrize("parameters", [minidl.float32, None], ids=str)
@pytest.mark.parametrize("training", [True, False])
def test_half_inputs_take_float32_or_half_parameters(dtype, parameters, training):
    kind = parameters or dtype
    x = values(6, 3, dtype=dtype, requires_grad=True)
    mean, variance, weight, bias = (ones(3, dtype=kind) for _ in range(4))
    weight.requires_grad_()
    y = batch_norm(x, mean, variance, weight, bias, training)
    y.backward(ones(6, 3, dtype=dtype))
    assert (y.dtype, x.grad.dtype, weight.grad.dtype, mean.dtype) == (dtype, dtype, kind, kind)
    exact = batch_norm(minidl.tensor(x.numpy(), dtype=minidl.float64), *(ones(3, dtype=minidl.float64) for _ in range(4)),
                       training)
    np.testing.assert_allclose(y.numpy().astype(float), exact.numpy(), atol=0.02)


@pytest.mark.parametrize("norm", [lambda x, w: layer_norm(x, (3,), w), lambda x, w: rms_norm(x, (3,), w),
                                  lambda x, w: group_norm(x, 1, w)])
def test_half_inputs_take_float32_weights(norm):
    x, weight = values(4, 3, dtype=minidl.float16, requires_grad=True), ones(3).requires_grad_()
    y = norm(x, weight)
    y.sum().backward()
    assert (y.dtype, x.grad.dtype, weight.grad.dtype) == (minidl.float16, minidl.float16, minidl.float32)


@pytest.mark.parametrize("norm", [lambda x: layer_norm(x, (4,)), lambda x: group_norm(x, 1), lambda x: rms_norm(x, (4,))])
def test_values_near_the_limit_of_float16_stay_finite(norm):
    row = [6e4, 6.1e4, -6e4, 5e4]
    x = minidl.tensor([row], dtype=minidl.float16, requires_grad=True)
    y = norm(x)
    y.backward(minidl.tensor([[1, -1, 2, 0.5]], dtype=minidl.float16))
    exact = norm(minidl.tensor(x.numpy().astype(np.float64)))
    np.testing.assert_allclose(y.numpy(), exact.numpy(), atol=2e-3)
    assert np.isfinite(x.grad.numpy()).all()


def test_eps_is_applied_in_float32():
    x = minidl.tensor([[1e-4, -1e-4]], dtype=minidl.float16)
    np.testing.assert_allclose(layer_norm(x, (2,), eps=1e-8).numpy(), [[0.707, -0.707]], atol=2e-3)


@pytest.mark.parametrize("norm", [lambda x: layer_norm(x, (4,)), lambda x: group_norm(x, 2), lambda x: rms_norm(x, (4,)),
                                  lambda x: batch_norm(x, None, None, training=True)])
def test_constant_inputs_have_finite_gradients(norm):
    x = ones(3, 4).requires_grad_()
    norm(x - 1).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_rms_norm_takes_the_machine_epsilon_by_default():
    for dtype, eps in ((minidl.float32, 2.0 ** -23), (minidl.float64, 2.0 ** -52), (minidl.float16, 2.0 ** -23)):
        x = minidl.tensor(np.full(4, 2.0 ** -10), dtype=dtype)
        np.testing.assert_allclose(rms_norm(x, (4,)).numpy().astype(float), 2.0 ** -10 / (2.0 ** -20 + eps) ** 0.5, rtol=1e-3)


@pytest.mark.parametrize("call", [
    lambda: layer_norm(ones(0, 4), (4,)), lambda: layer_norm(ones(3, 0), (0,)), lambda: rms_norm(ones(0, 4), (4,)),
    lambda: group_norm(ones(0, 4, 2), 2), lambda: local_response_norm(ones(0, 4, 2), 2),
    lambda: batch_norm(ones(0), ones(0), ones(0)),
])
def test_empty_inputs_give_empty_values(call):
    assert call().numel() == 0


@pytest.mark.parametrize("error, call", [
    (ValueError, lambda: batch_norm(ones(1, 3), None, None, training=True)),
    (ValueError, lambda: batch_norm(ones(1, 3, 1), ones(3), ones(3), training=True)),
    (ValueError, lambda: batch_norm(ones(2, 3), None, None, training=True, eps=0.0)),
    (RuntimeError, lambda: batch_norm(ones(2, 3), None, None)),
    (RuntimeError, lambda: batch_norm(ones(2, 3), ones(2), ones(3))),
    (RuntimeError, lambda: batch_norm(ones(2, 3), ones(3), ones(3), ones(4))),
    (RuntimeError, lambda: batch_norm(ones(3), ones(3), ones(3))),
    (RuntimeError, lambda: batch_norm(ones(2, 3), ones(3, dtype=minidl.float16), ones(3))),
    (ValueError, lambda: instance_norm(ones(2, 3))),
    (ValueError, lambda: instance_norm(ones(2, 3, 1))),
    (RuntimeError, lambda: instance_norm(ones(2, 3, 4), use_input_stats=False)),
    (RuntimeError, lambda: group_norm(ones(2, 4), 3)),
    (RuntimeError, lambda: group_norm(ones(4), 2)),
    (ValueError, lambda: group_norm(ones(1, 4), 4)),
    (RuntimeError, lambda: layer_norm(ones(2, 4), (3,))),
    (RuntimeError, lambda: layer_norm(ones(2, 4), ())),
    (RuntimeError, lambda: layer_norm(ones(2, 4), (4,), ones(2))),
    (RuntimeError, lambda: layer_norm(ones(2, 4), (4,), ones(4, dtype=minidl.float64))),
    (RuntimeError, lambda: layer_norm(ones(2, 4, dtype=minidl.int64), (4,))),
    (RuntimeError, lambda: rms_norm(ones(2, 4), (2, 2, 4))),
    (ValueError, lambda: local_response_norm(ones(2, 4), 2)),
    (RuntimeError, lambda: local_response_norm(ones(2, 4, 1), 0)),
])
def test_bad_arguments(error, call):
    with pytest.raises(error, match="expected"):
        call()


def test_higher_order_gradients_of_halves_keep_the_dtype():
    x = values(3, 4, dtype=minidl.float16, requires_grad=True)
    g, = minidl.autograd.grad((layer_norm(x, (4,)) * x).sum(), x, create_graph=True)
    g.sum().backward()
    assert x.grad.dtype == minidl.float16 and np.isfinite(x.grad.numpy()).all()
