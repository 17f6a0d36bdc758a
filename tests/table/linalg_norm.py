"""Rows of ops/linalg_norm.py."""

import math

import numpy as np

from minidl.tensor.ops.linalg_norm import matrix_norm, norm, vector_norm
from tests.table import Row, sample

X = sample(2, 3, 4)
A = sample(3, 4, seed=2)
SPREAD = np.diag([1.0, 2, 4]) + 0.25 * sample(3, 3)  # singular values far from each other


def over(x, ord=2, dim=None, keepdim=False):
    size = np.abs(x)
    reduce = {"axis": dim, "keepdims": keepdim}
    if math.isinf(ord):
        return size.max(**reduce) if ord > 0 else size.min(**reduce)
    if ord == 0:
        return (x != 0).sum(**reduce).astype(float)
    return (size ** ord).sum(**reduce) ** (1 / ord)


def of_matrix(x, ord, dim=(-2, -1), keepdim=False):
    return np.linalg.norm(x, ord, dim, keepdim)


ROWS = [
    *[Row(vector_norm, (X,), over, {"ord": ord, "dim": (0, 2)}, f"vector_norm {ord}")
      for ord in (0, 0.5, 1, 1.5, 2, 3, math.inf, -math.inf, -1)],
    Row(vector_norm, (X,), over, {"keepdim": True}, "vector_norm all"),
    *[Row(matrix_norm, (A,), of_matrix, {"ord": ord}, f"matrix_norm {ord}") for ord in ("fro", 1, -1, math.inf, -math.inf)],
    *[Row(matrix_norm, (SPREAD,), of_matrix, {"ord": ord}, f"matrix_norm {ord}") for ord in ("nuc", 2, -2)],
    Row(norm, (X,), lambda x: np.linalg.norm(x), name="linalg.norm"),
    Row(norm, (X,), lambda x, ord, dim, keepdim: np.linalg.norm(x, ord, dim, keepdim),
        {"ord": "nuc", "dim": (0, 2), "keepdim": True}, "linalg.norm nuc dims"),
    Row(norm, (X,), lambda x, ord, dim: np.linalg.norm(x, ord, dim), {"ord": 1, "dim": 1}, "linalg.norm vectors"),
]
