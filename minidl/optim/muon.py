"""Muon: momentum whose matrix is made orthogonal."""

from __future__ import annotations

import math
from typing import Any

from ..tensor.tensor import Tensor
from .lamb import norm
from .optimizer import Optimizer, check_options

RATES = (None, "original", "match_rms_adamw")


class Muon(Optimizer):
    """Steps along the nearest orthogonal matrix to the momentum, for matrices of hidden layers.

    Other parameters (biases, normalization, embeddings, the output layer) belong to an optimizer such as AdamW.

    Args:
        lr: learning rate.
        weight_decay: parameters shrink by lr * weight_decay at each step.
        momentum: the share of the mean of the gradients that stays at each step.
        nesterov: blend the gradient into the mean once more before it is used.
        ns_coefficients: (a, b, c) of Newton and Schulz's step X <- a X + (b X X^T + c (X X^T)^2) X.
        eps: the least norm by which the momentum is divided.
        ns_steps: how many such steps are done; below 100. Singular values end between about 0.7 and 1.2.
        adjust_lr_fn: for a parameter of shape (A, B), "original" (as None) multiplies lr by sqrt(max(1, A / B));
            "match_rms_adamw" multiplies it by 0.2 * sqrt(max(A, B)), which suits learning rates and decays tuned for AdamW.

    Newton and Schulz's steps are done in float32, or float64 for such parameters, where PyTorch rounds them to bfloat16.

    Raises:
        ValueError: for parameters that are no matrices and options out of range.

    Source: Jordan et al. 2024 (kellerjordan.github.io/posts/muon); match_rms_adamw: Liu et al. 2025, arXiv 2502.16982.
    """

    elementwise = False

    def __init__(self, params: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
                 nesterov: bool = True, ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
                 eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None, *, master_weights: bool = True):
        check_options("Muon", [("lr", lr), ("weight_decay", weight_decay), ("momentum", momentum)])
        if adjust_lr_fn not in RATES:
            raise ValueError(f"Muon expected adjust_lr_fn among {RATES}, got {adjust_lr_fn!r}")
        if len(ns_coefficients) != 3:
            raise ValueError(f"Muon expected three ns_coefficients, got {ns_coefficients}")
        if not 0 <= ns_steps < 100:
            raise ValueError(f"Muon expected ns_steps in [0, 100), got {ns_steps}")
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
                                      ns_coefficients=ns_coefficients, eps=eps, ns_steps=ns_steps,
                                      adjust_lr_fn=adjust_lr_fn), master_weights=master_weights)

    def check_parameter(self, p: Tensor) -> None:
        if p.ndim != 2:
            raise ValueError(f"Muon expected matrices as parameters, got one of shape {p.shape}; give it to AdamW or SGD")

    def initial_state(self, group: dict) -> dict[str, float]:
        return {"momentum_buffer": 0.0}

    def update(self, xp: Any, group: dict, now: None, p: Any, g: Any, state: dict[str, Any]) -> None:
        momentum, buffer = group["momentum"], state["momentum_buffer"]
        buffer *= momentum
        buffer += g * (1 - momentum)
        g = g * (1 - momentum) + buffer * momentum if group["nesterov"] else buffer
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            adjusted = 0.2 * math.sqrt(max(rows, columns))
        else:
            adjusted = math.sqrt(max(1, rows / max(1, columns)))
        p *= 1 - group["lr"] * group["weight_decay"]
        p -= orthogonalize(xp, g, group) * (group["lr"] * adjusted)


def orthogonalize(xp: Any, matrix: Any, group: dict) -> Any:
    """A matrix of the same singular vectors whose singular values are near 1."""
    a, b, c = group["ns_coefficients"]
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / xp.maximum(norm(xp, matrix), group["eps"])
    for _ in range(group["ns_steps"]):
        gram = xp.matmul(x, x.T)
        x = a * x + xp.matmul(b * gram + c * xp.matmul(gram, gram), x)
    return x.T if tall else x
