"""Classifiers of the nodes of a graph: GCN, GraphSAGE and GAT."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import nn
from ..nn import functional as F
from ..tensor.tensor import Tensor


class NodeClassifier(nn.Module):
    """Graph layers, each after dropout, with an activation between them.

    Args:
        layers: modules that are called as `layer(x, edge_index)`.
        dropout: probability, for the features that go into each layer.
        activation: a function of the features.

    Shapes: x (N, in_features) of N nodes, edge_index (2, E) int64 (sources, targets), result (N, classes).
    """

    def __init__(self, layers: Sequence[nn.Module], dropout: float, activation: Callable[[Tensor], Tensor]):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.drop = nn.Dropout(dropout)
        self.activation = activation

    def forward(self, x: Tensor, edge_index: Tensor, *edge_weight: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(self.drop(self.activation(x) if i else x), edge_index, *edge_weight)
        return x


class GCN(NodeClassifier):
    """Graph convolutions with ReLU; takes a weight (E,) for each edge as third argument, if it is given.

    Args:
        hidden: features between two layers.
        layers: their number.
        dropout: before each layer.

    Shapes: as for NodeClassifier.

    Source: Kipf and Welling 2017.
    """

    def __init__(self, in_features: int, hidden: int, classes: int, layers: int = 2, dropout: float = 0.5):
        sizes = _sizes("GCN", in_features, hidden, classes, layers)
        super().__init__([nn.GCNConv(before, after) for before, after in sizes], dropout, F.relu)


class GraphSAGE(NodeClassifier):
    """Layers that add a map of the node's own features to one of its neighbours' aggregate, with ReLU.

    Args:
        hidden: features between two layers.
        layers: their number.
        dropout: before each layer.
        aggr: "mean", "sum" or "max" of the neighbours.

    Shapes: as for NodeClassifier.

    Source: Hamilton et al. 2017.
    """

    def __init__(self, in_features: int, hidden: int, classes: int, layers: int = 2, dropout: float = 0.5, *,
                 aggr: str = "mean"):
        sizes = _sizes("GraphSAGE", in_features, hidden, classes, layers)
        super().__init__([nn.SAGEConv(before, after, aggr) for before, after in sizes], dropout, F.relu)


class GAT(NodeClassifier):
    """Graph attention with ELU: heads side by side in the hidden layers, averaged in the last one.

    Args:
        hidden: features of each head.
        heads: of each hidden layer.
        layers: their number.
        dropout: before each layer, and of the attention.
        out_heads: of the last layer.

    Shapes: as for NodeClassifier.

    Source: Velickovic et al. 2018.
    """

    def __init__(self, in_features: int, hidden: int, classes: int, heads: int = 8, layers: int = 2, dropout: float = 0.6, *,
                 out_heads: int = 1):
        *inner, (before, _) = _sizes("GAT", in_features, heads * hidden, classes, layers)
        made = [nn.GATConv(width, hidden, heads, dropout=dropout) for width, _ in inner]
        last = nn.GATConv(before, classes, out_heads, concat=False, dropout=dropout)
        super().__init__([*made, last], dropout, F.elu)


def _sizes(name: str, in_features: int, hidden: int, classes: int, layers: int) -> list[tuple[int, int]]:
    """Features before and after each layer."""
    if layers < 1:
        raise ValueError(f"{name} expected at least one layer, got {layers}")
    widths = [in_features, *[hidden] * (layers - 1), classes]
    return list(zip(widths, widths[1:]))
