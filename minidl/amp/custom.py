"""Autocast in user-defined operations: decorators for the forward and the backward of an autograd.Function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..autograd.function import Context
from ..tensor import autocast, dtypes
from ..tensor.device import Device
from ..tensor.tensor import Tensor


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: Any = None, device_type: str | None = None) -> Callable:
    """Decorator for `forward(ctx, ...)` of a Function: notes the autocast state there for a backward with custom_bwd.

    Args:
        fwd: the forward; left out where the decorator is given arguments.
        cast_inputs: a floating dtype. Inside an autocast region forward gets its float32 and half tensors in this dtype,
            also those in sequences and dicts, and runs with autocast off. Outside a region it has no effect.
        device_type: "cpu" or "cuda": cast tensors on such devices only; default all.

    Raises:
        TypeError: for a forward without ctx, or a cast_inputs that is no floating dtype.

    Source: torch.amp.custom_fwd.
    """
    dtype = None if cast_inputs is None else dtypes.as_dtype(cast_inputs)
    if dtype is not None and dtype not in dtypes.FLOATING:
        raise TypeError(f"custom_fwd expected a floating dtype as cast_inputs, got {dtypes.dtype_name(dtype)}")
    kind = None if device_type is None else Device(device_type).type
    if fwd is None:
        return functools.partial(custom_fwd, cast_inputs=cast_inputs, device_type=device_type)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        if not args or not isinstance(args[0], Context):
            raise TypeError("custom_fwd expected forward(ctx, ...), got a call without ctx; write forward and setup_context as "
                            "one forward that takes ctx")
        context: Any = args[0]
        if dtype is None or autocast.region() is None:
            context.autocast = autocast.snapshot()
            return fwd(*args, **kwargs)
        with autocast.off:
            context.autocast = autocast.snapshot()
            return fwd(context, *_cast(args[1:], dtype, kind), **_cast(kwargs, dtype, kind))

    return forward


def custom_bwd(bwd: Callable | None = None, *, device_type: str | None = None) -> Callable:
    """Decorator for `backward(ctx, ...)` of a Function: it runs in the autocast state that custom_fwd has noted.

    Args:
        bwd: the backward; left out where the decorator is given arguments.
        device_type: accepted for PyTorch's sake; the state of forward says which devices it concerns.

    Raises:
        RuntimeError: in backward, if forward was not decorated with custom_fwd.

    Source: torch.amp.custom_bwd.
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *grads: Any) -> Any:
        if not hasattr(ctx, "autocast"):
            raise RuntimeError("custom_bwd expected a Function whose forward is decorated with custom_fwd, which notes the "
                               "autocast state; decorate both")
        with autocast.within(ctx.autocast):
            return bwd(ctx, *grads)

    return backward


def _cast(value: Any, dtype: Any, kind: str | None) -> Any:
    if isinstance(value, Tensor):
        wanted = value.dtype in dtypes.FLOATING and value.dtype != dtypes.float64 and kind in (None, value.device.type)
        return value.cast_to(dtype) if wanted else value
    if isinstance(value, dict):
        return {name: _cast(part, dtype, kind) for name, part in value.items()}
    return type(value)([_cast(part, dtype, kind) for part in value]) if type(value) in (list, tuple) else value
