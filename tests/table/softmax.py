"""Rows of ops/softmax.py."""

import numpy as np

import minidl
import minidl.nn.functional as F
from tests.table import Row, sample

X = sample(2, 3, 4, low=-6, high=6)


def softmax(x, dim):
    y = np.exp(x - x.max(dim, keepdims=True))
    return y / y.sum(dim, keepdims=True)


ROWS = [
    Row(minidl.softmax, (X,), softmax, {"dim": 1}),
    Row(minidl.softmax, (X,), softmax, {"dim": -1}, "softmax last"),
    Row(minidl.log_softmax, (X,), lambda x, dim: np.log(softmax(x, dim)), {"dim": 1}),
    Row(F.softmin, (X,), lambda x, dim: softmax(-x, dim), {"dim": 2}),
]
