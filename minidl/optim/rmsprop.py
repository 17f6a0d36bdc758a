"""RMSprop: gradients over the root of their mean square."""

from __future__ import annotations

from typing import Any

from .optimizer import Optimizer, check_options, decay


class RMSprop(Optimizer):
    """p <- p - lr * d, where d = g / (sqrt(mean of g^2) + eps), with momentum b <- momentum * b + d in place of d.

    Args:
        lr: learning rate.
        alpha: the share of the means that stays at each step.
        eps: added to the root.
        weight_decay: L2 penalty.
        momentum: the share of b that stays at each step.
        centered: divide by the root of the variance instead, mean of g^2 less the square of the mean of g.
        foreach: accepted for PyTorch's sake; updates are always made over flat arrays.
        maximize: go up instead of down.

    Raises:
        ValueError: for negative options.

    Source: Tieleman and Hinton 2012; centered: Graves 2013.
    """

    def __init__(self, params: Any, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
                 momentum: float = 0, centered: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 master_weights: bool = True):
        check_options("RMSprop", [("lr", lr), ("alpha", alpha), ("eps", eps), ("weight_decay", weight_decay),
                                  ("momentum", momentum)])
        super().__init__(params, dict(lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered,
                                      weight_decay=weight_decay, maximize=maximize), master_weights=master_weights)

    def initial_state(self, group: dict) -> dict[str, float]:
        names = ["square_avg"] + ["momentum_buffer"] * (group["momentum"] > 0) + ["grad_avg"] * bool(group["centered"])
        return dict.fromkeys(names, 0.0)

    def begin(self, group: dict, numbers: dict) -> None:
        numbers["step"] = numbers.get("step", 0) + 1

    def update(self, xp: Any, group: dict, now: None, p: Any, g: Any, state: dict[str, Any]) -> None:
        alpha = group["alpha"]
        g = decay(group, p, g)
        square = state["square_avg"]
        square *= alpha
        square += g * g * (1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            mean *= alpha
            mean += g * (1 - alpha)
            square = xp.maximum(square - mean * mean, 0)  # rounding makes a variance of 0 negative
        d = g / (xp.sqrt(square) + group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"]
            buffer *= group["momentum"]
            buffer += d
            d = buffer
        p -= d * group["lr"]
