"""Clipping of gradients, in place, by their common norm or element by element.

Argument that they share: `foreach`, accepted for PyTorch's sake.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ...autograd.mode import no_grad
from ...tensor.creation import zeros
from ...tensor.dtypes import accumulation_dtype
from ...tensor.ops.joining import stack
from ...tensor.ops.linalg_norm import vector_norm
from ...tensor.tensor import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Tensors = Tensor | Iterable[Tensor]


def clip_grad_norm_(parameters: Tensors, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                    foreach: bool | None = None, *, scaler: Any = None, optimizer: Any = None) -> Tensor:
    """Scale the gradients of all parameters down to a norm, that of one vector of them all, if theirs is larger.

    Args:
        parameters: one or several; those without a gradient do not count.
        max_norm: the largest norm that is left as it is.
        norm_type: the p of the norm; may be inf.
        error_if_nonfinite: refuse gradients whose norm is inf or nan. Otherwise they are scaled by max_norm over it.
        scaler: one that still has to unscale the gradients of `optimizer`, which it is told first.

    Returns:
        The norm before, 0 without gradients; in float32 also for half gradients.

    Raises:
        RuntimeError: for gradients that still carry a loss scale, or a refused norm.
    """
    if scaler is not None:
        if optimizer is None:
            raise ValueError("clip_grad_norm_ expected with scaler= the optimizer whose gradients it scales; pass optimizer=")
        scaler.unscale_(optimizer)
    parameters = _several(parameters)
    total_norm = get_total_norm(_gradients("clip_grad_norm_", parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def get_total_norm(tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:
    """The norm of all elements of several tensors, as of one vector; 0-d, in float32 also for halves.

    Args:
        norm_type: the p of the norm; may be inf.
        error_if_nonfinite: refuse a norm that is inf or nan, with a RuntimeError.
    """
    norm_type = float(norm_type)
    with no_grad():
        norms = [vector_norm(t, norm_type, dtype=accumulation_dtype(t.dtype)) for t in _several(tensors) if t.numel()]
        if not norms:
            return zeros(())
        total_norm = vector_norm(stack([norm.to(norms[0].device) for norm in norms]), norm_type)
    if error_if_nonfinite and not math.isfinite(total_norm.item()):
        raise RuntimeError(f"get_total_norm expected a finite norm of order {norm_type}, got {total_norm.item()}: some "
                           f"elements are not finite, or too large; pass error_if_nonfinite=False to go on all the same")
    return total_norm


def clip_grads_with_norm_(parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients of all parameters by max_norm / total_norm, if that is smaller than 1.

    Args:
        total_norm: their norm, from get_total_norm.
    """
    max_norm = float(max_norm)
    if max_norm < 0:
        raise ValueError(f"clip_grads_with_norm_ expected a max_norm that is not negative, got {max_norm}")
    gradients = _gradients("clip_grads_with_norm_", parameters)
    coefficient = max_norm / (float(total_norm) + 1e-6)
    if coefficient >= 1:
        return
    with no_grad():
        for gradient in gradients:
            gradient.mul_(coefficient)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limit each element of the parameters' gradients to [-clip_value, clip_value].

    Raises:
        RuntimeError: for gradients that still carry a loss scale.
    """
    clip_value = float(clip_value)
    if clip_value < 0:
        raise ValueError(f"clip_grad_value_ expected a clip_value that is not negative, got {clip_value}")
    with no_grad():
        for gradient in _gradients("clip_grad_value_", parameters):
            gradient.clamp_(-clip_value, clip_value)


def _several(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(name: str, parameters: Tensors) -> list[Tensor]:
    gradients = [p.grad for p in _several(parameters) if p.grad is not None]
    for gradient in gradients:
        scale = getattr(gradient, "grad_scale", None)
        if scale is not None and scale != 1:
            raise RuntimeError(f"{name} expected true gradients, got some that carry the loss scale {scale}; unscale them "
                               f"first with scaler.unscale_(optimizer)")
    return gradients
