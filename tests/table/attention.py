"""Rows of ops/attention.py."""

import math

import numpy as np

import minidl
from minidl.tensor.ops.attention import scaled_dot_product_attention
from tests.table import Row, sample

Q, K, V = sample(2, 3, 2, low=-1, high=1), sample(2, 4, 2, low=-1, high=1), sample(2, 4, 3, low=-1, high=1)
SEEN = np.array([[True, False, True, True], [False] * 4, [False, True, True, False]])


def attention(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], -3) for x in (k, v))
    s = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = np.tri(*s.shape[-2:], dtype=bool)
    seen = np.ones(s.shape, bool) if attn_mask is None or attn_mask.dtype != bool else np.broadcast_to(attn_mask, s.shape)
    if attn_mask is not None and attn_mask.dtype != bool:
        s = s + attn_mask
    p = np.exp(s - s.max(-1, keepdims=True)) * seen
    return p / np.maximum(p.sum(-1, keepdims=True), 1e-300) @ v


def dropped(q, k, v):
    return scaled_dot_product_attention(q, k, v, dropout_p=0.5, generator=minidl.Generator().manual_seed(2))


def dropped_reference(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    p = np.exp(s) / np.exp(s).sum(-1, keepdims=True)
    kept = minidl.Generator().manual_seed(2).uniform(p.shape, np.float32) >= 0.5
    return p * kept * 2 @ v


CASES = {
    "": ((Q, K, V), {}),
    "one matrix": ((Q[0], K[0], V[0]), {}),
    "causal": ((Q, K, V), {"is_causal": True}),
    "causal and long": ((K, Q, sample(2, 3, 2)), {"is_causal": True}),
    "scale": ((Q, K, V), {"scale": 0.3}),
    "mask": ((Q, K, V, SEEN), {}),
    "mask of a batch": ((Q, K, V, np.stack([SEEN, ~SEEN])), {}),
    "bias": ((Q, K, V, sample(2, 3, 4)), {}),
    "broadcast bias": ((Q, K, V, sample(3, 1)), {}),
    "broadcast heads": ((Q[:, None], K[None, :1], V[None, :1]), {}),
    "grouped": ((sample(4, 2, 2), K[:, :3], V[:, :3], SEEN[:2, :3]), {"enable_gqa": True}),
}
ROWS = [
    *[Row(scaled_dot_product_attention, inputs, attention, attributes, f"attention {name}", tolerance=2)
      for name, (inputs, attributes) in CASES.items()],
    Row(dropped, (Q, K, V), dropped_reference, name="attention dropout", tolerance=2),
]
