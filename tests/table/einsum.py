"""Rows of ops/einsum.py."""

import numpy as np

import minidl
from tests.table import Row, sample


def einsum(equation):
    def call(*operands):
        return minidl.einsum(equation, *operands)

    call.__name__ = "einsum " + equation
    return call


def operands(*shapes):
    return tuple(sample(*shape, low=-1, high=1, seed=i) for i, shape in enumerate(shapes))


EQUATIONS = {
    "ij,jk->ik": ((2, 3), (3, 2)), "ij,jk": ((2, 3), (3, 2)), "ba": ((2, 3),), "i,j->ji": ((2,), (3,)), "i,i": ((3,), (3,)),
    "ii->i": ((3, 3),), "iji->j": ((2, 3, 2),), "ij->": ((2, 3),), "bij,bjk->bki": ((2, 2, 3), (2, 3, 2)),
    "qhd,khd->hqk": ((2, 2, 2), (3, 2, 2)), "hqk,khd->qhd": ((2, 2, 3), (3, 2, 2)), "...ij,...jk": ((2, 1, 2, 2), (2, 2, 2)),
    "i...,i...->...": ((2, 3), (2, 3)), "ij,ij->i": ((2, 3), (2, 3)), "ij,jk,kl->li": ((2, 2), (2, 3), (3, 2)),
    "i,ij,j": ((2,), (2, 3), (3,)), "ab,bc,ca->": ((2, 2), (2, 3), (3, 2)), "ij,kl->jl": ((2, 3), (2, 3)),
    " i j , j -> i j": ((2, 3), (3,)), "iij,jk->ik": ((2, 2, 3), (3, 2)),
}
ROWS = [
    *[Row(einsum(e), operands(*shapes), lambda *x, e=e: np.einsum(e, *x), tolerance=2) for e, shapes in EQUATIONS.items()],
    Row(einsum("...i->i"), operands((2, 3, 2)), lambda x: x.sum((0, 1)), tolerance=2),
    Row(einsum("ij,j->ij"), operands((2, 1), (3,)), lambda x, y: x * y, name="einsum broadcast"),
    Row(lambda x, y: minidl.einsum(x, [0, 1, ...], y, [1, 4], [4, ..., 0]), operands((2, 3, 2), (3, 2)),
        lambda x, y: np.einsum("ab...,bc->c...a", x, y), name="einsum of numbers"),
]
