"""Distances and similarities of vectors. Where a distance or a length is 0, so is its gradient."""

from __future__ import annotations

import math

from ...autograd.op import Cast
from .. import dtypes
from ..apply import composed, op
from . import arithmetic
from .linalg_norm import vector_norm
from .reduction import divide_or_zero, refuse_integers, sum
from .shape import broadcast_shapes, broadcast_to, cast_to, unsqueeze

__all__ = ["cdist", "cosine_similarity", "normalize", "pairwise_distance", "pdist"]


def _wide(x):
    """Halves as float32, in which eps and squares are what they should be."""
    return cast_to(x, dtypes.accumulation_dtype(x.dtype))


@op(Cast.FULL)
def _at_least(xp, x, *, eps):
    """max(x, eps), but 0 where x is 0."""
    above = xp.asarray(x >= eps)
    return xp.where(x == 0, 0, xp.where(x < eps, eps, x)), lambda g: g * above


def _unit(x, p, dim, eps):
    """x over its norm along an axis."""
    return divide_or_zero(x, _at_least(vector_norm(x, p, dim, True), eps=eps))


@composed(Cast.FULL)
def normalize(input, p=2.0, dim=1, eps=1e-12):
    """The input divided by its p-norm, or by eps where that is larger; a zero vector stays, with gradient 0.

    Args:
        p: the exponent of the norm.
        dim: the axis, or axes, of vectors.
        eps: the least divisor.
    """
    if not hasattr(p, "__float__"):
        raise TypeError(f"normalize expected a number as p, got {p!r}")
    refuse_integers("normalize", input)
    return cast_to(_unit(_wide(input), p, dim, eps), input.dtype)


@composed(Cast.FULL)
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along an axis; 0, with gradient 0, where one of them is zero.

    Shapes: x1 and x2 broadcast against each other; the result lacks the axis.
    """
    kind = dtypes.promote_types(x1.dtype, x2.dtype)  # they are broadcast first, so that a 0-d one counts like the other
    if kind not in dtypes.FLOATING:
        raise RuntimeError(f"cosine_similarity expected floating tensors, got {dtypes.dtype_name(x1.dtype)} and "
                           f"{dtypes.dtype_name(x2.dtype)}; cast one first")
    wide = dtypes.accumulation_dtype(kind)
    shape = broadcast_shapes(x1.shape, x2.shape)
    a, b = (_unit(cast_to(broadcast_to(x, shape), wide), 2, dim, eps) for x in (x1, x2))
    return cast_to(sum(arithmetic.mul(a, b), dim), kind)


@composed(Cast.FULL)
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps over the last axis.

    Shapes: x1 and x2 (N, D) or (D,), broadcast against each other; result (N,) or (), with keepdim (N, 1) or (1,).
    """
    kind = dtypes.result_type(x1.array, x2.array)
    difference = arithmetic.sub(_wide(x1), _wide(x2)) + eps
    found = vector_norm(difference, p, -1, keepdim)
    return cast_to(found, kind) if kind in dtypes.HALF else found


@op(Cast.KEEP)
def _pick_rows(xp, x, *, rows):
    shape = x.shape
    return x[rows], lambda g: xp.put_rows(g, rows, shape)


@op(Cast.KEEP)
def _put_rows(xp, g, *, rows, shape):
    return xp.index_add(shape, rows, g), lambda h: xp.pick_rows(h, rows)


@composed(Cast.FULL)
def pdist(input, p=2.0):
    """The p-norm distance of every pair of rows i < j, in the order of the upper triangle.

    Shapes: input (N, M), result (N * (N - 1) / 2,).

    Raises:
        RuntimeError: if the input is not a floating matrix, or p is negative.
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist expected a matrix (N, M), got shape {input.shape}")
    _check_distance("pdist", p, input)
    n = input.shape[0]
    xp = input.backend
    places = xp.arange(n)
    first, second = xp.nonzero(xp.reshape(places, (-1, 1)) < places)
    return _distance(_pick_rows(input, rows=first) - _pick_rows(input, rows=second), p)


def _check_distance(name, p, *tensors):
    if not p >= 0:
        raise RuntimeError(f"{name} expected p >= 0, got {p}")
    for x in tensors:
        refuse_integers(name, x)


def _distance(difference, p):
    """The p-norm over the last axis; 0 for vectors without elements, whatever p."""
    if difference.shape[-1] == 0:
        return sum(difference, -1)
    return vector_norm(difference, p, -1)


@op(Cast.FULL)
def _euclidean(xp, a, b):
    """Distances of rows through one matrix product."""
    y = xp.euclidean(a, b)

    def gradients(g):  # the difference a[i] - b[j] is never formed for all pairs
        share = xp.divide_or_zero(g, y)
        ga = a * xp.sum(share, -1, True) - xp.matmul(share, b)
        turned = xp.swapaxes(share, -1, -2)
        return ga, b * xp.sum(turned, -1, True) - xp.matmul(turned, a)

    return y, gradients


_MODES = {
    None: 25, "use_mm_for_euclid_dist_if_necessary": 25, "use_mm_for_euclid_dist": 0, "donot_use_mm_for_euclid_dist": math.inf,
}


@composed(Cast.FULL)
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm distance between each row of x1 and each row of x2.

    Args:
        p: any number not below 0; 0 counts the places that differ.
        compute_mode: whether 2-norms go through a matrix product, which is faster and less exact for close rows:
            "use_mm_for_euclid_dist_if_necessary" (from 25 rows on), "use_mm_for_euclid_dist",
            "donot_use_mm_for_euclid_dist".

    Shapes: x1 (*, P, M), x2 (*, R, M), result (*, P, R); the leading axes broadcast.

    Raises:
        RuntimeError: for other shapes or dtypes, or a negative p.
    """
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"cdist expected tensors (*, P, M) and (*, R, M), got shapes {x1.shape} and {x2.shape}")
    _check_distance("cdist", p, x1, x2)
    if compute_mode not in _MODES:
        modes = ", ".join(repr(mode) for mode in _MODES if mode)
        raise ValueError(f"cdist expected a compute_mode of {modes}, got {compute_mode!r}")
    lead = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    rows = max(x1.shape[-2], x2.shape[-2])
    if p == 2 and rows > _MODES[compute_mode] and x1.shape[-1]:
        return _euclidean(*(broadcast_to(x, lead + x.shape[-2:]) for x in (x1, x2)))
    return _distance(unsqueeze(x1, -2) - unsqueeze(x2, -3), p)


METHODS = ()
ON_TENSORS = {"pick_rows": lambda x, rows: _pick_rows(x, rows=rows),
              "put_rows": lambda g, rows, shape: _put_rows(g, rows=rows, shape=shape)}
