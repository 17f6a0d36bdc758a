"""Casts between float16 and float32 on a CPU by integer arithmetic, a block at a time.

NumPy's own cast to float16 raises floating-point flags for every inexact subnormal result, at about 100 ns each, which
small gradients are full of; its cast from float16 takes twice the time of the one here. Other dtypes are left to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_BLOCK = 1 << 15    # elements, so that a block's scratch stays in the second-level cache
_FEW = 1 << 13       # below so many elements NumPy's single call is faster
_SIGN_AND_DIGITS = np.int32(-0x70000001)     # all bits but those between sign and exponent of a shifted half
_SHIFT = np.float32(2.0 ** 112)              # between the exponent biases of float32 (127) and float16 (15)
_ROUND = np.int32(0xFFF - (112 << 23))       # half a last place less one bit, and the biases' difference
_HALF_BITS = np.int32(0x3F000000)            # 0.5 in float32, whose last place is float16's smallest number
_FIRST_NORMAL = np.int32(1 << 10)
_INFINITY = np.int32(0x7C00)
_ROUNDS_TO_INFINITY = 0x477FF000             # 65520 in float32
_NAN = 0x7F800000


def widen_into(out: Any, half: Any) -> None:
    """out[...] = half, where out is float32 and half of one of the half dtypes."""
    if half.dtype != np.float16 or half.size < _FEW:
        out[...] = half
        return
    for target, source in _blocks(out, half):
        signed = source.view(np.int16)
        if signed.max() >= 0x7C00 or signed.view(np.uint16).max() >= 0xFC00:  # infinities or nans
            target[...] = source
            continue
        bits = target.view(np.int32)
        np.left_shift(signed, 13, out=bits, dtype=np.int32)
        np.bitwise_and(bits, _SIGN_AND_DIGITS, out=bits)
        np.multiply(target, _SHIFT, out=target)


def narrow_into(out: Any, x: Any) -> None:
    """out[...] = x rounded to nearest even, where out is of one of the half dtypes and x float32; what is too large becomes
    infinite."""
    if out.dtype != np.float16 or x.dtype != np.float32 or x.size < _FEW:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            out[...] = x
        return
    for target, source in _blocks(out, x):
        _narrow_block(target, source)


def _narrow_block(out: Any, x: Any) -> None:
    """Both formulas below hold for all magnitudes in their own range and are on the right side of the other's outside it."""
    bits = x.view(np.int32)
    size = np.bitwise_and(bits, 0x7FFFFFFF)
    largest = size.max()
    if largest > _NAN:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            out[...] = x
        return
    y = np.right_shift(size, 13)  # normal numbers: add half a last place (to even), cut, change the bias
    y &= 1
    y += size
    y += _ROUND
    y >>= 13
    small = size.view(np.float32)  # subnormal ones: adding 0.5 rounds to its last place
    small += np.float32(0.5)
    size -= _HALF_BITS
    np.minimum(size, _FIRST_NORMAL, out=size)
    np.maximum(y, size, out=y)
    if largest >= _ROUNDS_TO_INFINITY:
        np.minimum(y, _INFINITY, out=y)
    sign = np.right_shift(bits, 16, out=size)
    sign &= 0x8000
    y |= sign
    out.view(np.uint16)[...] = y


def _blocks(a: Any, b: Any) -> Any:
    """Pairs of pieces of two arrays of one shape, cut along the first axis that is long enough."""
    if a.flags.c_contiguous and b.flags.c_contiguous:
        a, b = a.reshape(-1), b.reshape(-1)
    each = a.size // len(a)
    if each > _BLOCK:
        for left, right in zip(a, b):
            yield from _blocks(left, right)
        return
    step = _BLOCK // each
    for start in range(0, len(a), step):
        yield a[start:start + step], b[start:start + step]
