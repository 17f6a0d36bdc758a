"""Rows of ops/joining.py."""

import itertools

import numpy as np

import minidl
from tests.table import Row, sample

A, B = sample(2, 3), sample(2, 3, seed=1)
U, V = sample(2, seed=2), sample(3, seed=3)


def block_diag(*blocks):
    blocks = [np.atleast_2d(block) for block in blocks]
    out = np.zeros(np.sum([block.shape for block in blocks], 0))
    at = np.zeros(2, int)
    for block in blocks:
        out[at[0]:at[0] + block.shape[0], at[1]:at[1] + block.shape[1]] = block
        at += block.shape
    return out


ROWS = [
    Row(minidl.cat, ([A, B, A[:1]],), np.concatenate),
    Row(minidl.cat, ([A, np.zeros(0), sample(2, 1)],), lambda x, dim: np.concatenate([x[0], x[2]], 1), {"dim": -1},
        "cat with an empty one"),
    Row(minidl.cat, ([A, np.arange(6).reshape(2, 3)],), np.concatenate, name="cat with integers"),
    Row(minidl.concat, ([A, B], 1), np.concatenate, name="concat"),
    Row(minidl.concatenate, ([A, B],), np.concatenate, {"axis": 1}, "concatenate"),
    Row(minidl.stack, ([A, B], 1), np.stack),
    Row(minidl.stack, ([np.array(0.5), np.array(1.5)], -1), np.stack, name="stack 0-d"),
    Row(minidl.hstack, ([A, B],), np.hstack),
    Row(minidl.hstack, ([U, V],), np.hstack, name="hstack vectors"),
    Row(minidl.vstack, ([A, V],), np.vstack),
    Row(minidl.dstack, ([A, B],), np.dstack),
    Row(minidl.column_stack, ([U, A],), np.column_stack),
    Row(minidl.block_diag, (A, U, np.array(0.5)), block_diag),
    Row(minidl.meshgrid, (U, V), lambda *v, indexing: tuple(np.meshgrid(*v, indexing=indexing)), {"indexing": "ij"}),
    Row(minidl.meshgrid, (U, V, sample(2)), lambda *v, indexing: tuple(np.meshgrid(*v, indexing=indexing)),
        {"indexing": "xy"}, "meshgrid xy"),
    Row(minidl.cartesian_prod, (U, V), lambda *v: np.array(list(itertools.product(*v)))),
    Row(minidl.combinations, (V,), lambda v: np.array(list(itertools.combinations(v, 2)))),
    Row(minidl.combinations, (V, 2, True), lambda v, *a: np.array(list(itertools.combinations_with_replacement(v, 2))),
        name="combinations with replacement"),
]
