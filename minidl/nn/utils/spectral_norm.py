"""Spectral normalization: a weight divided by its largest singular value, which power iteration follows.

Source: Miyato et al. 2018, "Spectral Normalization for Generative Adversarial Networks".
"""

from __future__ import annotations

from ...autograd.mode import no_grad, state
from ...tensor.dtypes import accumulation_dtype
from ...tensor.ops.linalg import dot, mv
from ...tensor.ops.shape import movedim
from ...tensor.ops.similarity import normalize
from ...tensor.tensor import Tensor
from .. import init
from ..module import Module
from ..parameter import Parameter
from .reparametrization import M, Reparametrization, remove_hook, take_parameter

__all__ = ["remove_spectral_norm", "spectral_norm"]

_TRANSPOSED = ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")


def spectral_norm(module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> M:
    """Replace a parameter by `<name>_orig`; before each forward it is that over its largest singular value.

    The singular vectors are the buffers `<name>_u` and `<name>_v`. Evaluation leaves them as they are.

    Args:
        name: which parameter.
        n_power_iterations: how often they are improved in each forward in training.
        eps: the least length that is divided by.
        dim: the axis of the rows, all others are columns; by default that of the outputs: 1 for transposed convolutions,
            else 0.

    Returns:
        The module.

    Raises:
        RuntimeError: if the parameter is normalized already. ValueError: if there is none, or for no power iterations.
    """
    if n_power_iterations <= 0:
        raise ValueError(f"spectral_norm expected n_power_iterations to be positive, got {n_power_iterations}")
    if dim is None:
        dim = 1 if any(base.__name__ in _TRANSPOSED for base in type(module).__mro__) else 0
    hook = _SpectralNorm(name, n_power_iterations, eps, dim)
    weight = take_parameter("spectral_norm", _SpectralNorm, module, name)
    module.register_parameter(name + "_orig", weight)
    rows = hook.matrix(weight.detach())
    setattr(module, name, weight.detach())
    for part, length in zip(("_u", "_v"), rows.shape):
        module.register_buffer(name + part, normalize(init.normal_(weight.detach().new_empty((length,))), dim=0, eps=eps))
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make a normalized weight one parameter again; returns the module.

    Raises:
        ValueError: if it is not normalized.
    """
    hook = remove_hook("remove_spectral_norm", _SpectralNorm, module, name)
    weight = hook.divided(module, iterate=False).detach()
    for part in (name, name + "_u", name + "_v", name + "_orig"):
        delattr(module, part)
    module.register_parameter(name, Parameter(weight))
    return module


class _SpectralNorm(Reparametrization):
    def __init__(self, name: str, n_power_iterations: int, eps: float, dim: int):
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.eps = eps
        self.dim = dim

    def matrix(self, weight: Tensor) -> Tensor:
        """Rows along `dim`; in float32 for halves."""
        rows = movedim(weight, self.dim, 0)
        return rows.reshape(rows.shape[0], -1).to(accumulation_dtype(weight.dtype))

    def compute(self, module: Module) -> Tensor:
        return self.divided(module, iterate=module.training and not state.recomputing)

    def divided(self, module: Module, iterate: bool) -> Tensor:
        weight, kept_u, kept_v = (getattr(module, self.name + part) for part in ("_orig", "_u", "_v"))
        matrix = self.matrix(weight)
        u, v = kept_u.to(matrix.dtype), kept_v.to(matrix.dtype)
        if iterate:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v = normalize(mv(matrix.t(), u), dim=0, eps=self.eps)
                    u = normalize(mv(matrix, v), dim=0, eps=self.eps)
                kept_u.copy_(u)
                kept_v.copy_(v)
        sigma = dot(u, mv(matrix, v))
        return (weight.to(sigma.dtype) / sigma).to(weight.dtype)
