"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any, NamedTuple

from .optimizer import Optimizer, check_options, decay


class _Now(NamedTuple):
    """The learning rate, and the share of the new value in the average."""

    eta: float
    mu: float


class ASGD(Optimizer):
    """SGD with a falling learning rate that keeps in state[p]["ax"] the average of the values since step t0.

    Args:
        lr: the first learning rate; after t steps it is lr / (1 + lambd * lr * t)^alpha.
        lambd: by which a value shrinks in a step, times the learning rate.
        alpha: the power with which the learning rate falls.
        t0: steps after which averaging starts; until then ax is the value itself.
        weight_decay: L2 penalty.
        foreach: accepted for PyTorch's sake; updates are always made over flat arrays.
        maximize: go up instead of down.

    Raises:
        ValueError: for options out of range.

    Source: Polyak and Juditsky 1992, in the form of Bottou 2010.
    """

    def __init__(self, params: Any, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
                 weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, *,
                 master_weights: bool = True):
        check_options("ASGD", [("lr", lr), ("weight_decay", weight_decay)])
        super().__init__(params, dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay,
                                      maximize=maximize), master_weights=master_weights)

    def initial_state(self, group: dict) -> dict[str, float]:
        return {"ax": 0.0}

    def begin(self, group: dict, numbers: dict) -> _Now:
        now = _Now(numbers.get("eta", group["lr"]), numbers.get("mu", 1.0))
        numbers["step"] = step = numbers.get("step", 0) + 1
        numbers["eta"] = group["lr"] / (1 + group["lambd"] * group["lr"] * step) ** group["alpha"]
        numbers["mu"] = 1 / max(1, step - group["t0"])
        return now

    def update(self, xp: Any, group: dict, now: _Now, p: Any, g: Any, state: dict[str, Any]) -> None:
        g = decay(group, p, g)
        average = state["ax"]
        p *= 1 - group["lambd"] * now.eta
        p -= g * now.eta
        if now.mu == 1:
            average[...] = p
        else:
            average += (p - average) * now.mu
