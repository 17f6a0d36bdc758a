"""Schedules by a function of the user: LambdaLR and MultiplicativeLR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, load_functions, per_group, saved_functions


class LambdaLR(LRScheduler):
    """lr = initial lr * lr_lambda(epoch).

    The state dict holds the attributes of callable objects; a function has none and must be given anew.

    Args:
        lr_lambda: a function, or one for each parameter group.

    Raises:
        TypeError: if it is none.
        ValueError: if there are fewer or more than groups.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
                 last_epoch: int = -1):
        who = type(self).__name__
        self._attach(optimizer, last_epoch)
        self.lr_lambdas: list[Callable[[int], float]] = per_group(who, "lr_lambda", lr_lambda, optimizer)
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"{who} expected lr_lambda as a function of the epoch, got {type(function).__name__}")
        self._initial_step()

    def get_lr(self) -> list[float]:
        return [lr * function(self.last_epoch) for lr, function in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "lr_lambdas": saved_functions(self.lr_lambdas)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        load_functions(self.lr_lambdas, state_dict["lr_lambdas"])

    def _not_saved(self) -> set[str]:
        return super()._not_saved() | {"lr_lambdas"}


class MultiplicativeLR(LambdaLR):
    """Multiply the lr by lr_lambda(epoch) at every epoch but the first."""

    def get_lr(self) -> list[float]:
        lrs = [group["lr"] for group in self.optimizer.param_groups]
        if self._is_initial:
            return lrs
        return [lr * function(self.last_epoch) for lr, function in zip(lrs, self.lr_lambdas)]
