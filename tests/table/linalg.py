"""Rows of ops/linalg.py and ops/linear.py."""

import numpy as np

import minidl
from minidl.tensor.ops.linalg import linalg_cross
from minidl.tensor.ops.linear import bilinear, linear
from tests.table import Row, sample

A, B = sample(2, 3, low=-1, high=1), sample(3, 4, low=-1, high=1, seed=1)
V, W = sample(3, low=-1, high=1), sample(3, low=-1, high=1, seed=1)
SQUARE = sample(2, 2, low=-1, high=1) + 1.5 * np.eye(2)


def batch(*shape, seed=0):
    return sample(*shape, low=-1, high=1, seed=seed)


def weighted(product):
    return lambda x, a, b, beta=1, alpha=1: beta * x + alpha * product(a, b)


def cross_product(x, y, axis):
    x, y = (np.moveaxis(z, axis, 0) for z in np.broadcast_arrays(x, y))
    z = np.stack([x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]])
    return np.moveaxis(z, 0, axis)


PAIRS = {
    "two matrices": (A, B), "two vectors": (V, W), "vector matrix": (V, B), "matrix vector": (A, V),
    "batch vector": (batch(2, 2, 3), V), "vector batch": (V, batch(2, 3, 2)), "batch matrix": (batch(2, 2, 3), B),
    "matrix batch": (A, batch(2, 3, 2)), "batches": (batch(2, 2, 3), batch(2, 3, 2, seed=1)),
    "broadcast batches": (batch(2, 1, 2, 2), batch(3, 2, 2)), "broadcast both": (batch(2, 1, 1, 2), batch(1, 2, 2, 1, seed=1)),
}
SUMS = (
    (minidl.addmm, "ab,bc->ac", (batch(2, 4), A, B)), (minidl.addmv, "ab,b->a", (batch(2), A, V)),
    (minidl.addr, "a,b->ab", (batch(3, 2), V, batch(2, seed=1))),
    (minidl.baddbmm, "nab,nbc->nac", (batch(2, 2, 2), batch(2, 2, 3), batch(2, 3, 2, seed=1))),
    (minidl.addbmm, "nab,nbc->ac", (batch(2, 2), batch(2, 2, 3), batch(2, 3, 2, seed=1))),
)
ROWS = [
    *[Row(minidl.matmul, pair, np.matmul, name=f"matmul {name}") for name, pair in PAIRS.items()],
    Row(minidl.mm, (A, B), np.matmul, name="mm"),
    Row(minidl.bmm, PAIRS["batches"], np.matmul, name="bmm"),
    Row(minidl.mv, (A, V), np.matmul, name="mv"),
    Row(minidl.dot, (V, W), np.dot),
    Row(minidl.vdot, (V, W), np.dot, name="vdot"),
    Row(minidl.inner, (A, batch(2, 2, 3)), np.inner),
    Row(minidl.inner, (A, np.array(0.5)), np.inner, name="inner number"),
    Row(minidl.outer, (V, batch(2)), np.outer),
    Row(minidl.ger, (V, batch(2)), np.outer, name="ger"),
    *[Row(f, inputs, weighted(lambda a, b, e=e: np.einsum(e, a, b))) for f, e, inputs in SUMS],
    *[Row(f, inputs, weighted(lambda a, b, e=e: np.einsum(e, a, b)), {"beta": 0.5, "alpha": -2}, f"{f.__name__} weighted")
      for f, e, inputs in SUMS],
    Row(minidl.addmm, (batch(4), A, B), weighted(np.matmul), {"beta": 0}, "addmm without input"),
    Row(minidl.tensordot, (batch(2, 2, 3), batch(2, 3, 2, seed=1)), lambda a, b: np.tensordot(a, b, 2)),
    Row(minidl.tensordot, (batch(2, 2, 3), batch(3, 2), ([2, 0], [0, -1])), np.tensordot, name="tensordot axes"),
    Row(minidl.tensordot, (batch(2, 3), batch(1, 2), ([1], [0])), lambda a, b, d: np.tensordot(a.sum(1, keepdims=True), b, 1),
        name="tensordot broadcast"),
    Row(minidl.kron, (A, sample(2)), np.kron),
    Row(minidl.cross, (sample(3, 2), sample(3, 2, seed=1)), lambda x, y: cross_product(x, y, 0)),
    Row(linalg_cross, (sample(2, 3), sample(1, 3, seed=1)), lambda x, y: cross_product(x, y, 1), name="linalg.cross"),
    Row(minidl.trace, (SQUARE,), np.trace),
    *[Row(minidl.matrix_power, (SQUARE, n), np.linalg.matrix_power, name=f"matrix_power {n}", half=n > 0, tolerance=4)
      for n in (0, 1, 3, -2)],
    Row(minidl.chain_matmul, (A, B, batch(4, 2, seed=2)), lambda *m: np.linalg.multi_dot(m), name="chain_matmul", tolerance=2),
    *[Row(linear, (x, batch(2, 3, seed=2), batch(2)), lambda x, w, b: x @ w.T + b, name=f"linear {x.ndim}-d")
      for x in (V, A, batch(2, 2, 3))],
    Row(linear, (A, batch(2, 3, seed=2)), lambda x, w: x @ w.T, name="linear without bias"),
    Row(linear, (batch(2, 2, 3), V, np.array(0.5)), lambda x, w, b: x @ w + b, name="linear to a number"),
    Row(bilinear, (A, batch(2, 2), batch(2, 3, 2, seed=1), batch(2, seed=3)),
        lambda x, y, w, b: np.einsum("ni,nj,kij->nk", x, y, w) + b, tolerance=2),
]
