"""Arguments that should have been tensors: exported functions tell of them in our words, at no cost to good calls."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .tensor import Tensor


def explained(error: AttributeError, function: Callable, args: tuple, kwargs: dict) -> Exception:
    """A TypeError where the attribute was missed on an argument that is no tensor, or on a part of one; else the error."""
    if error.name is None or isinstance(error.obj, (Tensor, type)):
        return error
    names = list(inspect.signature(function).parameters)
    names += names[-1:] * (len(args) - len(names))  # of *tensors
    called = function.__name__.strip("_")
    for name, value in (*zip(names, args), *kwargs.items()):
        if value is error.obj:
            return TypeError(f"{called} expected a tensor as {name}, got {_kind(value)}; make a tensor of it first with "
                             f"minidl.tensor")
        if isinstance(value, (tuple, list)) and any(part is error.obj for part in value):
            return TypeError(f"{called} expected tensors in {name}, got {_kind(error.obj)}; make a tensor of it first with "
                             f"minidl.tensor")
    return error


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def checked(function: Callable) -> Callable:
    """The function with `explained` errors."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except AttributeError as error:
            raise explained(error, function, args, kwargs) from None

    wrapper.checked = True  # type: ignore[attr-defined]
    return wrapper


def check_all(namespace: dict[str, Any]) -> None:
    """Make every function of tensors in a module `checked`, except ops, which `apply` explains; pickle finds it there."""
    for name, function in list(namespace.items()):
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        if not function.__module__.startswith("minidl.tensor."):
            continue
        if not hasattr(function, "checked"):
            if hasattr(function, "op"):
                continue
            function = namespace[name] = checked(function)
        function.__module__, function.__qualname__ = namespace["__name__"], name
