"""Rows of ops/diagonal.py."""

import numpy as np

import minidl
from tests.table import Row, sample

M = sample(3, 4)
X = sample(2, 3, 4)


def diag_embed(x, offset, dim1, dim2):
    side = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], side, side))
    for i in range(x.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


ROWS = [
    Row(minidl.diagonal, (M,), np.diagonal),
    Row(minidl.diagonal, (X, -1, 2, 0), np.diagonal, name="diagonal offset dims"),
    Row(minidl.diag, (M, 1), np.diag, name="diag of a matrix"),
    Row(minidl.diag, (sample(3), -1), np.diag, name="diag of a vector"),
    Row(minidl.diag_embed, (sample(2, 3), 0, -2, -1), diag_embed),
    Row(minidl.diag_embed, (sample(2, 3), 1, 0, 2), diag_embed, name="diag_embed dims"),
    Row(minidl.diag_embed, (sample(2, 3), -1, 2, 0), diag_embed, name="diag_embed dims swapped"),
    Row(minidl.tril, (X,), np.tril),
    Row(minidl.tril, (M, 1), np.tril, name="tril above"),
    Row(minidl.triu, (X,), np.triu),
    Row(minidl.triu, (M, -1), np.triu, name="triu below"),
    Row(minidl.tril_indices, (3, 4, -1), lambda r, c, o: np.stack(np.tril_indices(r, o, c))),
    Row(minidl.triu_indices, (4, 3, 1), lambda r, c, o: np.stack(np.triu_indices(r, o, c))),
]
