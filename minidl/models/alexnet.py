"""An AlexNet-style network for small images."""

from __future__ import annotations

from .. import nn
from ..tensor.tensor import Tensor


class AlexNet(nn.Module):
    """Five convolutions and three linear layers with dropout, scaled to 32x32 images.

    Shapes: input (N, channels, 32, 32), result (N, classes).

    Source: Krizhevsky et al. 2012; kernels and strides are smaller, for smaller images.
    """

    def __init__(self, channels: int = 3, classes: int = 10, dropout: float = 0.5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(channels, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Dropout(dropout), nn.Linear(256 * 4 * 4, 1024), nn.ReLU(),
            nn.Dropout(dropout), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, classes))

    def forward(self, input: Tensor) -> Tensor:
        return self.classifier(self.features(input))
