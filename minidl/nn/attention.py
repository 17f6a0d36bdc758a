"""Attention of several heads, with projections of queries, keys and values."""

from __future__ import annotations

import math
from typing import Any

from ..tensor import dtypes
from ..tensor.creation import empty, zeros, zeros_like
from ..tensor.ops.arithmetic import mul
from ..tensor.ops.attention import scaled_dot_product_attention
from ..tensor.ops.comparison import logical_not
from ..tensor.ops.dropout import dropout as dropped
from ..tensor.ops.joining import cat
from ..tensor.ops.linalg import matmul
from ..tensor.ops.linear import linear
from ..tensor.ops.padding import pad
from ..tensor.ops.reduction import mean
from ..tensor.ops.selection import masked_fill
from ..tensor.ops.shape import cast_to, expand, permute, reshape, squeeze, transpose, unsqueeze
from ..tensor.ops.softmax import softmax
from ..tensor.ops.splitting import split
from ..tensor.tensor import Tensor
from .init import xavier_normal_, xavier_uniform_, zeros_
from .linear import Linear
from .module import Module
from .parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """softmax(q k^T / sqrt(D)) v in each of H heads of D = E / H features, on linear maps of query, key and value; the heads
    are joined and mapped once more.

    Args:
        embed_dim: E, the features of query and result.
        num_heads: H, which divides E.
        dropout: probability with which, in training, each attention weight is dropped.
        bias: whether the linear maps have biases.
        add_bias_kv: append a learned key and value to all sequences.
        add_zero_attn: append a key and a value of zeros to all sequences.
        kdim, vdim: features of key and value; default E.
        batch_first: query, key, value and result are (N, L, E) instead of (L, N, E).

    Shapes: in_proj_weight (3 * E, E), or q_proj_weight (E, E), k_proj_weight (E, kdim) and v_proj_weight (E, vdim) where kdim
    or vdim is not E; in_proj_bias (3 * E,); bias_k and bias_v (1, 1, E).

    Raises:
        ValueError: for numbers that are not positive, or an embed_dim that num_heads does not divide.

    Source: Vaswani et al., "Attention is all you need", 2017, section 3.2.2.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
                 device: Any = None, dtype: Any = None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention expected a positive embed_dim that a positive num_heads divides, got "
                             f"{embed_dim} and {num_heads}")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn

        def parameter(exists: bool, *shape: int) -> Parameter | None:
            return Parameter(empty(shape, device=device, dtype=dtype)) if exists else None

        one = self.kdim == self.vdim == embed_dim
        self.q_proj_weight = parameter(not one, embed_dim, embed_dim)
        self.k_proj_weight = parameter(not one, embed_dim, self.kdim)
        self.v_proj_weight = parameter(not one, embed_dim, self.vdim)
        self.in_proj_weight = parameter(one, 3 * embed_dim, embed_dim)
        self.in_proj_bias = parameter(bias, 3 * embed_dim)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = parameter(add_bias_kv, 1, 1, embed_dim)
        self.bias_v = parameter(add_bias_kv, 1, 1, embed_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights after Glorot and Bengio, and set the biases of the linear maps to zero."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                zeros_(bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                xavier_normal_(extra)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """The result, and the attention weights or None. Queries that see no key get the result of zeros.

        Args:
            key_padding_mask: bool, True where a key is not seen, or floating and added to the scores.
            need_weights: return the weights, too. Without it memory does not grow with L * S, except for masks and dropout.
            attn_mask: as key_padding_mask, for each query.
            average_attn_weights: return the mean of the heads' weights.
            is_causal: a hint that attn_mask hides all later keys from a query; where nothing else hides keys and no weights
                are asked for, the mask itself is not read then.

        Shapes: query (L, N, E), key (S, N, kdim), value (S, N, vdim), result (L, N, E), with batch_first (N, L, E) and so on;
        all may lack the axis N. key_padding_mask (N, S), attn_mask (L, S) or (N * H, L, S). Weights (N, L, S), or (N, H, L, S)
        without average_attn_weights; S counts the appended keys.

        Raises:
            RuntimeError: for shapes or dtypes that do not fit, or is_causal without attn_mask.
        """
        if is_causal and attn_mask is None:
            raise RuntimeError("MultiheadAttention expected attn_mask where is_causal=True says that it is a causal one; "
                               "make it with Transformer.generate_square_subsequent_mask")
        batched = query.ndim == 3
        first = self.batch_first or not batched
        _check(query, key, value, first)
        self._check_features(query, key, value)
        q, k, v = self._projected(query, key, value)
        if not batched:
            q, k, v = (unsqueeze(x, 0) for x in (q, k, v))
            key_padding_mask = None if key_padding_mask is None else unsqueeze(key_padding_mask, 0)
        q, k, v = (self._heads(x, first) for x in (q, k, v))
        shape = (*q.shape[:3], k.shape[2])
        k, v = self._extended(k, self.bias_k), self._extended(v, self.bias_v)
        appended = k.shape[2] - shape[3]
        causal = is_causal and key_padding_mask is None and not need_weights and not appended
        mask = None if causal else _joined_mask(attn_mask, key_padding_mask, shape, appended, q.dtype)
        p = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            weights = dropped(_weights(q, k, mask), p)
            out = matmul(weights, v)
            weights = mean(weights, 1) if average_attn_weights else weights
        else:
            seen = logical_not(mask) if mask is not None and mask.dtype == dtypes.bool_ else mask
            out = scaled_dot_product_attention(q, k, v, seen, p, causal)
        out = permute(out, (0, 2, 1, 3) if first else (2, 0, 1, 3))
        out = self.out_proj(reshape(out, (*out.shape[:2], self.embed_dim)))
        if batched:
            return out, weights
        return squeeze(out, 0), None if weights is None else squeeze(weights, 0)

    def _check_features(self, *inputs: Tensor) -> None:
        expected = self.embed_dim, self.kdim, self.vdim
        found = tuple(x.shape[-1] for x in inputs)
        if found != expected:
            raise RuntimeError("MultiheadAttention expected query, key and value of {}, {} and {} features, got {}, {} and {}; "
                               "features are the last axis".format(*expected, *found))

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> Any:
        bias = self.in_proj_bias
        if self.in_proj_weight is None:
            weights: Any = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        elif query is key and key is value:
            return split(linear(query, self.in_proj_weight, bias), self.embed_dim, -1)
        else:
            weights = split(self.in_proj_weight, self.embed_dim)
        biases = (None, None, None) if bias is None else split(bias, self.embed_dim)
        return [linear(x, weight, b) for x, weight, b in zip((query, key, value), weights, biases)]

    def _heads(self, x: Tensor, first: bool) -> Tensor:
        """(N, H, L, D) of (N, L, E), or of (L, N, E)."""
        return permute(reshape(x, (*x.shape[:2], self.num_heads, self.head_dim)), (0, 2, 1, 3) if first else (1, 2, 0, 3))

    def _extended(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Keys or values with those that are appended to all sequences."""
        shape = (x.shape[0], self.num_heads, 1, self.head_dim)
        more = []
        if bias is not None:
            more.append(cast_to(expand(reshape(bias, (1, *shape[1:])), shape), x.dtype))
        if self.add_zero_attn:
            more.append(zeros(shape, dtype=x.dtype, device=x.device))
        return cat([x, *more], 2) if more else x


def _check(query: Tensor, key: Tensor, value: Tensor, first: bool) -> None:
    n = None if query.ndim != 3 else 0 if first else 1
    if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim or key.shape[:-1] != value.shape[:-1] or (
            n is not None and query.shape[n] != key.shape[n]):
        raise RuntimeError(f"MultiheadAttention expected query, key and value of shapes "
                           f"{'(N, L, E), (N, S, E) and (N, S, E)' if first else '(L, N, E), (S, N, E) and (S, N, E)'}, or all "
                           f"without N, got {query.shape}, {key.shape} and {value.shape}")


def _joined_mask(attn_mask: Tensor | None, padding: Tensor | None, shape: tuple, appended: int, dtype: Any) -> Tensor | None:
    """Both masks as one that broadcasts to `shape` (N, H, L, S) with `appended` more keys, which all see: bool, True where a
    key is hidden, if both are; else floating, to be added to the scores."""
    n, h, length, keys = shape
    masks = []
    if attn_mask is not None:
        _check_mask("attn_mask", attn_mask, (length, keys), (n * h, length, keys))
        masks.append(reshape(attn_mask, (1, 1, length, keys) if attn_mask.ndim == 2 else shape))
    if padding is not None:
        _check_mask("key_padding_mask", padding, (n, keys))
        masks.append(reshape(padding, (n, 1, 1, keys)))
    if not masks:
        return None
    if any(mask.dtype != dtypes.bool_ for mask in masks):
        masks = [mask if mask.dtype != dtypes.bool_ else masked_fill(zeros_like(mask, dtype=dtype), mask, -math.inf)
                 for mask in masks]
        joined = masks[0] + masks[1] if len(masks) == 2 else masks[0]
    else:
        joined = masks[0] | masks[1] if len(masks) == 2 else masks[0]
    return pad(joined, (0, appended)) if appended else joined


def _check_mask(name: str, mask: Tensor, *shapes: tuple) -> None:
    if mask.shape not in shapes:
        raise RuntimeError(f"MultiheadAttention expected {name} of shape {' or '.join(map(str, shapes))}, got {mask.shape}")
    if mask.dtype != dtypes.bool_ and mask.dtype not in dtypes.FLOATING:
        raise RuntimeError(f"MultiheadAttention expected {name} to be bool or floating, got {dtypes.dtype_name(mask.dtype)}; "
                           f"cast it first")


def _weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """The attention weights (N, H, L, S)."""
    scores = matmul(mul(q, 1 / math.sqrt(q.shape[-1])), transpose(k, -1, -2))
    if mask is not None:
        scores = masked_fill(scores, mask, -math.inf) if mask.dtype == dtypes.bool_ else scores + mask
    return cast_to(softmax(scores, -1), q.dtype)
