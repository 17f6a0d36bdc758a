"""ReduceLROnPlateau: a smaller lr when a measure of success stays where it is."""

from __future__ import annotations

from typing import SupportsFloat

from ..optimizer import Optimizer
from .base import LRScheduler, per_group


class ReduceLROnPlateau(LRScheduler):
    """Multiply the lr by `factor` after more than `patience` epochs without a better metric.

    Args:
        mode: "min" or "max", whichever is better.
        factor: below 1.
        patience: epochs without a better metric that are let pass.
        threshold: a metric is better that is so by this share of the best (threshold_mode "rel"), or by this much ("abs").
        cooldown: epochs after a reduction in which none is counted.
        min_lr: the lowest lr, or a list for the parameter groups.
        eps: smaller changes of the lr are not made.

    Raises:
        ValueError: for options out of range.
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: float | list[float] = 0,
                 eps: float = 1e-8):
        if not factor < 1:
            raise ValueError(f"ReduceLROnPlateau expected factor < 1, got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau expected mode 'min' or 'max', got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau expected threshold_mode 'rel' or 'abs', got {threshold_mode!r}")
        self._attach(optimizer, -1)
        self.last_epoch = 0
        self.min_lrs = per_group("ReduceLROnPlateau", "min_lr", min_lr, optimizer)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.eps = eps
        self.best = float("inf") if mode == "min" else float("-inf")
        self.cooldown_counter = self.num_bad_epochs = 0
        self._record()

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Count an epoch with this metric, and reduce the lr when it is time. NaN is no better than anything."""
        if self._skipped():
            return
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._record()

    def _is_better(self, current: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            return sign * current > sign * self.best * (1 + sign * self.threshold)
        return sign * current > sign * self.best + self.threshold

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(f"ReduceLROnPlateau expected {len(self.min_lrs)} parameter groups, as many as min_lr has "
                                   f"values, got {len(groups)}; extend its min_lrs after add_param_group")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs):
            reduced = max(group["lr"] * self.factor, lowest)
            if group["lr"] - reduced > self.eps:
                group["lr"] = reduced

    def _not_saved(self) -> set[str]:
        return super()._not_saved() | {"base_lrs"}
