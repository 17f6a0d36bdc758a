"""DCGAN: generator and discriminator of small grey images."""

from __future__ import annotations

from typing import Any

from .. import nn
from ..nn import init
from ..tensor.tensor import Tensor


def _initialize(module: nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, (nn.Conv2d, nn.ConvTranspose2d)):
            init.normal_(part.weight, 0.0, 0.02)
        elif isinstance(part, nn.BatchNorm2d):
            weight: Any = part.weight
            init.normal_(weight, 1.0, 0.02)


class DCGANGenerator(nn.Sequential):
    """Images from noise, by transposed convolutions that double the size.

    Args:
        latent: features of the noise.
        width: channels of the last hidden layer.
        size: of the images: 8, 16, 32 or 64 pixels.

    Shapes: noise (N, latent, 1, 1), result (N, channels, size, size) in [-1, 1].

    Source: Radford et al. 2016.
    """

    def __init__(self, latent: int = 32, width: int = 32, size: int = 8, channels: int = 1):
        doublings = _doublings(size)
        now = width * 2 ** (doublings - 1)
        layers = [nn.ConvTranspose2d(latent, now, 4, 1, 0, bias=False), nn.BatchNorm2d(now), nn.ReLU()]
        for _ in range(doublings - 1):
            layers += [nn.ConvTranspose2d(now, now // 2, 4, 2, 1, bias=False), nn.BatchNorm2d(now // 2), nn.ReLU()]
            now //= 2
        super().__init__(*layers, nn.ConvTranspose2d(now, channels, 4, 2, 1), nn.Tanh())
        _initialize(self)


class DCGANDiscriminator(nn.Sequential):
    """One logit for each image: is it real? By convolutions that halve the size.

    Shapes: images (N, channels, size, size), result (N,).

    Raises:
        ValueError: for images of another size.

    Source: Radford et al. 2016.
    """

    def __init__(self, width: int = 32, size: int = 8, channels: int = 1):
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 4, 2, 1), nn.LeakyReLU(0.2)]
        now = width
        for _ in range(_doublings(size) - 1):
            layers += [nn.Conv2d(now, 2 * now, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * now), nn.LeakyReLU(0.2)]
            now *= 2
        super().__init__(*layers, nn.Conv2d(now, 1, 4, 1, 0), nn.Flatten(0))
        self.size = size
        _initialize(self)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4 or input.shape[2:] != (self.size, self.size):
            raise ValueError(f"DCGANDiscriminator expected images (N, channels, {self.size}, {self.size}), got {input.shape}")
        return super().forward(input)


def _doublings(size: int) -> int:
    if size not in (8, 16, 32, 64):
        raise ValueError(f"DCGAN expected images of 8, 16, 32 or 64 pixels, got {size}")
    return size.bit_length() - 3
