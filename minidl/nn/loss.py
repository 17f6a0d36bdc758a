"""Losses as layers. What they compute, and the shapes, stand at the functions in minidl.nn.functional.

Arguments that they share: `reduction`, "mean", "sum" or "none"; `weight`, factors that are kept as a buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor.tensor import Tensor
from . import functional as F
from .distance import PairwiseDistance
from .module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction


class _WeightedLoss(_Loss):
    weight: Any

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


# Of numbers

class L1Loss(_Loss):
    """The absolute error |input - target|."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, self.reduction)


class MSELoss(_Loss):
    """The squared error (input - target)^2."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, self.reduction)


class SmoothL1Loss(_Loss):
    """0.5 d^2 / beta where |d| < beta, else |d| - 0.5 beta, with d = input - target."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, self.reduction, self.beta)


class HuberLoss(_Loss):
    """0.5 d^2 where |d| < delta, else delta (|d| - 0.5 delta), with d = input - target."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        if not isinstance(delta, (int, float)):
            raise TypeError(f"HuberLoss expected delta as a number, got {delta!r}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, self.reduction, self.delta)


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood under Poisson distributions of rate exp(input), or input with log_input=False.

    Args:
        full: add Stirling's approximation of log(target!).
        eps: keeps log(input) finite.
    """

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(log_input, target, self.log_input, self.full, self.eps, self.reduction)


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood under normal distributions of mean `input` and variance `var`.

    Args:
        full: add the constant 0.5 log(2 pi).
        eps: smaller variances count as this.
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


# Of distributions and classes

class KLDivLoss(_Loss):
    """Kullback-Leibler divergence target * (log(target) - input), where input holds log-probabilities.

    Args:
        reduction: also "batchmean", the sum divided by the length of the first axis.
        log_target: target holds log-probabilities too.
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, self.reduction, self.log_target)


class CrossEntropyLoss(_WeightedLoss):
    """Cross-entropy between softmax(input) and classes given by index or by probability.

    Args:
        weight: a factor for each class.
        ignore_index: a class index that counts for nothing.
        label_smoothing: share of the target that is spread evenly over the classes, in [0, 1].
    """

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(_WeightedLoss):
    """Negative log-likelihood -input[target], for log-probabilities and class indices.

    Args:
        weight: a factor for each class.
        ignore_index: a class index that counts for nothing.
    """

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class BCELoss(_WeightedLoss):
    """-(target log(input) + (1 - target) log(1 - input)), for probabilities.

    Args:
        weight: factors that broadcast against the losses.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """BCELoss of sigmoid(input), in a form that cannot overflow.

    Args:
        weight: factors that broadcast against the losses.
        pos_weight: factors of the positive targets, that broadcast against them; a buffer too.
    """

    pos_weight: Any

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(input, target, self.weight, self.reduction, self.pos_weight)


class CTCLoss(_Loss):
    """-log of the probability that frames spell targets, repeated classes merged and blanks dropped.

    Args:
        blank: index of the blank class.
        zero_infinity: targets that do not fit into their frames give loss and gradient 0.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)


# With a margin

class SoftMarginLoss(_Loss):
    """log(1 + exp(-target input)), with targets 1 and -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Sum over the wrong classes of max(0, margin - input[target] + input)^p, divided by the number of classes.

    Args:
        p: 1 or 2.
        weight: a factor for each target class.

    Raises:
        ValueError: for another p, or a weight that is no vector.
    """

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss expected p to be 1 or 2, got {p}")
        if weight is not None and weight.ndim != 1:
            raise ValueError(f"MultiMarginLoss expected a weight of one axis, got shape {weight.shape}")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Sum over the target classes and the others of max(0, 1 - (input[target] - input[other])), over the classes."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross-entropy of the logits of each class, averaged over the classes.

    Args:
        weight: factors that broadcast against the losses.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


class _MarginLoss(_Loss):
    def __init__(self, margin: float, reduction: str) -> None:
        super().__init__(reduction)
        self.margin = margin


class HingeEmbeddingLoss(_MarginLoss):
    """input where target is 1, max(0, margin - input) where it is -1."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, self.margin, self.reduction)


class MarginRankingLoss(_MarginLoss):
    """max(0, -target (input1 - input2) + margin): target 1 asks for a larger input1, -1 for a larger input2."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cosine similarity where target is 1, max(0, similarity - margin) where it is -1."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class _TripletLoss(_MarginLoss):
    def __init__(self, margin: float, swap: bool, reduction: str) -> None:
        super().__init__(margin, reduction)
        if margin <= 0:
            raise ValueError(f"{type(self).__name__} expected margin > 0, got {margin}")
        self.swap = swap


class TripletMarginLoss(_TripletLoss):
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin), with the p-norm of differences.

    Args:
        p, eps: of PairwiseDistance.
        swap: use the distance from positive to negative where it is smaller than that from the anchor.

    Raises:
        ValueError: for a margin that is not positive.
    """

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 reduction: str = "mean") -> None:
        super().__init__(margin, swap, reduction)
        self.p = p
        self.eps = eps

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap, self.reduction)


class TripletMarginWithDistanceLoss(_TripletLoss):
    """TripletMarginLoss with a distance of one's own.

    Args:
        distance_function: of two tensors; by default PairwiseDistance(). A Module is a sub-module.
        swap: use the distance from positive to negative where it is smaller than that from the anchor.

    Raises:
        ValueError: for a margin that is not positive.
    """

    def __init__(self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
                 swap: bool = False, reduction: str = "mean") -> None:
        super().__init__(margin, swap, reduction)
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=self.distance_function,
                                                   margin=self.margin, swap=self.swap, reduction=self.reduction)
