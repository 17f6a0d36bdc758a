"""Momentum that moves against the lr: what CyclicLR and OneCycleLR share."""

from __future__ import annotations

from ..optimizer import Optimizer
from .base import per_group


def set_momentum(group: dict, momentum: float) -> None:
    """Set the momentum of a group, or the first of its betas."""
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def momentum_range(who: str, optimizer: Optimizer, lowest: float | list[float], highest: float | list[float],
                   begin: bool) -> tuple[list[float], list[float]]:
    """The momentum range of each group, as lists of the lowest and the highest; if it begins, groups get it as options.

    Raises:
        ValueError: if the optimizer has neither momentum nor betas, or a list is not as long as the groups are many.
    """
    if not {"momentum", "betas"} & optimizer.defaults.keys():
        raise ValueError(f"{who}(cycle_momentum=True) expected an optimizer with momentum or betas, got "
                         f"{type(optimizer).__name__}; pass cycle_momentum=False")
    lows = per_group(who, "base_momentum", lowest, optimizer)
    highs = per_group(who, "max_momentum", highest, optimizer)
    if begin:
        for group, low, high in zip(optimizer.param_groups, lows, highs):
            set_momentum(group, high)
            group.update(max_momentum=high, base_momentum=low)
    return lows, highs
