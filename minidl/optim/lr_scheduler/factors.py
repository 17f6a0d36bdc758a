"""Schedules that multiply the lr by a factor: steps, ramps, powers and a cosine."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..optimizer import Optimizer
from .base import FactorLR


class StepLR(FactorLR):
    """Multiply the lr by gamma every step_size epochs.

    Raises:
        ValueError: unless step_size > 0.
    """

    jumps = True

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        if not step_size > 0:
            raise ValueError(f"StepLR expected step_size > 0, got {step_size}")
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor_at(self, epoch: int) -> float:
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(FactorLR):
    """Multiply the lr by gamma at each of the epochs `milestones`, twice where one is there twice."""

    jumps = True

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones = sorted(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor_at(self, epoch: int) -> float:
        return self.gamma ** bisect_right(self.milestones, epoch)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if "milestones" in state_dict:  # PyTorch's is a Counter
            state_dict = {**state_dict, "milestones": sorted(Counter(state_dict["milestones"]).elements())}
        super().load_state_dict(state_dict)


class ConstantLR(FactorLR):
    """Multiply the lr by `factor` until epoch total_iters.

    Raises:
        ValueError: unless 0 <= factor <= 1.
    """

    jumps = True

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1):
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR expected factor in [0, 1], got {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor_at(self, epoch: int) -> float:
        return self.factor if epoch < self.total_iters else 1.0


class LinearLR(FactorLR):
    """Multiply the lr by a factor that goes from start_factor to end_factor in total_iters epochs, on a line.

    Raises:
        ValueError: unless 0 < start_factor <= 1 and 0 <= end_factor <= 1.
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5,
                 last_epoch: int = -1):
        if not 0 < start_factor <= 1:
            raise ValueError(f"LinearLR expected start_factor in (0, 1], got {start_factor}")
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR expected end_factor in [0, 1], got {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor_at(self, epoch: int) -> float:
        if epoch >= self.total_iters:
            return self.end_factor
        return self.start_factor + (self.end_factor - self.start_factor) * epoch / self.total_iters


class ExponentialLR(FactorLR):
    """Multiply the lr by gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor_at(self, epoch: int) -> float:
        return self.gamma ** epoch


class PolynomialLR(FactorLR):
    """Multiply the lr by (1 - epoch / total_iters) ** power, which is 0 from epoch total_iters on.

    Raises:
        ValueError: unless total_iters > 0.
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        if not total_iters > 0:
            raise ValueError(f"PolynomialLR expected total_iters > 0, got {total_iters}")
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def factor_at(self, epoch: int) -> float:
        return (1 - min(epoch, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(FactorLR):
    """Take the lr to eta_min and back on a cosine of half period T_max, in epochs.

    Raises:
        ValueError: unless T_max > 0.

    Source: Loshchilov and Hutter 2017, equation 5, without restarts.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        if not T_max > 0:
            raise ValueError(f"{type(self).__name__} expected T_max > 0, got {T_max}")
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    @property
    def floor(self) -> float:
        return self.eta_min

    def factor_at(self, epoch: int) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2


class CosineDecayLR(CosineAnnealingLR):
    """CosineAnnealingLR that stays at eta_min from epoch T_max on. (PyTorch has none.)"""

    def factor_at(self, epoch: int) -> float:
        return super().factor_at(min(epoch, self.T_max))
