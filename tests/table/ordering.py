"""Rows of ops/ordering.py."""

import numpy as np

import minidl
from tests.table import Row, sample

X = sample(2, 3, 4)
LONG = sample(27, low=-1, high=1)


def ordered(x, dim=-1, descending=False, stable=False):
    index = np.argsort(-x if descending else x, dim, kind="stable")
    return np.take_along_axis(x, index, dim), index


def top(x, k, dim=-1, largest=True):
    values, index = ordered(x, dim, largest)
    return np.take(values, range(k), dim), np.take(index, range(k), dim)


def kth(x, k, dim=-1, keepdim=False):
    values, index = (np.take(part, [k - 1], dim) for part in ordered(x, dim))
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


ROWS = [
    Row(minidl.sort, (X,), ordered, {"dim": 1}),
    Row(minidl.sort, (X,), ordered, {"descending": True, "stable": True}, "sort descending"),
    Row(minidl.argsort, (X,), lambda *a, **k: ordered(*a, **k)[1], {"dim": 0, "descending": True}, grad=False),
    Row(minidl.msort, (X,), lambda x: np.sort(x, 0)),
    Row(minidl.topk, (X,), top, {"k": 2, "dim": 1}),
    Row(minidl.topk, (LONG,), top, {"k": 3, "largest": False}, "topk of many"),
    Row(minidl.topk, (LONG,), top, {"k": 3}, "topk largest of many"),
    Row(minidl.kthvalue, (X,), kth, {"k": 2, "dim": 1}),
    Row(minidl.kthvalue, (X,), kth, {"k": 3, "keepdim": True}, "kthvalue keepdim"),
]
