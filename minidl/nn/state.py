"""State dicts of Modules: flat names to tensors, in PyTorch's order, and loading that changes all or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..autograd.mode import no_grad
from ..tensor.convert import to_array
from ..tensor.tensor import Tensor, make_tensor
from .parameter import Parameter, is_uninitialized

if TYPE_CHECKING:
    from .module import Module

_EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What load_state_dict did not find, and what it did not expect."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def state_dict(self: Module, *args: Any, destination: dict | None = None, prefix: str = "", keep_vars: bool = False) -> dict:
    """The parameters and persistent buffers under their dotted names; tensors that share the module's memory.

    Args:
        destination: a dict to add to; default a new one.
        prefix: before all names.
        keep_vars: the Parameters themselves instead of detached tensors.
    """
    given: Any = (*args, *(destination, prefix, keep_vars)[len(args):])  # PyTorch's older form is positional
    destination, prefix, keep_vars = given
    result: dict = {} if destination is None else destination
    hooks = self._state_hooks
    for hook in list(hooks["save_pre"].values()) if hooks else ():
        hook(self, prefix, keep_vars)
    for name, tensor in _own_state(self).items():
        result[prefix + name] = tensor if keep_vars or is_uninitialized(tensor) else tensor.detach()
    if _has_extra_state(self):
        result[prefix + _EXTRA] = self.get_extra_state()
    for name, module in self._modules.items():
        module.state_dict(destination=result, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in list(hooks["save"].values()) if hooks else ():
        hook(self, result, prefix, {})
    return result


def _own_state(module: Module) -> dict[str, Tensor]:
    persistent = {name: t for name, t in module._buffers.items() if module._buffer_names[name]}
    return {**module._parameters, **persistent}


def _has_extra_state(module: Module) -> bool:
    return type(module).get_extra_state.__module__ != "minidl.nn.module"


def load_state_dict(self: Module, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> IncompatibleKeys:
    """Copy tensors (or NumPy arrays) into the parameters and buffers of the same names. On an error nothing is changed.

    Args:
        strict: names must match exactly; otherwise names without a partner are left alone and returned.
        assign: put the tensors themselves in place of the module's, keeping their dtype, device and memory.

    Raises:
        RuntimeError: one that lists every missing, unexpected and mis-shaped name.
        TypeError: if state_dict is no mapping, or a value no array.
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"load_state_dict expected a dict, got {type(state_dict).__name__}")
    given = dict(state_dict)
    modules = list(self.named_modules(remove_duplicate=False))
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    for path, module in modules:
        for hook in list(module._state_hooks["load_pre"].values()) if module._state_hooks else ():
            hook(module, given, path and path + ".", {}, strict, missing, unexpected, errors)
    todo = []
    expected = set()
    for path, module in modules:
        prefix = path and path + "."
        for name, target in _own_state(module).items():
            key = prefix + name
            expected.add(key)
            if key not in given:
                missing.append(key)
                continue
            source = _as_tensor(key, given[key])
            if not is_uninitialized(target) and not is_uninitialized(source) and source.shape != target.shape:
                if not (target.ndim == 0 and source.shape == (1,)):
                    errors.append(f"{key}: expected shape {target.shape}, got {source.shape}")
                    continue
                source = source.reshape(())
            todo.append((module, name, target, source))
        if _has_extra_state(module):
            expected.add(prefix + _EXTRA)
            if prefix + _EXTRA not in given:
                missing.append(prefix + _EXTRA)
    unexpected += [key for key in given if key not in expected]
    if errors or (strict and (missing or unexpected)):
        raise RuntimeError(_report(type(self).__name__, *((missing, unexpected) if strict else ([], [])), errors))
    for module, name, target, source in todo:
        _put(module, name, target, source, assign)
    for path, module in modules:
        key = (path and path + ".") + _EXTRA
        if _has_extra_state(module) and key in given:
            module.set_extra_state(given[key])
    result = IncompatibleKeys(missing, unexpected)
    for _, module in modules:
        for hook in list(module._state_hooks["load"].values()) if module._state_hooks else ():
            hook(module, result)
    return result


def _as_tensor(key: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (np.ndarray, np.generic, int, float)) or hasattr(value, "__dlpack__"):
        return make_tensor(to_array(value), None)
    raise TypeError(f"load_state_dict expected a tensor or an array for {key!r}, got {type(value).__name__}")


def _put(module: Any, name: str, target: Tensor, source: Tensor, assign: bool) -> None:
    if assign:
        if isinstance(target, Parameter):
            module.__dict__[name] = source if isinstance(source, Parameter) else Parameter(source, target.requires_grad)
        else:
            module.__dict__[name] = source
        return
    if is_uninitialized(source):
        return
    if is_uninitialized(target):
        target.materialize(source.shape)
    with no_grad():
        target.copy_(source.detach())


def _report(who: str, missing: list, unexpected: list, errors: list) -> str:
    parts = [f"{what} {', '.join(names)}" for what, names in (("missing:", missing), ("unexpected:", unexpected)) if names]
    if errors:
        parts.append("of another shape: " + "; ".join(errors))
    advice = "" if errors else "; pass strict=False to load what matches"
    return f"{who}.load_state_dict expected exactly the names and shapes of the module, got " + "; ".join(parts) + advice
