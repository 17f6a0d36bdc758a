"""scale_loss: a scaled loss inside a `with` block, true gradients after it, for several losses and optimizers.

Each loss has a scaler of its own. True gradients that earlier losses left are set aside while a loss is differentiated and
added once its own gradients have been unscaled and checked, so that losses of different scales accumulate.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from ..tensor import dtypes, journal
from ..tensor.policy import map_tensors
from ..tensor.tensor import Tensor, make_tensor
from .grad_scaler import GradScaler, StaticScaler, unscale_gradients

LARGEST_OF_HALF_LOSS = 2.0 ** 15  # the gradient of a float16 loss is float16 itself, and 2 ** 16 is inf there


class Training:
    """What one `initialize` has set up: a scaler for each loss, and the optimizers."""

    def __init__(self, scalers: list[StaticScaler], optimizers: list):
        self.scalers = scalers
        self.optimizers = weakref.WeakSet(optimizers)
        for optimizer in optimizers:
            _trainings[optimizer] = self
            optimizer.register_step_pre_hook(_before_step)
        # an optimizer keeps its training alive, and nothing else does: the journal is open while a scaler lives
        _latest.training = weakref.ref(self) if optimizers else lambda: self


_trainings: weakref.WeakKeyDictionary[Any, Training] = weakref.WeakKeyDictionary()
_latest = threading.local()


def is_initialized(optimizer: Any) -> bool:
    """Has this optimizer been through `initialize`?"""
    return optimizer in _trainings


@contextlib.contextmanager
def scale_loss(loss: Any, optimizers: Any, loss_id: int = 0, *, delay_unscale: bool = False) -> Iterator[Any]:
    """Yield the loss times its scale, for a backward inside the `with` block; afterwards the optimizers' gradients are true.

    Where a gradient is not finite, the next step of these optimizers is skipped and the scale backs off.

    Args:
        loss: a tensor, or several in nested lists, tuples and dicts.
        optimizers: one or a list: those whose parameters this loss trains.
        loss_id: which of the `num_losses` scalers.
        delay_unscale: leave the gradients scaled; for all but the last backward of an accumulation.

    Raises:
        RuntimeError: for an optimizer that has not been through `initialize`, or too many skipped steps in a row.
        IndexError: for a loss_id that is not below num_losses.

    Source: NVIDIA Apex.
    """
    several = list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]
    training = _training_of(several)
    if not isinstance(loss_id, int) or not 0 <= loss_id < len(training.scalers):
        raise IndexError(f"scale_loss expected loss_id below {len(training.scalers)}, got {loss_id!r}; pass num_losses to "
                         f"initialize")
    scaler = training.scalers[loss_id]
    if not scaler.is_enabled():
        yield map_tensors(lambda t: t.float() if t.dtype in dtypes.HALF else t, loss)
        return
    aside = _set_aside(training)
    try:
        yield _scaled(scaler, loss)
    except BaseException:
        for p, gradient in aside:
            p.node.grad = gradient
        raise
    found = [] if delay_unscale else [unscale_gradients(optimizer, scaler.get_scale()) for optimizer in several]
    for p, gradient in aside:
        _add(p, gradient)
    if not delay_unscale:
        _conclude(scaler, several, found)


def state_dict() -> dict:
    """The state of all scalers of the latest `initialize` in this thread."""
    scalers = _latest_training("state_dict").scalers
    return {f"loss_scaler{i}": scaler.state_dict() or {"scale": 1.0} for i, scaler in enumerate(scalers)}


def load_state_dict(state_dict: dict) -> None:
    """Let dynamic scalers go on from what state_dict gave. Fixed ones stay as initialize was told, and so do those for which
    a fixed one was saved.

    Raises:
        RuntimeError: if it was saved with another number of losses.
    """
    scalers = _latest_training("load_state_dict").scalers
    names = [f"loss_scaler{i}" for i in range(len(scalers))]
    if sorted(state_dict) != sorted(names):
        raise RuntimeError(f"amp.load_state_dict expected {', '.join(names)}, got {', '.join(map(str, state_dict)) or 'none'}; "
                           f"pass to initialize the num_losses that it was saved with")
    for name, scaler in zip(names, scalers):
        if isinstance(scaler, GradScaler) and "growth_factor" in state_dict[name]:
            scaler.load_state_dict(state_dict[name])


def _latest_training(who: str) -> Training:
    training = getattr(_latest, "training", lambda: None)()
    if training is None:
        raise RuntimeError(f"amp.{who} expected that amp.initialize was called before, in this thread, with optimizers that "
                           f"are still there")
    return training


def _training_of(optimizers: list) -> Training:
    found = {_trainings.get(optimizer) for optimizer in optimizers}
    if len(found) != 1 or None in found:
        raise RuntimeError("scale_loss expected optimizers of one amp.initialize, got " + (
            "none" if not optimizers else "one that has not been through it" if None in found else "those of several"))
    return next(training for training in found if training is not None)


def _scaled(scaler: StaticScaler, loss: Any) -> Any:
    def lower(t: Tensor) -> Tensor:
        if t.dtype == dtypes.float16:
            scaler.cap(LARGEST_OF_HALF_LOSS)
        return t

    return scaler.scale(map_tensors(lower, loss))


def _set_aside(training: Training) -> list[tuple[Any, Any]]:
    """Take the true gradients off all parameters: [(parameter, gradient)]. Scaled ones stay, for backward rescales them."""
    aside = []
    for optimizer in list(training.optimizers):
        for p in _parameters(optimizer):
            gradient = p.grad
            if gradient is not None and gradient.__dict__.get("grad_scale", 1) == 1:
                aside.append((p, gradient))
                p.node.grad = None
    return aside


def _add(p: Any, true: Any) -> None:
    """Put back a true gradient that was set aside, together with what has come since, which may still be scaled."""
    new = p.grad
    if new is None:
        p.node.grad = true
        return
    scale = new.__dict__.get("grad_scale", 1.0)
    xp = new.backend
    p.node.grad = total = make_tensor(xp.asarray(xp.widen(new.array) + xp.widen(true.array) * scale), None)
    total.__dict__["grad_scale"] = scale


def _conclude(scaler: StaticScaler, optimizers: list, found: list[str | None]) -> None:
    agreed = [optimizer.agree(name is not None) for optimizer, name in zip(optimizers, found)]
    if any(agreed):
        for optimizer in optimizers:
            optimizer.skip_next_step = True
    scaler.end(any(agreed), next((name for name in found if name is not None), None))


def _before_step(optimizer: Any, args: tuple, kwargs: dict) -> None:
    scaled = any(scaler.is_enabled() for scaler in _trainings[optimizer].scalers)
    who = f"{type(optimizer).__name__}.step"
    if scaled and args and args[0] is not None:
        raise RuntimeError(f"{who} takes no closure under loss scaling: the closure's gradients would not be scaled; use an "
                           f"optimizer that needs none, or initialize with loss_scale=1")
    for p in _parameters(optimizer) if scaled else ():
        if p.grad is not None and p.grad.__dict__.get("grad_scale", 1) != 1:
            raise RuntimeError(f"{who} expected true gradients, got one of shape {tuple(p.shape)} that carries the loss scale "
                               f"{p.grad.grad_scale:g}; the last scale_loss before a step has delay_unscale=False and names "
                               f"this optimizer")
    if optimizer.skip_next_step:
        journal.roll_back()


def _parameters(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]
