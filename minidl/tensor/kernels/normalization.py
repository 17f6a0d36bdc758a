"""Normalization over axes with float32 statistics, and local response normalization's window sums."""

from __future__ import annotations

import math
from typing import Any


class NormalizationKernels:
    """Normalization over axes, and its gradients, from the input and one statistic per row.

    In all of them `axes` are the axes over which statistics are taken; weight and bias broadcast against x.
    """

    sum: Any
    sqrt: Any
    sum_to: Any
    zeros: Any

    def normalize(self, x: Any, weight: Any, bias: Any, axes: tuple, eps: float) -> tuple:
        """(x - mean) / sqrt(variance + eps) * weight + bias; returns it with mean, 1/sqrt(variance + eps), variance."""
        count = max(math.prod(x.shape[a] for a in axes), 1)
        mean = self.sum(x, axes, True) / count
        centred = x - mean
        variance = self.sum(centred * centred, axes, True) / count
        rstd = 1 / self.sqrt(variance + eps)
        return self.scale_and_shift(centred, rstd, weight, bias, axes), mean, rstd, variance

    def normalize_gradients(self, g: Any, x: Any, weight: Any, mean: Any, rstd: Any, axes: tuple) -> tuple:
        """The gradients of normalize for x, weight and bias (the latter None without a weight)."""
        count = max(math.prod(x.shape[a] for a in axes), 1)
        hat = x - mean
        hat *= rstd
        product = g * hat
        weight_gradient = None if weight is None else self.sum_to(product, weight.shape)
        if weight is None or is_constant(weight, axes):
            inner, scale = g, rstd if weight is None else rstd * weight
        else:
            inner, scale = g * weight, rstd
            product *= weight
        total = self.sum(inner, axes, True)
        hat *= self.sum(product, axes, True) / -count
        hat += inner
        hat -= total / count
        hat *= scale
        return hat, weight_gradient

    def rms_normalize(self, x: Any, weight: Any, axes: tuple, eps: float) -> tuple:
        """x / sqrt(mean of x^2 + eps) * weight; returns it with 1/sqrt(mean of x^2 + eps)."""
        count = max(math.prod(x.shape[a] for a in axes), 1)
        rstd = 1 / self.sqrt(self.sum(x * x, axes, True) / count + eps)
        return self.scale_and_shift(x, rstd, weight, None, axes), rstd

    def rms_normalize_gradients(self, g: Any, x: Any, weight: Any, rstd: Any, axes: tuple) -> tuple:
        """The gradients of rms_normalize for x and weight."""
        count = max(math.prod(x.shape[a] for a in axes), 1)
        hat = x * rstd
        product = g * hat
        weight_gradient = None if weight is None else self.sum_to(product, weight.shape)
        inner = g
        if weight is not None:
            inner = g * weight
            product *= weight
        hat *= self.sum(product, axes, True) / -count
        hat += inner
        hat *= rstd
        return hat, weight_gradient

    def scale_and_shift(self, x: Any, scale: Any, weight: Any, bias: Any, axes: tuple) -> Any:
        """x * scale * weight + bias; the smaller of the arrays are multiplied first."""
        if weight is not None and is_constant(weight, axes):
            scale, weight = scale * weight, None
        y = x * scale
        if weight is not None:
            y *= weight
        if bias is not None:
            y += bias
        return y

    def window_sum(self, x: Any, before: int, after: int) -> Any:
        """Sums along axis 1 over windows that reach from `before` places ahead of each place to `after` behind it."""
        length = x.shape[1]
        out = x.copy()
        for shift in range(1, min(before, length - 1) + 1):
            out[:, shift:] += x[:, :-shift]
        for shift in range(1, min(after, length - 1) + 1):
            out[:, :-shift] += x[:, shift:]
        return out


def is_constant(weight: Any, axes: tuple) -> bool:
    """True for a weight that does not vary along the axes over which statistics are taken."""
    return all(weight.shape[a] == 1 for a in axes)
