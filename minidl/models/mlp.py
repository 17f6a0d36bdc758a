"""Multi-layer perceptrons."""

from __future__ import annotations

from collections.abc import Sequence

from .. import nn


class MLP(nn.Sequential):
    """Linear layers with an activation between them.

    Args:
        sizes: features of the input, of each hidden layer, and of the output.
        activation: makes the module between two layers.
        dropout: probability after each activation.

    Shapes: input (N, sizes[0]) (or images, which are flattened), result (N, sizes[-1]).
    """

    def __init__(self, sizes: Sequence[int], activation: type[nn.Module] = nn.ReLU, dropout: float = 0.0):
        if len(sizes) < 2:
            raise ValueError(f"MLP expected at least the sizes of input and output, got {list(sizes)}")
        layers: list[nn.Module] = [nn.Flatten()]
        for i, (before, after) in enumerate(zip(sizes, sizes[1:])):
            if i:
                layers += [activation()] + ([nn.Dropout(dropout)] if dropout else [])
            layers.append(nn.Linear(before, after))
        super().__init__(*layers)
