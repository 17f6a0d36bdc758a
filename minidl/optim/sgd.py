"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from ..tensor.tensor import Tensor
from .optimizer import Optimizer, check_options, decay


class SGD(Optimizer):
    """p <- p - lr * d, where d = g + weight_decay * p, with momentum b <- momentum * b + (1 - dampening) * d in place of d.

    Args:
        lr: learning rate.
        momentum: the share of b that stays at each step.
        dampening: momentum in unit-gain form has dampening = momentum. The first b is d itself.
        weight_decay: L2 penalty.
        nesterov: use d + momentum * b in place of b.
        maximize: go up instead of down.
        foreach, fused: accepted for PyTorch's sake; updates are always made over flat arrays.

    Raises:
        ValueError: for negative options, or Nesterov momentum without momentum or with dampening.

    Source: Sutskever et al. 2013, in PyTorch's form, in which lr multiplies the momentum.
    """

    def __init__(self, params: Any, lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
                 nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 fused: bool | None = None, master_weights: bool = True):
        who = type(self).__name__
        check_options(who, [("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)])
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(f"{who} expected momentum > 0 and dampening = 0 for Nesterov momentum, got momentum {momentum} "
                             f"and dampening {dampening}")
        super().__init__(params, dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
                                      nesterov=nesterov, maximize=maximize), master_weights=master_weights)

    def initial_state(self, group: dict) -> dict[str, float]:
        return {"momentum_buffer": 0.0} if group["momentum"] else {}

    def begin(self, group: dict, numbers: dict) -> bool:
        """Is this the first update of the momentum?"""
        if not group["momentum"]:
            return False
        numbers["step"] = numbers.get("step", 0) + 1
        return numbers["step"] == 1

    def _loaded(self, who: str, p: Tensor, number: Any, entry: dict, arrays: set) -> dict:
        made = super()._loaded(who, p, number, entry, arrays)
        if isinstance(made.get("momentum_buffer"), Tensor):
            made.setdefault("step", 1)  # PyTorch's SGD counts none: that there is a buffer says that it had a first step
        return made

    def update(self, xp: Any, group: dict, now: bool, p: Any, g: Any, state: dict[str, Any]) -> None:
        momentum = group["momentum"]
        g = decay(group, p, g)
        if momentum:
            buffer = state["momentum_buffer"]
            if now:
                buffer[...] = g
            else:
                buffer *= momentum
                buffer += g * (1 - group["dampening"]) if group["dampening"] else g
            g = g + buffer * momentum if group["nesterov"] else buffer
        p -= g * group["lr"]
