"""Weight normalization: a weight as its length times its direction.

Source: Salimans and Kingma 2016, "Weight Normalization: A Simple Reparameterization to Accelerate Training".
"""

from __future__ import annotations

from ...tensor.dtypes import accumulation_dtype
from ...tensor.ops.linalg_norm import vector_norm
from ...tensor.tensor import Tensor
from ..module import Module
from ..parameter import Parameter
from .reparametrization import M, Reparametrization, remove_hook, take_parameter

__all__ = ["remove_weight_norm", "weight_norm"]


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replace a parameter by its lengths `<name>_g` and its directions `<name>_v`; before each forward it is g v / |v|.

    Args:
        name: which parameter.
        dim: the axis each of whose slices has a length of its own, of outputs by default; None or -1: one length in all.

    Returns:
        The module.

    Raises:
        RuntimeError: if the parameter is normalized already. ValueError: if there is none.
    """
    hook = _WeightNorm(name, dim)
    weight = take_parameter("weight_norm", _WeightNorm, module, name)
    length = hook.length(weight.detach()).to(weight.dtype)
    module.register_parameter(name + "_g", Parameter(length, weight.requires_grad))
    module.register_parameter(name + "_v", weight)
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make a normalized weight one parameter again; returns the module.

    Raises:
        ValueError: if it is not normalized.
    """
    hook = remove_hook("remove_weight_norm", _WeightNorm, module, name)
    weight = hook.compute(module).detach()
    for part in (name, name + "_g", name + "_v"):
        delattr(module, part)
    module.register_parameter(name, Parameter(weight))
    return module


class _WeightNorm(Reparametrization):
    def __init__(self, name: str, dim: int | None):
        self.name = name
        self.dim = dim

    def length(self, v: Tensor) -> Tensor:
        """In float32 for halves; it broadcasts against v."""
        wide = accumulation_dtype(v.dtype)
        if self.dim is None or self.dim == -1:
            return vector_norm(v, dtype=wide)
        kept = self.dim + v.ndim if self.dim < 0 else self.dim
        if not 0 <= kept < v.ndim:
            raise IndexError(f"weight_norm expected dim to be an axis of {self.name!r}, of shape {v.shape}, got {self.dim}")
        others = [axis for axis in range(v.ndim) if axis != kept]
        return vector_norm(v, dim=others, keepdim=True, dtype=wide) if others else v.to(wide).abs()

    def compute(self, module: Module) -> Tensor:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        length = self.length(v)
        return (v.to(length.dtype) * (g.to(length.dtype) / length)).to(v.dtype)
