"""Hooks of a Module: before and after its forward, and around its backward. A Module without hooks never comes here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..autograd.function import Function
from ..autograd.hooks import RemovableHandle
from ..tensor.tensor import Tensor


class Hook(NamedTuple):
    """A function and when to call it: "forward_pre", "forward", "backward_pre" or "backward"."""

    kind: str
    function: Callable
    with_kwargs: bool
    always_call: bool


EVERY_MODULE: dict[int, Any] = {}  # the hooks that every module calls


def add_hook(hooks: dict[int, Any], kind: str, function: Callable, *, prepend: bool = False, with_kwargs: bool = False,
             always_call: bool = False) -> RemovableHandle:
    """Enter a hook among those of a module, or of every module; as the first one with prepend."""
    if not callable(function):
        raise TypeError(f"register_{kind}_hook expected a function, got {type(function).__name__}")
    handle = RemovableHandle(hooks, Hook(kind, function, with_kwargs, always_call))  # type: ignore[arg-type]
    if prepend:
        last = next(reversed(hooks))
        for key in [key for key in hooks if key != last]:
            hooks[key] = hooks.pop(key)
    return handle


def call_with_hooks(module: Any, args: tuple, kwargs: dict) -> Any:
    """`module.forward(*args, **kwargs)` with all hooks of the module, and those of every module, called."""
    hooks = [*EVERY_MODULE.values(), *(module._hooks or {}).values()]
    around = [hook.function for hook in hooks if hook.kind == "backward"]
    before = [hook.function for hook in hooks if hook.kind == "backward_pre"]
    watch = _BackwardWatch(module, before, around) if around or before else None
    try:
        args, kwargs = _before(module, hooks, args, kwargs)
        args = watch.inputs(args) if watch else args
        output = module.forward(*args, **kwargs)
    except BaseException:
        _after(module, [hook for hook in hooks if hook.always_call], args, kwargs, None)
        raise
    output = _after(module, hooks, args, kwargs, output)
    return watch.output(output) if watch else output


def _before(module: Any, hooks: list[Hook], args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    for hook in hooks:
        if hook.kind != "forward_pre":
            continue
        result = hook.function(module, args, kwargs) if hook.with_kwargs else hook.function(module, args)
        if result is None:
            continue
        if not hook.with_kwargs:
            args = result if isinstance(result, tuple) else (result,)
        elif isinstance(result, tuple) and len(result) == 2:
            args, kwargs = result
        else:
            raise RuntimeError(f"a forward pre-hook with kwargs expected to return None or (args, kwargs), got "
                               f"{type(result).__name__}")
    return args, kwargs


def _after(module: Any, hooks: list[Hook], args: tuple, kwargs: dict, output: Any) -> Any:
    for hook in hooks:
        if hook.kind != "forward":
            continue
        result = hook.function(module, args, kwargs, output) if hook.with_kwargs else hook.function(module, args, output)
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
        self.nothing: tuple = ()  # the gradients of inputs of which none requires one
        self.inputs_watched = False

    def inputs(self, args: tuple) -> tuple:
        self.nothing = (None,) * len(args)
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
                self.call_around(self.nothing)
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
