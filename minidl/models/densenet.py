"""DenseNet-BC for 32x32 images."""

from __future__ import annotations

from .. import nn
from ..nn import functional as F
from ..nn import init
from ..tensor.ops.joining import cat
from ..tensor.tensor import Tensor


class DenseLayer(nn.Module):
    """BN - ReLU - 1x1 to 4 * growth channels - BN - ReLU - 3x3 to growth channels, put beside the input."""

    def __init__(self, channels: int, growth: int, dropout: float):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, input: Tensor) -> Tensor:
        x = self.conv1(F.relu(self.norm1(input)))
        x = self.conv2(F.relu(self.norm2(x)))
        return cat([input, self.drop(x)], 1)


class DenseNet(nn.Module):
    """Three blocks of dense layers with transitions that halve channels and image between them.

    Args:
        depth: layers in all; (depth - 4) must be divisible by 6.
        growth: channels that each layer adds.
        dropout: after each layer.

    Shapes: input (N, 3, 32, 32), result (N, classes).

    Source: Huang et al. 2017, DenseNet-BC with compression 0.5; densenet_bc(100, 12) has 0.8 M parameters.
    """

    def __init__(self, depth: int = 100, growth: int = 12, classes: int = 10, dropout: float = 0.0):
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"DenseNet expected a depth of 6 n + 4, such as 40 or 100, got {depth}")
        channels = 2 * growth
        layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1, bias=False)]
        for block in range(3):
            if block:
                layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, 1, bias=False),
                           nn.AvgPool2d(2)]
                channels //= 2
            for _ in range((depth - 4) // 6):
                layers.append(DenseLayer(channels, growth, dropout))
                channels += growth
        layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_normal_(module.weight)

    def forward(self, input: Tensor) -> Tensor:
        return self.classifier(self.features(input))


def densenet_bc(depth: int = 100, growth: int = 12, classes: int = 10, dropout: float = 0.0) -> DenseNet:
    """DenseNet-BC of a depth and growth rate, for 32x32 images."""
    return DenseNet(depth, growth, classes, dropout)
