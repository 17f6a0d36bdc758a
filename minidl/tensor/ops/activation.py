"""Activations: the non-linearities of networks, element-wise.

`inplace=True` writes the result into the input and returns it.
"""

from __future__ import annotations

import math

from ...autograd.op import Cast
from .. import dtypes
from ..apply import composed, listed_as, op
from ..dims import one_dim
from ..inplace import in_place
from ..random import default_generator
from .pointwise import real, sigmoid
from .shape import cast_to, reshape
from .splitting import chunk
from .trigonometry import tanh

__all__ = ["celu", "celu_", "elu", "elu_", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_",
           "leaky_relu", "leaky_relu_", "logsigmoid", "mish", "prelu", "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu",
           "selu_", "sigmoid", "silu", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
           "threshold_"]

smooth = op(Cast.KEEP, wide=True)
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


# Piecewise linear

@op(Cast.KEEP)
def _relu(xp, x):
    y = xp.relu(x)
    return y, lambda g: xp.relu_gradient(g, y)


@op(Cast.KEEP)
def _hardtanh(xp, x, *, low, high):
    y = xp.minimum(xp.maximum(x, low), high)
    return y, lambda g: xp.select((x > low) & (x < high), g, 0)


@op(Cast.KEEP)
def _leaky_relu(xp, x, *, slope):
    return xp.select(x > 0, x, x * slope), lambda g: xp.select(x > 0, g, g * slope)


@op(Cast.KEEP)
def _scaled_below_zero(xp, x, slopes):
    """x times its own slope where that is not positive: leaky relu with random slopes."""
    return xp.select(x > 0, x, x * slopes), (lambda g: xp.select(x > 0, g, g * slopes), None)


@op(Cast.HALF)
def _prelu(xp, x, weight):
    return xp.select(x > 0, x, x * weight), (lambda g: xp.select(x > 0, g, g * weight), lambda g: xp.select(x > 0, 0, g * x))


@smooth
def _hardsigmoid(xp, x):
    y = xp.minimum(xp.maximum(x + 3, 0), 6) / 6
    return y, lambda g: xp.select((x > -3) & (x < 3), g / 6, 0)


@smooth
def _hardswish(xp, x):
    y = x * xp.minimum(xp.maximum(x + 3, 0), 6) / 6
    return y, lambda g: xp.select(x <= -3, 0, xp.select(x < 3, g * (x / 3 + 0.5), g))


@op(Cast.KEEP)
def _hardshrink(xp, x, *, lambd):
    return xp.select((x >= -lambd) & (x <= lambd), 0, x), lambda g: xp.select((x >= -lambd) & (x <= lambd), 0, g)


@op(Cast.KEEP)
def _softshrink(xp, x, *, lambd):
    y = x - xp.minimum(xp.maximum(x, -lambd), lambd)
    return y, lambda g: xp.select((x >= -lambd) & (x <= lambd), 0, g)


@op(Cast.KEEP)
def _threshold(xp, x, *, threshold, value):
    return xp.select(x <= threshold, value, x), lambda g: xp.select(x <= threshold, 0, g)


# Smooth

@smooth
def _elu(xp, x, *, alpha, scale, input_scale):
    """scale * x above 0, else scale * alpha * (exp(input_scale * x) - 1)."""
    y = xp.select(x > 0, x * scale, xp.expm1(xp.minimum(x, 0) * input_scale) * (alpha * scale))

    def gradient(g):
        slope = xp.exp(xp.select(x < 0, x, 0) * input_scale) * (alpha * scale * input_scale)
        return g * xp.select(x > 0, scale, slope)

    return y, gradient


@op(Cast.KEEP)
def _gelu(xp, x):
    def value(xp, x):
        return x * 0.5 * (1 + xp.erf(x * math.sqrt(0.5)))

    def gradient(xp, g, x):
        density = xp.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return g * (0.5 * (1 + xp.erf(x * math.sqrt(0.5))) + x * density)

    return xp.by_blocks(value, x), lambda g: xp.by_blocks(gradient, g, x)


@op(Cast.KEEP)
def _gelu_tanh(xp, x):
    def value(xp, x):
        return x * 0.5 * (1 + xp.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)))

    def gradient(xp, g, x):
        t = xp.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi))
        slope = (1 + x * x * (3 * 0.044715)) * math.sqrt(2 / math.pi)
        return g * 0.5 * (1 + t + x * (1 - t * t) * slope)

    return xp.by_blocks(value, x), lambda g: xp.by_blocks(gradient, g, x)


@op(Cast.KEEP)
def _silu(xp, x):
    def value(xp, x):
        return x * xp.sigmoid(x)

    def gradient(xp, g, x):
        s = xp.sigmoid(x)
        return g * (s * (1 + x * (1 - s)))

    return xp.by_blocks(value, x), lambda g: xp.by_blocks(gradient, g, x)


@op(Cast.KEEP)
def _mish(xp, x):
    def value(xp, x):
        return x * xp.tanh(xp.softplus(x))

    def gradient(xp, g, x):
        t = xp.tanh(xp.softplus(x))
        return g * (t + x * (1 - t * t) * xp.sigmoid(x))

    return xp.by_blocks(value, x), lambda g: xp.by_blocks(gradient, g, x)


@op(Cast.FULL)
def _softplus(xp, x, *, beta, threshold):
    y = xp.select(x * beta > threshold, x, xp.softplus(x * beta) / beta)
    return y, lambda g: xp.select(x * beta > threshold, g, g * xp.sigmoid(x * beta))


@smooth
def _logsigmoid(xp, x):
    return -xp.softplus(-x), lambda g: g * xp.sigmoid(-x)


@real
def _softsign(xp, x):
    def gradient(g):
        size = 1 + xp.abs(x)
        return g / (size * size)

    return x / (1 + xp.abs(x)), gradient


@real
def _tanhshrink(xp, x):
    def gradient(g):
        t = xp.tanh(x)
        return g * (t * t)

    return x - xp.tanh(x), gradient


@smooth
def _gate(xp, a, b):
    def gate_gradient(g):
        s = xp.sigmoid(b)
        return g * a * (s * (1 - s))

    return a * xp.sigmoid(b), (lambda g: g * xp.sigmoid(b), gate_gradient)


# The public functions

@listed_as(_relu)
def relu(input, inplace=False):
    """max(input, 0); the gradient at 0 is 0."""
    if inplace:
        return _in_place_forms[_relu](input)
    return _relu(_numbers("relu", input))


def relu6(input, inplace=False):
    """min(max(input, 0), 6)."""
    return hardtanh(input, 0, 6, inplace)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """The input, but no less than min_val and no more than max_val."""
    if min_val > max_val:
        raise ValueError(f"hardtanh expected min_val no larger than max_val, got {min_val} and {max_val}")
    low, high = _like(input, "hardtanh", min_val, max_val)
    return _run(_hardtanh, input, inplace, low=low, high=high)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """The input where it is positive, else negative_slope * input."""
    return _run(_leaky_relu, _floating("leaky_relu", input), inplace, slope=negative_slope)


def rrelu(input, lower=1 / 8, upper=1 / 3, training=False, inplace=False, *, generator=None):
    """Leaky relu whose slope is drawn for each element from [lower, upper) in training, else their mean.

    Args:
        generator: default this thread's run-time stream.

    Source: Xu et al. 2015, Empirical Evaluation of Rectified Activations in Convolutional Network.
    """
    if lower > upper:
        raise RuntimeError(f"rrelu expected lower no larger than upper, got {lower} and {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    generator = default_generator() if generator is None else generator
    noise = generator.uniform(input.shape, _floating("rrelu", input).dtype, input.device)
    return _run(_scaled_below_zero, input, inplace, input.backend.asarray(noise * (upper - lower) + lower))


@composed(Cast.HALF)
def prelu(input, weight):
    """The input where it is positive, else weight * input.

    Shapes: input (N, C, ...), weight (C,) or (1,) or 0-d.
    """
    if input.dtype != weight.dtype:
        raise RuntimeError(f"prelu expected input and weight of one dtype, got {dtypes.dtype_name(input.dtype)} and "
                           f"{dtypes.dtype_name(weight.dtype)}; cast one first")
    if weight.ndim > 1:
        raise RuntimeError(f"prelu expected a weight of at most one axis, got shape {weight.shape}")
    if weight.numel() == 1 or weight.ndim == 0:
        return _prelu(input, reshape(weight, (1,) * input.ndim))
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.numel() != channels:
        raise RuntimeError(f"prelu expected a weight of 1 or {channels} elements for an input of shape {input.shape}, got "
                           f"{weight.numel()}")
    return _prelu(input, reshape(weight, (-1,) + (1,) * (input.ndim - 2)))


def elu(input, alpha=1.0, inplace=False):
    """The input where it is positive, else alpha * (exp(input) - 1)."""
    return _run(_elu, _floating("elu", input), inplace, alpha=alpha, scale=1.0, input_scale=1.0)


def selu(input, inplace=False):
    """elu times a scale, with the constants under which mean 0 and variance 1 stay what they are.

    Source: Klambauer et al. 2017, Self-Normalizing Neural Networks.
    """
    return _run(_elu, _floating("selu", input), inplace, alpha=_SELU_ALPHA, scale=_SELU_SCALE, input_scale=1.0)


def celu(input, alpha=1.0, inplace=False):
    """The input where it is positive, else alpha * (exp(input / alpha) - 1)."""
    if alpha == 0:
        raise RuntimeError("celu expected an alpha other than 0")
    return _run(_elu, _floating("celu", input), inplace, alpha=alpha, scale=1.0, input_scale=1 / alpha)


@composed(Cast.KEEP)
def gelu(input, approximate="none"):
    """input times the probability that a standard normal number is smaller.

    Args:
        approximate: "none", or "tanh" for the approximation by tanh.

    Source: Hendrycks and Gimpel 2016, Gaussian Error Linear Units.
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu expected approximate to be 'none' or 'tanh', got {approximate!r}")
    return (_gelu if approximate == "none" else _gelu_tanh)(_floating("gelu", input))


def silu(input, inplace=False):
    """input * sigmoid(input)."""
    return _run(_silu, _floating("silu", input), inplace)


def mish(input, inplace=False):
    """input * tanh(softplus(input))."""
    return _run(_mish, _floating("mish", input), inplace)


def hardsigmoid(input, inplace=False):
    """relu6(input + 3) / 6."""
    return _run(_hardsigmoid, _floating("hardsigmoid", input), inplace)


def hardswish(input, inplace=False):
    """input * relu6(input + 3) / 6."""
    return _run(_hardswish, _floating("hardswish", input), inplace)


def hardshrink(input, lambd=0.5):
    """The input, but 0 in [-lambd, lambd]."""
    return _hardshrink(_floating("hardshrink", input), lambd=lambd)


def softshrink(input, lambd=0.5):
    """The input moved towards 0 by lambd, and 0 in [-lambd, lambd]."""
    if lambd < 0:
        raise RuntimeError(f"softshrink expected a lambd that is not negative, got {lambd}")
    return _softshrink(_floating("softshrink", input), lambd=lambd)


@listed_as(_softplus)
def softplus(input, beta=1.0, threshold=20.0):
    """log(1 + exp(beta * input)) / beta, and the input itself where beta * input > threshold."""
    return _softplus(_floating("softplus", input), beta=beta, threshold=threshold)


def softsign(input):
    """input / (1 + |input|)."""
    return _softsign(_numbers("softsign", input))


def tanhshrink(input):
    """input - tanh(input)."""
    return _tanhshrink(_numbers("tanhshrink", input))


def logsigmoid(input):
    """log(sigmoid(input)), without underflow."""
    return _logsigmoid(_floating("logsigmoid", input))


def threshold(input, threshold, value, inplace=False):
    """The input where it is larger than threshold, else value."""
    threshold, value = _like(input, "threshold", threshold, value)
    return _run(_threshold, input, inplace, threshold=threshold, value=value)


def glu(input, dim=-1):
    """The first half of an axis times the sigmoid of the second half.

    Source: Dauphin et al. 2016, Language Modeling with Gated Convolutional Networks.
    """
    if input.ndim == 0:
        raise RuntimeError("glu expected an input with axes, got a 0-d tensor")
    length = input.shape[one_dim("glu", dim, input.ndim)]
    if length % 2:
        raise RuntimeError(f"glu expected an axis of even length to halve, got {length} at dim {dim} of shape {input.shape}")
    _floating("glu", input)
    return _gate(*chunk(input, 2, dim))


_in_place_forms = {function: in_place(function) for function in (
    _relu, _hardtanh, _leaky_relu, _scaled_below_zero, _hardsigmoid, _hardswish, _threshold, _elu, _silu, _mish)}


def _run(function, input, inplace, *others, **attributes):
    return (_in_place_forms[function] if inplace else function)(input, *others, **attributes)


def _numbers(name, input):
    if input.array.dtype.kind == "b":
        raise NotImplementedError(f"{name} expected numbers, got bool; cast the input first")
    return input


def _like(input, name, *numbers):
    """The numbers as whole ones where the input is of integers."""
    return numbers if _numbers(name, input).dtype in dtypes.FLOATING else [int(number) for number in numbers]


def _floating(name, input):
    if input.dtype not in dtypes.FLOATING:
        raise NotImplementedError(f"{name} expected a floating input, got {dtypes.dtype_name(input.dtype)}; cast it first")
    return input


relu_, leaky_relu_, elu_, selu_, celu_, hardtanh_, threshold_, rrelu_ = [
    in_place(function) for function in (relu, leaky_relu, elu, selu, celu, hardtanh, threshold, rrelu)]


# On tensors


def _softplus_of(x):
    return -_logsigmoid(-x)


def _in_float32(formula, *tensors):
    y = formula(tensors[0].xp, *[cast_to(t, dtypes.accumulation_dtype(t.dtype)) for t in tensors])
    return cast_to(y, tensors[0].dtype)


METHODS = (hardshrink, prelu, relu)
IN_PLACE = (relu,)
ON_TENSORS = {"softplus": _softplus_of, "by_blocks": _in_float32}
