"""Loss scaling: the loss is multiplied so that small gradients do not vanish in float16, and a step whose gradients
overflow is skipped.

The order of a step is: unscale in float32, check, clip, agree over the ranks, update, and once an iteration move the
scale. Each gradient carries the scale it was made with (`grad_scale`), which a hook on the scaled loss tells backward, so
nothing is unscaled twice or not at all.
"""

from __future__ import annotations

import functools
import logging
import math
import numbers
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ..autograd import edits
from ..autograd.mode import state
from ..tensor import journal
from ..tensor.device import Device
from ..tensor.tensor import Tensor, make_tensor

logger = logging.getLogger("minidl.amp")

READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"


class _Found:
    """What a scaler knows of an optimizer in this iteration."""

    def __init__(self) -> None:
        self.stage = READY
        self.overflow: str | None = None  # the first parameter whose gradient is not finite
        self.taken: bool | None = None  # None before step


class StaticScaler:
    """A fixed loss scale; a step with non-finite gradients is skipped.

    Args:
        scale: what the loss is multiplied with.
        enabled: False makes everything here the identity.
        max_consecutive_skips: an error after so many iterations in a row with a skipped step; None for none.

    Raises:
        ValueError: for a scale that is not positive and finite.
    """

    def __init__(self, scale: float = 65536.0, enabled: bool = True, *, max_consecutive_skips: int | None = 50):
        who = type(self).__name__
        self._scale = checked_scale(who, "scale", scale)
        if max_consecutive_skips is not None and not _is_count(max_consecutive_skips):
            raise ValueError(f"{who} expected max_consecutive_skips as a positive integer or None, got "
                             f"{max_consecutive_skips!r}")
        self._enabled = bool(enabled)
        self.max_consecutive_skips = max_consecutive_skips
        self._skips = 0
        self._optimizers: dict[Any, _Found] = {}
        if self._enabled:
            journal.open_for(self)

    def is_enabled(self) -> bool:
        """Does this scaler do anything?"""
        return self._enabled

    def get_scale(self) -> float:
        """What the loss is multiplied with; 1 where the scaler is not enabled."""
        return self._scale if self._enabled else 1.0

    # The iteration

    def scale(self, outputs: Any) -> Any:
        """A loss times the scale, or several in nested lists, tuples and dicts; half losses become float32 first."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if outputs.dtype.kind not in "fV":
                raise TypeError(f"{type(self).__name__}.scale expected a floating loss, got {outputs.dtype}")
            scaled = (outputs if outputs.dtype.itemsize > 2 else outputs.float()) * self._scale
            if scaled.requires_grad:
                scaled.register_hook(functools.partial(_mark, self._scale))
            return scaled
        if isinstance(outputs, dict):
            return {name: self.scale(value) for name, value in outputs.items()}
        if isinstance(outputs, (list, tuple)):
            scaled_parts = [self.scale(value) for value in outputs]
            return type(outputs)(*scaled_parts) if hasattr(outputs, "_fields") else type(outputs)(scaled_parts)
        raise TypeError(f"{type(self).__name__}.scale expected a tensor, or lists, tuples and dicts of them, got "
                        f"{type(outputs).__name__}")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer by the scale, in float32, and note whether they are finite.

        Gradients of half parameters become float32. Call it before clipping; step calls it otherwise.

        Raises:
            RuntimeError: if it was called already, or step was, since the last update.
        """
        if not self._enabled:
            return
        found = self._found(optimizer)
        if found.stage is UNSCALED:
            raise RuntimeError("unscale_ was called on this optimizer already since the last update()")
        if found.stage is STEPPED:
            raise RuntimeError("unscale_ is called after step(); call it before")
        found.overflow = unscale_gradients(optimizer, self._scale)
        found.stage = UNSCALED

    def step(self, optimizer: Any, closure: Callable[[], Any] | None = None) -> bool:
        """Take a step of the optimizer if all gradients, on all ranks, are finite; otherwise clear them.

        Returns:
            True when the step was taken.

        Raises:
            RuntimeError: for a second step without update() between, for a closure, or after too many iterations in a row
                with a skipped step.
        """
        if not self._enabled:
            optimizer.step(*([] if closure is None else [closure]))
            return True
        if closure is not None or getattr(optimizer, "needs_closure", False):
            raise RuntimeError(f"{type(self).__name__}.step takes no closure, whose gradients would be scaled; train with "
                               f"{type(optimizer).__name__} without a scaler, or with an optimizer that needs no closure")
        found = self._found(optimizer)
        if found.stage is STEPPED:
            raise RuntimeError("step was called on this optimizer already since the last update(); call update() first")
        if found.stage is READY:
            self.unscale_(optimizer)
        elif found.overflow is None:
            found.overflow = _first_not_finite(optimizer)  # what was done to the gradients since may have broken them
        found.stage = STEPPED
        if not any(True for _ in _gradients(optimizer)):
            warnings.warn(f"{type(self).__name__}.step: no parameter of the {type(optimizer).__name__} has a gradient; was "
                          f"backward called?", stacklevel=2)
        if optimizer.agree(found.overflow is not None):
            self._skip(optimizer, found)
            return False
        optimizer.step()
        found.taken = True
        journal.commit()
        return True

    def _skip(self, optimizer: Any, found: _Found) -> None:
        first = self._all_taken()
        found.taken = False
        optimizer.zero_grad()
        optimizer.skipped_steps = getattr(optimizer, "skipped_steps", 0) + 1
        journal.roll_back()
        if first:
            self._skips += 1
        self._report_skip(found.overflow)

    def _all_taken(self) -> bool:
        return all(found.taken is not False for found in self._optimizers.values())

    def _report_skip(self, parameter: str | None) -> None:
        where = parameter or "a parameter on another rank"
        logger.warning("%s: step skipped, the gradient of %s is not finite at loss scale %g", type(self).__name__, where,
                       self._scale)
        if self.max_consecutive_skips is not None and self._skips >= self.max_consecutive_skips:
            raise RuntimeError(f"{type(self).__name__} skipped {self._skips} steps in a row; the gradient of {where} is not "
                               f"finite at loss scale {self._scale:g}. The model itself produces inf or nan: look at that "
                               f"parameter with autograd.set_detect_anomaly(True), or lower the learning rate")

    def update(self, new_scale: Any = None) -> None:
        """End the iteration: move the scale, once for all optimizers stepped since the last update.

        Args:
            new_scale: set the scale to this instead.

        Raises:
            RuntimeError: if no optimizer was stepped, or one was unscaled only.
        """
        if not self._enabled:
            return
        stepped = [found for found in self._optimizers.values() if found.stage is STEPPED]
        if new_scale is not None:
            self._set(new_scale.item() if isinstance(new_scale, Tensor) else new_scale)
        elif not stepped:
            raise RuntimeError("update() was called before step(); call step(optimizer) first")
        else:
            self._move(not self._all_taken())
        if self._all_taken():
            self._skips = 0
        self._optimizers.clear()

    def _set(self, scale: float) -> None:
        self._scale = checked_scale(type(self).__name__, "new_scale", scale)

    def end(self, overflow: bool, parameter: str | None = None) -> None:
        """End an iteration whose gradients have been looked at by others; `parameter` names one that is not finite."""
        self._skips = self._skips + 1 if overflow else 0
        self._move(overflow)
        if overflow:
            self._report_skip(parameter)

    def cap(self, limit: float) -> None:
        """Lower a dynamic scale to a limit."""

    def _move(self, overflow: bool) -> None:
        """A static scale stays."""

    def _found(self, optimizer: Any) -> _Found:
        if optimizer not in self._optimizers:
            self._optimizers[optimizer] = _Found()
        return self._optimizers[optimizer]

    # State

    def state_dict(self) -> dict:
        """What load_state_dict needs, numbers only; empty where the scaler is not enabled."""
        return {"scale": self._scale, "skips": self._skips} if self._enabled else {}

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on from a state_dict.

        Raises:
            RuntimeError: for an empty one.
        """
        if not self._enabled:
            return
        who = f"{type(self).__name__}.load_state_dict"
        if "scale" not in state_dict:
            raise RuntimeError(f"{who} expected a scale, got {', '.join(map(repr, state_dict)) or 'an empty dict'}; was it "
                               f"saved by a scaler that was not enabled?")
        scale, skips = checked_scale(who, "scale", state_dict["scale"]), state_dict.get("skips", 0)
        if not _is_count(skips, least=0):
            raise ValueError(f"{who} expected skips as an integer >= 0, got {skips!r}")
        self._scale, self._skips = scale, int(skips)

    def __getstate__(self) -> dict:
        if any(found.stage is not READY for found in self._optimizers.values()):
            raise RuntimeError(f"{type(self).__name__} can be pickled at the beginning of an iteration, or at its end after "
                               f"update(); an optimizer is in the middle of a step")
        return {name: value for name, value in self.__dict__.items() if name != "_optimizers"}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._optimizers = {}
        if self._enabled:
            journal.open_for(self)


class GradScaler(StaticScaler):
    """A dynamic loss scale: it grows after a number of clean steps and backs off at an overflow.

    Args:
        device: accepted for PyTorch's sake; all devices are served alike.
        init_scale: where the scale starts.
        growth_factor: multiplies the scale after `growth_interval` clean iterations in a row.
        backoff_factor: multiplies the scale at an overflow.
        enabled: False makes everything here the identity.
        min_scale, max_scale: the scale never leaves these bounds.
        hysteresis: an overflow lowers a counter that starts here; the scale backs off at an overflow that finds it at 0 or
            below after lowering. A clean iteration sets it back.
        max_consecutive_skips: an error after so many iterations in a row with a skipped step; None for none.

    Raises:
        ValueError: for impossible numbers, or an init_scale outside the bounds.

    Source: Micikevicius et al. 2018, with torch.amp's interface and Megatron's hysteresis.
    """

    def __init__(self, device: Any = None, init_scale: float = 65536.0, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True, *, min_scale: float = 1.0,
                 max_scale: float = 2.0 ** 24, hysteresis: int = 1, max_consecutive_skips: int | None = 50):
        if device is not None:
            Device(device)
        super().__init__(init_scale, enabled, max_consecutive_skips=max_consecutive_skips)
        self.min_scale, self.max_scale = _bounds(min_scale, max_scale)
        self._check_bounds("init_scale", init_scale)
        self.set_growth_factor(growth_factor)
        self.set_backoff_factor(backoff_factor)
        self.set_growth_interval(growth_interval)
        if not _is_count(hysteresis):
            raise ValueError(f"GradScaler expected hysteresis as an integer >= 1, got {hysteresis!r}")
        self.hysteresis = self._left = int(hysteresis)
        self._growth_tracker = 0

    def get_growth_factor(self) -> float:
        """What multiplies the scale when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set it, to a number above 1."""
        if not (_is_number(new_factor) and 1 < new_factor < math.inf):
            raise ValueError(f"GradScaler expected growth_factor > 1, got {new_factor!r}")
        self._growth_factor = float(new_factor)

    def get_backoff_factor(self) -> float:
        """What multiplies the scale at an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set it, to a number between 0 and 1."""
        if not (_is_number(new_factor) and 0 < new_factor < 1):
            raise ValueError(f"GradScaler expected backoff_factor between 0 and 1, got {new_factor!r}")
        self._backoff_factor = float(new_factor)

    def get_growth_interval(self) -> int:
        """Clean iterations in a row after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set it, to a positive integer."""
        if not _is_count(new_interval):
            raise ValueError(f"GradScaler expected growth_interval as a positive integer, got {new_interval!r}")
        self._growth_interval = int(new_interval)

    def _set(self, scale: float) -> None:
        scale = checked_scale("GradScaler", "new_scale", scale)
        self._check_bounds("new_scale", scale)
        self._scale = scale

    def _check_bounds(self, what: str, scale: float) -> None:
        if not self.min_scale <= scale <= self.max_scale:
            raise ValueError(f"GradScaler expected {what} in [{self.min_scale:g}, {self.max_scale:g}], got {scale:g}; it, "
                             f"min_scale and max_scale are arguments of the constructor")

    def _move(self, overflow: bool) -> None:
        if overflow:
            self._growth_tracker = 0
            self._left -= 1
            if self._left <= 0:
                self._back_off()
            return
        self._left = self.hysteresis
        self._growth_tracker += 1
        if self._growth_tracker >= self._growth_interval:
            self._growth_tracker = 0
            grown = min(self._scale * self._growth_factor, self.max_scale)
            if grown <= _LARGEST:
                self._scale = grown

    def cap(self, limit: float) -> None:
        self._scale = max(min(self._scale, limit), self.min_scale)

    def _back_off(self) -> None:
        lower = max(self._scale * self._backoff_factor, self.min_scale)
        if lower == self._scale:
            logger.warning("GradScaler: overflow at the smallest loss scale, %g; gradients overflow without any scaling",
                           self._scale)
        self._scale = lower

    def state_dict(self) -> dict:
        """What load_state_dict needs, numbers only; empty where the scaler is not enabled."""
        if not self._enabled:
            return {}
        return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker,
                "hysteresis_left": self._left, "skips": self._skips}

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on from a state_dict, torch's included.

        Raises:
            RuntimeError: for an empty one.
            ValueError: for impossible numbers; nothing is changed then.
        """
        before = dict(self.__dict__)
        try:
            super().load_state_dict(state_dict)
            if self._enabled:
                self._check_bounds("the scale of a state_dict", self._scale)
                self.set_growth_factor(state_dict.get("growth_factor", self._growth_factor))
                self.set_backoff_factor(state_dict.get("backoff_factor", self._backoff_factor))
                self.set_growth_interval(state_dict.get("growth_interval", self._growth_interval))
                tracker, left = state_dict.get("_growth_tracker", 0), state_dict.get("hysteresis_left", self.hysteresis)
                if not (_is_count(tracker, least=0) and isinstance(left, numbers.Integral)):
                    raise ValueError(f"GradScaler.load_state_dict expected _growth_tracker as an integer >= 0 and "
                                     f"hysteresis_left as an integer, got {tracker!r} and {left!r}")
                self._growth_tracker, self._left = int(tracker), int(left)
        except BaseException:
            self.__dict__.update(before)
            raise


_LARGEST = 3.4028234663852886e38  # of float32


def checked_scale(who: str, what: str, value: Any) -> float:
    """A loss scale as a float.

    Raises:
        ValueError: if it is not positive and finite in float32.
    """
    if not (_is_number(value) and 0 < value <= _LARGEST):
        raise ValueError(f"{who} expected {what} as a positive number that float32 can hold, got {value!r}")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_count(value: Any, least: int = 1) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least


def _bounds(low: Any, high: Any) -> tuple[float, float]:
    if not (_is_number(low) and _is_number(high) and 0 < low <= high):
        raise ValueError(f"GradScaler expected 0 < min_scale <= max_scale, got {low!r} and {high!r}")
    return float(low), float(high)


def _mark(scale: float, gradient: Any) -> None:
    """A hook on a scaled loss: the gradients of this backward carry its scale."""
    if state.grad_scale not in (None, scale):
        raise RuntimeError(f"backward reached losses of the scales {state.grad_scale:g} and {scale:g}; call backward for each")
    state.grad_scale = scale


def _gradients(optimizer: Any) -> Iterator[tuple[str, Any]]:
    """(name, parameter) of the parameters that have a gradient."""
    for number, group in enumerate(optimizer.param_groups):
        names = group.get("param_names")
        for i, p in enumerate(group["params"]):
            if p.grad is not None:
                yield (names[i] if names else f"parameter {i} of group {number}, of shape {tuple(p.shape)},"), p


def unscale_gradients(optimizer: Any, scale: float) -> str | None:
    """Divide the gradients by their scale, in float32; the name of the first parameter whose gradient is not finite."""
    first = None
    for name, p in _gradients(optimizer):
        leaf = p.node
        gradient = leaf.grad
        factor = 1 / gradient.__dict__.get("grad_scale", scale)
        xp = gradient.backend
        array = gradient.array
        if array.dtype.itemsize == 2:
            array = xp.widen(array)
            if array is gradient.array:
                array = array.copy()
            leaf.grad = gradient = make_tensor(array, None)
        finite = xp.scale_and_check(array, factor)
        edits.record_edit(array)
        gradient.__dict__.update(grad_scale=1.0, unscaled=True)
        if first is None and not finite:
            first = name
    return first


def _first_not_finite(optimizer: Any) -> str | None:
    return next((name for name, p in _gradients(optimizer) if not p.grad.backend.scale_and_check(p.grad.array, 1.0)), None)
