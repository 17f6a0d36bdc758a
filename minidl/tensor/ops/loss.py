"""Losses of numbers and distributions, element by element; and how every loss is computed in float32 and reduced."""

from __future__ import annotations

import math
import warnings

import numpy as np

from ...autograd.op import Cast
from .. import dtypes
from ..apply import composed, op
from ..tensor import make_tensor
from . import activation, comparison, pointwise, reduction
from .pointwise import exp, log
from .shape import broadcast_shapes, broadcast_to, cast_to, reshape

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "huber_loss", "kl_div", "l1_loss",
    "mse_loss", "poisson_nll_loss", "smooth_l1_loss",
]


def in_float32(*tensors):
    """The dtype of a loss of these tensors, then the tensors themselves in that dtype, with float32 in place of halves."""
    dtype = dtypes.result_type_of([t for t in tensors if t is not None])
    dtype = dtype if dtype in dtypes.FLOATING else dtypes.get_default_dtype()
    return dtype, *[t if t is None else cast_to(t, dtypes.accumulation_dtype(dtype)) for t in tensors]


def constant(array, like):
    """A tensor without history around an array, or a NumPy scalar that a 0-d computation gave."""
    return make_tensor(like.backend.asarray(array), None)


def reduced(losses, reduction_, dtype):
    """The losses, their mean or their sum, rounded to `dtype` at the end."""
    if reduction_ == "mean":
        losses = reduction.mean(losses)
    elif reduction_ == "sum":
        losses = reduction.sum(losses)
    return cast_to(losses, dtype)


def check_reduction(name, reduction_):
    """Refuse what is no reduction."""
    if reduction_ not in ("none", "mean", "sum"):
        raise ValueError(f"{name} expected reduction to be 'none', 'mean' or 'sum', got {reduction_!r}")


# Functions of the difference between input and target


def _difference_loss(xp, input, target, value, slope, reduction_):
    """value(input - target), reduced, and its gradients from slope(input - target)."""
    losses = value(input - target)
    factor = 1 / max(losses.size, 1) if reduction_ == "mean" else 1

    def gradient(g):
        return slope(input - target) * (g * factor)

    if reduction_ != "none":
        losses = xp.sum(losses) if reduction_ == "sum" else xp.mean(losses)
    return losses, (gradient, lambda g: -gradient(g))


@op(Cast.FULL)
def _squared_error(xp, input, target, *, reduction):
    return _difference_loss(xp, input, target, lambda d: d * d, lambda d: d * 2, reduction)


@op(Cast.FULL)
def _absolute_error(xp, input, target, *, reduction):
    return _difference_loss(xp, input, target, xp.abs, lambda d: xp.sign(d), reduction)


@op(Cast.FULL)
def _huber(xp, input, target, *, delta, scale, reduction):
    """scale * (d^2 / 2 where |d| < delta, else delta * (|d| - delta / 2))."""
    def value(d):
        inner = xp.clip(d, -delta, delta)
        return inner * (d - inner * 0.5) * scale

    return _difference_loss(xp, input, target, value, lambda d: xp.clip(d, -delta, delta) * scale, reduction)


_quiet = np.errstate(divide="ignore")  # log(0) is clamped


@op(Cast.FULL)
@_quiet
def _binary_cross_entropy(xp, input, target):
    floor = -100.0
    losses = (target - 1) * xp.maximum(xp.log1p(-input), floor) - target * xp.maximum(xp.log(input), floor)

    @_quiet
    def target_gradient(g):
        return g * (xp.maximum(xp.log1p(-input), floor) - xp.maximum(xp.log(input), floor))

    return losses, (lambda g: g * (input - target) / xp.maximum((1 - input) * input, 1e-12), target_gradient)


@op(Cast.FULL)
def _at_least(xp, x, *, low):
    """max(x, low) through which the gradient passes unchanged."""
    return xp.maximum(x, low), lambda g: g


@composed(Cast.FULL)
def mse_loss(input, target, reduction="mean", weight=None):
    """The squared error (input - target)^2.

    Args:
        reduction: "mean", "sum" or "none".
        weight: a factor for each element; the mean is divided by the sum of the weights.

    Shapes: input and target the same; others are broadcast, with a warning.
    """
    input, target = _prepare("mse_loss", input, target, reduction, weight)
    if weight is None:
        return _squared_error(input, target, reduction=reduction)
    dtype, input, target, weight = in_float32(input, target, weight)
    return _weighted_mean(_squared_error(input, target, reduction="none") * weight, weight, reduction, dtype)


@composed(Cast.FULL)
def l1_loss(input, target, reduction="mean", weight=None):
    """The absolute error |input - target|; arguments as in mse_loss."""
    input, target = _prepare("l1_loss", input, target, reduction, weight)
    if weight is None:
        return _absolute_error(input, target, reduction=reduction)
    dtype, input, target, weight = in_float32(input, target, weight)
    return _weighted_mean(_absolute_error(input, target, reduction="none") * weight, weight, reduction, dtype)


@composed(Cast.FULL)
def smooth_l1_loss(input, target, reduction="mean", beta=1.0):
    """0.5 d^2 / beta where |d| < beta, else |d| - 0.5 beta, with d = input - target."""
    input, target = _prepare("smooth_l1_loss", input, target, reduction, None)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss expected beta >= 0, got {beta}")
    if beta == 0:
        return _absolute_error(input, target, reduction=reduction)
    return _huber(input, target, delta=beta, scale=1 / beta, reduction=reduction)


@composed(Cast.FULL)
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """0.5 d^2 where |d| < delta, else delta (|d| - 0.5 delta), with d = input - target.

    Args:
        weight: a factor for each element; the mean is over the elements all the same.
    """
    input, target = _prepare("huber_loss", input, target, reduction, weight)
    if delta <= 0:
        raise RuntimeError(f"huber_loss expected delta > 0, got {delta}")
    if weight is None:
        return _huber(input, target, delta=delta, scale=1, reduction=reduction)
    dtype, input, target, weight = in_float32(input, target, weight)
    return reduced(_huber(input, target, delta=delta, scale=1, reduction="none") * weight, reduction, dtype)


@composed(Cast.FULL)
def kl_div(input, target, reduction="mean", log_target=False):
    """Kullback-Leibler divergence target * (log(target) - input), where input holds log-probabilities.

    Args:
        reduction: "batchmean" (the sum divided by the length of the first axis), "mean" over all elements, "sum", "none".
        log_target: target holds log-probabilities too.
    """
    if reduction != "batchmean":
        check_reduction("kl_div", reduction)
    batch = input.shape[0] if input.ndim else 1
    dtype, input, target = in_float32(input, target)
    losses = exp(target) * (target - input) if log_target else pointwise.xlogy(target, target) - target * input
    if reduction == "batchmean":
        return cast_to(reduced(losses, "sum", losses.dtype) / batch, dtype)
    return reduced(losses, reduction, dtype)


@composed(Cast.FULL)
def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    """-(target log(input) + (1 - target) log(1 - input)), for probabilities; the logarithms are clamped at -100.

    Args:
        weight: factors that broadcast against the losses.

    Raises:
        ValueError: if input and target differ in shape.
        RuntimeError: for an input outside [0, 1].
    """
    check_reduction("binary_cross_entropy", reduction)
    _check_same_shape("binary_cross_entropy", input, target)
    array = input.array
    if not bool(((array >= 0) & (array <= 1)).all()):
        raise RuntimeError("binary_cross_entropy expected all elements of input in [0, 1], got others; "
                           "for logits use binary_cross_entropy_with_logits")
    dtype, input, target, weight = in_float32(input, target, weight)
    losses = _binary_cross_entropy(input, target)
    return reduced(losses if weight is None else losses * weight, reduction, dtype)


@composed(Cast.FULL)
def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    """binary_cross_entropy of sigmoid(input), in a form that cannot overflow.

    Args:
        weight: factors that broadcast against the losses.
        pos_weight: factors of the positive targets, that broadcast against them.
    """
    check_reduction("binary_cross_entropy_with_logits", reduction)
    _check_same_shape("binary_cross_entropy_with_logits", input, target)
    dtype, input, target, weight, pos_weight = in_float32(input, target, weight, pos_weight)
    log_of_positive = activation.logsigmoid(input)
    if pos_weight is not None:
        log_of_positive = log_of_positive * ((pos_weight - 1) * target + 1)
    losses = (1 - target) * input - log_of_positive
    return reduced(losses if weight is None else losses * weight, reduction, dtype)


@composed(Cast.FULL)
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Negative log-likelihood of target under normal distributions of mean `input` and variance `var`.

    Args:
        var: variances of input's shape, or with a last axis of 1 or without it, or a float.
        full: add the constant 0.5 log(2 pi).
        eps: smaller variances count as this; the gradient does not see the change.
    """
    if isinstance(var, (int, float)):
        var = input.detach() * 0 + float(var)
    if bool((var.array < 0).any()):
        raise ValueError("gaussian_nll_loss expected variances >= 0, got a negative one")
    check_reduction("gaussian_nll_loss", reduction)
    var = _fitting_variance(input, var)
    dtype, input, target, var = in_float32(input, target, var)
    var = _at_least(var, low=eps)
    difference = input - target
    losses = (log(var) + difference * difference / var) * 0.5
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction, dtype)


@composed(Cast.FULL)
def poisson_nll_loss(input, target, log_input=True, full=False, eps=1e-8, reduction="mean"):
    """Negative log-likelihood of target under Poisson distributions of rate exp(input), or input.

    Args:
        log_input: input holds logarithms of the rates: exp(input) - target * input; else input - target * log(input + eps).
        full: add Stirling's approximation of log(target!) where target > 1.
    """
    check_reduction("poisson_nll_loss", reduction)
    dtype, input, target = in_float32(input, target)
    losses = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        many = constant(target.array > 1, target)
        safe = comparison.where(many, target, 1.0)
        stirling = safe * log(safe) - safe + log(safe * (2 * math.pi)) * 0.5
        losses = losses + comparison.where(many, stirling, 0.0)
    return reduced(losses, reduction, dtype)


def _prepare(name, input, target, reduction_, weight):
    """Check the arguments; input and target in one shape."""
    check_reduction(name, reduction_)
    shape = input.shape
    if shape != target.shape:
        full = broadcast_shapes(shape, target.shape)  # before dtypes meet, where a 0-d tensor would not count
        warnings.warn(f"{name} got a target of shape {target.shape} for an input of shape {input.shape}: they are "
                      f"broadcast, which is seldom meant; give them the same shape", stacklevel=3)
        input, target = broadcast_to(input, full), broadcast_to(target, full)
    if weight is not None and weight.shape != shape:
        raise ValueError(f"{name} expected weight of input's shape {shape}, got {weight.shape}")
    return input, target


def _weighted_mean(losses, weight, reduction_, dtype):
    if reduction_ != "mean":
        return reduced(losses, reduction_, dtype)
    return cast_to(reduction.sum(losses) / reduction.sum(weight), dtype)


def _check_same_shape(name, input, target):
    if input.shape != target.shape:
        raise ValueError(f"{name} expected target of input's shape {input.shape}, got {target.shape}")


def _fitting_variance(input, var):
    if var.shape == input.shape:
        return var
    if var.shape == input.shape[:-1]:
        return reshape(var, *var.shape, 1)
    different = [n for have, n in zip(input.shape, var.shape) if have != n]
    if var.ndim == input.ndim and different == [1]:
        return var
    raise ValueError(f"gaussian_nll_loss expected var of input's shape {input.shape}, with one axis of length 1, or without "
                     f"the last axis, got {var.shape}")


METHODS = ()
ON_TENSORS: dict = {}
