"""Rows of ops/activation.py."""

import math

import numpy as np

from minidl.tensor.ops import activation as F
from tests.table import Row, sample

X = sample(3, 4, low=-5, high=5)
erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x))


def softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta)


def gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def leaky_relu(x, negative_slope=0.01):
    return np.where(x > 0, x, x * negative_slope)


def glu(x, dim):
    a, b = np.split(x, 2, dim)
    return a * sigmoid(b)


ROWS = [
    Row(F.relu, (X,), lambda x: np.maximum(x, 0)),
    Row(F.relu6, (X * 2,), lambda x: np.clip(x, 0, 6)),
    Row(F.hardtanh, (X,), lambda x: np.clip(x, -1, 1)),
    Row(F.hardtanh, (X,), lambda x, min_val, max_val: np.clip(x, min_val, max_val), {"min_val": -2.3, "max_val": 0.5},
        "hardtanh bounds", half=False),
    Row(F.leaky_relu, (X,), leaky_relu),
    Row(F.leaky_relu, (X,), leaky_relu, {"negative_slope": 0.3}, "leaky_relu slope"),
    Row(F.rrelu, (X,), lambda x: leaky_relu(x, 11 / 48)),
    Row(F.prelu, (sample(2, 3, 4), sample(3, low=0.1, high=0.5)), lambda x, w: leaky_relu(x, w[:, None])),
    Row(F.prelu, (sample(2, 3), sample(1, low=0.1, high=0.5)), leaky_relu, name="prelu shared"),
    Row(F.elu, (X,), elu),
    Row(F.elu, (X,), elu, {"alpha": 0.5}, "elu alpha"),
    Row(F.selu, (X,), lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772)),
    Row(F.celu, (X,), lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha)), {"alpha": 2.0}),
    Row(F.gelu, (X,), gelu),
    Row(F.gelu, (X,), gelu, {"approximate": "tanh"}, "gelu tanh"),
    Row(F.silu, (X,), lambda x: x * sigmoid(x)),
    Row(F.mish, (X,), lambda x: x * np.tanh(softplus(x))),
    Row(F.hardsigmoid, (X,), lambda x: np.clip(x + 3, 0, 6) / 6),
    Row(F.hardswish, (X,), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    Row(F.hardshrink, (X,), lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    Row(F.softshrink, (X,), lambda x, lambd: np.sign(x) * np.maximum(np.abs(x) - lambd, 0), {"lambd": 1.0}),
    Row(F.softplus, (X,), softplus),
    Row(F.softplus, (X,), softplus, {"beta": 2.0, "threshold": 4.0}, "softplus threshold"),
    Row(F.softsign, (X,), lambda x: x / (1 + np.abs(x))),
    Row(F.tanhshrink, (X,), lambda x: x - np.tanh(x)),
    Row(F.logsigmoid, (X,), lambda x: np.log(sigmoid(x))),
    Row(F.threshold, (X, 0.5, -2.0), lambda x, threshold, value: np.where(x > threshold, x, value)),
    Row(F.rrelu, (X,), lambda x, lower, upper, training: np.where(x > 0, x, lower * x),
        {"lower": 0.25, "upper": 0.25, "training": True}),
    Row(F.glu, (sample(3, 4),), glu, {"dim": -1}),
    Row(F.glu, (sample(4, 3),), glu, {"dim": 0}, "glu dim"),
]
