"""Rows of ops/cumulative.py."""

import numpy as np

import minidl
from tests.table import Row, sample

X = sample(2, 3, 4)
ZEROS = sample(2, 5, seed=3)
ZEROS[0, 1] = ZEROS[1, 0] = ZEROS[1, 3] = 0


def along(function):
    return lambda x, dim: function(x, dim)


def running(function):
    """The values of a running extremum and the latest places they are found at."""
    def reference(x, dim):
        values = function.accumulate(x, dim)
        places = np.arange(x.shape[dim]).reshape([-1 if i == dim else 1 for i in range(x.ndim)])
        return values, np.maximum.accumulate(np.where(x == values, places, 0), dim)
    return reference


def diff(x, n=1, dim=-1, prepend=None, append=None):
    pads = {key: value for key, value in (("prepend", prepend), ("append", append)) if value is not None}
    return np.diff(x, n, dim, **pads)


def trapezoid(y, x=None, dx=1.0, dim=-1):
    return np.trapezoid(y, x, dx, dim)


ROWS = [
    Row(minidl.cumsum, (X,), along(np.cumsum), {"dim": 1}),
    Row(minidl.cumprod, (X,), along(np.cumprod), {"dim": -1}),
    Row(minidl.cumprod, (ZEROS,), along(np.cumprod), {"dim": 1}, "cumprod zeros"),
    Row(minidl.cummax, (X,), running(np.maximum), {"dim": 1}),
    Row(minidl.cummin, (X,), running(np.minimum), {"dim": 2}),
    Row(minidl.logcumsumexp, (X,), lambda x, dim: np.log(np.cumsum(np.exp(x), dim)), {"dim": 2}),
    Row(minidl.diff, (X,), diff, {"n": 2, "dim": 1}),
    Row(minidl.diff, (np.array([True, False, False, True]),), np.diff, name="diff of bool"),
    Row(lambda x, before, after: minidl.diff(x, dim=0, prepend=before, append=after), (X, X[:1] + 0.5, X[1:] - 0.5),
        lambda x, before, after: diff(x, dim=0, prepend=before, append=after), name="diff pads"),
    Row(minidl.trapezoid, (X,), trapezoid, {"dx": 0.5, "dim": 1}),
    Row(minidl.trapezoid, (X, sample(4)), trapezoid, name="trapezoid places"),
    Row(minidl.trapz, (X, sample(2, 3, 4, seed=1)), trapezoid, {"dim": 1}, "trapz"),
]
