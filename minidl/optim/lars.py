"""LARS: SGD whose gradients are scaled, parameter by parameter, to the size of the parameter."""

from __future__ import annotations

from typing import Any

from .lamb import norm
from .optimizer import check_options
from .sgd import SGD


class LARS(SGD):
    """SGD with r * (g + weight_decay * p) as gradient, r = trust_coefficient * |p| / (|g| + weight_decay * |p| + eps).

    |.| is the norm of a whole parameter. Where |p| or |g| is 0, the gradient is g itself.

    Args:
        lr: learning rate; with r it multiplies the momentum's buffer, as in SGD.
        momentum, dampening, nesterov, maximize: as SGD's.
        weight_decay: L2 penalty, which counts in r too.
        trust_coefficient: how far a step may go, as a share of the parameter's norm.
        eps: added to the norms in the divisor.
        exclude_1d: scale and decay only parameters of two or more axes; the others (biases, normalization) go by SGD
            without weight decay.

    Raises:
        ValueError: for options out of range.

    Source: You, Gitman and Ginsburg 2017; what is done with norms of 0 follows NVIDIA's LARC.
    """

    elementwise = False

    def __init__(self, params: Any, lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
                 nesterov: bool = False, trust_coefficient: float = 1e-3, eps: float = 1e-8, *, exclude_1d: bool = False,
                 maximize: bool = False, master_weights: bool = True):
        check_options("LARS", [("trust_coefficient", trust_coefficient), ("eps", eps)])
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, maximize=maximize,
                         master_weights=master_weights)
        more = dict(trust_coefficient=trust_coefficient, eps=eps, exclude_1d=exclude_1d)
        self.defaults.update(more)
        for group in self.param_groups:
            group.update({**more, **group})

    def update(self, xp: Any, group: dict, now: bool, p: Any, g: Any, state: dict[str, Any]) -> None:
        decay = group["weight_decay"]
        if p.ndim > 1 or not group["exclude_1d"]:
            length, slope = norm(xp, p), norm(xp, g)
            usual = (length > 0) & (slope > 0)
            ratio = group["trust_coefficient"] * length / xp.where(usual, slope + decay * length + group["eps"], 1)
            g = g * xp.where(usual, ratio, 1)
            if decay:
                g += p * xp.where(usual, ratio * decay, 0)
        super().update(xp, {**group, "weight_decay": 0}, now, p, g, state)
