"""Schedules made of schedules: one after the other, all at once, and after a warm-up."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler
from .factors import CosineDecayLR, LinearLR
from .plateau import ReduceLROnPlateau


class _Composite(LRScheduler):
    """What schedules made of schedules share: which of them, and their state.

    Whether a step counts is decided by the whole, for all parts alike.
    """

    def _take(self, optimizer: Any, schedulers: Sequence[LRScheduler]) -> None:
        who = type(self).__name__
        for index, scheduler in enumerate(schedulers):
            if not isinstance(scheduler, LRScheduler):
                raise TypeError(f"{who} expected schedules, got {type(scheduler).__name__} at index {index}")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"{who} expected schedules that need no metrics, got ReduceLROnPlateau at index {index}; "
                                 f"step it beside the others")
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"{who} expected schedules of one optimizer, got {type(scheduler).__name__} at index {index} "
                                 f"of another")
        self.optimizer = optimizer
        self._schedulers = list(schedulers)
        self._seen = (optimizer.taken_steps, optimizer.skipped_steps)

    def _step_part(self, scheduler: LRScheduler) -> None:
        scheduler._skipped()  # it looks at the optimizer's counts now, and finds nothing skipped in its step
        scheduler.step()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        parts = state_dict.get("_schedulers", [])
        if len(parts) != len(self._schedulers):
            raise ValueError(f"{type(self).__name__}.load_state_dict expected the states of {len(self._schedulers)} "
                             f"schedules, got {len(parts)}")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, parts):
            scheduler.load_state_dict(state)

    def _not_saved(self) -> set[str]:
        return super()._not_saved() | {"_schedulers"}


class SequentialLR(_Composite):
    """One schedule after the other; each begins at its epoch 0 and from the initial lr.

    Args:
        schedulers: all of the same optimizer.
        milestones: the epochs at which the second, third, ... begin.

    Raises:
        TypeError, ValueError: for what are no such schedules, or another number of milestones.
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int],
                 last_epoch: int = -1):
        who = type(self).__name__
        if not schedulers:
            raise ValueError(f"{who} expected at least one schedule, got none")
        self._take(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"{who} expected {len(schedulers) - 1} milestones between {len(schedulers)} schedules, got "
                             f"{len(milestones)}")
        if list(milestones) != sorted(milestones):
            raise ValueError(f"{who} expected increasing milestones, got {list(milestones)}")
        self._milestones = list(milestones)
        for scheduler in schedulers:
            scheduler._undo()
        _set_initial_lr(optimizer)
        self.last_epoch = last_epoch
        self._initial_step()

    def _part(self) -> LRScheduler:
        return self._schedulers[bisect_right(self._milestones, self.last_epoch)]

    def _initial_step(self) -> None:
        self.last_epoch += 1
        self._part()._initial_step()
        self._record()

    def _restart(self) -> None:
        self.last_epoch = 0
        self._part()._restart()
        self._record()

    def _undo(self) -> None:
        self._part()._undo()
        self.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Go on to the next epoch."""
        if self._skipped():
            return
        self.last_epoch += 1
        if self.last_epoch in self._milestones:
            self._part()._restart()
        else:
            self._step_part(self._part())
        self._record()


class ChainedScheduler(_Composite):
    """All schedules at each step; each changes what the one before has set.

    Args:
        schedulers: all of the same optimizer.
        optimizer: theirs; by default that of the first.

    Raises:
        TypeError, ValueError: for what are no such schedules.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if not schedulers:
            raise ValueError("ChainedScheduler expected at least one schedule, got none")
        self._take(getattr(schedulers[0], "optimizer", None) if optimizer is None else optimizer, schedulers)
        self._record()

    def _initial_step(self) -> None:
        for scheduler in self._schedulers:
            scheduler._initial_step()
        self._record()

    def _restart(self) -> None:
        _set_initial_lr(self.optimizer)
        self._initial_step()

    def _undo(self) -> None:
        for scheduler in self._schedulers:
            scheduler._undo()

    def step(self) -> None:  # type: ignore[override]
        """Step all of them, in their order."""
        if self._skipped():
            return
        for scheduler in self._schedulers:
            self._step_part(scheduler)
        self._record()


class WarmupLR(SequentialLR):
    """Rise from lr / warmup_steps to lr on a line, then follow another schedule from its epoch 0. (PyTorch has none.)

    Args:
        warmup_steps: how many steps the rise takes; 0 for none. The last of them has the whole lr.
        after: the schedule of what follows; by default the lr stays.

    Raises:
        TypeError, ValueError: if warmup_steps is negative, or after is no schedule of this optimizer.
    """

    def __init__(self, optimizer: Optimizer, warmup_steps: int, after: LRScheduler | None = None, last_epoch: int = -1):
        if warmup_steps < 0:
            raise ValueError(f"{type(self).__name__} expected warmup_steps >= 0, got {warmup_steps}")
        rise = LinearLR(optimizer, 1 / max(warmup_steps, 1), total_iters=warmup_steps - 1, last_epoch=last_epoch)
        super().__init__(optimizer, [rise] if after is None else [rise, after], [] if after is None else [warmup_steps],
                         last_epoch)


def cosine_with_warmup(optimizer: Optimizer, warmup_steps: int, total_steps: int, min_lr: float = 0.0) -> WarmupLR:
    """Rise from lr / warmup_steps to lr on a line, fall to min_lr on a cosine until total_steps, and stay there.

    Raises:
        ValueError: unless 0 <= warmup_steps < total_steps.

    Source: the schedule of nanoGPT, as for GPT-3 (Brown et al. 2020, appendix B).
    """
    if not 0 <= warmup_steps < total_steps:
        raise ValueError(f"cosine_with_warmup expected 0 <= warmup_steps < total_steps, got {warmup_steps} and {total_steps}")
    return WarmupLR(optimizer, warmup_steps, CosineDecayLR(optimizer, total_steps - warmup_steps, min_lr))


def _set_initial_lr(optimizer: Optimizer) -> None:
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"]
