"""OneCycleLR: one rise of the lr to its maximum and one long fall, and momentum the other way."""

from __future__ import annotations

import math
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, per_group
from .momentum import momentum_range, set_momentum


class OneCycleLR(LRScheduler):
    """From max_lr / div_factor to max_lr, then down to max_lr / div_factor / final_div_factor; stepped after every minibatch.

    Args:
        max_lr: the highest lr, or a list for the parameter groups.
        total_steps: steps of the cycle; or
        epochs, steps_per_epoch: whose product it is.
        pct_start: the share of the rise, in [0, 1].
        anneal_strategy: "cos" or "linear".
        cycle_momentum: move momentum, or betas[0], from max_momentum to base_momentum and back.
        base_momentum, max_momentum: its bounds, or lists of them.
        div_factor: max_lr / the first lr.
        final_div_factor: the first lr / the last.
        three_phase: fall to the first lr in as many steps as the rise took, then to the last.

    Raises:
        ValueError: for options out of range, an optimizer without momentum, or a step after total_steps.

    Source: Smith and Topin 2018, with the names of PyTorch.
    """

    def __init__(self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None,
                 epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float | list[float] = 0.85,
                 max_momentum: float | list[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
                 three_phase: bool = False, last_epoch: int = -1):
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR expected pct_start in [0, 1], got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR expected anneal_strategy 'cos' or 'linear', got {anneal_strategy!r}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        self._attach(optimizer, last_epoch)
        highest = per_group("OneCycleLR", "max_lr", max_lr, optimizer)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = "betas" in optimizer.defaults
            momentum_range("OneCycleLR", optimizer, base_momentum, max_momentum, last_epoch == -1)
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, highest):
                first = high / div_factor
                group.update(initial_lr=first, max_lr=high, min_lr=first / final_div_factor)
            self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self._initial_step()

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR expected at most {self.total_steps} steps, got step {step}; raise total_steps")
        before, phases = 0.0, list(self._schedule_phases)
        while len(phases) > 1 and step > phases[0]["end_step"]:
            before = phases.pop(0)["end_step"]
        phase = phases[0]
        length = phase["end_step"] - before
        share = (step - before) / length if length else 1.0
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                set_momentum(group, self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], share))
        return [self._between(group[phase["start_lr"]], group[phase["end_lr"]], share) for group in groups]

    def _between(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


def _total(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        given = {"total_steps": total_steps}
    elif epochs is not None and steps_per_epoch is not None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    else:
        raise ValueError("OneCycleLR expected total_steps, or epochs and steps_per_epoch, got neither")
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"OneCycleLR expected {name} as a positive int, got {value!r}")
    return math.prod(given.values())


def _phases(total: int, pct_start: float, three: bool) -> list[dict[str, Any]]:
    """Where each phase ends, in steps, and between which options of a group it goes."""
    rise = float(pct_start * total) - 1
    points: list[tuple[float, str, str]] = [(rise, "max_lr", "base_momentum")]
    if three:
        points.append((float(2 * pct_start * total) - 2, "initial_lr", "max_momentum"))
    points.append((total - 1, "min_lr", "max_momentum"))
    phases, lr, momentum = [], "initial_lr", "max_momentum"
    for end, to_lr, to_momentum in points:
        phases.append(dict(end_step=end, start_lr=lr, end_lr=to_lr, start_momentum=momentum, end_momentum=to_momentum))
        lr, momentum = to_lr, to_momentum
    return phases
