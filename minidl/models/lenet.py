"""Small convolutional networks for digits: LeNet as it is usually benchmarked, and the classic LeNet5."""

from __future__ import annotations

from .. import nn


class LeNet(nn.Sequential):
    """conv 32 - pool - conv 64 - pool - 3136 - 128 - classes, with 3x3 kernels and ReLU; 421,642 parameters for 10 classes.

    Shapes: input (N, channels, 28, 28), result (N, classes).
    """

    def __init__(self, channels: int = 1, classes: int = 10, dropout: float = 0.0):
        super().__init__(
            nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Dropout(dropout), nn.Linear(128, classes))


class LeNet5(nn.Sequential):
    """The classic: 5x5 convolutions of 6 and 16 channels, average pooling, 120 - 84 - classes, tanh; 61,706 parameters.

    Shapes: input (N, 1, 28, 28), result (N, classes).

    Source: LeCun et al. 1998, with the second convolution fully connected, as is usual today.
    """

    def __init__(self, classes: int = 10):
        super().__init__(
            nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2),
            nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
            nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, classes))
