"""Matrix products. Halves are multiplied and accumulated in float32, which BLAS has, block by block.

NumPy multiplies halves in a loop of its own, hundreds of times slower than BLAS multiplies float32.
"""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import HALF, float16, float32
from .attention import AttentionKernels
from .halves import narrow_into, widen_into
from .recurrent import RecurrentKernels

_WHOLE = 1 << 22    # elements of operands and product up to which all of them are brought to float32 at once
_ROWS = 1 << 22     # elements of the float32 scratch for a block of the left operand's rows
_COLUMNS = 1 << 21  # and of that for the right operand's columns
_TALL = 1 << 10     # rows below which BLAS's threads wait for each other more than they work
_INNER = 1 << 12    # longest sum that is done in one product; longer ones are done in pieces


class ProductKernels(AttentionKernels, RecurrentKernels):
    """Products of matrices and of vectors."""

    module: Any
    device_type: str
    widen: Any
    roll: Any
    empty: Any
    zeros: Any
    ascontiguousarray: Any

    def matmul(self, a: Any, b: Any) -> Any:
        """Matrix product with NumPy's broadcasting over leading axes."""
        if a.dtype.itemsize == 2 and a.dtype in HALF:  # the first test spares most the hash of a dtype
            return self._half_product(a, b, None)
        if b.ndim <= 2:  # the method saves np.matmul's 2 us, and one large product is faster than many small ones
            if a.ndim <= 2:
                return a.dot(b)
            return as_matrix(a).dot(b).reshape(a.shape[:-1] + b.shape[1:])
        return self._stacked_product(a, b)

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        """x @ weight.T + bias for a weight matrix; the sum is rounded once."""
        if x.dtype.itemsize == 2 and x.dtype in HALF:
            if bias is None or bias.shape == weight.shape[:1]:
                return self._half_product(x, weight.T, bias)
            return self._half_product(x, weight.T, None) + bias
        y = x.dot(weight.T) if x.ndim == 2 else self.matmul(x, weight.T)
        if bias is not None:
            y += bias
        return y

    def matmul_into(self, out: Any, a: Any, b: Any) -> Any:
        """The product of two matrices, in the array `out` where BLAS can write there."""
        if out.dtype != a.dtype or (a.dtype.itemsize == 2 and a.dtype in HALF) or not out.flags.c_contiguous:
            return self.matmul(a, b)
        return self.module.dot(a, b, out)

    def cross(self, a: Any, b: Any, axis: int) -> Any:
        """Cross product of the vectors of length 3 along an axis."""
        return (self.roll(a, -1, axis) * self.roll(b, -2, axis)) - (self.roll(a, -2, axis) * self.roll(b, -1, axis))

    def inverse(self, x: Any) -> Any:
        """Inverses of square matrices."""
        return self.module.linalg.inv(x)

    def _stacked_product(self, a: Any, b: Any) -> Any:
        return self.module.matmul(self._for_blas(a), self._for_blas(b))

    def _for_blas(self, x: Any) -> Any:
        """x, or a copy where its matrices' strides are none that BLAS takes: NumPy before 2.3 loops over those itself."""
        return x if x.ndim < 2 or x.itemsize in x.strides[-2:] else self.ascontiguousarray(x)

    # Halves

    def _half_product(self, a: Any, b: Any, bias: Any) -> Any:
        """matmul of halves, plus bias along the last axis if there is one."""
        if self.device_type != "cpu":
            return self._half_product_on_gpu(a, b, bias)
        rows = a[None] if a.ndim == 1 else a
        columns = b[:, None] if b.ndim == 1 else b
        if columns.ndim == 2 and rows.ndim > 2:
            rows = as_matrix(rows)
        lead = _common_lead(rows.shape[:-2], columns.shape[:-2])
        out = self.empty((*lead, rows.shape[-2], columns.shape[-1]), a.dtype)
        if out.size:
            self._half_into(out, rows, columns, bias)
        lead = lead if b.ndim > 2 else a.shape[:-2]
        return out.reshape(lead + a.shape[-2:-1] + (b.shape[-1:] if b.ndim > 1 else ()))

    def _half_into(self, out: Any, a: Any, b: Any, bias: Any) -> None:
        """out[...] = a @ b + bias with scratch of a limited size."""
        m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
        total = math.prod(out.shape[:-2]) * (m * k + k * n + m * n)
        if total <= _WHOLE:
            y = self.module.matmul(self._wide(a), self._wide(b))
            if bias is not None:
                y += bias
            narrow_into(out, y)
        elif out.ndim == 2:
            self._half_by_blocks(out, a, b, bias)
        else:
            step = max(1, len(out) * _WHOLE // total)
            for start in range(0, len(out), step):
                part = start if step == 1 else slice(start, start + step)
                self._half_into(out[part], _part(a, part, out.ndim), _part(b, part, out.ndim), bias)

    def _half_by_blocks(self, out: Any, a: Any, b: Any, bias: Any) -> None:
        """A block of a's rows is brought to float32 once, b's columns once for each of them. A sum longer than _INNER is done
        in pieces, for which both are brought to float32 again for each block of the result."""
        (m, n), inner = out.shape, a.shape[1]
        depth = max(1, min(inner, _INNER))
        height = min(m, max(_ROWS // depth, _TALL), 4 * _TALL)
        width = min(n, max(_COLUMNS // max(depth, height), _TALL // 2))
        if inner > depth:
            height, width = min(m, _TALL), min(n, _TALL)
            depth = min(inner, _COLUMNS // max(height, width))
        rows, columns = self.empty(depth * height, float32), self.empty(depth * width, float32)
        product, more = self.empty(height * width, float32), self.empty(height * width if inner > depth else 0, float32)
        for i in range(0, m, height):
            left = a[i:i + height]
            block = _fill(rows, left) if inner <= depth else None
            for j in range(0, n, width):
                right = b[:, j:j + width]
                y = product[:left.shape[0] * right.shape[1]].reshape(left.shape[0], right.shape[1])
                if block is not None:
                    self.module.dot(block, _fill(columns, right), y)
                else:
                    self._sum_of_products(y, left, right, depth, rows, columns, more)
                if bias is not None:
                    y += bias[j:j + width]
                narrow_into(out[i:i + height, j:j + width], y)

    def _sum_of_products(self, y: Any, left: Any, right: Any, depth: int, rows: Any, columns: Any, more: Any) -> None:
        piece = more[:y.size].reshape(y.shape)
        for start in range(0, left.shape[1], depth):
            part = slice(start, start + depth)
            self.module.dot(_fill(rows, left[:, part]), _fill(columns, right[part]), piece if start else y)
            if start:
                y += piece

    def _half_product_on_gpu(self, a: Any, b: Any, bias: Any) -> Any:
        """cuBLAS accumulates products of float16 in float32 itself; bfloat16 is brought to float32 first."""
        if a.dtype == float16:
            y = self._stacked_product(a, b)
            return y if bias is None else (y.astype(float32) + bias).astype(a.dtype)
        y = self._stacked_product(self.widen(a), self.widen(b))
        return (y if bias is None else y + self.widen(bias)).astype(a.dtype)

    def _wide(self, x: Any) -> Any:
        """A float32 copy with axes in the same order in memory."""
        return _fill(self.empty(x.size, float32), x)


def as_matrix(x: Any) -> Any:
    """All axes but the last as one."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _fill(scratch: Any, x: Any) -> Any:
    """x in float32 at the beginning of scratch, with its last two axes in the same order in memory as x's."""
    turned = x.strides[-2] < x.strides[-1]
    source = x.swapaxes(-1, -2) if turned else x
    target = scratch[:x.size].reshape(source.shape)
    widen_into(target, source)
    return target.swapaxes(-1, -2) if turned else target


def _part(x: Any, part: Any, ndim: int) -> Any:
    """What an operand that broadcasts to ndim axes contributes to a part of the first of them."""
    if x.ndim < ndim:
        return x
    if x.shape[0] == 1:
        return x[0] if isinstance(part, int) else x
    return x[part]


def _common_lead(a: tuple, b: tuple) -> tuple:
    """The shape to which two leading shapes broadcast."""
    if a == b:
        return a
    size = max(len(a), len(b))
    pairs = zip((1,) * (size - len(a)) + a, (1,) * (size - len(b)) + b)
    return tuple([y if x == 1 else x for x, y in pairs])
