"""Rows of ops/normalization.py."""

import numpy as np

import minidl
from minidl.tensor.ops.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    rms_norm,
)
from tests.table import Row, sample

MEAN, VARIANCE = np.array([0.5, -0.25]), np.array([0.75, 1.5])


def normal(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def per_channel(p, x):
    return p.reshape((1, -1) + (1,) * (x.ndim - 2))


def affine(y, weight=None, bias=None):
    y = y if weight is None else y * per_channel(weight, y)
    return y if bias is None else y + per_channel(bias, y)


def batch_reference(x, weight=None, bias=None, eps=1e-5):
    return affine(normal(x, (0, *range(2, x.ndim)), eps), weight, bias)


def by_running(x, weight=None, bias=None):
    y = (x - per_channel(MEAN, x)) / np.sqrt(per_channel(VARIANCE, x) + 1e-5)
    return affine(y, weight, bias)


def in_evaluation(function, **attributes):
    """The function with running statistics of the input's dtype, which have no gradient."""
    def call(x, *parameters):
        statistics = (minidl.tensor(MEAN, dtype=x.dtype), minidl.tensor(VARIANCE, dtype=x.dtype))
        return function(x, *statistics, *parameters, **attributes)
    return call


def in_training(x, weight=None, bias=None, **attributes):
    return batch_norm(x, None, None, weight, bias, True, **attributes)


def instance(x, weight=None, bias=None):
    return instance_norm(x, weight=weight, bias=bias)


def group_reference(x, num_groups, weight=None, bias=None, eps=1e-5):
    groups = x.reshape(x.shape[0], num_groups, -1)
    return affine(normal(groups, (2,), eps).reshape(x.shape), weight, bias)


def layer_reference(x, shape, weight=1.0, bias=0.0, eps=1e-5):
    return normal(x, tuple(range(x.ndim - len(shape), x.ndim)), eps) * weight + bias


def rms_reference(x, shape, weight=1.0, eps=0.0):
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + eps) * weight


def response_reference(x, size, alpha=1e-4, beta=0.75, k=1.0):
    padding = [(0, 0), (size // 2, (size - 1) // 2)] + [(0, 0)] * (x.ndim - 2)
    squares = np.pad(x * x, padding)
    mean = sum(squares[:, i:i + x.shape[1]] for i in range(size)) / size
    return x / (k + alpha * mean) ** beta


W, B = sample(2, low=0.5, high=2), sample(2, seed=1)

ROWS = [
    Row(in_training, (sample(3, 2, 4), W, B), batch_reference, name="batch_norm", tolerance=4),
    Row(in_training, (sample(6, 2),), batch_reference, {"eps": 0.1}, "batch_norm of vectors", tolerance=4),
    Row(in_training, (sample(2, 2, 2, 3), W), batch_reference, name="batch_norm without bias", tolerance=4),
    Row(in_evaluation(batch_norm), (sample(3, 2, 4), W, B), by_running, name="batch_norm by running statistics"),
    Row(in_evaluation(batch_norm), (sample(3, 2),), by_running, name="batch_norm by running statistics, plain"),
    Row(instance, (sample(2, 2, 5), W, B), lambda x, w, b: affine(normal(x, (2,)), w, b), name="instance_norm", tolerance=4),
    Row(instance, (sample(2, 2, 3, 2),), lambda x: normal(x, (2, 3)), name="instance_norm of images", tolerance=4),
    Row(in_evaluation(instance_norm, use_input_stats=False), (sample(2, 2, 3), W, B), by_running,
        name="instance_norm by running statistics"),
    Row(group_norm, (sample(2, 4, 3), 2, sample(4, low=0.5), sample(4, seed=1)), group_reference, name="group_norm",
        tolerance=4),
    Row(group_norm, (sample(3, 6), 3), group_reference, {"eps": 0.1}, "group_norm plain", tolerance=4),
    Row(layer_norm, (sample(4, 5), (5,), sample(5, low=0.5), sample(5, seed=1)), layer_reference, tolerance=4),
    Row(layer_norm, (sample(2, 3, 4), (3, 4), sample(3, 4, low=0.5), sample(3, 4, seed=1)), layer_reference, {"eps": 0.01},
        "layer_norm of two axes", tolerance=4),
    Row(layer_norm, (sample(4, 5), (5,)), layer_reference, name="layer_norm plain", tolerance=4),
    Row(layer_norm, (sample(4, 5), (5,), sample(5, low=0.5)), layer_reference, name="layer_norm without bias", tolerance=4),
    Row(rms_norm, (sample(4, 5), (5,), sample(5, low=0.5)), rms_reference, {"eps": 1e-3}, tolerance=2),
    Row(rms_norm, (sample(2, 3, 4), (3, 4)), rms_reference, name="rms_norm of two axes", tolerance=2),
    Row(local_response_norm, (sample(2, 5, 2), 3), response_reference, {"alpha": 0.5, "k": 1.5}),
    Row(local_response_norm, (sample(1, 3, 2, 2), 4), response_reference, {"alpha": 0.5, "beta": 0.5},
        "local_response_norm of images"),
]
