"""Rows of ops/similarity.py."""

import math

import numpy as np

import minidl
import minidl.nn.functional as F
from tests.table import Row, sample
from tests.table.linalg_norm import over

X, Y = sample(3, 4), sample(3, 4, seed=5)
ROWS_, MORE = sample(2, 3, 4), sample(5, 4, seed=5)


def unit(x, p=2, dim=1, eps=1e-12):
    return x / np.maximum(over(x, p, dim, True), eps)


def cosine(a, b, dim=1, eps=1e-8):
    return (unit(a, 2, dim, eps) * unit(b, 2, dim, eps)).sum(dim)


def pairwise(a, b, p=2, eps=1e-6, keepdim=False):
    return over(a - b + eps, p, -1, keepdim)


def every_pair(a, b, p=2, **_):
    return over(a[..., :, None, :] - b[..., None, :, :], p, -1)


def below(x, p=2):
    return every_pair(x, x, p)[np.triu_indices(x.shape[0], 1)]


ROWS = [
    Row(F.normalize, (X,), unit),
    Row(F.normalize, (X,), unit, {"p": 1, "dim": 0, "eps": 4.0}, "normalize eps"),
    Row(minidl.cosine_similarity, (X, Y), cosine),
    Row(minidl.cosine_similarity, (sample(2, 3, 4), sample(3, 1, seed=3)), lambda a, b, dim: cosine(
        *np.broadcast_arrays(a, b), dim), {"dim": -1}, "cosine_similarity broadcast"),
    Row(F.pairwise_distance, (X, Y), pairwise),
    Row(F.pairwise_distance, (X, Y[0]), pairwise, {"p": 1, "keepdim": True}, "pairwise_distance 1"),
    *[Row(minidl.pdist, (X,), below, {"p": p}, f"pdist {p}") for p in (0.0, 1.0, 2.0, 3.0, math.inf)],
    *[Row(minidl.cdist, (ROWS_, MORE), every_pair, {"p": p}, f"cdist {p}", tolerance=2)
      for p in (0.0, 0.5, 1.0, 2.0, 3.0, math.inf)],
    Row(minidl.cdist, (ROWS_, MORE), every_pair, {"compute_mode": "use_mm_for_euclid_dist"}, "cdist mm", tolerance=4),
]
