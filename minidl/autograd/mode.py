"""Per-thread switches of the engine: is the graph recorded, and is it watched for anomalies."""

from __future__ import annotations

import functools
import inspect
import threading
from typing import Any


class _State(threading.local):
    grad = True
    inference = False
    anomaly = False
    recomputing = False                # a checkpoint's second run: running statistics must not move
    grad_scale: float | None = None    # of the loss that backward comes from, once it has passed that
    made: list[Any] | None = None      # where the nodes that are made are noted, if they are


state = _State()
watched: set[str] = set()  # empty until a thread watches its nodes: spares the hot path a look at its state


def watch_nodes(made: list | None) -> list | None:
    """Note the nodes that this thread makes from now on in `made` (None: nowhere); returns what it was before."""
    watched.add("made")
    before, state.made = state.made, made
    return before


class _Switch:
    """A context manager and decorator that sets fields of the thread's state and puts them back.

    One instance may be entered again while it is active, and used by several threads.
    """

    def __init__(self, **fields: bool):
        self._fields = fields
        self._saved = threading.local()

    def __enter__(self):
        stack = self._saved.__dict__.setdefault("stack", [])
        stack.append({name: getattr(state, name) for name in self._fields})
        for name, value in self._fields.items():
            setattr(state, name, value)
        return self

    def __exit__(self, *exc):
        for name, value in self._saved.stack.pop().items():
            setattr(state, name, value)

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapped

    def _wrap_generator(self, function):
        """Hold the switch while the generator's body runs, and not while its caller does."""

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            action, value = generator.send, None
            while True:
                try:
                    with self:
                        item = action(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    action, value = generator.send, (yield item)
                except GeneratorExit:
                    generator.close()
                    raise
                except BaseException as error:
                    action, value = generator.throw, error

        return wrapped


class _bare_or_called(_Switch):
    """Lets `@no_grad` be written as well as `@no_grad()`."""

    def __new__(cls, function=None):
        self = super().__new__(cls)
        if function is None:
            return self
        self.__init__()
        return self(function)


class no_grad(_bare_or_called):
    """Context manager and decorator under which nothing is recorded and results need no gradient."""

    def __init__(self, function=None):
        super().__init__(grad=False)


class enable_grad(_bare_or_called):
    """Context manager and decorator that turns recording on again inside `no_grad`."""

    def __init__(self, function=None):
        super().__init__(grad=True)


class inference_mode(_Switch):
    """Context manager and decorator: as `no_grad`, and `is_inference_mode_enabled()` is true inside.

    Tensors made inside are ordinary ones: they may be used outside, also with autograd.

    Args:
        mode: False switches inference mode off inside a block where it is on.
    """

    def __new__(cls, mode=True):
        self = super().__new__(cls)
        if not callable(mode):
            return self
        self.__init__()
        return self(mode)

    def __init__(self, mode=True):
        enabled = mode if isinstance(mode, bool) else True
        super().__init__(inference=enabled, grad=not enabled)


class set_grad_enabled(_Switch):
    """Turns recording on or off: at once when called, and until the block's end when used with `with`."""

    def __init__(self, mode: bool):
        super().__init__(grad=bool(mode))
        self._before = state.grad
        state.grad = bool(mode)

    def __enter__(self):
        super().__enter__()
        self._saved.stack[-1]["grad"] = self._before
        return self

    def __call__(self, function):
        state.grad = self._before
        return super().__call__(function)


class set_detect_anomaly(_Switch):
    """Makes backward check every gradient and name the forward op, with its call site, that gave the first
    non-finite one. Acts at once when called, and until the block's end when used with `with`. Slow: for debugging.
    """

    def __init__(self, mode: bool = True, check_nan: bool = True):
        super().__init__(anomaly=bool(mode and check_nan))
        watched.add("anomaly")
        self._before = state.anomaly
        state.anomaly = bool(mode and check_nan)

    def __enter__(self):
        super().__enter__()
        self._saved.stack[-1]["anomaly"] = self._before
        return self


class detect_anomaly(_Switch):
    """Context manager under which backward names the op of the first non-finite gradient (see set_detect_anomaly)."""

    def __init__(self, check_nan: bool = True):
        super().__init__(anomaly=bool(check_nan))
        watched.add("anomaly")


def is_grad_enabled() -> bool:
    """True where operations are recorded for backward in this thread."""
    return state.grad


def is_inference_mode_enabled() -> bool:
    """True inside `inference_mode()` in this thread."""
    return state.inference


def is_anomaly_enabled() -> bool:
    """True where anomaly detection is on in this thread."""
    return state.anomaly
