"""Cumulative forms along an axis: sums, products, extrema and linear recurrences.

What array modules have no scan for is done by doubling: log2(n) passes over the array instead of a loop over the axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import accumulation_dtype

_quiet = np.errstate(all="ignore")


class ScanKernels:
    """Scans along an axis, from its start or, with `reverse`, from its end."""

    module: Any
    flip: Any
    moveaxis: Any
    full: Any
    arange: Any
    where: Any
    maximum: Any
    minimum: Any
    logaddexp: Any
    empty_like: Any
    ties: Any

    def running_sum(self, x: Any, axis: int, reverse: bool = False) -> Any:
        """Sums up to each place, in x's dtype; halves are accumulated in float32."""
        return self._accumulate(self.module.cumsum, x, axis, reverse)

    def running_product(self, x: Any, axis: int, reverse: bool = False) -> Any:
        """Products up to each place, in x's dtype; halves are accumulated in float32."""
        return self._accumulate(self.module.cumprod, x, axis, reverse)

    @_quiet
    def _accumulate(self, function: Callable, x: Any, axis: int, reverse: bool) -> Any:
        x = self.flip(x, axis) if reverse else x
        y = function(x, axis, dtype=accumulation_dtype(x.dtype)).astype(x.dtype, copy=False)
        return self.flip(y, axis) if reverse else y

    def running_extremum(self, x: Any, axis: int, largest: bool) -> tuple:
        """The extrema up to each place and the latest places they were found at; a nan stays."""
        values = self.scan(self.maximum if largest else self.minimum, x, axis)
        places = self.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        return values, self.scan(self.maximum, self.where(self.ties(x, values), places, 0), axis)

    @_quiet
    def running_logsumexp(self, x: Any, axis: int) -> Any:
        """log of the sum of exp(x) up to each place."""
        return self.scan(self.logaddexp, x, axis)

    def scan(self, combine: Callable, x: Any, axis: int) -> Any:
        """`combine` of all elements up to each place. (On the CPU combine.accumulate does the same.)"""
        y = self.moveaxis(x, axis, -1).copy()
        step = 1
        while step < y.shape[-1]:
            y[..., step:] = combine(y[..., :-step], y[..., step:])
            step *= 2
        return self.moveaxis(y, -1, axis)

    @_quiet
    def linear_scan(self, a: Any, b: Any, axis: int, reverse: bool = False) -> Any:
        """The recurrence s[i] = a[i] * s[i-1] + b[i] with s[-1] = 0; with `reverse` s[i] = a[i] * s[i+1] + b[i].

        Source: Blelloch, "Prefix sums and their applications", 1990, section 1.4.
        """
        if reverse:
            return self.flip(self.linear_scan(self.flip(a, axis), self.flip(b, axis), axis), axis)
        a, s = self.moveaxis(a, axis, -1).copy(), self.moveaxis(b, axis, -1).copy()
        step = 1
        while step < s.shape[-1]:
            s[..., step:] += a[..., step:] * s[..., :-step]
            a[..., step:] = a[..., step:] * a[..., :-step]
            step *= 2
        return self.moveaxis(s, -1, axis)

    def shift(self, x: Any, axis: int, by: int, fill: float) -> Any:
        """x moved one place along an axis, forward (by=1) or back (by=-1); `fill` takes the free place."""
        y = self.empty_like(x)
        out, source = self.moveaxis(y, axis, -1), self.moveaxis(x, axis, -1)
        if by == 1:
            out[..., 1:], out[..., :1] = source[..., :-1], fill
        else:
            out[..., :-1], out[..., -1:] = source[..., 1:], fill
        return y
