"""Adamax: Adam with the largest gradient in place of the mean square."""

from __future__ import annotations

from typing import Any

from .optimizer import Optimizer, check_options, decay


class Adamax(Optimizer):
    """Steps of lr * m / u, where m is the bias-corrected mean of the gradient and u <- max(beta2 * u, |g| + eps).

    Args:
        lr: learning rate.
        betas: the shares of m and u that stay at each step.
        eps: added to |g|.
        weight_decay: L2 penalty.
        foreach: accepted for PyTorch's sake; updates are always made over flat arrays.
        maximize: go up instead of down.

    Raises:
        ValueError: for options out of range.

    Source: Kingma and Ba 2015, section 7.1.
    """

    def __init__(self, params: Any, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
                 master_weights: bool = True):
        check_options("Adamax", [("lr", lr), ("eps", eps), ("weight_decay", weight_decay)],
                      [("betas[0]", betas[0]), ("betas[1]", betas[1])])
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize),
                         master_weights=master_weights)

    def initial_state(self, group: dict) -> dict[str, float]:
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def begin(self, group: dict, numbers: dict) -> float:
        """The learning rate with the correction of the mean's bias."""
        numbers["step"] = step = numbers.get("step", 0) + 1
        return group["lr"] / (1 - group["betas"][0] ** step)

    def update(self, xp: Any, group: dict, now: float, p: Any, g: Any, state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean, largest = state["exp_avg"], state["exp_inf"]
        g = decay(group, p, g)
        mean *= beta1
        mean += g * (1 - beta1)
        largest *= beta2
        xp.maximum(largest, xp.abs(g) + group["eps"], out=largest)
        p -= mean / largest * now
