"""Losses of classes: cross-entropy with class indices or probabilities, and negative log-likelihood."""

from __future__ import annotations

import math

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from . import comparison, gathering, reduction, softmax
from .loss import check_reduction, constant, in_float32, reduced
from .pointwise import exp, log
from .shape import cast_to, permute, reshape

__all__ = ["cross_entropy", "nll_loss"]


@op(Cast.FULL, promote=Promote.NONE, replay=True)
def _cross_entropy(xp, x, *, target, coefficient, factor, reduction):
    """Of logits (N, C) and class indices (N,); keeps the logits and a number per row."""
    losses, lse = xp.cross_entropy(x, target, coefficient)

    def gradient(g):
        r = g * factor
        if coefficient is not None:
            r = xp.where(coefficient == 0, 0, r * coefficient)
        return xp.cross_entropy_gradient(r, x, lse, target)

    return losses if reduction == "none" else xp.sum(losses) * factor, gradient


@composed(Cast.FULL)
def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Cross-entropy between softmax(input) and classes given by index or by probability.

    With all targets ignored, sum gives 0 and mean gives nan.

    Args:
        input: logits.
        target: class indices (an integer tensor), or probabilities (a floating one of input's shape).
        weight: a factor for each class; the mean over class indices is weighted by it.
        ignore_index: a class index that counts for nothing.
        reduction: "mean", "sum" or "none".
        label_smoothing: share of the target that is spread evenly over the classes, in [0, 1].

    Shapes: input (C,), (N, C) or (N, C, d1, ...); target (), (N,) or (N, d1, ...), or that of input; weight (C,).

    Raises:
        IndexError: for a class index that is out of range.
        RuntimeError: for shapes or dtypes that do not fit, or an ignore_index of probabilities.
    """
    check_reduction("cross_entropy", reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"cross_entropy expected label_smoothing in [0, 1], got {label_smoothing}")
    if input.ndim == 0:
        raise IndexError("cross_entropy expected input of shape (C,), (N, C) or (N, C, d1, ...), got a 0-d tensor")
    classes = input.shape[1 if input.ndim > 1 else 0]
    _check_weight("cross_entropy", weight, classes)
    if input.shape == target.shape:
        if ignore_index >= 0 and target.dtype in dtypes.FLOATING:
            raise RuntimeError(f"cross_entropy expected no ignore_index with class probabilities, got {ignore_index}; "
                               f"set weight to 0 for classes that shall not count")
        return _of_probabilities(input, target, weight, reduction, label_smoothing)
    _check_target("cross_entropy", input, target)
    if label_smoothing:
        return _smoothed(input, target, weight, ignore_index, reduction, label_smoothing)
    index, coefficient, total = _classes(
        "cross_entropy", input.backend, target.array, classes, weight, ignore_index, input.dtype)
    factor = 1.0 if reduction != "mean" else 1 / total if total else math.nan
    if input.ndim == 2:
        return _cross_entropy(input, target=index, coefficient=coefficient, factor=factor, reduction=reduction)
    flat = None if coefficient is None else coefficient.reshape(-1)
    losses = _cross_entropy(_classes_last(input), target=index.reshape(-1), coefficient=flat, factor=factor,
                            reduction=reduction)
    return reshape(losses, target.shape) if reduction == "none" else losses


@composed(Cast.FULL)
def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """Negative log-likelihood: -input[target], for log-probabilities and class indices.

    Args and shapes: as in cross_entropy.
    """
    check_reduction("nll_loss", reduction)
    if input.ndim == 0:
        raise ValueError("nll_loss expected input of shape (C,), (N, C) or (N, C, d1, ...), got a 0-d tensor")
    _check_weight("nll_loss", weight, input.shape[1 if input.ndim > 1 else 0])
    _check_target("nll_loss", input, target)
    dtype, rows = in_float32(_classes_last(input))
    index, coefficient, total = _classes(
        "nll_loss", rows.backend, target.array, rows.shape[1], weight, ignore_index, rows.dtype)
    column = constant(rows.backend.asarray(index.reshape(-1, 1), dtypes.int64), rows)
    losses = -reshape(gathering.gather(rows, 1, column), target.shape)
    return _weighted(losses, coefficient, total, reduction, dtype)


def _weighted(losses, coefficient, total, reduction_, dtype):
    """Losses times their coefficients, reduced; the mean is over `total`."""
    if coefficient is not None:
        losses = comparison.where(constant(coefficient == 0, losses), 0.0, losses) * constant(coefficient, losses)
    if reduction_ != "none":
        losses = reduction.sum(losses)
    return cast_to(losses * (1 / total if total else math.nan) if reduction_ == "mean" else losses, dtype)


def _of_probabilities(input, target, weight, reduction_, label_smoothing):
    if target.dtype not in dtypes.FLOATING:
        raise RuntimeError(f"cross_entropy expected floating class probabilities where target has the shape of input, got "
                           f"{dtypes.dtype_name(target.dtype)}; class indices have one axis less")
    axis = 1 if input.ndim > 1 else 0
    dtype, input, target = in_float32(input, target)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
    losses = softmax.log_softmax(input, axis) * target
    if weight is not None:
        losses = losses * constant(_along_classes(weight, losses), losses)
    losses = -reduction.sum(losses, axis)
    if reduction_ == "mean":
        return cast_to(reduction.sum(losses) * (1 / losses.numel() if losses.numel() else math.nan), dtype)
    return reduced(losses, reduction_, dtype)


def _smoothed(input, target, weight, ignore_index, reduction_, label_smoothing):
    dtype, rows = in_float32(_classes_last(input))
    xp, classes = rows.backend, rows.shape[1]
    index, coefficient, total = _classes("cross_entropy", xp, target.array, classes, weight, ignore_index, rows.dtype)
    valid = None if coefficient is None else xp.asarray(target.array != ignore_index, rows.dtype)
    of_target = 1 - label_smoothing if coefficient is None else (1 - label_smoothing) * coefficient.reshape(-1)
    spread = xp.full(rows.shape, label_smoothing / classes, rows.dtype)
    if weight is not None:
        spread *= xp.asarray(weight.array, rows.dtype)
    spread[xp.arange(len(spread)), index.reshape(-1)] += of_target
    losses = -reduction.sum(softmax.log_softmax(rows, 1) * constant(spread, rows), 1)
    return _weighted(reshape(losses, target.shape), valid, total, reduction_, dtype)


def _classes_last(input):
    """(C,), (N, C) or (N, C, d1, ...) as rows of classes."""
    if input.ndim > 2:
        input = permute(input, 0, *range(2, input.ndim), 1)
    return input if input.ndim == 2 else reshape(input, -1, input.shape[-1])


def _along_classes(weight, x):
    shape = (-1,) + (1,) * (x.ndim - 2) if x.ndim > 1 else (-1,)
    return x.backend.asarray(weight.array, x.dtype).reshape(shape)


def _classes(name, xp, index, classes, weight, ignore_index, dtype):
    """Checked class indices with the ignored ones at 0, the factor of each (None for ones), the sum of the factors."""
    dtype = dtypes.accumulation_dtype(dtype)
    valid = None
    if 0 <= ignore_index < classes or xp.any_outside(index, classes):
        valid = index != ignore_index
        bad = valid & ((index < 0) | (index >= classes))
        if bool(bad.any()):
            raise IndexError(f"{name} expected class indices in [0, {classes - 1}] for {classes} classes, got "
                             f"{int(index[bad][0])}; ignore_index is {ignore_index}")
        index = xp.where(valid, index, 0)
    if weight is not None:
        factors = xp.asarray(weight.array, dtype)[index]
        factors = factors if valid is None else xp.where(valid, factors, 0)
        return index, factors, float(xp.sum(factors))
    if valid is None:
        return index, None, index.size
    return index, xp.asarray(valid, dtype), int(valid.sum())


def _check_weight(name, weight, classes):
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(f"{name} expected weight of shape ({classes},), one factor for each class, got {weight.shape}")


def _check_target(name, input, target):
    if target.dtype not in dtypes.INTEGER:
        raise RuntimeError(f"{name} expected class indices of an integer dtype, got {dtypes.dtype_name(target.dtype)} of "
                           f"shape {target.shape} for input of shape {input.shape}")
    if target.array.__class__ is not input.array.__class__:
        raise RuntimeError(f"{name} expected input and target on one device, got {input.device} and {target.device}")
    want = input.shape[:1] + input.shape[2:] if input.ndim > 1 else ()
    if target.shape == want or (input.ndim == 1 and target.shape == (1,)):
        return
    if input.ndim > 1 and target.ndim == len(want) and target.shape[:1] != want[:1]:
        raise ValueError(f"{name} expected as many targets as inputs, got input of shape {input.shape} and target of shape "
                         f"{target.shape}")
    raise RuntimeError(f"{name} expected target of shape {want} for input of shape {input.shape}, got {target.shape}")


# On tensors. A replay needs the statistics of cross_entropy only, not its losses.


def _cross_entropy_statistics(x, target, coefficient):
    top = constant(x.backend.amax(x.array, 1, keepdims=True), x)
    lse = log(reduction.sum(exp(x - top), 1, True)) + top
    return lse, lse


def _cross_entropy_gradient(r, x, lse, target):
    xp = x.backend
    one_hot = xp.zeros(x.shape, x.dtype)
    one_hot[xp.arange(x.shape[0]), target] = 1
    return (exp(x - lse) - constant(one_hot, x)) * (reshape(r, -1, 1) if r.ndim else r)


METHODS = ()
ON_TENSORS = {"cross_entropy": _cross_entropy_statistics, "cross_entropy_gradient": _cross_entropy_gradient}
