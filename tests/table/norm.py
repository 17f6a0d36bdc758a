"""Rows of ops/norm.py."""

import numpy as np

import minidl
from tests.table import Row, sample
from tests.table.linalg_norm import SPREAD, over

X = sample(2, 3, 4)

ROWS = [
    Row(minidl.norm, (X,), lambda x: over(x)),
    Row(minidl.norm, (X,), lambda x, p, dim, keepdim: over(x, p, dim, keepdim), {"p": 3, "dim": 1, "keepdim": True}, "norm 3"),
    Row(minidl.norm, (SPREAD,), lambda x, p: np.linalg.norm(x, p), {"p": "nuc"}, "norm nuc"),
    Row(minidl.dist, (X, sample(3, 1, seed=4)), lambda a, b: over(a - b)),
    Row(minidl.dist, (X, sample(3, 1, seed=4)), lambda a, b, p: over(a - b, p), {"p": 1}, "dist 1"),
]
