"""Layers that move elements or change sizes: flattening, shuffles, upsampling, windows as columns."""

from __future__ import annotations

from typing import Any

from ..tensor.ops.shape import flatten, unflatten
from ..tensor.tensor import Tensor
from . import functional as F
from .module import Module

__all__ = [
    "ChannelShuffle", "Flatten", "Fold", "PixelShuffle", "PixelUnshuffle", "Unflatten", "Unfold", "Upsample",
    "UpsamplingBilinear2d", "UpsamplingNearest2d",
]


class Flatten(Module):
    """The axes from start_dim to end_dim, both included, as one; by default all but the batch axis."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One axis as several.

    Args:
        dim: the axis.
        unflattened_size: the lengths that it is seen with, of which one may be -1.
    """

    def __init__(self, dim: int, unflattened_size: tuple[int, ...] | list[int]):
        super().__init__()
        if isinstance(dim, bool) or not hasattr(dim, "__index__"):
            raise TypeError(f"Unflatten expected dim to be an integer, got {dim!r}; axes have no names here")
        if not isinstance(unflattened_size, (tuple, list)) or not all(hasattr(n, "__index__") for n in unflattened_size):
            raise TypeError(f"Unflatten expected unflattened_size to be a tuple or list of integers, got {unflattened_size!r}")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class PixelShuffle(Module):
    """Channels spread over pixels.

    Shapes: (*, C * r * r, H, W) to (*, C, H * r, W * r), where r is upscale_factor.

    Source: Shi et al. 2016, "Real-Time Single Image and Video Super-Resolution".
    """

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Pixels gathered into channels, the inverse of PixelShuffle.

    Shapes: (*, C, H * r, W * r) to (*, C * r * r, H, W), where r is downscale_factor.
    """

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels of `groups` groups interleaved: the first of each group, then the second of each, and so on.

    Shapes: (N, C, *) to (N, C, *).
    """

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Upsample(Module):
    """The tensor with its spatial axes in another size.

    Args:
        size: a number for all spatial axes, or one for each; or else
        scale_factor: a factor for all of them, or one for each.
        mode: "nearest", "nearest-exact", "area", "linear", "bilinear", "bicubic" or "trilinear".
        align_corners: for the linear and cubic modes: the corner pixels' centres stay where they are, else the image's corners.
        recompute_scale_factor: the scale is what the rounded size comes to, not scale_factor.

    Shapes: (N, C, *spatial) to (N, C, *size), with 1, 2 or 3 spatial axes.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
                 recompute_scale_factor: bool | None = None):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = None if scale_factor is None else float(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)

    def extra_repr(self) -> str:
        extent = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{extent}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample with mode "nearest"."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample with mode "bilinear" and align_corners=True."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class Fold(Module):
    """Columns added up where their windows lie; what Unfold takes apart.

    Args:
        output_size: height and width of the result.
        kernel_size, dilation, padding, stride: of the windows; a number for both axes, or one for each.

    Shapes: (N, C * kH * kW, number of windows) or without N to (N, C, *output_size) or (C, *output_size).
    """

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
                f"padding={self.padding}, stride={self.stride}")


class Unfold(Module):
    """The elements of each window as a column.

    Args:
        kernel_size, dilation, padding, stride: of the windows; a number for both axes, or one for each.

    Shapes: (N, C, H, W) or (C, H, W) to (N, C * kH * kW, number of windows) or without N.
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
                f"stride={self.stride}")
