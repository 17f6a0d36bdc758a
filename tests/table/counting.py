"""Rows of ops/counting.py."""

import numpy as np

import minidl
from tests.table import Row, sample

SOME = np.array([[3, 1, 1, 0], [0, 3, 3, 3]])
ROWS_ = np.array([[1, 2], [0, 3], [0, 3], [1, 2], [0, 1]])


def unique(x, return_inverse=True, return_counts=True, dim=None):
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    return values, inverse.reshape(x.shape if dim is None else -1), counts


ROWS = [
    Row(minidl.unique, (SOME,), unique, {"return_inverse": True, "return_counts": True}),
    Row(minidl.unique, (ROWS_,), unique, {"return_inverse": True, "return_counts": True, "dim": 0}, "unique rows"),
    Row(minidl.unique_consecutive, (SOME,), lambda x, **_: (np.array([3, 1, 0, 3]), np.array([[0, 1, 1, 2], [2, 3, 3, 3]]),
                                                            np.array([1, 2, 2, 3])),
        {"return_inverse": True, "return_counts": True}),
    Row(minidl.unique_consecutive, (ROWS_,), lambda x, dim: x[[0, 1, 3, 4]], {"dim": 0}, "unique_consecutive rows"),
    Row(minidl.bincount, (np.array([1, 3, 3, 0]),), lambda x, minlength: np.bincount(x, minlength=minlength),
        {"minlength": 6}),
    Row(minidl.bincount, (np.array([1, 3, 3, 0]), sample(4)), np.bincount, name="bincount weights", half=False, grad=False),
    Row(minidl.histc, (sample(20),), lambda x, bins, min, max: np.histogram(x, bins, (min, max))[0].astype(float),
        {"bins": 5, "min": -1, "max": 1.5}, grad=False),
]
