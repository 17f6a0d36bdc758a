"""CosineAnnealingWarmRestarts: falls on a cosine that begin again and again, by whole or fractional epochs."""

from __future__ import annotations

import math

from ..optimizer import Optimizer
from .base import LRScheduler


class CosineAnnealingWarmRestarts(LRScheduler):
    """Fall from the initial lr to eta_min in T_0 epochs, then in T_0 * T_mult, and so on.

    Within an epoch call `step(epoch + minibatch / minibatches)`.

    Attributes:
        T_cur, T_i: epochs since the last restart, and from that to the next.

    Raises:
        ValueError: unless T_0 and T_mult are positive ints.

    Source: Loshchilov and Hutter 2017, equation 5.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"CosineAnnealingWarmRestarts expected {name} as a positive int, got {value!r}")
        if not isinstance(eta_min, (int, float)):
            raise ValueError(f"CosineAnnealingWarmRestarts expected eta_min as a number, got {type(eta_min).__name__}")
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (lr - self.eta_min) * share for lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on by one epoch, or to the one given, which may be between two."""
        if epoch is not None and not epoch >= 0:
            raise ValueError(f"CosineAnnealingWarmRestarts expected epoch >= 0, got {epoch}")
        if not self._skipped():
            self._update(epoch)

    def _update(self, epoch: float | None = None) -> None:
        if epoch is None and not self._is_initial:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = self.last_epoch + 1 if epoch is None else epoch
            self.T_cur, self.T_i = self._position(epoch)
        super()._update(self.last_epoch + 1 if epoch is None else math.floor(epoch))

    def _position(self, epoch: float) -> tuple[float, int]:
        """Epochs since the last restart, and from that to the next."""
        if self.T_mult == 1:
            return epoch % self.T_0, self.T_0
        length = self.T_0
        while epoch >= length:
            epoch -= length
            length *= self.T_mult
        return epoch, length
