"""Module: parameters, buffers and sub-modules as attributes, and a forward.

There are no registries: a parameter is an attribute that is a Parameter, a sub-module one that is a Module, in the order
in which they were first assigned. Buffers are tensors whose names `register_buffer` has noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

from ..autograd.hooks import RemovableHandle
from ..autograd.mode import no_grad
from ..tensor import dtypes
from ..tensor.conversion import to as _to
from ..tensor.policy import Policy
from ..tensor.tensor import Tensor
from .hooks import EVERY_MODULE, add_hook, call_with_hooks
from .parameter import Parameter, is_uninitialized
from .state import load_state_dict, state_dict


class Module:
    """Base class of layers and models. Subclasses call `super().__init__()`, assign parts as attributes, define forward.

    Attributes:
        training: True in training mode; see train() and eval().
        policy: if set to an amp.Policy, the dtypes in which this module, and those below without one of their own, compute.
    """

    training: bool = True
    policy: Any
    keeps_float32 = False                  # normalization layers say True: mixed precision leaves them in float32
    _hooks: dict[int, Any] | None = None
    _buffer_names: Any = MappingProxyType({})  # name -> is it in the state dict
    _state_hooks: dict[str, dict] | None = None

    def __init__(self) -> None:
        super().__init__()
        self._buffer_names = {}
        self.training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; calling the module calls this, and the hooks."""
        raise NotImplementedError(f"{type(self).__name__} expected a method forward; define one")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "policy" in self.__dict__ and isinstance(self.policy, Policy):
            with self.policy.region():
                return call_with_hooks(self, *self.policy.inputs((args, kwargs)))
        if self._hooks is None and not EVERY_MODULE:
            return self.forward(*args, **kwargs)
        return call_with_hooks(self, args, kwargs)

    # Parts

    def __setattr__(self, name: str, value: Any) -> None:
        parts = self.__dict__
        if isinstance(value, (Parameter, Module)):
            self._check_is_set_up(name)
        before = parts.get(name)
        if isinstance(before, Parameter) and not (value is None or isinstance(value, Parameter)):
            raise TypeError(f"{type(self).__name__}.{name} expected a Parameter or None, got {type(value).__name__}; "
                            f"wrap it in nn.Parameter, or delete the parameter first")
        if isinstance(before, Module) and not (value is None or isinstance(value, Module)):
            raise TypeError(f"{type(self).__name__}.{name} expected a Module or None, got {type(value).__name__}")
        if name in self._buffer_names and not (value is None or isinstance(value, Tensor)):
            raise TypeError(f"{type(self).__name__}.{name} expected a Tensor or None as the buffer, got "
                            f"{type(value).__name__}")
        if name in self._buffer_names and isinstance(value, Parameter):
            del self._buffer_names[name]
        object.__setattr__(self, name, value)

    def _check_is_set_up(self, name: str) -> None:
        if "_buffer_names" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} expected super().__init__() before {name!r} is assigned")

    def __delattr__(self, name: str) -> None:
        self._buffer_names.pop(name, None)
        object.__delattr__(self, name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Assign a parameter to an attribute; None says that the module has none of that name."""
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"register_parameter expected a Parameter or None for {name!r}, got {type(param).__name__}")
        if param is not None and not param.is_leaf:
            raise ValueError(f"register_parameter expected a leaf for {name!r}, got a computed tensor; use "
                             f"nn.Parameter(tensor.detach())")
        self._check_new_name(name, self._parameters)
        setattr(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Assign a tensor that is part of the module's state but not learned, such as a running mean.

        Args:
            persistent: whether it is in the state dict.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"register_buffer expected a Tensor or None for {name!r}, got {type(tensor).__name__}")
        self._check_is_set_up(name)
        self._check_new_name(name, self._buffer_names)
        setattr(self, name, tensor)
        self._buffer_names[name] = persistent

    def add_module(self, name: str, module: Module | None) -> None:
        """Assign a sub-module to an attribute, also to one whose name is no identifier, such as "0"."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"add_module expected a Module or None for {name!r}, got {type(module).__name__}")
        self._check_new_name(name, self._modules)
        setattr(self, name, module)

    register_module = add_module

    def _check_new_name(self, name: str, same_kind: Any = ()) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{type(self).__name__} expected a string as the name of a part, got {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"{type(self).__name__} expected a name without dots that is not empty, got {name!r}")
        if name not in same_kind and (self.__dict__.get(name) is not None or hasattr(type(self), name)):
            raise KeyError(f"{type(self).__name__} has an attribute {name!r} already")

    @property
    def _parameters(self) -> dict[str, Parameter]:
        return {name: part for name, part in self.__dict__.items() if isinstance(part, Parameter)}

    @property
    def _modules(self) -> dict[str, Module]:
        return {name: part for name, part in self.__dict__.items() if isinstance(part, Module)}

    @property
    def _buffers(self) -> dict[str, Tensor]:
        return {name: self.__dict__[name] for name in self._buffer_names if self.__dict__[name] is not None}

    def named_modules(self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
                      ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with dotted names; each once, under the first of its names."""
        memo = set() if memo is None else memo
        if remove_duplicate and self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct sub-modules with their names, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct sub-modules."""
        for _, module in self.named_children():
            yield module

    def _named_members(self, members: Callable, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator:
        seen = set()
        for path, module in self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [
                (prefix, self)]:
            for name, tensor in members(module).items():
                if remove_duplicate and id(tensor) in seen:
                    continue
                seen.add(id(tensor))
                yield f"{path}.{name}" if path else name, tensor

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
                         ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names; a shared one once."""
        return self._named_members(lambda module: module._parameters, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, of sub-modules too with recurse."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
                      ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names."""
        return self._named_members(lambda module: module._buffers, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, of sub-modules too with recurse."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted name; "" is this one.

        Raises:
            AttributeError: if there is none.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            found = module.__dict__.get(name)
            if not isinstance(found, Module):
                raise AttributeError(f"{type(module).__name__} has no sub-module {name!r} (of {target!r}); it has "
                                     f"{', '.join(module._modules) or 'none'}")
            module = found
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted name."""
        return self._member(target, Parameter, "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted name."""
        return self._member(target, Tensor, "buffer")

    def _member(self, target: str, kind: type, what: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        found = owner.__dict__.get(name)
        if not isinstance(found, kind) or (what == "buffer" and name not in owner._buffer_names):
            raise AttributeError(f"{type(owner).__name__} has no {what} {name!r}")
        return found

    # Modes

    def train(self, mode: bool = True) -> Any:
        """Set training mode (dropout drops, BatchNorm uses the batch's statistics) here and below; returns the module."""
        if not isinstance(mode, bool):
            raise ValueError(f"train expected True or False, got {mode!r}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Any:
        """Set evaluation mode here and below; returns the module."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Say for all parameters whether backward computes their gradients; returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or with set_to_none=False set them to zero."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = parameter.grad.detach().zero_()

    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """Call `fn(module)` for every module below and for this one last; returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # dtype and device

    def _convert(self, convert: Callable[[Tensor], Tensor]) -> Any:
        with no_grad():
            for module in self.modules():
                for parameter in module._parameters.values():
                    gradient = parameter.grad
                    parameter.grad = None
                    parameter.data = convert(parameter.data)
                    if gradient is not None:
                        parameter.grad = convert(gradient)
                for name, buffer in module._buffers.items():
                    if not is_uninitialized(buffer):
                        module.__dict__[name] = convert(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move parameters and buffers to a device, and floating ones to a floating dtype, in place.

        Takes `to(device, dtype=None)`, `to(dtype)` or `to(tensor)`.
        """
        probe = _to(Tensor(0.0), *args, **kwargs)
        if probe.dtype not in dtypes.FLOATING:
            raise TypeError(f"{type(self).__name__}.to expected a floating dtype, got {dtypes.dtype_name(probe.dtype)}")
        first = args[0] if args else None
        device = probe.device if "device" in kwargs or "other" in kwargs or isinstance(first, Tensor) or (
            first is not None and not _is_dtype(first)) else None
        asks = "dtype" in kwargs or "other" in kwargs or isinstance(first, Tensor) or any(map(_is_dtype, args[:2]))
        return self._convert(lambda t: _to(t, device=device, dtype=probe.dtype if asks and t.is_floating_point() else None))

    def _floats_to(self, dtype: Any) -> Any:
        return self._convert(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Any:
        """Parameters and buffers of floating dtypes to float32."""
        return self._floats_to(dtypes.float32)

    def double(self) -> Any:
        """Parameters and buffers of floating dtypes to float64."""
        return self._floats_to(dtypes.float64)

    def half(self) -> Any:
        """Parameters and buffers of floating dtypes to float16."""
        return self._floats_to(dtypes.float16)

    def bfloat16(self) -> Any:
        """Parameters and buffers of floating dtypes to bfloat16."""
        return self._floats_to(dtypes.bfloat16)

    def type(self, dst_type: Any) -> Any:
        """All parameters and buffers to a dtype."""
        return self._convert(lambda t: t.to(dst_type))

    def cpu(self) -> Any:
        """Parameters and buffers to the CPU."""
        return self._convert(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Any:
        """Parameters and buffers to a CUDA device, by default the current one."""
        return self._convert(lambda t: t.cuda(device))

    # State

    state_dict = state_dict
    load_state_dict = load_state_dict

    def get_extra_state(self) -> Any:
        """State beyond parameters and buffers; a module that defines this defines set_extra_state too."""
        raise RuntimeError(f"{type(self).__name__} has no extra state; define get_extra_state and set_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take over what get_extra_state gave."""
        raise RuntimeError(f"{type(self).__name__} has no extra state; define get_extra_state and set_extra_state")

    # Hooks

    def _add_hook(self, kind: str, hook: Callable, **options: bool) -> RemovableHandle:
        if self._hooks is None:
            self._hooks = {}
        return add_hook(self._hooks, kind, hook, **options)

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
                                  ) -> RemovableHandle:
        """Call `hook(module, args)` before forward; what it returns replaces the arguments."""
        return self._add_hook("forward_pre", hook, prepend=prepend, with_kwargs=with_kwargs)

    def register_forward_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; what it returns replaces the output."""
        return self._add_hook("forward", hook, prepend=prepend, with_kwargs=with_kwargs, always_call=always_call)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the module's backward; what it returns replaces the gradients."""
        return self._add_hook("backward_pre", hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the inputs' gradients are there; what it returns replaces them."""
        return self._add_hook("backward", hook, prepend=prepend)

    def _add_state_hook(self, kind: str, hook: Callable) -> RemovableHandle:
        if self._state_hooks is None:
            self._state_hooks = {"save_pre": {}, "save": {}, "load_pre": {}, "load": {}}
        return RemovableHandle(self._state_hooks[kind], hook)

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the module's part of a state dict is made."""
        return self._add_state_hook("save_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` when the module's part of a state dict has been made."""
        return self._add_state_hook("save", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)` before loading."""
        return self._add_state_hook("load_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading."""
        return self._add_state_hook("load", hook)

    # Text

    def extra_repr(self) -> str:
        """What repr shows between the parentheses."""
        return ""

    def __repr__(self) -> str:
        lines = self._lines_of_parts()
        extra = self.extra_repr()
        if not lines:
            return f"{self._name()}({extra})"
        return f"{self._name()}({extra and extra + chr(10) + '  '}" + "\n  ".join(["", *lines]).removeprefix(
            "\n  " if extra else "") + "\n)"

    def _lines_of_parts(self) -> list[str]:
        return [f"({name}): " + indented(module) for name, module in self._modules.items()]

    def _name(self) -> str:
        return type(self).__name__


def indented(module: Module) -> str:
    """A module's repr as a part of another's."""
    return repr(module).replace("\n", "\n  ")


def _is_dtype(value: Any) -> bool:
    if isinstance(value, (int, Tensor)) or value is None:
        return False
    try:
        dtypes.as_dtype(value)
    except TypeError:
        return False
    return True


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module."""
    return add_hook(EVERY_MODULE, "forward_pre", hook)


def register_module_forward_hook(hook: Callable, *, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module."""
    return add_hook(EVERY_MODULE, "forward", hook, with_kwargs=with_kwargs, always_call=always_call)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after the backward of every module."""
    return add_hook(EVERY_MODULE, "backward", hook)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the backward of every module."""
    return add_hook(EVERY_MODULE, "backward_pre", hook)
