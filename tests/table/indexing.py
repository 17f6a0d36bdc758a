"""Rows of ops/indexing.py."""

import numpy as np

import minidl
from tests.table import Row, sample

X = sample(3, 4)
CUBE = sample(2, 3, 4)
ROWS_TWICE = np.array([2, 0, 2])
DIAGONAL = np.arange(3)


def read(index):
    """x[index]."""
    return lambda x, *arrays: x[index(*arrays)]


def write(index):
    """A copy of x after x[index] = value."""
    def minidl_form(x, value, *arrays):
        x = x.clone()
        x[index(*arrays)] = value
        return x

    def numpy_form(x, value, *arrays):
        x = x.copy()
        x[index(*arrays)] = value
        return x

    return minidl_form, numpy_form


def replaced(index):
    return lambda x, src, *rest: write(lambda: index)[1](x, src)


def accumulated(x, indices, values, accumulate):
    out = x.copy()
    np.add.at(out, indices, values)
    return out


def placed_diagonal(x, src, *dims):
    out = x.copy()
    out[DIAGONAL, DIAGONAL + 1] = src
    return out


READS = {
    "int": (lambda: 1, CUBE), "negative int": (lambda: (-1, -2), CUBE),
    "slices": (lambda: (slice(1, None), ..., slice(0, 4, 2)), CUBE),
    "negative step": (lambda: (slice(None), slice(None, None, -1)), X), "None": (lambda: (None, ..., None), X),
    "empty tuple": (lambda: (), X), "True": (lambda: True, X), "list": (lambda: [2, -1, 2], X),
    "list of bools": (lambda: [True, False, True], X),
}
READS_WITH_ARRAYS = {
    "integers": (lambda i: i, X, ROWS_TWICE), "integers on the last axis": (lambda i: (..., i), CUBE, ROWS_TWICE),
    "two arrays": (lambda i, j: (i, j), X, np.array([[0], [2]]), np.array([1, -1])),
    "arrays around a slice": (lambda i, j: (i, slice(None), j), CUBE, np.array([1, 0, 1]), np.array([3, -1, 3])),
    "mask": (lambda m: m, X, X > 0), "mask of an axis": (lambda m: (slice(None), m), X, X[0] > 0),
    "mask and integers": (lambda m, i: (m, i), X, X[:, 0] > X[0, 0] - 1, np.array([1])),
    "0-d": (lambda i: (slice(None), i), X, np.array(2)), "no integers": (lambda i: i, X, np.zeros((2, 0), np.int64)),
}
WRITES = {
    "int": (lambda: 1, sample(4, seed=1)), "slice": (lambda: (slice(None), slice(1, 3)), sample(3, 2, seed=1)),
    "broadcast": (lambda: (..., slice(None, None, 2)), sample(3, 1, seed=1)), "0-d value": (lambda: 0, np.array(0.5)),
    "leading axes of one": (lambda: 0, sample(1, 1, 4, seed=1)),
}
WRITES_WITH_ARRAYS = {
    "integers": (lambda i: i, sample(2, 4, seed=1), np.array([2, 0])),
    "the last of repeated": (lambda i: i, sample(3, 4, seed=1), ROWS_TWICE),
    "repeated, broadcast": (lambda i: (slice(None), i), sample(3, seed=1), ROWS_TWICE),
    "slice and integers": (lambda i: (slice(1, None), i), sample(2, 1, seed=1), np.array([3, 1])),
    "int and integers": (lambda i: (1, i), sample(2, seed=1), np.array([3, 1])),
    "mask": (lambda m: m, np.array(0.5), X > 0),
}

ROWS = [
    *[Row(read(index), (x,), read(index), name=f"x[{name}]") for name, (index, x) in READS.items()],
    *[Row(read(index), (x, *arrays), read(index), name=f"x[{name}]", tolerance=2)
      for name, (index, x, *arrays) in READS_WITH_ARRAYS.items()],
    *[Row(write(index)[0], (X, value), write(index)[1], name=f"x[{name}] = value") for name, (index, value) in WRITES.items()],
    *[Row(write(index)[0], (X, value, *arrays), write(index)[1], name=f"x[{name}] = value")
      for name, (index, value, *arrays) in WRITES_WITH_ARRAYS.items()],
    Row(minidl.index_put, (X, (np.array([0, 2]), np.array([1, 1])), sample(2, seed=1)),
        lambda x, indices, values: write(lambda: indices)[1](x, values)),
    Row(minidl.index_put, (X, (ROWS_TWICE,), sample(4, seed=1), True), accumulated, name="index_put accumulate", tolerance=2),
    Row(minidl.select_scatter, (X, sample(3, seed=1), 1, -1), replaced((slice(None), -1))),
    Row(minidl.slice_scatter, (X, sample(3, 2, seed=1), 1, 0, 4, 2), replaced((slice(None), slice(0, 4, 2)))),
    Row(minidl.diagonal_scatter, (X, sample(3, seed=1), 1), placed_diagonal),
    Row(lambda x, src: minidl.diagonal_scatter(x, src, -1, 1, 0), (X, sample(3, seed=1)), placed_diagonal,
        name="diagonal_scatter dims"),
]
