"""Attention in blocks: of the scores only as many exist at a time as fit into the processor's cache.

Forward keeps one number per query, the logarithm of its row's sum of exponentials, from which backward computes the
probabilities again, block by block. Halves are brought to float32 within a block.

Source: Dao et al., "FlashAttention: Fast and memory-efficient exact attention with IO-awareness", 2022, algorithms 1 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..dtypes import accumulation_dtype

_SCORES = 1 << 18      # scores in a block on a CPU: a megabyte of float32
_SCORES_GPU = 1 << 26
_quiet = np.errstate(all="ignore")


class AttentionKernels:
    """Attention and its gradients.

    query (*, L, E), key (*, S, E) and value (*, S, V) have as many axes each, and leading ones that broadcast, as have the
    following, each of which may be None: bias (floating) and mask (bool, True where a key is seen) broadcast to (*, L, S); kept
    (bool, of that shape) says which probabilities dropout leaves, times `factor`. With `causal` query i sees the keys up to i.
    """

    matmul: Any
    zeros: Any
    empty: Any
    amax: Any
    exp: Any
    log: Any
    where: Any
    sum: Any
    sum_to: Any
    copyto: Any
    arange: Any
    device_type: str

    @_quiet
    def attention(self, query: Any, key: Any, value: Any, bias: Any, mask: Any, kept: Any, factor: float, causal: bool,
                  scale: float) -> tuple:
        """softmax(query @ key^T * scale + bias) @ value, (*, L, V), with zeros for queries that see no key; and the rows'
        logarithms of sums of exponentials, (*, L, 1), inf for those."""
        lead, wide = _lead(query, key, value), accumulation_dtype(query.dtype)
        out = self.empty((*lead, query.shape[-2], value.shape[-1]), query.dtype)
        statistic = self.empty((*lead, query.shape[-2], 1), wide)
        for heads, rows, columns, k, v in self._blocks(lead, query, key, value, causal):
            s = self._scores(_rows(query, heads, rows), k, bias, mask, heads, rows, columns, causal, scale)
            top = self.amax(s, -1, keepdims=True) if s.shape[-1] else self.zeros((*s.shape[:-1], 1), wide)
            top = self.where(top == -math.inf, 0, top)
            s -= top
            self.exp(s, out=s)
            total = self.sum(s, -1, True)
            if kept is not None:
                s *= kept[heads + (rows, columns)]
            y = self.matmul(s, v)
            y *= factor / (total + (total == 0))
            out[heads + (rows,)] = y
            statistic[heads + (rows,)] = self.where(total == 0, math.inf, self.log(total) + top)
        return out, statistic

    @_quiet
    def attention_gradients(self, g: Any, query: Any, key: Any, value: Any, bias: Any, mask: Any, kept: Any, factor: float,
                            causal: bool, scale: float, out: Any, statistic: Any) -> tuple:
        """The gradients for query, key, value and bias."""
        lead, wide = statistic.shape[:-2], statistic.dtype
        gq, gk, gv = (self.zeros(x.shape, wide) for x in (query, key, value))
        gb = None if bias is None else self.zeros(bias.shape, wide)
        for heads, rows, columns, k, v in self._blocks(lead, query, key, value, causal):
            q, gy = _rows(query, heads, rows).astype(wide, copy=False), g[heads + (rows,)].astype(wide, copy=False)
            p = self._scores(q, k, bias, mask, heads, rows, columns, causal, scale)
            p -= statistic[heads + (rows,)]
            self.exp(p, out=p)
            gp = self.matmul(gy, v.swapaxes(-1, -2))
            if kept is None:
                seen = p
            else:
                left = kept[heads + (rows, columns)]
                gp *= left
                gp *= factor
                seen = p * left
                seen *= factor
            self._add(gv, self.matmul(seen.swapaxes(-1, -2), gy), heads, columns)
            gp -= self.sum(gy * out[heads + (rows,)], -1, True)
            gp *= p
            if gb is not None:
                part = gb[_place(gb, heads, rows, columns)]
                part += self.sum_to(gp, part.shape) if gp.shape != part.shape else gp
            gp *= scale
            self._add(gq, self.matmul(gp, k), heads, rows)
            self._add(gk, self.matmul(gp.swapaxes(-1, -2), q), heads, columns)
        return gq, gk, gv, gb

    def _scores(self, q: Any, k: Any, bias: Any, mask: Any, heads: tuple, rows: slice, columns: slice, causal: bool,
                scale: float) -> Any:
        """A block of the scores, -inf where a key is not seen."""
        s = self.matmul(q.astype(k.dtype, copy=False) * scale, k.swapaxes(-1, -2))
        if bias is not None:
            s += bias[_place(bias, heads, rows, columns)]
        if mask is not None:
            self.copyto(s, -math.inf, where=~mask[_place(mask, heads, rows, columns)])
        if causal:
            s = self._hide_later_keys(s, rows)
        return s

    def _hide_later_keys(self, s: Any, rows: slice) -> Any:
        later = s[..., rows.start:]
        if later.shape[-1]:
            hidden = self.arange(later.shape[-1])[None, :] > self.arange(later.shape[-2])[:, None]
            self.copyto(later, -math.inf, where=hidden)
        return s

    def _blocks(self, lead: tuple, query: Any, key: Any, value: Any, causal: bool) -> Iterator[tuple]:
        """Blocks of a limited number of scores: slices of the leading axes, of the queries, of the keys, and the block's part
        of key and value in float32 at least."""
        limit = _SCORES if self.device_type == "cpu" else _SCORES_GPU
        length, keys, wide = query.shape[-2], key.shape[-2], accumulation_dtype(query.dtype)
        step = max(1, min(length, limit // max(keys, 1)))
        for heads in _boxes(lead, max(1, limit // max(length * keys, 1)) if step == length else 1):
            k, v = (_rows(x, heads, slice(None)).astype(wide, copy=False) for x in (key, value))
            for start in range(0, length, step):
                rows = slice(start, min(start + step, length))
                columns = slice(0, min(keys, rows.stop) if causal else keys)
                yield heads, rows, columns, k[..., columns, :], v[..., columns, :]

    def _add(self, total: Any, part: Any, heads: tuple, rows: slice) -> None:
        target = _rows(total, heads, rows)
        target += self.sum_to(part, target.shape) if part.shape != target.shape else part


def _lead(*arrays: Any) -> tuple:
    """The leading axes to which those of the arrays broadcast."""
    return tuple([max(lengths) if 0 not in lengths else 0 for lengths in zip(*[x.shape[:-2] for x in arrays])])


def _boxes(lead: tuple, count: int) -> Iterator[tuple]:
    """Slices of the leading axes that cover them in boxes of at most `count` places."""
    if not lead:
        yield ()
        return
    inside = math.prod(lead[1:])
    if inside <= count:
        step = max(1, count // max(inside, 1))
        for start in range(0, lead[0], step):
            yield (slice(start, start + step), *[slice(None)] * (len(lead) - 1))
        return
    for i in range(lead[0]):
        for rest in _boxes(lead[1:], count):
            yield (slice(i, i + 1), *rest)


def _place(x: Any, heads: tuple, rows: slice, columns: slice) -> tuple:
    """Where an operand that broadcasts to the scores has what it contributes to a block."""
    return tuple([slice(None) if n == 1 else s for n, s in zip(x.shape, (*heads, rows, columns))])


def _rows(x: Any, heads: tuple, rows: slice) -> Any:
    """The part of query, key, value or their gradients that a block reads."""
    return x[tuple([slice(None) if n == 1 else s for n, s in zip(x.shape, heads)]) + (rows,)]
