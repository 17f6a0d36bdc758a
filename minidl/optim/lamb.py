"""LAMB: Adam whose steps are scaled, parameter by parameter, to the size of the parameter."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .optimizer import Optimizer, check_options


class _Now(NamedTuple):
    """m_hat / (sqrt(v_hat) + eps) = size * m / (sqrt(v) + eps), with the corrections of the bias in both numbers."""

    size: float
    eps: float


class LAMB(Optimizer):
    """p <- p - lr * |p| / |d| * d, where d is Adam's step plus weight_decay * p, and |.| the norm of a whole parameter.

    Where a norm is 0, the ratio of the norms (the trust ratio) is 1.

    Args:
        lr: learning rate.
        betas: the shares of the running means of the gradient and of its square that stay at each step.
        eps: added to the root.
        weight_decay: the share of the parameter in d.
        max_trust_ratio: the largest ratio; None sets no bound.
        maximize: go up instead of down.

    Raises:
        ValueError: for options out of range.

    Source: You et al. 2020, algorithm 2 with phi(x) = x.
    """

    elementwise = False

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6,
                 weight_decay: float = 1e-2, *, max_trust_ratio: float | None = None, maximize: bool = False,
                 master_weights: bool = True):
        check_options("LAMB", [("lr", lr), ("eps", eps), ("weight_decay", weight_decay),
                               ("max_trust_ratio", max_trust_ratio or 0)],
                      [("betas[0]", betas[0]), ("betas[1]", betas[1])])
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                      max_trust_ratio=max_trust_ratio, maximize=maximize), master_weights=master_weights)

    def initial_state(self, group: dict) -> dict[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def begin(self, group: dict, numbers: dict) -> _Now:
        numbers["step"] = step = numbers.get("step", 0) + 1
        beta1, beta2 = group["betas"]
        root = math.sqrt(1 - beta2 ** step)
        return _Now(root / (1 - beta1 ** step), group["eps"] * root)

    def update(self, xp: Any, group: dict, now: _Now, p: Any, g: Any, state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean *= beta1
        mean += g * (1 - beta1)
        square *= beta2
        square += g * g * (1 - beta2)
        d = mean * now.size
        d /= xp.sqrt(square) + now.eps
        if group["weight_decay"]:
            d += p * group["weight_decay"]
        length, step_length = norm(xp, p), norm(xp, d)
        usual = (length > 0) & (step_length > 0)
        ratio = xp.where(usual, length, 1) / xp.where(usual, step_length, 1)
        if group["max_trust_ratio"] is not None:
            ratio = xp.minimum(ratio, group["max_trust_ratio"])
        d *= ratio * group["lr"]
        p -= d


def norm(xp: Any, array: Any) -> Any:
    """The Euclidean norm of all elements, which stays on the device."""
    return xp.sqrt((array * array).sum())
