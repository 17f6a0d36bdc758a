"""Rows of ops/selection.py."""

import numpy as np

import minidl
from tests.table import Row, sample

X = sample(3, 4)
MASK = X > 0.25
SORTED = np.sort(sample(5))
SORTED_ROWS = np.sort(sample(3, 5), 1)


def filled(x, mask, value):
    return np.where(mask, value, x)


def scattered(x, mask, source):
    out = np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape)).copy()
    mask = np.broadcast_to(mask, out.shape)
    out[mask] = source.reshape(-1)[:mask.sum()]
    return out


def by_rows(side):
    return lambda s, x, **options: np.stack([np.searchsorted(a, b, side) for a, b in zip(s, x)])


ROWS = [
    Row(minidl.masked_fill, (X, MASK, -0.5), filled),
    Row(minidl.masked_fill, (sample(4), MASK, np.array(0.5)), filled, name="masked_fill 0-d tensor, broadcast", tolerance=3),
    Row(minidl.masked_select, (X, MASK), lambda x, m: x[m]),
    Row(minidl.masked_select, (sample(3, 1), MASK), lambda x, m: np.broadcast_to(x, m.shape)[m], name="masked_select broadcast",
        tolerance=3),
    Row(minidl.masked_scatter, (X, MASK, sample(4, 3, seed=1)), scattered),
    Row(minidl.masked_scatter, (sample(4), np.array([[True], [False]]), sample(5, seed=1)), scattered,
        name="masked_scatter broadcast", tolerance=2),
    Row(minidl.nonzero, (MASK * X,), lambda x: np.argwhere(x), grad=False),
    Row(minidl.nonzero, (MASK * X,), lambda x, as_tuple: np.nonzero(x), {"as_tuple": True}, "nonzero as_tuple", grad=False),
    Row(minidl.argwhere, (MASK,), np.argwhere, grad=False),
    Row(minidl.isin, (X, X[1:]), np.isin, grad=False),
    Row(minidl.isin, (X, 7.0), np.isin, {"invert": True}, "isin invert", grad=False),
    Row(minidl.searchsorted, (SORTED, X), np.searchsorted, grad=False),
    Row(minidl.searchsorted, (SORTED, SORTED[::2]), lambda s, x, right: np.searchsorted(s, x, "right"), {"right": True},
        "searchsorted right", grad=False),
    Row(minidl.searchsorted, (SORTED_ROWS, np.concatenate((X, SORTED_ROWS), 1)), by_rows("left"), name="searchsorted rows",
        grad=False),
    Row(minidl.searchsorted, (SORTED_ROWS, np.concatenate((X, SORTED_ROWS), 1)), by_rows("right"), {"side": "right"},
        "searchsorted rows right", grad=False),
    Row(lambda s, x: minidl.searchsorted(s, x, sorter=minidl.argsort(s)), (sample(5), X),
        lambda s, x: np.searchsorted(np.sort(s), x), name="searchsorted sorter", grad=False),
    Row(minidl.bucketize, (X, SORTED), lambda x, s: np.searchsorted(s, x), grad=False),
]
