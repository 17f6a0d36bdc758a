"""RAdam: Adam that waits until its variance estimate can be trusted."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .optimizer import Optimizer, check_options, decay


class _Now(NamedTuple):
    """A step is size * m, over sqrt(v) + eps where the variance is trusted."""

    size: float
    trusted: bool


class RAdam(Optimizer):
    """Adam whose first steps do not divide by the root of v, and whose later ones are scaled by how well v is known.

    Args:
        lr: learning rate.
        betas: the shares of the running means of the gradient (m) and of its square (v) that stay at each step.
        eps: added to the root of v before the bias is corrected.
        weight_decay: L2 penalty, added to the gradient.
        decoupled_weight_decay: shrink the parameter instead, as AdamW does.
        foreach: accepted for PyTorch's sake; updates are always made over flat arrays.
        maximize: go up instead of down.

    Raises:
        ValueError: for options out of range.

    Source: Liu et al. 2020, with PyTorch's threshold of 5 for the length of the average.
    """

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, master_weights: bool = True):
        check_options("RAdam", [("lr", lr), ("eps", eps), ("weight_decay", weight_decay)],
                      [("betas[0]", betas[0]), ("betas[1]", betas[1])])
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize,
                                      decoupled_weight_decay=decoupled_weight_decay), master_weights=master_weights)

    def initial_state(self, group: dict) -> dict[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def begin(self, group: dict, numbers: dict) -> _Now:
        numbers["step"] = step = numbers.get("step", 0) + 1
        beta1, beta2 = group["betas"]
        size = group["lr"] / (1 - beta1 ** step)
        longest = 2 / (1 - beta2) - 1  # of averages, in steps
        length = longest - 2 * step * beta2 ** step / (1 - beta2 ** step)
        if length <= 5:
            return _Now(size, False)
        rectified = math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
        return _Now(size * rectified * math.sqrt(1 - beta2 ** step), True)

    def update(self, xp: Any, group: dict, now: _Now, p: Any, g: Any, state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        g = decay(group, p, g)
        mean *= beta1
        mean += g * (1 - beta1)
        square *= beta2
        square += g * g * (1 - beta2)
        change = mean * now.size
        if now.trusted:
            change /= xp.sqrt(square) + group["eps"]
        p -= change
