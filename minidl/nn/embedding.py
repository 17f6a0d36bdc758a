"""Embedding layers: tables of vectors, looked up one by one or summed up in bags."""

from __future__ import annotations

from typing import Any

from ..autograd.mode import no_grad
from ..tensor.creation import empty
from ..tensor.tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """What Embedding and EmbeddingBag share: the table and what happens to its rows."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, max_norm: float | None,
                 norm_type: float, scale_grad_by_freq: bool, sparse: bool, table: Tensor | None, freeze: bool, device: Any,
                 dtype: Any):
        super().__init__()
        name = type(self).__name__
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"{name} expected padding_idx to be one of its {num_embeddings} rows, got {padding_idx}")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if table is None:
            self.weight = Parameter(empty((num_embeddings, embedding_dim), device=device, dtype=dtype), not freeze)
            self.reset_parameters()
            return
        if table.shape != (num_embeddings, embedding_dim):
            raise ValueError(f"{name} expected a table of shape {(num_embeddings, embedding_dim)}, got {table.shape}")
        self.weight = Parameter(table, not freeze)

    def reset_parameters(self) -> None:
        """Draw the table from the standard normal distribution; the padding row is 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0


class Embedding(_Table):
    """A table of vectors, looked up by number.

    Args:
        num_embeddings: how many rows there are.
        embedding_dim: their length.
        padding_idx: a row, which may count from the end, that starts as 0 and gets no gradient.
        max_norm: rows that are looked up and whose norm is larger are scaled down to it first, in place.
        norm_type: the p of that norm.
        scale_grad_by_freq: a row's gradient is divided by how often it is looked up in the batch.
        sparse: accepted for PyTorch's sake; gradients are dense.

    Shapes: int64 or int32 (*) to (*, embedding_dim).

    Raises:
        IndexError: for a number that is no row.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
                 _freeze: bool = False, device: Any = None, dtype: Any = None):
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight,
                         _freeze, device, dtype)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
                        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                        sparse: bool = False) -> Embedding:
        """An Embedding of a table (num_embeddings, embedding_dim), whose memory it shares; frozen ones are not learned."""
        return cls(*_shape(cls.__name__, embeddings), padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   embeddings, freeze)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                           self.sparse)

    def extra_repr(self) -> str:
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            shown += f", padding_idx={self.padding_idx}"
        return shown + _options(self) + (", sparse=True" if self.sparse else "")


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows of a table; 0 for an empty bag.

    Called as `bag(input, offsets=None, per_sample_weights=None)`.

    Args:
        num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse: as of Embedding.
        mode: "sum", "mean" or "max".
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: a row that is left out of the bags.

    Shapes: input (B, n), a bag per row, or (n,) with offsets (B,), where each bag starts; per_sample_weights, factors for
    "sum", of the input's shape; result (B, embedding_dim).
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
                 include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None):
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight,
                         False, device, dtype)
        self.mode = mode
        self.include_last_offset = include_last_offset

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
                        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                        include_last_offset: bool = False, padding_idx: int | None = None) -> EmbeddingBag:
        """An EmbeddingBag of a table (num_embeddings, embedding_dim), whose memory it shares; frozen ones are not learned."""
        bag = cls(*_shape(cls.__name__, embeddings), max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
                  include_last_offset, padding_idx)
        bag.weight.requires_grad_(not freeze)
        return bag

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
                               self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{_options(self)}, mode={self.mode!r}{padding}"


def _options(table: _Table) -> str:
    shown = "" if table.max_norm is None else f", max_norm={table.max_norm}"
    shown += "" if table.norm_type == 2 else f", norm_type={table.norm_type}"
    return shown + (", scale_grad_by_freq=True" if table.scale_grad_by_freq else "")


def _shape(name: str, table: Tensor) -> tuple[int, int]:
    if table.ndim != 2:
        raise ValueError(f"{name}.from_pretrained expected a table (num_embeddings, embedding_dim), got shape {table.shape}")
    rows, length = table.shape
    return rows, length
