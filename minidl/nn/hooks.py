"""Hooks of a Module: before and after its forward, and around its backward. A Module without hooks never comes here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.function import Function
from ..autograd.hooks import RemovableHandle
from ..tensor.tensor import Tensor

KINDS = ("forward_pre", "forward", "backward_pre", "backward")


class Hooks:
    """The hooks of one Module, or those of all; each a dict of (function, options) in the order of calling."""

    def __init__(self) -> None:
        self.of: dict[str, dict] = {kind: {} for kind in KINDS}

    def add(self, kind: str, hook: Callable, prepend: bool = False, with_kwargs: bool = False,
            always_call: bool = False) -> RemovableHandle:
        """Enter a hook, as the first one with prepend."""
        if not callable(hook):
            raise TypeError(f"register_{kind}_hook expected a function, got {type(hook).__name__}")
        hooks = self.of[kind]
        handle = RemovableHandle(hooks, (hook, with_kwargs, always_call))  # type: ignore[arg-type]
        if prepend:
            last = next(reversed(hooks))
            for key in [key for key in hooks if key != last]:
                hooks[key] = hooks.pop(key)
        return handle

    def __bool__(self) -> bool:
        return any(self.of.values())


EVERY_MODULE = Hooks()


def call_with_hooks(module: Any, args: tuple, kwargs: dict) -> Any:
    """`module.forward(*args, **kwargs)` with all hooks of the module, and those of every module, called."""
    hooks = [EVERY_MODULE, module._hooks] if module._hooks is not None else [EVERY_MODULE]
    try:
        args, kwargs = _before(module, hooks, args, kwargs)
        around = [h for some in hooks for h in some.of["backward"].values()]
        before = [h for some in hooks for h in some.of["backward_pre"].values()]
        if around or before:
            watch = _BackwardWatch(module, [h[0] for h in before], [h[0] for h in around])
            output = watch.output(module.forward(*watch.inputs(args), **kwargs))
        else:
            output = module.forward(*args, **kwargs)
    except BaseException:
        _after(module, hooks, args, kwargs, None, only_always=True)
        raise
    return _after(module, hooks, args, kwargs, output, only_always=False)


def _before(module: Any, hooks: list, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    for some in hooks:
        for hook, with_kwargs, _ in list(some.of["forward_pre"].values()):
            result = hook(module, args, kwargs) if with_kwargs else hook(module, args)
            if result is None:
                continue
            if not with_kwargs:
                args = result if isinstance(result, tuple) else (result,)
            elif isinstance(result, tuple) and len(result) == 2:
                args, kwargs = result
            else:
                raise RuntimeError(f"a forward pre-hook with kwargs expected to return None or (args, kwargs), got "
                                   f"{type(result).__name__}")
    return args, kwargs


def _after(module: Any, hooks: list, args: tuple, kwargs: dict, output: Any, only_always: bool) -> Any:
    for some in hooks:
        for hook, with_kwargs, always in list(some.of["forward"].values()):
            if only_always and not always:
                continue
            result = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
            if result is not None:
                output = result
    return output


class _Watch(Function):
    """The identity of several tensors, whose backward shows their gradients to a function and takes what it returns."""

    @staticmethod
    def forward(ctx: Any, see: Callable, *tensors: Any) -> Any:
        ctx.see = see
        ctx.set_materialize_grads(False)
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.see(grads))


class _BackwardWatch:
    """Calls the backward hooks of one call of a module: with the gradients of its outputs, then of its inputs."""

    def __init__(self, module: Any, before: list, around: list):
        self.module, self.before, self.around = module, before, around
        self.grad_output: tuple | None = None
        self.inputs_watched = False

    def inputs(self, args: tuple) -> tuple:
        places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and arg.requires_grad]
        if not places:
            return args
        self.inputs_watched = True

        def see(grads: tuple) -> tuple:
            grad_input: list = [None] * len(args)
            for i, g in zip(places, grads):
                grad_input[i] = g
            changed = self.call_around(tuple(grad_input))
            return tuple(changed[i] for i in places)

        watched = list(args)
        for i, tensor in zip(places, _Watch.apply(see, *[args[i] for i in places])):
            watched[i] = tensor
        return tuple(watched)

    def output(self, output: Any) -> Any:
        parts = output if isinstance(output, (tuple, list)) else (output,)
        places = [i for i, part in enumerate(parts) if isinstance(part, Tensor) and part.requires_grad]
        if not places:
            return output

        def see(grads: tuple) -> tuple:
            grad_output: list = [None] * len(parts)
            for i, g in zip(places, grads):
                grad_output[i] = g
            for hook in self.before:
                result = hook(self.module, tuple(grad_output))
                if result is not None:
                    grad_output = list(_as_tuple(result, len(parts), "backward pre-hook"))
            self.grad_output = tuple(grad_output)
            if not self.inputs_watched:
                self.call_around((None,))
            return tuple(grad_output[i] for i in places)

        watched = list(parts)
        for i, tensor in zip(places, _Watch.apply(see, *[parts[i] for i in places])):
            watched[i] = tensor
        return type(output)(watched) if isinstance(output, (tuple, list)) else watched[0]

    def call_around(self, grad_input: tuple) -> tuple:
        if self.grad_output is None:  # the gradient came to the inputs by a way around the outputs
            return grad_input
        for hook in self.around:
            result = hook(self.module, grad_input, self.grad_output)
            if result is not None:
                grad_input = _as_tuple(result, len(grad_input), "backward hook")
        return grad_input


def _as_tuple(result: Any, length: int, what: str) -> tuple:
    result = result if isinstance(result, tuple) else (result,)
    if len(result) != length:
        raise RuntimeError(f"a {what} expected to return {length} gradients or None, got {len(result)}")
    return result
