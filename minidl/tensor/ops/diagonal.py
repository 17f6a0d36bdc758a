"""Diagonals and triangles of matrices."""

from __future__ import annotations

from operator import index as as_int

import numpy as np

from ...autograd.op import Cast
from .. import dtypes
from ..apply import op
from ..convert import to_array
from ..dims import one_dim
from ..tensor import make_tensor
from .shape import clone

__all__ = ["diag", "diag_embed", "diagonal", "tril", "tril_indices", "triu", "triu_indices"]


@op(Cast.KEEP, view=True)
def _diagonal(xp, x, *, offset, axis1, axis2):
    shape = x.shape
    return (xp.diagonal_view(x, offset, axis1, axis2),
            lambda g: xp.put_diagonal(g, shape, offset, axis1, axis2))


@op(Cast.KEEP)
def _put_diagonal(xp, x, *, shape, offset, axis1, axis2):
    return (xp.put_diagonal(x, shape, offset, axis1, axis2),
            lambda g: xp.diagonal_view(g, offset, axis1, axis2))


@op(Cast.KEEP)
def _tril(xp, x, *, k):
    return xp.tril(x, k), lambda g: xp.tril(g, k)


@op(Cast.KEEP)
def _triu(xp, x, *, k):
    return xp.triu(x, k), lambda g: xp.triu(g, k)


def _two_axes(name, dim1, dim2, ndim):
    axes = one_dim(name, dim1, ndim), one_dim(name, dim2, ndim)
    if axes[0] == axes[1]:
        raise RuntimeError(f"{name} expected two different dims, got {dim1} and {dim2} for a tensor of {ndim} axes")
    return axes


def diagonal(input, offset=0, dim1=0, dim2=1):
    """The elements [..., i, i + offset] of two axes, as a last axis; a view.

    Args:
        offset: 0 for the main diagonal, positive above it, negative below.
    """
    axis1, axis2 = _two_axes("diagonal", dim1, dim2, input.ndim)
    return _diagonal(input, offset=as_int(offset), axis1=axis1, axis2=axis2)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Zeros with the input's last axis along the diagonal of two new square axes, which lie at dim1 and dim2."""
    offset = as_int(offset)
    axis1, axis2 = _two_axes("diag_embed", dim1, dim2, input.ndim + 1)
    if input.ndim == 0:
        raise IndexError("diag_embed expected a tensor of at least one axis, got a 0-d one")
    side = input.shape[-1] + abs(offset)
    batch = iter(input.shape[:-1])
    shape = tuple([side if axis in (axis1, axis2) else next(batch) for axis in range(input.ndim + 1)])
    return _put_diagonal(input, shape=shape, offset=offset, axis1=axis1, axis2=axis2)


def diag(input, diagonal=0):
    """A square matrix with a vector on its diagonal, or the diagonal of a matrix; a copy."""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim == 2:
        return clone(_diagonal(input, offset=as_int(diagonal), axis1=0, axis2=1))
    raise RuntimeError(f"diag expected a tensor of one or two axes, got shape {input.shape}; use diagonal or diag_embed")


def tril(input, diagonal=0):
    """Matrices (the last two axes) with zeros above a diagonal."""
    return _tril(_matrix("tril", input), k=as_int(diagonal))


def triu(input, diagonal=0):
    """Matrices (the last two axes) with zeros below a diagonal."""
    return _triu(_matrix("triu", input), k=as_int(diagonal))


def _matrix(name, input):
    if input.ndim < 2:
        raise RuntimeError(f"{name} expected a tensor of at least two axes, got shape {input.shape}")
    return input


def tril_indices(row, col, offset=0, *, dtype=dtypes.int64, device=None):
    """Row and column numbers, (2, n), of the elements of a (row, col) matrix that tril keeps."""
    return _indices("tril_indices", np.tri(*_sides("tril_indices", row, col), as_int(offset), bool), dtype, device)


def triu_indices(row, col, offset=0, *, dtype=dtypes.int64, device=None):
    """Row and column numbers, (2, n), of the elements of a (row, col) matrix that triu keeps."""
    return _indices("triu_indices", ~np.tri(*_sides("triu_indices", row, col), as_int(offset) - 1, bool), dtype, device)


def _sides(name, row, col):
    row, col = as_int(row), as_int(col)
    if row < 0 or col < 0:
        raise RuntimeError(f"{name} expected row and col that are not negative, got {row} and {col}")
    return row, col


def _indices(name, kept, dtype, device):
    dtype = dtypes.as_dtype(dtype)
    if dtype not in dtypes.INTEGER:
        raise NotImplementedError(f"{name} expected an integer dtype, got {dtypes.dtype_name(dtype)}")
    return make_tensor(to_array(np.stack(np.nonzero(kept)), dtype, device), None)


def _diagonal_view(x, offset, axis1, axis2):
    return _diagonal(x, offset=offset, axis1=axis1, axis2=axis2)


def _diagonal_put(g, shape, offset, axis1, axis2):
    return _put_diagonal(g, shape=tuple(shape), offset=offset, axis1=axis1, axis2=axis2)


METHODS = (diag, diag_embed, diagonal, tril, triu)
IN_PLACE = (tril, triu)
ON_TENSORS = {"diagonal_view": _diagonal_view, "put_diagonal": _diagonal_put, "diagonal": diagonal, "tril": tril,
              "triu": triu}
