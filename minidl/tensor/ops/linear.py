"""Linear and bilinear maps of the last axis."""

from __future__ import annotations

import math

from ...autograd.op import Cast
from ..apply import composed, op
from .arithmetic import add
from .linalg import _contract, broadcasts, product
from .shape import permute, reshape

__all__ = ["bilinear", "linear"]


@op(Cast.HALF)
def linear(xp, input, weight, bias=None):
    """input @ weight.T + bias.

    Shapes: input (*, in_features), weight (out_features, in_features), bias (out_features,), result (*, out_features).
    A weight (in_features,) gives a result (*).

    Raises:
        RuntimeError: for an input with another last axis than weight has.
    """
    if input.ndim == 0 or not 0 < weight.ndim < 3 or input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(f"linear expected a last axis of {weight.shape[-1] if weight.ndim else 1}, got an input of shape "
                           f"{input.shape} for a weight of shape {weight.shape}; transpose or reshape the input first")
    out = input.shape[:-1] + weight.shape[:-1]
    if bias is not None and bias.shape != out[-1:] and not broadcasts(bias.shape, out):
        raise RuntimeError(f"linear expected a bias that broadcasts to the result's shape {out}, got {bias.shape}")
    if weight.ndim == 1:
        y, (left, right) = product(xp, input, weight)
        return y if bias is None else y + bias, (left, right, lambda g: g)
    inner = input.shape[-1]
    rows = math.prod(out[:-1])

    def weight_gradient(g, buffer=None):
        g = xp.swapaxes(g if input.ndim == 2 else xp.reshape(g, (rows, out[-1])), 0, 1)
        x = input if input.ndim == 2 else xp.reshape(input, (rows, inner))
        return xp.matmul(g, x) if buffer is None else xp.matmul_into(buffer, g, x)

    flat = input.ndim == 2 and bias is not None and bias.ndim == 1  # spares the engine a look at the shapes

    def bias_gradient(g):
        return xp.sum(g, 0) if flat else g

    return xp.linear(input, weight, bias), (lambda g: xp.matmul(g, weight), weight_gradient, bias_gradient)


@composed(Cast.WIDEST)
def bilinear(input1, input2, weight, bias=None):
    """input1 @ weight[k] @ input2 + bias[k] for each output feature k.

    Shapes: input1 (*, in1_features), input2 (*, in2_features), weight (out_features, in1_features, in2_features), bias
    (out_features,), result (*, out_features).

    Raises:
        RuntimeError: for shapes that do not fit.
    """
    lead = input1.shape[:-1]
    if weight.ndim != 3 or not input1.ndim or not input2.ndim or input2.shape[:-1] != lead or (
            input1.shape[-1], input2.shape[-1]) != weight.shape[1:]:
        raise RuntimeError(f"bilinear expected inputs of shapes (*, in1_features) and (*, in2_features) for a weight of shape "
                           f"(out_features, in1_features, in2_features), got {input1.shape}, {input2.shape} and {weight.shape}")
    o, m, n = weight.shape
    count = math.prod(lead)
    half_way = _contract(reshape(input1, (count, m)), reshape(permute(weight, (1, 0, 2)), (m, o * n)))
    y = reshape(_contract(reshape(half_way, (count, o, n)), reshape(input2, (count, n, 1))), (*lead, o))
    return y if bias is None else add(y, bias)


METHODS = ()
ON_TENSORS: dict = {}
