"""The record of an op: what the graph and the dispatcher know about one differentiable function of arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Cast(Enum):
    """What autocast does to the floating inputs of an op (classes and lists follow PyTorch's CUDA autocast)."""

    HALF = "half"      # run in half precision: products, convolutions, attention
    FULL = "full"      # run in float32: exp and log, powers, sums, norms, losses
    WIDEST = "widest"  # run in the widest dtype among the inputs: add, mul, cat, where
    KEEP = "keep"      # run in the dtype that comes: relu, reshape, max_pool


class Promote(Enum):
    """How inputs of different dtypes meet outside autocast (rules: PyTorch's torch.result_type)."""

    NONE = "none"      # inputs go in as they are
    SAME = "same"      # different floating dtypes are an error that names both
    COMMON = "common"  # all inputs are cast to their result type
    FLOAT = "float"    # as COMMON, and integers become the default floating dtype


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One differentiable function of arrays.

    `function(xp, *arrays, **attributes)` returns `(value, pullback)`. `value` is an array or a tuple of arrays.
    `pullback` is None (no gradient), a tuple with one function (or None) per input, or one function: of a single
    input, or one that returns all inputs' gradients together.
    """

    name: str
    function: Callable
    cast: Cast
    promote: Promote
    wide: bool    # half inputs are computed in float32 and the value is rounded once; what is kept stays half
    replay: bool  # for higher-order gradients the function is run again on Tensors: its inputs are kept
    view: bool    # the value shares memory with the first input
