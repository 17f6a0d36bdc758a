"""A MobileNet-style network of depthwise separable convolutions, for small images."""

from __future__ import annotations

from .. import nn


class MobileNet(nn.Sequential):
    """A 3x3 convolution, then depthwise separable ones with BatchNorm and ReLU, average pooling, and a linear layer.

    Args:
        width: multiplies all numbers of channels.

    Shapes: input (N, channels, H, W), result (N, classes).

    Source: Howard et al. 2017; strides are for 32x32 images.
    """

    plan = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))

    def __init__(self, channels: int = 3, classes: int = 10, width: float = 1.0):
        def scaled(n: int) -> int:
            return max(8, int(n * width))

        def normalized(convolution: nn.Module, out: int) -> list[nn.Module]:
            return [convolution, nn.BatchNorm2d(out), nn.ReLU()]

        now = scaled(32)
        layers = normalized(nn.Conv2d(channels, now, 3, padding=1, bias=False), now)
        for out, stride in self.plan:
            out = scaled(out)
            layers += normalized(nn.Conv2d(now, now, 3, stride, 1, groups=now, bias=False), now)
            layers += normalized(nn.Conv2d(now, out, 1, bias=False), out)
            now = out
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(now, classes))
