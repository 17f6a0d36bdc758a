"""The backend over Tensors: on it pullbacks run again when their own gradients are wanted.

An op's body or pullback calls functions of `xp`; here they are the differentiable functions of minidl, which each ops
module lists in ON_TENSORS. What Backend writes as a method over them is inherited and so becomes differentiable too.
"""

from __future__ import annotations

from typing import Any

from .autocast import unaffected
from .backend import Backend
from .ops import MODULES
from .tensor import Tensor


class TensorBackend(Backend):
    """Functions of Backend's names and arguments, over Tensors."""

    array_type = Tensor

    def __init__(self) -> None:
        for module in MODULES:
            for name, function in module.ON_TENSORS.items():
                setattr(self, name, unaffected(function))  # autocast has chosen the dtypes in forward

    def widen(self, array: Any) -> Any:
        return array  # the engine has widened what comes in


Tensor.xp = TensorBackend()
