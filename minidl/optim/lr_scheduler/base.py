"""The bases of all schedules: what a schedule counts, sets, saves and skips; and schedules that are a factor of the lr."""

from __future__ import annotations

import copy
from typing import Any

from ..optimizer import Optimizer

PYTORCHS = {"_step_count", "_is_initial", "_get_lr_called_within_step", "mode_worse"}  # keys without a meaning here


class LRScheduler:
    """Base class. A subclass defines `get_lr`, and may define `_get_closed_form_lr` for jumps to an epoch.

    A schedule that was skipped with its optimizer stays: if a loss scaler has skipped every optimizer step that was tried
    since the last call of `step`, that call does nothing.

    Args:
        optimizer: whose groups get the lr; for a distributed learner, its `optimizer`.
        last_epoch: -1 begins with the lr of the groups. Otherwise the number of the last epoch of a run that is continued;
            groups must have the "initial_lr" with which it began.

    Attributes:
        last_epoch: number of the current epoch, which the constructor sets to last_epoch + 1.
        base_lrs: the lr of each group with which the schedule began.

    Raises:
        TypeError: if optimizer is none.
        KeyError: if a run is continued and a group has no initial_lr.
    """

    _is_initial = False
    _last_lr: list[float]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        self._attach(optimizer, last_epoch)
        self._initial_step()

    def _attach(self, optimizer: Optimizer, last_epoch: int) -> None:
        who = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{who} expected an Optimizer, got {type(optimizer).__name__}; of a learner pass its .optimizer")
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"{who}(last_epoch={last_epoch}) expected initial_lr in param_groups[{index}]; load the "
                               f"optimizer's state first, or begin with last_epoch=-1")
        self.optimizer = optimizer
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._seen = (optimizer.taken_steps, optimizer.skipped_steps)

    def _initial_step(self) -> None:
        self._is_initial = True
        try:
            self._update()
        finally:
            del self._is_initial

    def get_lr(self) -> list[float]:
        """The lr of each group at last_epoch, from that of the epoch before. For users there is get_last_lr."""
        raise NotImplementedError(f"{type(self).__name__} expected a method get_lr")

    def _get_closed_form_lr(self) -> list[float]:
        """The lr of each group at last_epoch, whatever it was before."""
        return self.get_lr()

    def get_last_lr(self) -> list[float]:
        """The lr of each group that this schedule set last."""
        return list(self._last_lr)

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to the one given. Called after the optimizer's step."""
        if not self._skipped():
            self._update(epoch)

    def _skipped(self) -> bool:
        """Were all of the optimizer steps that were tried since the last call, one at least, skipped?"""
        taken, skipped = self._seen
        self._seen = (self.optimizer.taken_steps, self.optimizer.skipped_steps)
        return self._seen[0] == taken and self._seen[1] > skipped

    def _update(self, epoch: int | None = None) -> None:
        groups = self.optimizer.param_groups
        for group in groups[len(self.base_lrs):]:  # added since; they begin with their own lr
            self.base_lrs.append(group.setdefault("initial_lr", group["lr"]))
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        lrs = self.get_lr() if epoch is None else self._get_closed_form_lr()
        if len(lrs) != len(groups):
            raise ValueError(f"{type(self).__name__} expected the {len(lrs)} parameter groups that it was made for, got "
                             f"{len(groups)}; make a new schedule after add_param_group")
        for group, lr in zip(groups, lrs):
            group["lr"] = lr
        self._record()

    def _record(self) -> None:
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _restart(self) -> None:
        """Begin at epoch 0, after another schedule."""
        self._update(0)

    def _undo(self) -> None:
        """Take back the constructor's step, so that _initial_step makes it again."""
        self.last_epoch -= 1

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer, as plain data; functions are left out. The lr itself is the optimizer's state."""
        state = copy.deepcopy({k: v for k, v in self.__dict__.items() if k not in self._not_saved()})
        return {**state, "_since": [self.optimizer.taken_steps - self._seen[0], self.optimizer.skipped_steps - self._seen[1]]}

    def _not_saved(self) -> set[str]:
        return {"optimizer", "_seen"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what state_dict() of a schedule of this class gave, PyTorch's included. Load the optimizer's state too.

        Raises:
            ValueError: if it is the state of another class, or has more parameter groups.
        """
        own = self.__dict__.keys() - self._not_saved()
        state = {k: copy.deepcopy(v) for k, v in state_dict.items() if k not in PYTORCHS}
        taken, skipped = state.pop("_since", (0, 0))
        if state.keys() != own:
            raise ValueError(f"{type(self).__name__}.load_state_dict expected {sorted(own)}, got {sorted(state)}; load the "
                             f"state of a schedule of the same class")
        if len(state["_last_lr"]) > len(self.optimizer.param_groups):
            raise ValueError(f"{type(self).__name__}.load_state_dict expected a state of at most "
                             f"{len(self.optimizer.param_groups)} parameter groups, got {len(state['_last_lr'])}")
        self.__dict__.update(state)
        self._seen = (self.optimizer.taken_steps - taken, self.optimizer.skipped_steps - skipped)


class FactorLR(LRScheduler):
    """lr = floor + (initial lr - floor) * factor_at(epoch). A subclass defines `factor_at`.

    Each step multiplies what there is by the quotient of two factors, so that several of them, and changes by the
    user, multiply up.
    """

    jumps = False  # at once when a run is continued; others then begin with the lr they find, as in PyTorch

    @property
    def floor(self) -> float:
        return 0.0

    def factor_at(self, epoch: int) -> float:
        """Of the initial lr, at an epoch."""
        raise NotImplementedError(f"{type(self).__name__} expected a method factor_at")

    def get_lr(self) -> list[float]:
        epoch = self.last_epoch
        now, before = self.factor_at(epoch), self.factor_at(epoch - 1) if epoch > 0 else 1.0
        lrs = [group["lr"] for group in self.optimizer.param_groups]
        if now == before or (self._is_initial and epoch > 0 and not self.jumps):
            return lrs
        floor = self.floor
        if before == 0:
            return [lr + (base - floor) * now for lr, base in zip(lrs, self.base_lrs)]
        return [floor + (lr - floor) * (now / before) for lr in lrs]

    def _get_closed_form_lr(self) -> list[float]:
        now = self.factor_at(self.last_epoch)
        return [self.floor + (base - self.floor) * now for base in self.base_lrs]


def per_group(who: str, name: str, value: Any, optimizer: Optimizer) -> list:
    """A value for each group, from one or a list of them.

    Raises:
        ValueError: if the list has another length.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{who} expected one {name}, or a list of {count} for the parameter groups, got a list of "
                         f"{len(value)}")
    return list(value)


def saved_functions(functions: list) -> list[dict | None]:
    """The attributes of callable objects; None for functions, methods and classes, which have none to save."""
    return [copy.deepcopy(f.__dict__) if hasattr(f, "__dict__") and not hasattr(f, "__qualname__") else None
            for f in functions]


def load_functions(functions: list, saved: list[dict | None]) -> None:
    """Give callable objects their saved attributes."""
    for function, attributes in zip(functions, saved):
        if attributes is not None:
            function.__dict__.update(copy.deepcopy(attributes))
