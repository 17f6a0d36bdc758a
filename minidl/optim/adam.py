"""Adam and AdamW."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .optimizer import Optimizer, check_options, decay


class _Now(NamedTuple):
    """lr * m_hat / (sqrt(v_hat) + eps) = size * m / (sqrt(v) + eps), with the corrections of the bias in both numbers."""

    size: float
    eps: float


class Adam(Optimizer):
    """Steps of lr * m / (sqrt(v) + eps), where m and v are bias-corrected running means of the gradient and of its square.

    Args:
        lr: learning rate.
        betas: the shares of m and v that stay at each step.
        eps: added to the root, in float32 also for half parameters.
        weight_decay: L2 penalty, added to the gradient.
        amsgrad: use the largest v so far.
        maximize: go up instead of down.
        decoupled_weight_decay: shrink the parameter instead, as AdamW does.
        foreach, fused: accepted for PyTorch's sake; updates are always made over flat arrays.

    Raises:
        ValueError: for options out of range.

    Source: Kingma and Ba 2015; AMSGrad: Reddi et al. 2018.
    """

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 fused: bool | None = None, decoupled_weight_decay: bool = False, master_weights: bool = True):
        check_options(type(self).__name__, [("lr", lr), ("eps", eps), ("weight_decay", weight_decay)],
                      [("betas[0]", betas[0]), ("betas[1]", betas[1])])
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad,
                                      maximize=maximize, decoupled_weight_decay=decoupled_weight_decay),
                         master_weights=master_weights)

    def initial_state(self, group: dict) -> dict[str, float]:
        largest = {"max_exp_avg_sq": 0.0} if group["amsgrad"] else {}
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0, **largest}

    def begin(self, group: dict, numbers: dict) -> _Now:
        numbers["step"] = step = numbers.get("step", 0) + 1
        beta1, beta2 = group["betas"]
        root = math.sqrt(1 - beta2 ** step)
        return _Now(group["lr"] * root / (1 - beta1 ** step), group["eps"] * root)

    def update(self, xp: Any, group: dict, now: _Now, p: Any, g: Any, state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        g = decay(group, p, g)
        scratch = g * (1 - beta1)
        mean *= beta1
        mean += scratch
        xp.multiply(g, g, scratch)
        scratch *= 1 - beta2
        square *= beta2
        square += scratch
        if group["amsgrad"]:
            square = xp.maximum(square, state["max_exp_avg_sq"], out=state["max_exp_avg_sq"])
        xp.sqrt(square, scratch)
        scratch += now.eps
        xp.divide(mean, scratch, scratch)
        scratch *= now.size
        p -= scratch


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters by lr * weight_decay instead of changing the gradient.

    Args: as Adam's.

    Source: Loshchilov and Hutter 2019.
    """

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 fused: bool | None = None, master_weights: bool = True):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True,
                         master_weights=master_weights)
