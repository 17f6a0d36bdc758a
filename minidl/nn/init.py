"""Initial values of parameters: every function fills a tensor in place, without recording it, and returns it.

All that draw take `generator`, by default the stream for initialization, the same on all ranks. Halves are drawn in
float32 and rounded, so that a seed gives the same values in every dtype up to rounding.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from ..autograd.mode import no_grad
from ..tensor.creation import as_tensor
from ..tensor.dtypes import FLOATING, accumulation_dtype, dtype_name
from ..tensor.random import Generator, initialization_generator
from ..tensor.tensor import Tensor

__all__ = ["calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
           "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_"]

_LINEAR = ("linear", "sigmoid", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much weights before a nonlinearity are to be larger than for a linear layer, so that variances are kept.

    Args:
        nonlinearity: "linear", "conv2d" and the like, "sigmoid" (1), "tanh" (5/3), "relu" (sqrt 2), "leaky_relu"
            (sqrt(2 / (1 + slope^2))), "selu" (3/4).
        param: the slope of "leaky_relu"; default 0.01.

    Raises:
        ValueError: for other names, or a slope that is no number.
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"calculate_gain expected a number as the slope of leaky_relu, got {param!r}")
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}
    if nonlinearity not in gains:
        raise ValueError(f"calculate_gain expected one of {', '.join((*_LINEAR, 'leaky_relu', *gains))}, got {nonlinearity!r}")
    return gains[nonlinearity]


# Constants

def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with a number."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal and zeros elsewhere: a linear layer that keeps its input.

    Raises:
        ValueError: for a tensor that is no matrix.
    """
    _check_matrix("eye_", tensor)
    return _put(tensor, np.eye(tensor.shape[0], tensor.shape[1], dtype=tensor.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it keeps as many channels of its input as it can, in each group.

    Shapes: (O, C / groups, *kernel) with one to three spatial axes.

    Raises:
        ValueError: for another number of axes, or groups that do not divide the first.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError(f"dirac_ expected a tensor of 3, 4 or 5 axes, got shape {tensor.shape}")
    if groups < 1 or tensor.shape[0] % groups:
        raise ValueError(f"dirac_ expected groups that divide the first axis, got {groups} for shape {tensor.shape}")
    outputs = tensor.shape[0] // groups
    centre: tuple = tuple(n // 2 for n in tensor.shape[2:])
    values = np.zeros(tensor.shape, tensor.dtype)
    for channel in range(min(outputs, tensor.shape[1])):
        values[(slice(channel, None, outputs), channel) + centre] = 1
    return _put(tensor, values)


# Independent draws

def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with numbers uniform over [a, b)."""
    if not (math.isfinite(b - a) and a <= b):
        raise ValueError(f"uniform_ expected finite bounds, the lower one first, got {a} and {b}")
    return _drawn("uniform_", tensor, generator, lambda draw, dtype: draw.uniform(tensor.shape, dtype, "cpu") * (b - a) + a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers."""
    if not std >= 0:
        raise ValueError(f"normal_ expected a standard deviation that is not negative, got {std}")
    return _drawn("normal_", tensor, generator, lambda draw, dtype: draw.normal(tensor.shape, dtype, "cpu") * std + mean)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers, of which those outside [a, b] are drawn again.

    Raises:
        ValueError: if std is not positive or a is not below b.
    """
    if not (std > 0 and a < b):
        raise ValueError(f"trunc_normal_ expected a positive std and a < b, got std {std}, a {a}, b {b}")
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(f"trunc_normal_ got a mean of {mean}, more than 2 std from [{a}, {b}]: most numbers lie at one end",
                      stacklevel=2)
    return _drawn("trunc_normal_", tensor, generator,
                  lambda draw, dtype: _truncated(draw, tensor.numel(), mean, std, a, b).reshape(tensor.shape))


def _truncated(draw: Generator, count: int, mean: float, std: float, a: float, b: float) -> Any:
    """Rejection, from the normal distribution where it often falls into [a, b], else from the uniform one."""
    curve = NormalDist(mean, std)
    often = curve.cdf(b) - curve.cdf(a) > 0.3
    peak = (max(a, min(mean, b)) - mean) / std
    values, missing = np.empty(count), np.arange(count)
    while missing.size:
        if often:
            drawn = draw.normal(missing.shape, np.float64, "cpu") * std + mean
            kept = (drawn >= a) & (drawn <= b)
        else:
            drawn = draw.uniform(missing.shape, np.float64, "cpu") * (b - a) + a
            density = np.exp((peak ** 2 - ((drawn - mean) / std) ** 2) / 2)
            kept = draw.uniform(missing.shape, np.float64, "cpu") < density
        values[missing] = drawn
        missing = missing[~kept]
    return values


# Scaled by fans

def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform over +-gain * sqrt(6 / (fan_in + fan_out)).

    Source: Glorot and Bengio (2010), Understanding the difficulty of training deep feedforward neural networks, eq. 16.
    """
    bound = gain * math.sqrt(6 / max(1, sum(_fans("xavier_uniform_", tensor))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    Source: Glorot and Bengio (2010), eq. 12.
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2 / max(1, sum(_fans("xavier_normal_", tensor)))), generator)


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator: Generator | None = None) -> Tensor:
    """Uniform over +-gain * sqrt(3 / fan).

    Args:
        a: the slope of the leaky_relu that follows.
        mode: "fan_in" keeps variances in forward, "fan_out" in backward.
        nonlinearity: what follows; see calculate_gain.

    Source: He et al. (2015), Delving deep into rectifiers, eq. 10 and 14.
    """
    std = _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return tensor if std is None else uniform_(tensor, -math.sqrt(3) * std, math.sqrt(3) * std, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator: Generator | None = None) -> Tensor:
    """Normal with standard deviation gain / sqrt(fan); arguments as for kaiming_uniform_."""
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def _kaiming_std(name: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warnings.warn(f"{name} got a tensor without elements, of shape {tensor.shape}, and leaves it as it is", stacklevel=3)
        return None
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"{name} expected mode 'fan_in' or 'fan_out', got {mode!r}")
    fan = _fans(name, tensor)[mode.lower() == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


# Matrices

def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with gain times a matrix whose rows, or columns if there are fewer of them, are orthonormal.

    Shapes: (rows, ...), where all axes after the first count as columns.

    Raises:
        ValueError: for fewer than 2 axes.

    Source: Saxe, McClelland, Ganguli (2014), Exact solutions to the nonlinear dynamics of learning in deep linear networks.
    """
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_ expected a tensor of at least 2 axes, got shape {tensor.shape}")
    if 0 in tensor.shape:
        return tensor
    return _drawn("orthogonal_", tensor, generator,
                  lambda draw, dtype: gain * _orthonormal(draw, len(tensor), math.prod(tensor.shape[1:])).reshape(tensor.shape))


def _orthonormal(draw: Generator, rows: int, columns: int) -> Any:
    """The signs make the distribution of the matrices uniform (Mezzadri 2007)."""
    q, r = np.linalg.qr(draw.normal((max(rows, columns), min(rows, columns)), np.float64, "cpu"))
    q *= np.sign(r.diagonal())
    return q if rows >= columns else q.T


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with normal numbers, of which a part of each column, rounded up, is 0.

    Args:
        sparsity: that part, from 0 to 1.

    Raises:
        ValueError: for a tensor that is no matrix, or another part.

    Source: Martens (2010), Deep learning via Hessian-free optimization.
    """
    _check_matrix("sparse_", tensor)
    if not 0 <= sparsity <= 1:
        raise ValueError(f"sparse_ expected a part from 0 to 1 that is to be zero, got {sparsity}")
    zeros = math.ceil(sparsity * tensor.shape[0])

    def values(draw: Generator, dtype: Any) -> Any:
        numbers = draw.normal(tensor.shape, dtype, "cpu") * std
        order = draw.uniform(tensor.shape, np.float64, "cpu").argsort(0)
        np.put_along_axis(numbers, order[:zeros], 0, 0)
        return numbers

    return _drawn("sparse_", tensor, generator, values)


# Helpers

def default_(weight: Tensor, bias: Tensor | None) -> None:
    """What layers with a weight (outputs, inputs, *kernel) and a bias start with: both uniform over +-1 / sqrt(fan_in)."""
    bound = 1 / math.sqrt(max(1, _fans("default_", weight)[0]))
    uniform_(weight, -bound, bound)
    if bias is not None:
        uniform_(bias, -bound, bound)


def _drawn(name: str, tensor: Tensor, generator: Generator | None, values: Callable[[Generator, Any], Any]) -> Tensor:
    """Put `values(generator, dtype)` into the tensor, where dtype is what halves are drawn in."""
    if tensor.dtype not in FLOATING:
        raise TypeError(f"{name} expected a floating tensor, got {dtype_name(tensor.dtype)}")
    stream = initialization_generator() if generator is None else generator
    return _put(tensor, values(stream, accumulation_dtype(tensor.dtype)))


def _put(tensor: Tensor, values: Any) -> Tensor:
    with no_grad(), np.errstate(over="ignore"):
        return tensor.copy_(as_tensor(values.astype(tensor.dtype, copy=False), device=tensor.device))


def _fans(name: str, tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output sums over, and how many outputs an input reaches, for a weight (outputs, inputs, *kernel)."""
    if tensor.ndim < 2:
        raise ValueError(f"{name} expected a tensor of at least 2 axes, (outputs, inputs, *kernel), got shape {tensor.shape}")
    elements = math.prod(tensor.shape[2:])
    return tensor.shape[1] * elements, tensor.shape[0] * elements


def _check_matrix(name: str, tensor: Tensor) -> None:
    if tensor.ndim != 2:
        raise ValueError(f"{name} expected a matrix, got shape {tensor.shape}")
