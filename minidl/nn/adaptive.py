"""Adaptive softmax: log-probabilities of very many classes, of which the rare ones share small projections."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..tensor.ops.comparison import where
from ..tensor.ops.extrema import argmax
from ..tensor.ops.gathering import gather, index_add, index_select
from ..tensor.ops.joining import cat
from ..tensor.ops.reduction import mean
from ..tensor.ops.splitting import narrow
from ..tensor.tensor import Tensor
from . import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class OutputAndLoss(NamedTuple):
    """The log-probability of each target, (N,) or (), and the mean of their negatives."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Negative log-likelihood over many classes, numbered from the most to the least frequent.

    The head tells the first classes and one cluster for each range of the others; a class of a cluster costs only that
    cluster's own, narrower projection.

    Args:
        n_classes: how many there are.
        cutoffs: where the clusters start, ascending.
        div_value: each cluster's projection is narrower than the one before by this factor.
        head_bias: give the head a bias.

    Shapes: input (N, in_features), target (N,); or (in_features,) and ().

    Raises:
        ValueError: for cutoffs that are not ascending integers in [1, n_classes - 1], or more clusters than features allow.
        RuntimeError: in forward for shapes that do not fit, or a target out of range.

    Source: Grave et al. 2017, "Efficient softmax approximation for GPUs".
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
                 head_bias: bool = False, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        bounds = list(cutoffs)
        if not bounds or any(int(c) != c for c in bounds) or any(a >= b for a, b in pairwise([0, *bounds, n_classes])):
            raise ValueError(f"AdaptiveLogSoftmaxWithLoss expected cutoffs as ascending integers in [1, {n_classes - 1}], for "
                             f"{n_classes} classes, got {bounds}")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*bounds, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = bounds[0]
        self.n_clusters = len(bounds)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            if not width:
                raise ValueError(f"AdaptiveLogSoftmaxWithLoss expected at least one feature for cluster {i + 1}, got "
                                 f"{in_features} / {div_value}^{i + 1}; use fewer cutoffs or a smaller div_value")
            self.tail.append(Sequential(Linear(in_features, width, False, device, dtype),
                                        Linear(width, high - low, False, device, dtype)))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for inner, outer in self.tail:
            inner.reset_parameters()
            outer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> OutputAndLoss:
        rows, target = self._as_batch(input_, target_)
        choice = target
        clusters = []
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            member = (target >= low) & (target < high)
            places, = where(member)
            if places.numel():
                clusters.append((i, places, index_select(target, 0, places) - low))
                choice = where(member, self.shortlist_size + i, choice)
        output = _at(F.log_softmax(self.head(rows), 1), choice)
        for i, places, relative in clusters:
            within = F.log_softmax(self.tail[i](index_select(rows, 0, places)), 1)
            output = index_add(output, 0, places, _at(within, relative))
        loss = -mean(output)
        return OutputAndLoss(output if target_.ndim else output.reshape(()), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, (N, in_features) to (N, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [narrow(head, 1, 0, self.shortlist_size)]
        for i, tail in enumerate(self.tail):
            parts.append(F.log_softmax(tail(input), 1) + narrow(head, 1, self.shortlist_size + i, 1))
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row, (N, in_features) to (N,)."""
        return argmax(self.log_prob(input), 1)

    def _as_batch(self, input: Tensor, target: Tensor) -> Any:
        if target.ndim > 1 or input.ndim != target.ndim + 1 or input.shape[:-1] != target.shape:
            raise RuntimeError(f"AdaptiveLogSoftmaxWithLoss expected input (N, {self.in_features}) and target (N,), or "
                               f"({self.in_features},) and (), got {input.shape} and {target.shape}")
        outside = input.backend.out_of_range(target.array, 0, self.n_classes)
        if outside is not None:
            raise RuntimeError(f"AdaptiveLogSoftmaxWithLoss expected targets in [0, {self.n_classes - 1}], got {outside}")
        return (input, target) if target.ndim else (input.reshape(1, -1), target.reshape(1))


def _at(x: Tensor, columns: Tensor) -> Tensor:
    """The element of each row in a column."""
    return gather(x, 1, columns.reshape(-1, 1)).reshape(-1)
