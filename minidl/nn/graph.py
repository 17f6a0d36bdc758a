"""Layers over graphs, with the names, arguments and state dicts of PyTorch Geometric's, and pooling of nodes by graph.

Arguments that they share: `x` (N, F), the features of N nodes; `edge_index` (2, E) int64, the source of each edge in row 0,
its target in row 1; messages go from source to target. Edges that occur twice count twice.
"""

from __future__ import annotations

import math
from typing import Any

from ..tensor.creation import arange, empty, full, ones
from ..tensor.dtypes import FLOATING, accumulation_dtype, dtype_name, int32, int64
from ..tensor.ops.comparison import where
from ..tensor.ops.extrema import amax
from ..tensor.ops.gathering import index_select
from ..tensor.ops.joining import cat, stack
from ..tensor.ops.pointwise import rsqrt
from ..tensor.ops.reduction import mean, sum
from ..tensor.ops.splitting import unbind
from ..tensor.tensor import Tensor
from . import functional as F
from . import init
from .linear import Linear
from .module import Module
from .parameter import Parameter

__all__ = ["GATConv", "GCNConv", "GINConv", "SAGEConv", "global_add_pool", "global_max_pool", "global_mean_pool"]


class GCNConv(Module):
    """Graph convolution D^-1/2 A D^-1/2 x W + bias, A being the adjacency matrix with self-loops, D its degrees.

    Called as `conv(x, edge_index, edge_weight=None)`.

    Args:
        improved: self-loops that are added have weight 2.
        cached: keep the normalized edges of the first call for all others; for one graph that never changes.
        add_self_loops: give each node that has none a self-loop; by default where normalize is on.
        normalize: scale by the degrees.
        bias: add one.

    Shapes: x (N, in_channels), edge_weight (E,), result (N, out_channels).

    Raises:
        ValueError: for self-loops without normalization, or shapes that do not fit.
        IndexError: for an edge to a node that does not exist.

    Source: Kipf and Welling 2017, "Semi-Supervised Classification with Graph Convolutional Networks".
    """

    bias: Parameter | None

    def __init__(self, in_channels: int, out_channels: int, improved: bool = False, cached: bool = False,
                 add_self_loops: bool | None = None, normalize: bool = True, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        add_self_loops = normalize if add_self_loops is None else add_self_loops
        if add_self_loops and not normalize:
            raise ValueError("GCNConv expected add_self_loops only together with normalize, got add_self_loops=True, "
                             "normalize=False; add the self-loops to edge_index instead")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.improved = improved
        self.cached = cached
        self.add_self_loops = add_self_loops
        self.normalize = normalize
        self.bias = Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None
        self.lin = Linear(in_channels, out_channels, False, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight from Glorot's uniform distribution, set the bias to 0, forget cached edges."""
        init.xavier_uniform_(self.lin.weight)
        if self.bias is not None:
            init.zeros_(self.bias)
        self._cache: tuple[Tensor, Tensor | None] | None = None

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        _check("GCNConv", x, edge_index, self.in_channels)
        edges, weight = self._edges(x, edge_index, edge_weight)
        source, target = unbind(edges)
        x = self.lin(x)
        messages = index_select(x, 0, source)
        if weight is not None:
            messages = messages * weight.to(x.dtype).reshape(-1, 1)
        return _biased(F.segment_sum(messages, target, x.shape[0]), self.bias)

    def _edges(self, x: Tensor, edges: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if self._cache is not None:
            return self._cache
        if weight is not None:
            _check_weight(weight, edges)
            if self.cached and weight.requires_grad:
                raise ValueError("GCNConv expected edge weights that require no grad where cached=True, got some that do; use "
                                 "cached=False")
        if self.normalize:
            edges, weight = self._normalized(x, edges, weight)
        if self.cached:
            self._cache = edges, weight
        return edges, weight

    def _normalized(self, x: Tensor, edges: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        """Edges and their weights in float32 for halves, whose degrees need not be exact."""
        nodes, wide = x.shape[0], accumulation_dtype(x.dtype)
        weight = ones(edges.shape[1], dtype=wide, device=x.device) if weight is None else weight.to(wide)
        if self.add_self_loops:
            source, target = unbind(edges)
            loops, = where(source == target)
            at = index_select(source, 0, loops)
            has = F.segment_sum(ones(at.shape, device=x.device), at, nodes) > 0
            own = where(has, F.segment_sum(index_select(weight, 0, loops), at, nodes), 2.0 if self.improved else 1.0)
            edges, others = _with_self_loops(edges, nodes)
            weight = cat([index_select(weight, 0, others), own])
        source, target = unbind(edges)
        degree = F.segment_sum(weight, target, nodes)
        isolated = degree == 0
        scale = where(isolated, 0.0, rsqrt(where(isolated, 1.0, degree)))
        return edges, index_select(scale, 0, source) * weight * index_select(scale, 0, target)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"


class SAGEConv(Module):
    """GraphSAGE: a linear map of what the neighbours' features amount to, plus one of the node's own.

    Args:
        aggr: "mean", "sum" or "max" of the neighbours.
        normalize: scale each result to length 1.
        root_weight: add the map of the node's own features.
        project: send neighbours through a linear layer and relu first.
        bias: add one.

    Shapes: x (N, in_channels), result (N, out_channels).

    Raises:
        ValueError: for another aggr, or shapes that do not fit.
        IndexError: for an edge to a node that does not exist.

    Source: Hamilton et al. 2017, "Inductive Representation Learning on Large Graphs".
    """

    def __init__(self, in_channels: int, out_channels: int, aggr: str = "mean", normalize: bool = False,
                 root_weight: bool = True, project: bool = False, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        if aggr not in ("mean", "sum", "max"):
            raise ValueError(f"SAGEConv expected aggr 'mean', 'sum' or 'max', got {aggr!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.aggr = aggr
        self.normalize = normalize
        self.root_weight = root_weight
        self.project = project
        if project:
            self.lin = Linear(in_channels, in_channels, True, device, dtype)
        self.lin_l = Linear(in_channels, out_channels, bias, device, dtype)
        if root_weight:
            self.lin_r = Linear(in_channels, out_channels, False, device, dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters of all linear layers anew."""
        layer: Any
        for layer in self.children():
            layer.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        _check("SAGEConv", x, edge_index, self.in_channels)
        source, target = unbind(edge_index)
        neighbours = F.relu(self.lin(x)) if self.project else x
        aggregate = {"mean": F.segment_mean, "sum": F.segment_sum, "max": F.segment_max}[self.aggr]
        out = self.lin_l(aggregate(index_select(neighbours, 0, source), target, x.shape[0]))
        if self.root_weight:
            out = out + self.lin_r(x)
        return F.normalize(out, dim=-1) if self.normalize else out

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, aggr={self.aggr}"


class GATConv(Module):
    """Graph attention: each node takes the mean of its neighbours' mapped features, weighted by learned attention.

    Called as `conv(x, edge_index, return_attention_weights=False)`; with True it returns
    `(result, (edges, attention))`, the edges (2, E') with the self-loops last, attention (E', heads).

    Args:
        heads: how many attentions there are.
        concat: lay the heads' results side by side; otherwise take their mean.
        negative_slope: of the leaky relu before the softmax.
        dropout: probability to drop an edge's attention in training.
        add_self_loops: give each node exactly one self-loop, in place of those that it has.
        bias: add one.

    Shapes: x (N, in_channels), result (N, heads * out_channels), or (N, out_channels) without concat.

    Raises:
        ValueError: for shapes that do not fit.
        IndexError: for an edge to a node that does not exist.

    Source: Velickovic et al. 2018, "Graph Attention Networks".
    """

    bias: Parameter | None

    def __init__(self, in_channels: int, out_channels: int, heads: int = 1, concat: bool = True, negative_slope: float = 0.2,
                 dropout: float = 0.0, add_self_loops: bool = True, *, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError(f"GATConv expected dropout, a probability, in [0, 1], got {dropout}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.heads = heads
        self.concat = concat
        self.negative_slope = negative_slope
        self.dropout = dropout
        self.add_self_loops = add_self_loops
        self.att_src = Parameter(empty((1, heads, out_channels), device=device, dtype=dtype))
        self.att_dst = Parameter(empty((1, heads, out_channels), device=device, dtype=dtype))
        width = heads * out_channels if concat else out_channels
        self.bias = Parameter(empty(width, device=device, dtype=dtype)) if bias else None
        self.lin = Linear(in_channels, heads * out_channels, False, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and attention vectors from Glorot's uniform distribution, set the bias to 0."""
        init.xavier_uniform_(self.lin.weight)
        bound = math.sqrt(6 / max(1, self.heads + self.out_channels))
        init.uniform_(self.att_src, -bound, bound)
        init.uniform_(self.att_dst, -bound, bound)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, x: Tensor, edge_index: Tensor, return_attention_weights: bool | None = None) -> Any:
        _check("GATConv", x, edge_index, self.in_channels)
        nodes = x.shape[0]
        edges = _with_self_loops(edge_index, nodes)[0] if self.add_self_loops else edge_index
        source, target = unbind(edges)
        h = self.lin(x).reshape(nodes, self.heads, self.out_channels)
        scores = (index_select(sum(h * self.att_src, -1), 0, source) + index_select(sum(h * self.att_dst, -1), 0, target))
        attention = F.segment_softmax(F.leaky_relu(scores, self.negative_slope), target, nodes)
        attention = F.dropout(attention, self.dropout, self.training)
        messages = index_select(h, 0, source) * attention.to(h.dtype).reshape(-1, self.heads, 1)
        out = F.segment_sum(messages, target, nodes)
        out = out.reshape(nodes, self.heads * self.out_channels) if self.concat else mean(out, 1)
        out = _biased(out, self.bias)
        return (out, (edges, attention)) if return_attention_weights else out

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"


class GINConv(Module):
    """Graph isomorphism layer: nn((1 + eps) * x + sum of the neighbours' features).

    Args:
        nn: a module from features to features.
        eps: how much more than a neighbour the node itself counts.
        train_eps: learn it.

    Shapes: x (N, F), result (N, F'), as nn makes of (N, F).

    Raises:
        ValueError: for shapes that do not fit.
        IndexError: for an edge to a node that does not exist.

    Source: Xu et al. 2019, "How Powerful are Graph Neural Networks?", eq. 4.1.
    """

    eps: Any

    def __init__(self, nn: Module, eps: float = 0.0, train_eps: bool = False) -> None:
        super().__init__()
        self.nn = nn
        self.initial_eps = eps
        if train_eps:
            self.eps = Parameter(full((1,), float(eps)))
        else:
            self.register_buffer("eps", full((1,), float(eps)))

    def reset_parameters(self) -> None:
        """Set eps to its initial value, and reset what nn has of layers that can be."""
        init.constant_(self.eps, self.initial_eps)
        for module in self.nn.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        _check("GINConv", x, edge_index)
        source, target = unbind(edge_index)
        neighbours = F.segment_sum(index_select(x, 0, source), target, x.shape[0])
        return self.nn(neighbours + (1 + self.eps).to(x.dtype) * x)


# Pooling

def global_add_pool(x: Tensor, batch: Tensor | None, size: int | None = None) -> Tensor:
    """The sum of the nodes of each graph.

    Args:
        batch: the number of each node's graph; None: all nodes are one graph's.
        size: how many graphs there are; by default one more than the largest number.

    Shapes: x (N, F), batch (N,), result (size, F); (1, F) without batch.
    """
    return sum(x, -2, keepdim=x.ndim == 2) if batch is None else F.segment_sum(x, batch, size)


def global_mean_pool(x: Tensor, batch: Tensor | None, size: int | None = None) -> Tensor:
    """The mean of the nodes of each graph; arguments as in global_add_pool."""
    return mean(x, -2, keepdim=x.ndim == 2) if batch is None else F.segment_mean(x, batch, size)


def global_max_pool(x: Tensor, batch: Tensor | None, size: int | None = None) -> Tensor:
    """The largest feature among the nodes of each graph; arguments as in global_add_pool."""
    return amax(x, -2, keepdim=x.ndim == 2) if batch is None else F.segment_max(x, batch, size)


# Helpers

def _check(name: str, x: Any, edge_index: Any, channels: int | None = None) -> None:
    for what, value in (("x", x), ("edge_index", edge_index)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} expected a tensor as {what}, got {type(value).__name__}")
    if x.ndim != 2 or channels not in (None, x.shape[1]):
        raise ValueError(f"{name} expected x of shape (N, {channels or 'F'}), the features of N nodes, got {x.shape}")
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"{name} expected edge_index of shape (2, E), sources and targets, got {edge_index.shape}; transpose "
                         f"it if its rows are edges")
    if edge_index.dtype not in (int32, int64):
        raise TypeError(f"{name} expected edge_index of int64, got {dtype_name(edge_index.dtype)}")
    outside = edge_index.backend.out_of_range(edge_index.array, 0, x.shape[0])
    if outside is not None:
        raise IndexError(f"{name} expected edge_index to hold nodes in [0, {x.shape[0]}), got {outside}")


def _check_weight(weight: Tensor, edges: Tensor) -> None:
    if weight.shape != edges.shape[1:]:
        raise ValueError(f"GCNConv expected edge_weight of shape {edges.shape[1:]}, one for each edge, got {weight.shape}")
    if weight.dtype not in FLOATING:
        raise TypeError(f"GCNConv expected floating edge weights, got {dtype_name(weight.dtype)}")


def _with_self_loops(edges: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """The edges between different nodes, then a self-loop of each node; and the places of the former."""
    source, target = unbind(edges)
    others, = where(source != target)
    each = arange(nodes, dtype=edges.dtype, device=edges.device)
    return cat([index_select(edges, 1, others), stack([each, each])], 1), others


def _biased(out: Any, bias: Tensor | None) -> Tensor:
    return out if bias is None else out + bias
