"""Sums, means and moments, softmax, and how a gradient comes back from an extremum. Halves are accumulated in float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import HALF, accumulation_dtype, float32
from .order import OrderKernels
from .scan import ScanKernels

_BLOCK = 1 << 15  # elements that stay in the cache between two passes
_quiet = np.errstate(all="ignore")  # overflow to inf and 0 / 0 are values here, as in PyTorch


class ReductionKernels(ScanKernels, OrderKernels):
    """Reductions with a wide accumulator."""

    module: Any
    asarray: Any
    amax: Any
    exp: Any
    log: Any
    where: Any
    widen: Any
    index_add: Any
    isfinite: Any
    device_type: str

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Sum over an axis, several axes or all of them, in x's dtype; halves are accumulated in float32."""
        dtype = x.dtype
        if dtype.itemsize == 2 and dtype in HALF:
            return narrowed(self.module.add.reduce(x, axis=axis, dtype=float32, keepdims=keepdims), dtype)
        return self.module.add.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Mean over an axis, several axes or all of them, in x's dtype; halves are accumulated in float32."""
        total = self.module.add.reduce(x, axis=axis, dtype=accumulation_dtype(x.dtype), keepdims=keepdims)
        count = x.size // max(total.size, 1)
        return narrowed(total / count if count else total * float("nan"), x.dtype)

    def sum_to(self, g: Any, shape: tuple) -> Any:
        """The gradient of broadcasting `shape` to g's shape: g summed over the axes that were broadcast."""
        lead = g.ndim - len(shape)
        if g.shape[lead:] == shape:
            return self.sum(g, 0 if lead == 1 else tuple(range(lead)))
        axes = tuple(range(lead)) + tuple(
            i for i, (have, want) in enumerate(zip(g.shape[lead:], shape), lead) if want == 1 and have != 1)
        return self.sum(g, axes, True).reshape(shape)

    def divide_by_count(self, g: Any, count: int) -> Any:
        """g / count, in float32 for halves: a count may be larger than they can hold."""
        return narrowed(self.widen(g) / count, g.dtype)

    @_quiet
    def variance(self, x: Any, axis: tuple, correction: float, keepdims: bool) -> Any:
        """Sum of squared distances from the mean over (count - correction); inf or nan where that is not positive."""
        centred = x - self.mean(x, axis, True)
        total = self.sum(centred * centred, axis, keepdims)
        count = math.prod([x.shape[a] for a in axis]) - correction
        return total / count if count > 0 else total * float("inf")

    @_quiet
    def divide_or_zero(self, a: Any, b: Any) -> Any:
        """a / b, and 0 where b is 0."""
        zero = b == 0
        return self.where(zero, 0, a / (b + zero))

    def signed_power(self, x: Any, exponent: float) -> Any:
        """sign(x) * |x|^exponent, and 0 at 0."""
        return self.module.sign(x) * self.absolute_power(x, exponent)

    @_quiet
    def absolute_power(self, x: Any, exponent: float) -> Any:
        """|x|^exponent, and 0 at 0 for negative exponents."""
        y = self.module.abs(x)
        if exponent == 1:
            return y
        if exponent >= 0:
            return y ** exponent
        return self.where(y == 0, 0, y ** exponent)

    @_quiet
    def power_norm(self, x: Any, ord: float, axis: tuple, keepdims: bool) -> Any:
        """(sum of |x|^ord)^(1 / ord)."""
        return self.sum(self.module.abs(x) ** ord, axis, keepdims) ** (1 / ord)

    @_quiet
    def euclidean(self, a: Any, b: Any) -> Any:
        """Distances of the rows of a (*, P, M) and b (*, R, M) by one matrix product, shape (*, P, R)."""
        product = self.module.matmul(a, b.swapaxes(-1, -2))
        product *= -2
        product += self.sum(a * a, -1, True)
        product += self.sum(b * b, -1, True).swapaxes(-1, -2)
        return self.module.sqrt(self.module.maximum(product, 0))

    def pick_rows(self, x: Any, rows: Any) -> Any:
        """x[rows]."""
        return x[rows]

    def put_rows(self, g: Any, rows: Any, shape: tuple) -> Any:
        """The gradient of pick_rows: zeros of the given shape with g added at rows."""
        return self.index_add(shape, rows, g)

    def svd(self, x: Any) -> tuple:
        """u, s, vh of the matrices in the last two axes, thin."""
        u, s, vh = self.module.linalg.svd(x, full_matrices=False)
        return u, s, vh

    def diagonal_matrix(self, x: Any) -> Any:
        """Square matrices with the last axis of x on their diagonals."""
        return x[..., None] * self.module.eye(x.shape[-1], dtype=x.dtype)

    # Exponentials

    def row_max(self, x: Any, axis: Any) -> Any:
        """The largest element, by which exponents are shifted; 0 where an infinity would give inf - inf."""
        top = self.amax(x, axis, keepdims=True)
        return self.where(top == -math.inf, 0, top)

    @_quiet
    def softmax(self, x: Any, axis: Any) -> Any:
        """exp(x) over its sum along an axis; zeros where all of x is -inf."""
        if x.size == 0:
            return x.copy()
        y = self.asarray(x - self.row_max(x, axis))
        self.exp(y, out=y)
        total = self.sum(y, axis, True)
        y /= total + (total == 0)
        return y

    @_quiet
    def log_softmax(self, x: Any, axis: Any) -> Any:
        """x - log(sum of exp(x)) along an axis; -inf where all of x is -inf."""
        if x.size == 0:
            return x.copy()
        y = self.asarray(x - self.row_max(x, axis))
        total = self.sum(self.exp(y), axis, True)
        y -= self.log(total + (total == 0))
        return y

    @_quiet
    def logsumexp(self, x: Any, axis: Any, keepdims: bool) -> Any:
        """log of the sum of exp(x) over axes."""
        if x.size == 0:
            return self.log(self.sum(x, axis, keepdims))
        top = self.amax(x, axis, keepdims=True)
        top = self.where(abs(top) == math.inf, 0, top)
        total = self.log(self.sum(self.exp(x - top), axis, True)) + top
        return total if keepdims else total.reshape([n for i, n in enumerate(x.shape) if i not in axis])

    @_quiet
    def exp_difference(self, a: Any, b: Any) -> Any:
        """exp(a - b), and 0 where both are -inf."""
        return self.exp(a - self.where(b == -math.inf, 0, b))

    def scale_and_check(self, x: Any, factor: float) -> bool:
        """Multiply by a number in place; are all values finite before and after?"""
        pieces = [x]
        if self.device_type == "cpu" and x.flags.c_contiguous:
            flat = x.reshape(-1)
            pieces = [flat[i:i + _BLOCK] for i in range(0, flat.size, _BLOCK)]
        finite = True
        for piece in pieces:
            if factor != 1:
                piece *= factor
            finite = finite and bool(self.isfinite(piece).all())
        return finite

    # Extrema

    def ties(self, x: Any, y: Any) -> Any:
        """True where x is y, a nan counting as equal to a nan."""
        return (x == y) | ((x != x) & (y != y))

    def share(self, g: Any, mask: Any, axis: tuple) -> Any:
        """g (axes kept with length 1) divided evenly over the True places of mask along the axes; 0 elsewhere."""
        count = self.module.add.reduce(mask, axis=axis, dtype=accumulation_dtype(g.dtype), keepdims=True)
        return self.where(mask, narrowed(self.widen(g) / count, g.dtype), 0)


@_quiet
def narrowed(x: Any, dtype: Any) -> Any:
    """An array or a scalar in another dtype, what it cannot hold as inf; itself where it has that dtype."""
    return x if x.dtype == dtype else x.astype(dtype)
