"""Activations as layers. What they compute stands at the functions of the same names in minidl.nn.functional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor.creation import empty
from ..tensor.tensor import Tensor
from . import functional as F
from . import init as initial
from .module import Module
from .parameter import Parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin",
    "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]


class _Activation(Module):
    """A function whose options are attributes, passed on in the order of their names."""

    _function: Callable[..., Tensor]
    _options: tuple[str, ...] = ()

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, *[getattr(self, name) for name in self._options])

    def extra_repr(self) -> str:
        options = {name: getattr(self, name) for name in self._options}
        return ", ".join(f"{name}={value!r}" for name, value in options.items() if name != "inplace" or value)


class _MayBeInPlace(_Activation):
    _options = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.inplace)


# Piecewise linear

class ReLU(_MayBeInPlace):
    """max(input, 0).

    Args:
        inplace: write into the input.
    """

    _function = staticmethod(F.relu)


class ReLU6(_MayBeInPlace):
    """min(max(input, 0), 6)."""

    _function = staticmethod(F.relu6)


class Hardtanh(_Activation):
    """The input, but no less than min_val and no more than max_val.

    Raises:
        ValueError: if max_val is not above min_val.
    """

    _function = staticmethod(F.hardtanh)
    _options = ("min_val", "max_val", "inplace")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if not max_val > min_val:
            raise ValueError(f"Hardtanh expected min_val below max_val, got {min_val} and {max_val}")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace


class LeakyReLU(_Activation):
    """The input where it is positive, else negative_slope * input."""

    _function = staticmethod(F.leaky_relu)
    _options = ("negative_slope", "inplace")

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace


class RReLU(_Activation):
    """LeakyReLU whose slope is drawn for each element from [lower, upper) in training, else their mean.

    Source: Xu et al. 2015, "Empirical Evaluation of Rectified Activations in Convolutional Network".
    """

    _options = ("lower", "upper", "inplace")

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(_Activation):
    """The input where it is positive, else weight * input, with a weight for all channels or one for each.

    Args:
        num_parameters: 1, or the number of channels.
        init: what the weight starts with.

    Shapes: input (N, C, ...), weight (num_parameters,).

    Source: He et al. 2015, "Delving Deep into Rectifiers".
    """

    _function = staticmethod(F.prelu)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to `init`."""
        initial.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Threshold(_Activation):
    """The input where it is larger than threshold, else value."""

    _function = staticmethod(F.threshold)
    _options = ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace


class _Shrink(_Activation):
    _options = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """The input, but 0 in [-lambd, lambd]."""

    _function = staticmethod(F.hardshrink)


class Softshrink(_Shrink):
    """The input moved towards 0 by lambd, and 0 in [-lambd, lambd]."""

    _function = staticmethod(F.softshrink)


class Hardsigmoid(_MayBeInPlace):
    """relu6(input + 3) / 6."""

    _function = staticmethod(F.hardsigmoid)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_MayBeInPlace):
    """input * relu6(input + 3) / 6."""

    _function = staticmethod(F.hardswish)

    def extra_repr(self) -> str:
        return ""


# Smooth

class _Exponential(_Activation):
    _options = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace


class ELU(_Exponential):
    """The input where it is positive, else alpha * (exp(input) - 1)."""

    _function = staticmethod(F.elu)


class CELU(_Exponential):
    """The input where it is positive, else alpha * (exp(input / alpha) - 1)."""

    _function = staticmethod(F.celu)


class SELU(_MayBeInPlace):
    """ELU times a scale, with the constants under which mean 0 and variance 1 stay what they are.

    Source: Klambauer et al. 2017, "Self-Normalizing Neural Networks".
    """

    _function = staticmethod(F.selu)


class GELU(_Activation):
    """input times the probability that a standard normal number is smaller.

    Args:
        approximate: "none", or "tanh" for the approximation by tanh.

    Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units".
    """

    _function = staticmethod(F.gelu)
    _options = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate


class SiLU(_MayBeInPlace):
    """input * sigmoid(input)."""

    _function = staticmethod(F.silu)


class Mish(_MayBeInPlace):
    """input * tanh(softplus(input))."""

    _function = staticmethod(F.mish)


class Softplus(_Activation):
    """log(1 + exp(beta * input)) / beta, and the input itself where beta * input > threshold."""

    _function = staticmethod(F.softplus)
    _options = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold


class Sigmoid(_Activation):
    """1 / (1 + exp(-input))."""

    _function = staticmethod(F.sigmoid)


class LogSigmoid(_Activation):
    """log(sigmoid(input)), without underflow."""

    _function = staticmethod(F.logsigmoid)


class Tanh(_Activation):
    """The hyperbolic tangent."""

    _function = staticmethod(F.tanh)


class Softsign(_Activation):
    """input / (1 + |input|)."""

    _function = staticmethod(F.softsign)


class Tanhshrink(_Activation):
    """input - tanh(input)."""

    _function = staticmethod(F.tanhshrink)


# Along an axis

class GLU(_Activation):
    """The first half of an axis times the sigmoid of the second half.

    Source: Dauphin et al. 2016, "Language Modeling with Gated Convolutional Networks".
    """

    _function = staticmethod(F.glu)
    _options = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim


class _AlongAxis(_Activation):
    _options = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_AlongAxis):
    """exp(input) over its sum along an axis.

    Args:
        dim: the axis. Without it: 0 for tensors of 0, 1 or 3 axes, else 1.
    """

    _function = staticmethod(F.softmax)


class Softmin(_AlongAxis):
    """softmax(-input)."""

    _function = staticmethod(F.softmin)


class LogSoftmax(_AlongAxis):
    """log(softmax(input)), computed without overflow."""

    _function = staticmethod(F.log_softmax)


class Softmax2d(_Activation):
    """Softmax over the channels of each pixel.

    Shapes: (N, C, H, W) or (C, H, W), kept.

    Raises:
        ValueError: for another number of axes.
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d expected an input (N, C, H, W) or (C, H, W), got shape {input.shape}")
        return F.softmax(input, -3)
