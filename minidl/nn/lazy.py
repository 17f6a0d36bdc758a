"""Layers that learn their number of inputs from the first one, and become the plain layers then."""

from __future__ import annotations

from typing import Any

from ..autograd.mode import no_grad
from ..tensor.tensor import Tensor
from .convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _Conv,
    _Convolution,
    _ConvTranspose,
)
from .linear import Linear
from .module import Module
from .parameter import UninitializedBuffer, UninitializedParameter, is_uninitialized

__all__ = ["LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
           "LazyLinear", "LazyModule"]


class LazyModule(Module):
    """Mixed into a layer before its plain class, makes a layer whose class becomes `cls_to_become` at the first forward.

    A subclass calls `defer` at the end of its constructor, and defines `initialize_parameters(input)`, which calls
    `materialize`. Until then the state dict holds what it has no shape for; one of a plain layer can be loaded.
    """

    cls_to_become: Any

    def defer(self, *names: str) -> None:
        """Forget the shapes of parameters and buffers, of those of the names that are not None."""
        for name in names:
            tensor = getattr(self, name)
            if name in self._buffers:
                self.__dict__[name] = UninitializedBuffer((), tensor.dtype, tensor.device)
            elif tensor is not None:
                setattr(self, name, UninitializedParameter(tensor.requires_grad, tensor.device, tensor.dtype))

    def has_uninitialized_params(self) -> bool:
        """True while a parameter or buffer has no shape."""
        return any(map(is_uninitialized, (*self._parameters.values(), *self._buffers.values())))

    def materialize(self, **shapes: tuple) -> None:
        """Give parameters and buffers their shapes and initial values; those with values from a state dict keep them."""
        tensors = {**self._parameters, **self._buffers}
        loaded = {name: tensor.detach().clone() for name, tensor in tensors.items() if not is_uninitialized(tensor)}
        for name, shape in shapes.items():
            tensor: Any = tensors.get(name)
            if is_uninitialized(tensor):
                tensor.materialize(shape)
        self.cls_to_become.reset_parameters(self)
        with no_grad():
            for name, value in loaded.items():
                getattr(self, name).copy_(value)

    def reset_parameters(self) -> None:
        """Nothing, as long as there are no shapes."""

    def initialize_parameters(self, input: Any) -> None:
        """Take the number of inputs from the input, and materialize."""
        raise NotImplementedError

    def forward(self, input: Any, *args: Any, **kwargs: Any) -> Any:
        """Become the plain layer, and do what it does."""
        self.initialize_parameters(input)
        self.__class__ = self.cls_to_become
        return self.forward(input, *args, **kwargs)


class LazyLinear(LazyModule, Linear):
    """Linear whose in_features are the last axis of the first input. Arguments and shapes as for Linear."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, out_features, bias, device, dtype)
        self.defer("weight", "bias")

    def initialize_parameters(self, input: Tensor) -> None:
        """Take in_features from the input, or from a loaded weight."""
        if is_uninitialized(self.weight) and not input.ndim:
            raise RuntimeError(f"LazyLinear expected an input of at least one axis, got shape {input.shape}")
        self.in_features = (input if is_uninitialized(self.weight) else self.weight).shape[-1]
        self.materialize(weight=(self.out_features, self.in_features), bias=(self.out_features,))


class _LazyConvolution(LazyModule, _Convolution):

    def initialize_parameters(self, input: Tensor) -> None:
        """Take in_channels from the input, or from a loaded weight."""
        if is_uninitialized(self.weight):
            if input.ndim not in (self._axes + 1, self._axes + 2):
                raise RuntimeError(f"{self._name()} expected input of {self._axes + 2} axes, or {self._axes + 1} without a "
                                   f"batch, got shape {input.shape}")
            channels = input.shape[-self._axes - 1]
            if channels % self.groups:
                raise ValueError(f"{self._name()} expected input whose channels {self.groups} groups divide, got shape "
                                 f"{input.shape}")
            self.in_channels = channels
        else:
            self.in_channels = self._channels_of(self.weight.shape)
        self.materialize(weight=self._weight_shape(), bias=(self.out_channels,))

    def _channels_of(self, shape: tuple) -> int:
        raise NotImplementedError


class _LazyConv(_LazyConvolution, _Conv):

    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(0, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self.defer("weight", "bias")

    def _channels_of(self, shape: tuple) -> int:
        return shape[1] * self.groups


class LazyConv1d(_LazyConv, Conv1d):
    """Conv1d whose in_channels are those of the first input. Arguments and shapes as for Conv1d."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """Conv2d whose in_channels are those of the first input. Arguments and shapes as for Conv2d."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """Conv3d whose in_channels are those of the first input. Arguments and shapes as for Conv3d."""

    cls_to_become = Conv3d


class _LazyConvTranspose(_LazyConvolution, _ConvTranspose):

    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                 groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(0, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode,
                         device, dtype)
        self.defer("weight", "bias")

    def _channels_of(self, shape: tuple) -> int:
        return shape[0]


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """ConvTranspose1d whose in_channels are those of the first input. Arguments and shapes as for ConvTranspose1d."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """ConvTranspose2d whose in_channels are those of the first input. Arguments and shapes as for ConvTranspose2d."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """ConvTranspose3d whose in_channels are those of the first input. Arguments and shapes as for ConvTranspose3d."""

    cls_to_become = ConvTranspose3d
