"""minidl.norm and minidl.dist: norms of tensors taken as one vector."""

from __future__ import annotations

from ...autograd.op import Cast
from ..apply import composed
from . import arithmetic
from .linalg_norm import matrix_norm, vector_norm

__all__ = ["dist", "norm"]


@composed(Cast.FULL)
def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    """The p-norm of the elements over axes or all, as of one vector; "nuc": the sum of a matrix's singular values.

    Args:
        p: a number, "fro" (2) or "nuc".
        dim: an axis, a sequence of axes, or None for all.
        keepdim: keep reduced axes with length 1.
        dtype: cast the input to it first.
    """
    if p == "nuc":
        dims = tuple(range(input.ndim)) if dim is None else dim
        return matrix_norm(input, "nuc", dims if isinstance(dims, (tuple, list)) else (dims,), keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm expected p to be a number, 'fro' or 'nuc', got {p!r}")
    return vector_norm(input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype=dtype)


@composed(Cast.FULL)
def dist(input, other, p=2):
    """The p-norm of input - other; they may broadcast."""
    return vector_norm(arithmetic.sub(input, other), p)


METHODS = (dist, norm)
ON_TENSORS: dict = {}
