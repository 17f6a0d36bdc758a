"""Adagrad: each element's learning rate falls with the sum of its squared gradients."""

from __future__ import annotations

from typing import Any

from .optimizer import Optimizer, check_options, decay


class Adagrad(Optimizer):
    """p <- p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(sum of g^2) + eps), where t counts steps from 1.

    Args:
        lr: learning rate.
        lr_decay: how fast the learning rate falls besides.
        weight_decay: L2 penalty.
        initial_accumulator_value: with which the sum starts.
        eps: added to the root.
        foreach, fused: accepted for PyTorch's sake; updates are always made over flat arrays.
        maximize: go up instead of down.

    Raises:
        ValueError: for negative options.

    Source: Duchi, Hazan and Singer 2011.
    """

    def __init__(self, params: Any, lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
                 maximize: bool = False, fused: bool | None = None, master_weights: bool = True):
        check_options("Adagrad", [("lr", lr), ("lr_decay", lr_decay), ("weight_decay", weight_decay), ("eps", eps),
                                  ("initial_accumulator_value", initial_accumulator_value)])
        super().__init__(params, dict(lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay, maximize=maximize,
                                      initial_accumulator_value=initial_accumulator_value), master_weights=master_weights)

    def initial_state(self, group: dict) -> dict[str, float]:
        return {"sum": group["initial_accumulator_value"]}

    def begin(self, group: dict, numbers: dict) -> float:
        """The learning rate of this step."""
        numbers["step"] = step = numbers.get("step", 0) + 1
        return group["lr"] / (1 + (step - 1) * group["lr_decay"])

    def update(self, xp: Any, group: dict, now: float, p: Any, g: Any, state: dict[str, Any]) -> None:
        g = decay(group, p, g)
        state["sum"] += g * g
        p -= g / (xp.sqrt(state["sum"]) + group["eps"]) * now
