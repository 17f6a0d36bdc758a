"""The Transformer, its encoder and decoder, and their layers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ..tensor import dtypes
from ..tensor.creation import full
from ..tensor.ops.arithmetic import add
from ..tensor.ops.comparison import equal
from ..tensor.ops.diagonal import triu
from ..tensor.tensor import Tensor
from . import functional as F
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .init import xavier_uniform_
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]


class TransformerEncoderLayer(Module):
    """Self-attention, then two linear maps with an activation between them; each with dropout, a residual connection and a
    LayerNorm.

    Args:
        d_model: E, the features of input and result.
        nhead: number of heads, which divides E.
        dim_feedforward: features between the linear maps.
        dropout: probability of all dropouts.
        activation: "relu", "gelu" or a function of a tensor.
        layer_norm_eps: added to the variance.
        batch_first: input and result are (N, L, E) instead of (L, N, E).
        norm_first: normalize what goes into each part instead of what comes out of the sum.
        bias: whether linear maps and LayerNorms have biases.

    Source: Vaswani et al., "Attention is all you need", 2017; norm_first: Xiong et al. 2020.
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:
        """The layer's result.

        Args:
            src_mask, src_key_padding_mask, is_causal: as attn_mask, key_padding_mask and is_causal of MultiheadAttention.

        Shapes: src and result (L, N, E), with batch_first (N, L, E), or (L, E).
        """
        def attend(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0])

        x = _residual(src, attend, self.norm1, self.norm_first)
        return _residual(x, self._feed_forward, self.norm2, self.norm_first)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to a memory, then two linear maps with an activation between them; each with dropout, a
    residual connection and a LayerNorm. Arguments as in TransformerEncoderLayer."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device,
                                                 dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        """The layer's result.

        Args:
            memory: the encoder's result.
            tgt_mask, tgt_key_padding_mask, tgt_is_causal: of the self-attention, and
            memory_mask, memory_key_padding_mask, memory_is_causal: of the attention to the memory, as attn_mask,
                key_padding_mask and is_causal of MultiheadAttention.

        Shapes: tgt and result (L, N, E), memory (S, N, E); with batch_first (N, L, E) and (N, S, E); or without N.
        """
        def attend(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0])

        def remember(x: Tensor) -> Tensor:
            return self.dropout2(self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask,
                                                     is_causal=memory_is_causal)[0])

        x = _residual(tgt, attend, self.norm1, self.norm_first)
        x = _residual(x, remember, self.norm2, self.norm_first)
        return _residual(x, self._feed_forward, self.norm3, self.norm_first)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _residual(x: Tensor, part: Callable[[Tensor], Tensor], norm: Module, norm_first: bool) -> Tensor:
    return add(x, part(norm(x))) if norm_first else norm(add(x, part(x)))


def _activation(given: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if callable(given):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation expected relu, gelu or a function, got {given!r}")
    return F.relu if given == "relu" else F.gelu


class TransformerEncoder(Module):
    """Encoder layers one after the other.

    Args:
        encoder_layer: copied num_layers times; the copies start with the same parameters.
        norm: what normalizes the result, such as a LayerNorm; None for nothing.
        enable_nested_tensor, mask_check: accepted for PyTorch's sake, without effect.
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
                 mask_check: bool = True):
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:
        """The result of the last layer, normalized.

        Args:
            mask, src_key_padding_mask: as attn_mask and key_padding_mask of MultiheadAttention.
            is_causal: whether mask hides all later places; None to look whether it does.

        Shapes: src and result (L, N, E), with batch_first (N, L, E), or (L, E).
        """
        causal = _is_causal(mask) if is_causal is None else is_causal
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Decoder layers one after the other.

    Args:
        decoder_layer: copied num_layers times; the copies start with the same parameters.
        norm: what normalizes the result, such as a LayerNorm; None for nothing.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        """The result of the last layer, normalized.

        Args:
            tgt_is_causal: whether tgt_mask hides all later places; None to look whether it does.

        The others, and shapes, as in TransformerDecoderLayer.
        """
        causal = _is_causal(tgt_mask) if tgt_is_causal is None else tgt_is_causal
        x = tgt
        for layer in self.layers:
            x = layer(x, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                      memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                      memory_is_causal=memory_is_causal)
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder of a source and a decoder of a target that attends to the encoder's result.

    Args:
        num_encoder_layers, num_decoder_layers: number of layers.
        custom_encoder, custom_decoder: modules to take in their places.

    The others as in TransformerEncoderLayer.

    Source: Vaswani et al., "Attention is all you need", 2017.
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor], Tensor] = F.relu,
                 custom_encoder: Module | None = None, custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        shared: Any = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                       device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder if custom_encoder is not None else TransformerEncoder(
            TransformerEncoderLayer(*shared), num_encoder_layers, norm())
        self.decoder = custom_decoder if custom_decoder is not None else TransformerDecoder(
            TransformerDecoderLayer(*shared), num_decoder_layers, norm())
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights of two and more axes after Glorot and Bengio."""
        for parameter in self.parameters():
            if parameter.ndim > 1:
                xavier_uniform_(parameter)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        """The decoder's result. Masks and hints as in TransformerEncoder and TransformerDecoder.

        Shapes: src (S, N, E), tgt and result (L, N, E); with batch_first (N, S, E) and (N, L, E); or without N.

        Raises:
            RuntimeError: for sizes of batch or features that do not fit.
        """
        batch = 0 if self.batch_first else 1
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model or src.ndim != tgt.ndim or (
                src.ndim == 3 and src.shape[batch] != tgt.shape[batch]):
            raise RuntimeError(f"Transformer expected src and tgt of the same batch size (axis {batch}) and {self.d_model} "
                               f"features, got {src.shape} and {tgt.shape}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                            memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask (sz, sz) that hides all later places: -inf above the diagonal, 0 elsewhere; True and False for bool."""
        return triu(full((sz, sz), -math.inf, dtype=dtypes.get_default_dtype() if dtype is None else dtype, device=device), 1)


def _is_causal(mask: Tensor | None) -> bool:
    """Whether a mask is the one that hides all later places."""
    if mask is None or mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
        return False
    return equal(mask, Transformer.generate_square_subsequent_mask(mask.shape[0], mask.device, mask.dtype))
