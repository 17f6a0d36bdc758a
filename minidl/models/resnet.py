"""Residual networks: ResNet-20/56/110 for 32x32 images, ResNet-18/50 for 224x224."""

from __future__ import annotations

from collections.abc import Sequence

from .. import nn
from ..nn import functional as F
from ..nn import init
from ..tensor.tensor import Tensor


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut.

    Args:
        shortcut: what lies on the shortcut where the shape changes.
    """

    expansion = 1

    def __init__(self, channels: int, width: int, stride: int = 1, shortcut: nn.Module | None = None):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut

    def forward(self, input: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(input)))
        x = self.bn2(self.conv2(x))
        return F.relu(x + (input if self.downsample is None else self.downsample(input)))


class Bottleneck(nn.Module):
    """1x1, 3x3 (with the stride) and 1x1 convolutions beside a shortcut; the result has 4 * width channels."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int = 1, shortcut: nn.Module | None = None):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = shortcut

    def forward(self, input: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(input)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        return F.relu(x + (input if self.downsample is None else self.downsample(input)))


class Subsample(nn.Module):
    """The shortcut without parameters: every second pixel, and zeros for the channels that are new (option A)."""

    def __init__(self, new_channels: int, stride: int):
        super().__init__()
        self.new_channels, self.stride = new_channels, stride

    def forward(self, input: Tensor) -> Tensor:
        half = self.new_channels // 2
        return F.pad(input[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, half, self.new_channels - half))


class ResNet(nn.Module):
    """Stages of residual blocks; the first block of each stage but the first halves the image and doubles the channels.

    Args:
        block: BasicBlock or Bottleneck.
        layers: blocks in each stage.
        width: channels of the first stage.
        classes: outputs.
        small_images: a 3x3 convolution at the start instead of 7x7 with stride 2 and pooling.
        projection: 1x1 convolutions on the shortcuts (option B) instead of zero channels.

    Shapes: input (N, 3, H, W), result (N, classes).

    Source: He et al. 2016. Names are torchvision's, whose weights load into resnet18 and resnet50.
    """

    def __init__(self, block: type[BasicBlock] | type[Bottleneck], layers: Sequence[int], width: int = 64,
                 classes: int = 1000, *, small_images: bool = False, projection: bool = True):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, *((3, 1, 1) if small_images else (7, 2, 3)), bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.Identity() if small_images else nn.MaxPool2d(3, 2, 1)
        channels = width
        self.stages = len(layers)
        for stage, blocks in enumerate(layers):
            made = []
            for i in range(blocks):
                stride = 2 if stage and not i else 1
                out = width * 2 ** stage * block.expansion
                made.append(block(channels, width * 2 ** stage, stride, _shortcut(channels, out, stride, projection)))
                channels = out
            setattr(self, f"layer{stage + 1}", nn.Sequential(*made))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, input: Tensor) -> Tensor:
        x = self.maxpool(F.relu(self.bn1(self.conv1(input))))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(self.avgpool(x).flatten(1))


def _shortcut(channels: int, out: int, stride: int, projection: bool) -> nn.Module | None:
    if channels == out and stride == 1:
        return None
    if not projection:
        return Subsample(out - channels, stride)
    return nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))


def _cifar(blocks: int, classes: int) -> ResNet:
    return ResNet(BasicBlock, (blocks,) * 3, 16, classes, small_images=True, projection=False)


def resnet20(classes: int = 10) -> ResNet:
    """ResNet-20 for 32x32 images: 0.27 M parameters."""
    return _cifar(3, classes)


def resnet56(classes: int = 10) -> ResNet:
    """ResNet-56 for 32x32 images: 0.85 M parameters."""
    return _cifar(9, classes)


def resnet110(classes: int = 10) -> ResNet:
    """ResNet-110 for 32x32 images: 1.7 M parameters."""
    return _cifar(18, classes)


def resnet18(classes: int = 1000) -> ResNet:
    """ResNet-18 for 224x224 images: 11.7 M parameters."""
    return ResNet(BasicBlock, (2, 2, 2, 2), classes=classes)


def resnet50(classes: int = 1000) -> ResNet:
    """ResNet-50 for 224x224 images: 25.6 M parameters."""
    return ResNet(Bottleneck, (3, 4, 6, 3), classes=classes)
