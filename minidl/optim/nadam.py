"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .optimizer import Optimizer, check_options, decay


class _Now(NamedTuple):
    """A step is (gradient * g + mean * m) / (sqrt(v) + eps)."""

    gradient: float
    mean: float
    eps: float


class NAdam(Optimizer):
    """Adam that steps along the mean as it will be after the next gradient.

    Args:
        lr: learning rate.
        betas: the shares of the running means of the gradient and of its square that stay at each step.
        eps: added to the root.
        weight_decay: L2 penalty, added to the gradient.
        momentum_decay: how fast the momentum rises from betas[0] / 2 to betas[0].
        decoupled_weight_decay: shrink the parameter instead, as AdamW does.
        foreach: accepted for PyTorch's sake; updates are always made over flat arrays.
        maximize: go up instead of down.

    Raises:
        ValueError: for options out of range.

    Source: Dozat 2016.
    """

    def __init__(self, params: Any, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, master_weights: bool = True):
        check_options("NAdam", [("lr", lr), ("eps", eps), ("weight_decay", weight_decay), ("momentum_decay", momentum_decay)],
                      [("betas[0]", betas[0]), ("betas[1]", betas[1])])
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
                                      decoupled_weight_decay=decoupled_weight_decay, maximize=maximize),
                         master_weights=master_weights)

    def initial_state(self, group: dict) -> dict[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def begin(self, group: dict, numbers: dict) -> _Now:
        numbers["step"] = step = numbers.get("step", 0) + 1
        beta1, beta2 = group["betas"]
        now, then = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        numbers["mu_product"] = product = numbers.get("mu_product", 1.0) * now
        root = math.sqrt(1 - beta2 ** step)
        size = group["lr"] * root
        return _Now(size * (1 - now) / (1 - product), size * then / (1 - product * then), group["eps"] * root)

    def update(self, xp: Any, group: dict, now: _Now, p: Any, g: Any, state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        g = decay(group, p, g)
        mean *= beta1
        mean += g * (1 - beta1)
        square *= beta2
        square += g * g * (1 - beta2)
        change = g * now.gradient
        change += mean * now.mean
        change /= xp.sqrt(square) + now.eps
        p -= change
