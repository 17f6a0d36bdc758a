"""CyclicLR: the lr goes up and down between two bounds, and momentum the other way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, load_functions, per_group, saved_functions
from .momentum import momentum_range, set_momentum

SCALES: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "triangular": ("cycle", lambda gamma, x: 1.0),
    "triangular2": ("cycle", lambda gamma, x: 0.5 ** (x - 1)),
    "exp_range": ("iterations", lambda gamma, x: gamma ** x),
}


class CyclicLR(LRScheduler):
    """lr = base_lr + (max_lr - base_lr) * triangle * scale; stepped after every minibatch.

    Args:
        base_lr, max_lr: the bounds, or lists of them for the parameter groups.
        step_size_up, step_size_down: steps of the rising and of the falling half; by default the same.
        mode: "triangular" scales by 1, "triangular2" by 1/2 ** (cycle - 1), "exp_range" by gamma ** step.
        gamma: see mode.
        scale_fn: the scale, in place of mode's. The state dict holds the attributes of a callable object; a function has none.
        scale_mode: what scale_fn gets, the number of the "cycle", from 1, or of "iterations", from 0.
        cycle_momentum: move momentum, or betas[0], from max_momentum to base_momentum and back.
        base_momentum, max_momentum: its bounds, or lists of them.

    Raises:
        ValueError: for sizes out of range, unknown modes, lists that do not fit, or an optimizer without momentum.

    Source: Smith 2017, with the names of PyTorch.
    """

    def __init__(self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float],
                 step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
                 base_momentum: float | list[float] = 0.8, max_momentum: float | list[float] = 0.9, last_epoch: int = -1):
        self._check(step_size_up, step_size_down, mode, scale_fn, scale_mode)
        self._attach(optimizer, last_epoch)
        self.base_lrs = per_group("CyclicLR", "base_lr", base_lr, optimizer)
        self.max_lrs = per_group("CyclicLR", "max_lr", max_lr, optimizer)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else SCALES[mode][0]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums, self.max_momentums = momentum_range("CyclicLR", optimizer, base_momentum, max_momentum,
                                                                     last_epoch == -1)
        self._initial_step()

    def _check(self, up: float, down: float | None, mode: str, scale_fn: Any, scale_mode: str) -> None:
        if not up > 0 or (down is not None and not down >= 0):
            raise ValueError(f"CyclicLR expected step_size_up > 0 and step_size_down >= 0, got {up} and {down}")
        if scale_fn is None and mode not in SCALES:
            raise ValueError(f"CyclicLR expected mode in {sorted(SCALES)}, or a scale_fn, got {mode!r}")
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(f"CyclicLR expected scale_mode 'cycle' or 'iterations', got {scale_mode!r}")

    def scale_fn(self, x: float) -> float:
        """The scale of the number of a cycle or step."""
        return SCALES[self.mode][1](self.gamma, x) if self._scale_fn_custom is None else self._scale_fn_custom(x)

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1 + self.last_epoch / self.total_size - cycle
        triangle = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = triangle * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_scale_fn_custom": saved_functions([self._scale_fn_custom])[0]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        load_functions([self._scale_fn_custom], [state_dict["_scale_fn_custom"]])

    def _not_saved(self) -> set[str]:
        return super()._not_saved() | {"_scale_fn_custom"}
