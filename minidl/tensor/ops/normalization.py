"""Normalization layers' functions: batch, layer, group, instance, RMS, local response."""

from __future__ import annotations

import math

from ...autograd.mode import no_grad, state
from ...autograd.op import Cast, Promote
from .. import dtypes, journal
from ..apply import composed, op
from ..inplace import overwrite
from ..tensor import make_tensor
from . import pointwise
from .shape import cast_to, clone

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


@op(Cast.FULL, promote=Promote.NONE, replay=True)
def _layer_norm(xp, x, weight, bias, *, layout, affine, axes, eps):
    return _normalize(xp, x, weight, bias, layout, affine, axes, eps, [])


@op(Cast.KEEP, promote=Promote.NONE, wide=True, replay=True)
def _batch_norm(xp, x, weight, bias, *, layout, affine, axes, eps, statistics):
    return _normalize(xp, x, weight, bias, layout, affine, axes, eps, statistics)


def _normalize(xp, x, weight, bias, layout, affine, axes, eps, statistics):
    """The body of all norms whose statistics come from the input.

    x is seen in the shape `layout`, weight and bias in the shape `affine`, and statistics are taken over `axes` of the
    former. The list `statistics` receives mean and variance if it is empty: as values of the op they would be rounded
    to half, and a replay of the op must not observe a second time.
    """
    before = x.shape
    after = () if weight is None else weight.shape
    bias_shape = () if bias is None else bias.shape
    has_bias = bias is not None
    seen = _seen(xp, weight, affine)
    y, mean, rstd, variance = xp.normalize(xp.reshape(x, layout), seen(), _seen(xp, bias, affine)(), axes, eps)
    if not statistics:
        statistics.extend((mean, variance))

    def gradients(g):
        g = xp.reshape(g, layout)
        gx, gw = xp.normalize_gradients(g, xp.reshape(x, layout), seen(), mean, rstd, axes)
        return (xp.reshape(gx, before), None if gw is None else xp.reshape(gw, after),
                xp.reshape(xp.sum_to(g, affine), bias_shape) if has_bias else None)

    return xp.reshape(y, before), gradients


def _seen(xp, parameter, shape):
    """A function that gives the parameter, where there is one, in another shape: made anew when backward asks for it."""
    return lambda: None if parameter is None else xp.reshape(parameter, shape)


@op(Cast.FULL, promote=Promote.NONE, replay=True)
def _rms_norm(xp, x, weight, *, layout, axes, eps):
    before = x.shape
    after = () if weight is None else weight.shape
    seen = _seen(xp, weight, (1, -1))
    y, rstd = xp.rms_normalize(xp.reshape(x, layout), seen(), axes, eps)

    def gradients(g):
        gx, gw = xp.rms_normalize_gradients(xp.reshape(g, layout), xp.reshape(x, layout), seen(), rstd, axes)
        return xp.reshape(gx, before), None if gw is None else xp.reshape(gw, after)

    return xp.reshape(y, before), gradients


@op(Cast.KEEP, promote=Promote.NONE, wide=True)
def _normalize_by(xp, x, mean, variance, weight, bias, *, eps):
    """Normalization of the channels (axis 1) by statistics that do not depend on x."""
    shape = (1, x.shape[1]) + (1,) * (x.ndim - 2)
    flat = x.shape[1:2]
    seen, shift = _seen(xp, weight, shape), _seen(xp, bias, shape)()

    def deviation():
        return xp.sqrt(xp.reshape(variance, shape) + eps)

    def slope():
        scale = seen()
        return 1 / deviation() if scale is None else scale / deviation()

    def weight_gradient(g):
        return xp.reshape(xp.sum_to(g * (x - xp.reshape(mean, shape)), shape) / deviation(), flat)

    y = (x - xp.reshape(mean, shape)) * slope()
    return y if shift is None else y + shift, (lambda g: g * slope(), None, None, weight_gradient,
                                               lambda g: xp.reshape(xp.sum_to(g, shape), flat))


@op(Cast.KEEP)
def _window_sum(xp, x, *, before, after):
    return xp.window_sum(x, before, after), lambda g: xp.window_sum(g, after, before)


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Normalize each channel over the batch and all positions: (x - mean) / sqrt(var + eps) * weight + bias.

    In training the batch's mean and biased variance are used, and the running statistics move towards the batch's mean
    and unbiased variance by `momentum`, in place. Otherwise the running statistics are used. Half inputs are computed
    in float32.

    Shapes: input (N, C, ...), the others (C,).

    Raises:
        ValueError: in training with one value per channel, or an eps that is not positive.
        RuntimeError: for shapes that do not fit, or running statistics that are needed and missing.
    """
    if input.shape == (0,):
        return clone(input)
    count = input.shape[0] * math.prod(input.shape[2:]) if input.ndim > 1 else 0
    if training and count == 1:
        raise ValueError(f"batch_norm expected more than one value per channel in training, got an input of shape "
                         f"{input.shape}; use a larger batch, or training=False")
    if training and eps <= 0:
        raise ValueError(f"batch_norm expected a positive eps in training, got {eps}")
    _check_channels("batch_norm", input, running_mean, running_var, weight, bias)
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("batch_norm expected running_mean and running_var with training=False, got None; "
                               "pass them, or normalize by the batch with training=True")
        return _normalize_by(input, running_mean, running_var, weight, bias, eps=eps)
    shape = (input.shape[0], input.shape[1], math.prod(input.shape[2:]))
    observed: list = []
    y = _batch_norm(input, weight, bias, layout=shape, affine=(1, shape[1], 1), axes=(0, 2), eps=eps,
                    statistics=observed)
    if count:
        mean, variance = (s.reshape(-1) for s in observed)
        _track("batch_norm", running_mean, mean, momentum)
        _track("batch_norm", running_var, variance * (count / (count - 1)), momentum)
    return y


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1,
                  eps=1e-5):
    """Normalize each channel of each sample over its positions.

    With use_input_stats the running statistics, where given, move in place towards the samples' means; without, they
    are what is normalized by.

    Shapes: input (N, C, ...), the others (C,).

    Raises:
        ValueError: with use_input_stats and one position.
    """
    _check_channels("instance_norm", input, running_mean, running_var, weight, bias)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("instance_norm expected running_mean and running_var with use_input_stats=False, got None")
        return _normalize_by(input, running_mean, running_var, weight, bias, eps=eps)
    n, c, count = input.shape[0], input.shape[1], math.prod(input.shape[2:])
    if count == 1:
        raise ValueError(f"instance_norm expected more than one position per channel, got an input of shape {input.shape}")
    observed: list = []
    y = _batch_norm(input, weight, bias, layout=(n, c, count), affine=(1, c, 1), axes=(2,), eps=eps, statistics=observed)
    xp = input.backend
    mean, variance = (xp.mean(s.reshape(n, c), 0) for s in observed)
    _track("instance_norm", running_mean, mean, momentum)
    _track("instance_norm", running_var, variance * (count / max(count - 1, 1)), momentum)
    return y


@composed(Cast.FULL)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalize over the last axes: (x - mean) / sqrt(var + eps) * weight + bias, in float32 for halves.

    Args:
        normalized_shape: lengths of the axes that statistics are taken over, the last ones of the input.

    Shapes: input (*, *normalized_shape), weight and bias normalized_shape.
    """
    count = _check_normalized_shape("layer_norm", input, normalized_shape, weight, bias)
    _check_dtypes("layer_norm", input, {"weight": weight, "bias": bias})
    return _layer_norm(input, weight, bias, layout=(input.numel() // max(count, 1), count), affine=(1, count), axes=(1,),
                       eps=eps)


@composed(Cast.FULL)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalize each of `num_groups` groups of channels of each sample over its channels and positions.

    Shapes: input (N, C, ...), weight and bias (C,).

    Raises:
        RuntimeError: if the groups do not divide the channels.
        ValueError: if each group holds one value and there is one sample.
    """
    _check_channels("group_norm", input, None, None, weight, bias)
    n, c, positions = input.shape[0], input.shape[1], math.prod(input.shape[2:])
    if num_groups <= 0 or c % num_groups:
        raise RuntimeError(f"group_norm expected num_groups to divide the {c} channels, got {num_groups}")
    if n * (c // num_groups) * positions == 1:
        raise ValueError(f"group_norm expected more than one value per group, got an input of shape {input.shape} for "
                         f"{num_groups} groups")
    size = c // num_groups
    return _layer_norm(input, weight, bias, layout=(n, num_groups, size, positions), affine=(1, num_groups, size, 1),
                       axes=(2, 3), eps=eps)


@composed(Cast.FULL)
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Normalize over the last axes by the root of the mean square: x / sqrt(mean(x^2) + eps) * weight.

    Args:
        normalized_shape: lengths of the last axes, over which the mean is taken.
        eps: default the machine epsilon of the dtype computed in.

    Shapes: input (*, *normalized_shape), weight normalized_shape.
    """
    count = _check_normalized_shape("rms_norm", input, normalized_shape, weight, None)
    _check_dtypes("rms_norm", input, {})
    if weight is not None and weight.dtype != input.dtype:
        weight = cast_to(weight, dtypes.accumulation_dtype(input.dtype))
    if eps is None:
        eps = dtypes.finfo(dtypes.accumulation_dtype(input.dtype)).eps
    return _rms_norm(input, weight, layout=(input.numel() // max(count, 1), count), axes=(1,), eps=eps)


@composed(Cast.FULL)
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divide by (k + alpha * mean of squares over `size` neighbouring channels) ** beta.

    Shapes: input (N, C, ...) with at least three axes.
    """
    if input.ndim < 3:
        raise ValueError(f"local_response_norm expected at least 3 axes, got an input of shape {input.shape}")
    if input.numel() == 0:
        return input
    if size <= 0:
        raise RuntimeError(f"local_response_norm expected size > 0, got {size}")
    squares = _window_sum(input * input, before=size // 2, after=(size - 1) // 2)
    return input / pointwise.pow(squares * (alpha / size) + k, beta)


@no_grad()
def _track(name, running, observed, momentum):
    """Move a running statistic towards what was observed, in place; in float32 where it is half. Not a second time
    where a checkpoint computes again."""
    if running is None or state.recomputing:
        return
    journal.note(running.array)
    wide = running.backend.widen(running.array)
    overwrite(running, make_tensor(wide * (1 - momentum) + observed * momentum, None), name)


def _check_channels(name, input, running_mean, running_var, weight, bias):
    if input.ndim < 2:
        raise RuntimeError(f"{name} expected an input of shape (N, C, ...), got shape {input.shape}")
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for what, tensor in given.items():
        if tensor is not None and tensor.shape != input.shape[1:2]:
            raise RuntimeError(f"{name} expected {what} of shape ({input.shape[1]},) for an input of shape {input.shape}, "
                               f"got {tensor.shape}")
    _check_dtypes(name, input, given)


def _check_normalized_shape(name, input, normalized_shape, weight, bias):
    """The number of elements that normalized_shape holds."""
    shape = tuple(normalized_shape) if not isinstance(normalized_shape, int) else (normalized_shape,)
    if not shape or input.shape[input.ndim - len(shape):] != shape or len(shape) > input.ndim:
        raise RuntimeError(f"{name} expected normalized_shape to be the last axes of the input, got {shape} for an input of "
                           f"shape {input.shape}")
    given = {"weight": weight, "bias": bias}
    for what, tensor in given.items():
        if tensor is not None and tensor.shape != shape:
            raise RuntimeError(f"{name} expected {what} of shape {shape}, got {tensor.shape}")
    return math.prod(shape)


def _check_dtypes(name, input, given):
    """Parameters have the input's dtype; for a half input they may be float32."""
    if input.dtype not in dtypes.FLOATING:
        raise RuntimeError(f"{name} expected a floating input, got {dtypes.dtype_name(input.dtype)}; cast it first")
    for what, tensor in given.items():
        if tensor is None or tensor.dtype == input.dtype:
            continue
        if input.dtype not in dtypes.HALF or tensor.dtype != dtypes.float32:
            raise RuntimeError(f"{name} expected {what} of the input's dtype {dtypes.dtype_name(input.dtype)}, or float32 "
                               f"for a half input, got {dtypes.dtype_name(tensor.dtype)}; cast one of them")


# On tensors, which may not be written in place once another node holds them


def _normalize_gradients(g, x, weight, mean, rstd, axes):
    count = max(math.prod(x.shape[a] for a in axes), 1)
    xp = x.xp
    hat = (x - mean) * rstd
    inner = g if weight is None else g * weight
    slope = xp.sum(inner * hat, axes, True) / count
    gx = (inner - xp.sum(inner, axes, True) / count - hat * slope) * rstd
    return gx, None if weight is None else xp.sum_to(g * hat, weight.shape)


def _rms_normalize_gradients(g, x, weight, rstd, axes):
    count = max(math.prod(x.shape[a] for a in axes), 1)
    xp = x.xp
    hat = x * rstd
    inner = g if weight is None else g * weight
    gx = (inner - hat * (xp.sum(inner * hat, axes, True) / count)) * rstd
    return gx, None if weight is None else xp.sum_to(g * hat, weight.shape)


def _window_sum_of_tensor(x, before, after):
    return _window_sum(x, before=before, after=after)


METHODS = ()
ON_TENSORS = {
    "normalize_gradients": _normalize_gradients,
    "rms_normalize_gradients": _rms_normalize_gradients,
    "window_sum": _window_sum_of_tensor,
}
