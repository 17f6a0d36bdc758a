"""Scaled dot-product attention."""

from __future__ import annotations

import math

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from ..random import default_generator
from .linalg import broadcasts, matmul
from .reduction import sum as sum_of
from .shape import broadcast_shapes, cast_to, reshape, transpose
from .softmax import softmax

__all__ = ["scaled_dot_product_attention"]

_PIECE = 1 << 20


@op(Cast.HALF, promote=Promote.NONE, replay=True)
def _attention(xp, query, key, value, bias, *, mask, kept, factor, causal, scale):
    has_bias = bias is not None
    out, statistic = xp.attention(query, key, value, bias, mask, kept, factor, causal, scale)

    def gradients(g):
        return xp.attention_gradients(g, query, key, value, bias if has_bias else None, mask, kept, factor, causal, scale, out,
                                      statistic)

    return out, gradients


@composed(Cast.HALF)
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False, *, generator=None):
    """softmax(query @ key^T * scale + mask) @ value; zeros, with gradient 0, for queries that see no key.

    Args:
        attn_mask: bool, True where a key is seen, or floating and added to the scores; broadcasts to (*, L, S).
        dropout_p: probability with which each attention weight is dropped.
        is_causal: query i sees the keys 0 to i. Excludes attn_mask.
        scale: default 1 / sqrt(E).
        enable_gqa: key and value may have fewer heads (axis -3) than query; each serves as many heads of query, one after the
            other.
        generator: where dropout's random numbers come from; default this thread's run-time stream.

    Shapes: query (*, L, E), key (*, S, E), value (*, S, V), result (*, L, V).

    Raises:
        RuntimeError: for shapes or dtypes that do not fit, both a mask and is_causal, or dropout_p outside [0, 1].

    Source: Vaswani et al., "Attention is all you need", 2017, equation 1; Ainslie et al., "GQA", 2023.
    """
    _check(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    groups = query.shape[-3] // key.shape[-3] if enable_gqa else 1
    shape = (*query.shape[:-1], value.shape[-1])
    if groups > 1:
        query, key, value, attn_mask = _grouped(query, key, value, attn_mask, groups)
    lead = broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    scores = (*lead, query.shape[-2], key.shape[-2])
    if attn_mask is not None and not broadcasts(attn_mask.shape, scores):
        raise RuntimeError(f"scaled_dot_product_attention expected attn_mask to broadcast to {scores}, got {attn_mask.shape}")
    query, key, value = (_with_axes(x, len(scores)) for x in (query, key, value))
    mask = bias = None
    if attn_mask is not None:
        attn_mask = _with_axes(attn_mask, len(scores))
        mask, bias = (attn_mask.array, None) if attn_mask.dtype == dtypes.bool_ else (None, attn_mask)
    kept = None if dropout_p == 0 else _drawn(scores, dropout_p, default_generator() if generator is None else generator, query)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None and query.shape[-1] else 1.0 if scale is None else float(scale)
    out = _attention(query, key, value, bias, mask=mask, kept=kept, factor=1 / (1 - dropout_p) if dropout_p < 1 else 0.0,
                     causal=bool(is_causal), scale=scale)
    return reshape(out, shape) if groups > 1 else out


def _check(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
    name = "scaled_dot_product_attention"
    shapes = f"{query.shape}, {key.shape} and {value.shape}"
    if min(query.ndim, key.ndim, value.ndim) < 2 or query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise RuntimeError(f"{name} expected query (*, L, E), key (*, S, E) and value (*, S, V), got {shapes}")
    if not query.dtype == key.dtype == value.dtype or query.dtype not in dtypes.FLOATING:
        names = ", ".join(dtypes.dtype_name(x.dtype) for x in (query, key, value))
        raise RuntimeError(f"{name} expected query, key and value of one floating dtype, got {names}; cast them first")
    if attn_mask is not None and is_causal:
        raise RuntimeError(f"{name} expected attn_mask or is_causal=True, got both; combine them into one mask")
    if attn_mask is not None and attn_mask.dtype not in (dtypes.bool_, dtypes.float32, query.dtype):
        raise RuntimeError(f"{name} expected attn_mask of bool, float32 or query's dtype, got "
                           f"{dtypes.dtype_name(attn_mask.dtype)}; cast it first")
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"{name} expected dropout_p in [0, 1], got {dropout_p}")
    if enable_gqa and (min(query.ndim, key.ndim, value.ndim) < 3 or key.shape[-3] != value.shape[-3] or not key.shape[-3]
                       or query.shape[-3] % key.shape[-3]):
        raise RuntimeError(f"{name} with enable_gqa expected query to have a multiple of key's and value's heads, got {shapes}")


def _drawn(shape, p, generator, like):
    """True with probability 1 - p. Drawn in pieces, so that no random numbers of that shape, four times its size, exist."""
    count = math.prod(shape)
    pieces = [generator.uniform((min(_PIECE, count - start),), dtypes.float32, like.device) >= p
              for start in range(0, max(count, 1), _PIECE)]
    return like.backend.reshape(pieces[0] if len(pieces) == 1 else like.backend.concatenate(pieces), shape)


def _grouped(query, key, value, attn_mask, groups):
    """The heads of query as (heads of key, groups), and the others with a group axis of length 1."""
    query = reshape(query, (*query.shape[:-3], query.shape[-3] // groups, groups, *query.shape[-2:]))
    key, value = (reshape(x, (*x.shape[:-2], 1, *x.shape[-2:])) for x in (key, value))
    if attn_mask is not None and attn_mask.ndim > 2:
        heads = attn_mask.shape[-3]
        split = (1, 1) if heads == 1 else (heads // groups, groups)
        attn_mask = reshape(attn_mask, (*attn_mask.shape[:-3], *split, *attn_mask.shape[-2:]))
    return query, key, value, attn_mask


def _with_axes(x, ndim):
    return x if x.ndim == ndim else reshape(x, (1,) * (ndim - x.ndim) + x.shape)


# On tensors: the probabilities themselves stand in the place of the rows' statistic

def _attention_of_tensors(query, key, value, bias, mask, kept, factor, causal, scale):
    wide = dtypes.accumulation_dtype(query.dtype)
    query, key, value = (cast_to(x, wide) for x in (query, key, value))
    scores = matmul(query * scale, transpose(key, -1, -2))
    if bias is not None:
        scores = scores + cast_to(bias, wide)
    xp = scores.backend
    if mask is not None:
        scores = scores + scores.like(xp.where(mask, xp.zeros((), wide), -math.inf))
    if causal:
        seen = xp.arange(scores.shape[-1])[None, :] <= xp.arange(scores.shape[-2])[:, None]
        scores = scores + scores.like(xp.where(seen, xp.zeros((), wide), -math.inf))
    probabilities = softmax(scores, -1)
    return matmul(_thinned(probabilities, kept, factor), value), probabilities


def _attention_gradients_of_tensors(g, query, key, value, bias, mask, kept, factor, causal, scale, out, statistic):
    p, wide = statistic, statistic.dtype
    g, query, key, value = (cast_to(x, wide) for x in (g, query, key, value))
    gv = matmul(transpose(_thinned(p, kept, factor), -1, -2), g)
    gp = _thinned(matmul(g, transpose(value, -1, -2)), kept, factor)
    gs = p * (gp - sum_of(g * out, -1, True))
    return matmul(gs, key) * scale, matmul(transpose(gs, -1, -2), query) * scale, gv, None if bias is None else gs


def _thinned(x, kept, factor):
    return x if kept is None else x * x.like(x.backend.asarray(kept, x.dtype)) * factor


METHODS = ()
ON_TENSORS = {"attention": _attention_of_tensors, "attention_gradients": _attention_gradients_of_tensors}
