"""A parameter of a module that a hook computes from other parameters before each forward."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from ...tensor.tensor import Tensor
from ..module import Module
from ..parameter import Parameter, is_uninitialized

M = TypeVar("M", bound=Module)


class Computed(Tensor):
    """A tensor in a parameter's place; unlike others with a history it can be copied, without the history."""

    def __init__(self, tensor: Tensor):
        self.array, self.node, self.view_of = tensor.array, tensor.node, tensor.view_of

    def __deepcopy__(self, memo: dict) -> Tensor:
        return copy.deepcopy(self.detach(), memo)


class Reparametrization:
    """A forward pre-hook; `compute` makes the parameter of a name from those that the module has instead."""

    name: str

    def compute(self, module: Module) -> Tensor:
        raise NotImplementedError

    def __call__(self, module: Module, args: tuple) -> None:
        setattr(module, self.name, Computed(self.compute(module)))


def take_parameter(who: str, kind: type[Reparametrization], module: Module, name: str) -> Parameter:
    """Remove a parameter from a module that is to be computed from now on; returns it.

    Raises:
        RuntimeError: if it is computed by a hook of the kind already.
        ValueError: if there is none, or it has no shape yet.
    """
    if _key_of(kind, module, name) is not None:
        raise RuntimeError(f"{who} expected a parameter without it, got {name!r} of {type(module).__name__}, which has it "
                           f"already; remove that first")
    parameter = module._parameters.get(name)
    if parameter is None:
        raise ValueError(f"{who} expected {name!r} to be a parameter of {type(module).__name__}, which has "
                         f"{', '.join(module._parameters) or 'none'}")
    if is_uninitialized(parameter):
        raise ValueError(f"{who} expected parameters that have a shape; call the {type(module).__name__} once first")
    delattr(module, name)
    return parameter


def remove_hook(who: str, kind: type[Reparametrization], module: Module, name: str) -> Any:
    """Take out the hook that computes a parameter; returns the hook.

    Raises:
        ValueError: if there is none of the kind.
    """
    key = _key_of(kind, module, name)
    if key is None or module._hooks is None:
        raise ValueError(f"{who} expected a {type(module).__name__} that had it applied to {name!r}, got one without")
    return module._hooks.pop(key).function


def _key_of(kind: type[Reparametrization], module: Module, name: str) -> int | None:
    return next((key for key, hook in (module._hooks or {}).items()
                 if isinstance(hook.function, kind) and hook.function.name == name), None)
