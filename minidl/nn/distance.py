"""Distances and similarities of pairs of vectors, as layers."""

from __future__ import annotations

from ..tensor.tensor import Tensor
from . import functional as F
from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(Module):
    """The cosine of the angle between vectors; 0, with gradient 0, where one of them is zero.

    Args:
        dim: the axis along which the vectors lie.
        eps: the least length that is divided by.

    Shapes: two tensors (*, D, *) that broadcast against each other, D at `dim`, to (*, *).
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps over the last axis.

    Args:
        p: of the norm.
        eps: keeps the gradient of equal vectors finite.
        keepdim: keep the last axis, of length 1.

    Shapes: two tensors (N, D) or (D,) to (N,) or (), with keepdim to (N, 1) or (1,).
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
