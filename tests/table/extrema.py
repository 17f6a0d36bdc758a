"""Rows of ops/extrema.py."""

import numpy as np

import minidl
from tests.table import Row, sample

X = sample(2, 3, 4)


def over(function):
    return lambda x, dim=None, keepdim=False: function(x, axis=dim, keepdims=keepdim)


def both(values, indices):
    return lambda x, dim, keepdim=False: (values(x, axis=dim, keepdims=keepdim), indices(x, axis=dim, keepdims=keepdim))


ROWS = [
    Row(minidl.amax, (X,), over(np.amax), {"dim": (0, 2)}),
    Row(minidl.amin, (X,), over(np.amin), {"dim": -1, "keepdim": True}),
    Row(minidl.aminmax, (X,), lambda x, dim: (x.min(dim), x.max(dim)), {"dim": 1}),
    Row(minidl.max, (X,), over(np.amax)),
    Row(minidl.min, (X,), over(np.amin)),
    Row(minidl.max, (X,), both(np.amax, np.argmax), {"dim": 1}, "max dim"),
    Row(minidl.min, (X,), both(np.amin, np.argmin), {"dim": -1, "keepdim": True}, "min dim"),
    Row(minidl.max, (X, sample(3, 1, seed=1)), np.maximum, name="max other"),
    Row(minidl.min, (X, sample(3, 1, seed=1)), np.minimum, name="min other"),
    Row(minidl.argmax, (X,), over(np.argmax), grad=False),
    Row(minidl.argmin, (X,), over(np.argmin), {"dim": 1, "keepdim": True}, grad=False),
]
