"""Norms of vectors and matrices as minidl.linalg has them: norm, vector_norm, matrix_norm."""

from __future__ import annotations

import math

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from ..dims import some_dims
from .extrema import amax, amin
from .reduction import axes_of, kept_shape, refuse_integers, sum
from .shape import cast_to, movedim, reshape

__all__: list = []


# Primitives

@op(Cast.FULL, promote=Promote.NONE)
def _two_norm(xp, x, *, axis, keepdims):
    kept = kept_shape(x.shape, axis)
    y = xp.sqrt(xp.sum(x * x, axis, keepdims))
    return y, lambda g: x * xp.reshape(xp.divide_or_zero(g, y), kept)


@op(Cast.FULL, promote=Promote.NONE)
def _one_norm(xp, x, *, axis, keepdims):
    kept = kept_shape(x.shape, axis)
    return xp.sum(abs(x), axis, keepdims), lambda g: xp.reshape(g, kept) * xp.signed_power(x, 0)


@op(Cast.FULL, promote=Promote.NONE)
def _power_norm(xp, x, *, ord, axis, keepdims):
    """The p-norm for a finite p other than 0; p may be negative."""
    kept = kept_shape(x.shape, axis)
    y = xp.power_norm(x, ord, axis, keepdims)

    def gradient(g):  # sign(x) * (|x| / y)^(p - 1)
        return xp.reshape(g, kept) * xp.signed_power(xp.divide_or_zero(x, xp.reshape(y, kept)), ord - 1)

    return y, gradient


@op(Cast.FULL, promote=Promote.NONE)
def _signed_power(xp, x, *, exponent):
    return (xp.signed_power(x, exponent),
            (lambda g: g * xp.absolute_power(x, exponent - 1) * exponent) if exponent else (lambda g: g * 0))


@op(Cast.FULL, promote=Promote.NONE)
def _absolute_power(xp, x, *, exponent):
    return (xp.absolute_power(x, exponent),
            (lambda g: g * xp.signed_power(x, exponent - 1) * exponent) if exponent else (lambda g: g * 0))


@op(Cast.FULL, promote=Promote.NONE)
def _count_norm(xp, x, *, axis, keepdims):
    shape = x.shape
    kept = kept_shape(shape, axis)
    return xp.sum(xp.asarray(x != 0, x.dtype), axis, keepdims), lambda g: xp.broadcast_to(xp.reshape(g * 0, kept), shape)


@op(Cast.FULL, promote=Promote.NONE)
def _svd(xp, x):
    """u, s, vh of matrices in the last two axes, thin. Source of the gradient: Townsend, "Differentiating the singular
    value decomposition", 2016."""
    u, s, vh = xp.svd(x)

    def gradient(gs):
        gu, gd, gv = gs
        v, ut = xp.swapaxes(vh, -1, -2), xp.swapaxes(u, -1, -2)
        column, row = xp.expand_dims(s, -1), xp.expand_dims(s, -2)
        gaps = row * row - column * column
        inner = xp.matmul(ut, gu)
        outer = xp.matmul(vh, xp.swapaxes(gv, -1, -2))
        inner = xp.divide_or_zero(inner - xp.swapaxes(inner, -1, -2), gaps)
        outer = xp.divide_or_zero(outer - xp.swapaxes(outer, -1, -2), gaps)
        core = inner * row + column * outer + xp.diagonal_matrix(gd)
        left = xp.divide_or_zero(gu - xp.matmul(u, xp.matmul(ut, gu)), row)
        right = xp.divide_or_zero(gv - xp.matmul(xp.matmul(gv, v), vh), column)
        return xp.matmul(xp.matmul(u, core) + left, vh) + xp.matmul(u, right)

    return (u, s, vh), gradient


@op(Cast.KEEP)
def _diagonal_matrix(xp, x):
    return xp.diagonal_matrix(x), lambda g: xp.diagonal(g, 0, -2, -1)


# Norms of vectors

@composed(Cast.FULL)
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The norm of the elements over an axis, several, or all, as of one vector. Where it is 0, so is its gradient.

    Args:
        ord: any number p: (sum of |x|^p)^(1/p); inf and -inf: the largest and the smallest |x|; 0: how many are not 0.
        dim: an axis, a sequence of axes, or None for all.
        keepdim: keep reduced axes with length 1.
        dtype: cast the input to it first.

    Raises:
        TypeError: for an ord that is no number.
        RuntimeError: for an input that is not floating, or an infinite or negative ord of no elements.
    """
    x = _floating("vector_norm", x, dtype)
    if not hasattr(ord, "__float__"):
        raise TypeError(f"vector_norm expected a number as ord, got {ord!r}")
    ord = float(ord)
    axis = axes_of("vector_norm", dim, x.ndim)
    if (ord == math.inf or ord < 0) and (0 in [x.shape[a] for a in axis] or (not x.numel() and dim is None)):
        raise RuntimeError(f"vector_norm expected elements for ord {ord}, which has no value for none, got shape {x.shape}")
    if math.isinf(ord):
        size = _absolute_power(x, exponent=1)
        if not axis:
            return size
        return (amax if ord > 0 else amin)(size, axis, keepdim)
    arguments = {"axis": axis, "keepdims": bool(keepdim)}
    if ord in _SPECIAL:
        return _SPECIAL[ord](x, **arguments)
    return _power_norm(x, ord=ord, **arguments)


_SPECIAL = {0.0: _count_norm, 1.0: _one_norm, 2.0: _two_norm}


def _floating(name, x, dtype):
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
        if dtype not in dtypes.FLOATING:
            raise RuntimeError(f"{name} expected a floating dtype, got {dtypes.dtype_name(dtype)}")
    refuse_integers(name, x)
    return x if dtype is None else cast_to(x, dtype)


# Norms of matrices

@composed(Cast.FULL)
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of the matrices in two axes.

    Args:
        ord: "fro": Frobenius; "nuc": sum of singular values; 2 and -2: the largest and the smallest singular value; 1 and -1:
            the largest and the smallest sum of |A| down a column; inf and -inf: the same along a row.
        dim: the axes of rows and of columns.
        keepdim: keep reduced axes with length 1.
        dtype: cast the input to it first.
    """
    A = _floating("matrix_norm", A, dtype)
    if A.ndim < 2:
        raise RuntimeError(f"matrix_norm expected a tensor of at least two axes, got shape {A.shape}")
    if len(dim) != 2:
        raise RuntimeError(f"matrix_norm expected two dims, got {dim}")
    if ord not in _MATRIX_ORDERS:
        raise RuntimeError(f"matrix_norm expected ord to be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")
    row, column = some_dims("matrix_norm", dim, A.ndim)
    if ord == "fro":
        return vector_norm(A, 2, (row, column), keepdim)
    if ord in ("nuc", 2, -2):
        values = singular_values(movedim(A, (row, column), (-2, -1)))
        found = sum(values, -1) if ord == "nuc" else _extreme(ord, values, -1, False)
        return reshape(found, kept_shape(A.shape, (row, column))) if keepdim else found
    summed, other = (row, column) if abs(ord) == 1 else (column, row)
    sums = vector_norm(A, 1, summed, True)
    found = _extreme(ord, sums, other, True)
    return found if keepdim else reshape(found, tuple([n for i, n in enumerate(A.shape) if i not in (row, column)]))


def _extreme(ord, x, dim, keepdim):
    """The largest of what is not negative, which is 0 of nothing, or for a negative ord the smallest."""
    if ord < 0:
        return amin(x, dim, keepdim)
    return amax(x, dim, keepdim) if x.shape[dim] else sum(x, dim, keepdim)


_MATRIX_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


def singular_values(x):
    """The singular values of the matrices in the last two axes, the largest first."""
    return _svd(x)[1]


@composed(Cast.FULL)
def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """The norm of vectors or matrices, as numpy.linalg.norm.

    Args:
        ord: see vector_norm and matrix_norm; None: the 2-norm of all elements, or over dim.
        dim: one axis for vectors, two for matrices. None: with an ord, the input must have one or two axes.
        keepdim: keep reduced axes with length 1.
        dtype: cast the input to it first.
    """
    if dim is not None:
        dim = (dim,) if not isinstance(dim, (tuple, list)) else tuple(dim)
        if ord is not None and len(dim) not in (1, 2):
            raise RuntimeError(f"linalg.norm expected one or two dims for ord {ord!r}, got {dim}")
    elif ord is not None and A.ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm expected a tensor of one or two axes where ord {ord!r} but no dim is given, got shape "
                           f"{A.shape}")
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if (len(dim) if dim is not None else A.ndim) == 2:
        return matrix_norm(A, ord, dim or (0, 1), keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm expected a number as ord of vectors, got {ord!r}")
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


METHODS: tuple = ()
ON_TENSORS = {"signed_power": lambda x, exponent: _signed_power(x, exponent=exponent),
              "absolute_power": lambda x, exponent: _absolute_power(x, exponent=exponent),
              "svd": _svd, "diagonal_matrix": _diagonal_matrix}
