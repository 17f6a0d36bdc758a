"""Adadelta: steps in the parameter's own units, from the means of squared gradients and of squared steps."""

from __future__ import annotations

from typing import Any

from .optimizer import Optimizer, check_options, decay


class Adadelta(Optimizer):
    """p <- p - lr * d, where d = g * sqrt(mean of d^2 so far + eps) / sqrt(mean of g^2 + eps).

    Args:
        lr: learning rate.
        rho: the share of both means that stays at each step.
        eps: added to both means.
        weight_decay: L2 penalty.
        foreach: accepted for PyTorch's sake; updates are always made over flat arrays.
        maximize: go up instead of down.

    Raises:
        ValueError: for options out of range.

    Source: Zeiler 2012.
    """

    def __init__(self, params: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
                 foreach: bool | None = None, *, maximize: bool = False, master_weights: bool = True):
        check_options("Adadelta", [("lr", lr), ("eps", eps), ("weight_decay", weight_decay)])
        if not 0 <= rho <= 1:
            raise ValueError(f"Adadelta expected rho in [0, 1], got {rho}")
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize),
                         master_weights=master_weights)

    def initial_state(self, group: dict) -> dict[str, float]:
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def begin(self, group: dict, numbers: dict) -> None:
        numbers["step"] = numbers.get("step", 0) + 1

    def update(self, xp: Any, group: dict, now: None, p: Any, g: Any, state: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        square, steps = state["square_avg"], state["acc_delta"]
        g = decay(group, p, g)
        square *= rho
        square += g * g * (1 - rho)
        d = xp.sqrt(steps + eps)
        d /= xp.sqrt(square + eps)
        d *= g
        steps *= rho
        steps += d * d * (1 - rho)
        p -= d * group["lr"]
