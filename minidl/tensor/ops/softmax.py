"""Softmax, its logarithm and its sampled form."""

from __future__ import annotations

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from ..dims import one_dim
from ..random import default_generator
from ..tensor import make_tensor
from .shape import cast_to

__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]


@op(Cast.FULL, promote=Promote.NONE)
def _softmax(xp, x, *, axis):
    y = xp.softmax(x, axis)
    return y, lambda g: y * (g - xp.sum(g * y, axis, True))


@op(Cast.FULL, promote=Promote.NONE)
def _log_softmax(xp, x, *, axis):
    y = xp.log_softmax(x, axis)

    def gradient(g):
        shares = xp.exp(y)
        masked = xp.sum(shares, axis, True) == 0
        return xp.select(masked, 0, g) - shares * xp.sum(g, axis, True)

    return y, gradient


def _along(function, name, input, dim, dtype):
    if dim is None:  # PyTorch's choice for calls without dim
        dim = 0 if input.ndim in (0, 1, 3) else 1
    axis = one_dim(name, dim, input.ndim)
    if dtype is not None:
        input = cast_to(input, dtype)
    if input.dtype not in dtypes.FLOATING:
        raise NotImplementedError(f"{name} expected a floating tensor, got {dtypes.dtype_name(input.dtype)}; pass dtype=")
    return function(input, axis=axis if input.ndim else ())


@composed(Cast.FULL)
def softmax(input, dim=None, dtype=None):
    """exp(input) over its sum along an axis; zeros, with gradient 0, where all elements along it are -inf.

    Args:
        dim: the axis. Without it: 0 for tensors of 0, 1 or 3 axes, else 1.
        dtype: cast the input to it first.
    """
    return _along(_softmax, "softmax", input, dim, dtype)


@composed(Cast.FULL)
def log_softmax(input, dim=None, dtype=None):
    """log(softmax(input)), computed without overflow; -inf, with gradient 0, where all elements along the axis are -inf.

    Arguments as in softmax.
    """
    return _along(_log_softmax, "log_softmax", input, dim, dtype)


@composed(Cast.FULL)
def softmin(input, dim=None, dtype=None):
    """softmax(-input). Arguments as in softmax."""
    return _along(_softmax, "softmin", -input, dim, dtype)


@composed(Cast.FULL)
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1, *, generator=None):
    """A sample from the Gumbel-softmax distribution, a relaxation of drawing one class.

    Args:
        logits: unnormalized log probabilities.
        tau: temperature.
        hard: return one-hot samples whose gradient is that of the relaxed ones.
        eps: without effect, as in PyTorch.
        dim: the axis of classes.
        generator: where random numbers come from.

    Source: Jang et al., "Categorical reparameterization with Gumbel-softmax", 2017.
    """
    xp = logits.backend
    generator = default_generator() if generator is None else generator
    wide = dtypes.accumulation_dtype(logits.dtype)
    drawn = 1 - generator.uniform(logits.shape, wide, logits.device)  # in (0, 1]
    drawn = xp.maximum(drawn, dtypes.finfo(wide).tiny)
    noise = -xp.log(xp.maximum(-xp.log(drawn), dtypes.finfo(wide).tiny))
    relaxed = cast_to(softmax((cast_to(logits, wide) + make_tensor(xp.asarray(noise), None)) / tau, dim), logits.dtype)
    if not hard:
        return relaxed
    axis = one_dim("gumbel_softmax", dim, logits.ndim)
    return _one_hot_through(relaxed, axis=axis if logits.ndim else ())


@op(Cast.KEEP)
def _one_hot_through(xp, x, *, axis):
    """One-hot at the largest element; the gradient passes as if the value were x."""
    if axis == ():
        return xp.ones_like(x), lambda g: g
    places = xp.reshape(xp.arange(x.shape[axis]), [-1 if i == axis else 1 for i in range(x.ndim)])
    return xp.asarray(xp.argmax(x, axis, keepdims=True) == places, x.dtype), lambda g: g


METHODS = (log_softmax, softmax)
ON_TENSORS: dict = {}
