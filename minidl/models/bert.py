"""A BERT-style encoder and its masked language model."""

from __future__ import annotations

import math

from .. import nn
from ..nn import functional as F
from ..nn import init
from ..tensor.creation import arange, full_like, zeros
from ..tensor.ops.comparison import where
from ..tensor.ops.sampling import rand, randint
from ..tensor.random import Generator
from ..tensor.tensor import Tensor


class BERT(nn.Module):
    """A bidirectional Transformer encoder over tokens, with a head that predicts masked ones.

    Args:
        vocabulary: number of tokens, padding and mask included.
        context: longest sequence.
        layers, heads, width, dropout: of the encoder, whose feed-forward layers have 4 * width units.
        padding: this token is looked at by no other.

    Shapes: tokens (N, T) int64, logits (N, T, vocabulary).

    Raises:
        ValueError: for tokens of another shape, and longer sequences.

    Source: Devlin et al. 2019, whose 0.02 as the weights' standard deviation at width 768 is scaled by 1 / sqrt(width).
    """

    def __init__(self, vocabulary: int, context: int = 128, layers: int = 4, heads: int = 4, width: int = 128,
                 dropout: float = 0.1, *, padding: int = 0):
        super().__init__()
        self.context, self.padding = context, padding
        self.tokens = nn.Embedding(vocabulary, width, padding_idx=padding)
        self.positions = nn.Embedding(context, width)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(dropout)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.transform = nn.Linear(width, width)
        self.transform_norm = nn.LayerNorm(width)
        self.bias = nn.Parameter(zeros(vocabulary))
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                init.normal_(parameter, 0.0, 0.02 * math.sqrt(768 / width))
            elif name.endswith("bias"):
                init.zeros_(parameter)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.predict(self.encode(tokens))

    def encode(self, tokens: Tensor) -> Tensor:
        """Features (N, T, width) of the tokens in their context."""
        if tokens.ndim != 2 or tokens.shape[1] > self.context:
            raise ValueError(f"BERT expected tokens of shape (N, T) with T <= {self.context}, got {tokens.shape}; cut the "
                             f"sequences or make a larger context")
        positions = self.positions(arange(tokens.shape[1], device=tokens.device))
        x = self.drop(self.norm(self.tokens(tokens) + positions))
        return self.encoder(x, src_key_padding_mask=tokens == self.padding)

    def predict(self, features: Tensor) -> Tensor:
        """Logits (*, vocabulary) from features (*, width): `model.predict(model.encode(input)[target != -100])` spends no time
        on tokens that are not to be predicted."""
        x = F.gelu(self.transform(features))
        return F.linear(self.transform_norm(x), self.tokens.weight, self.bias)


def mask_tokens(tokens: Tensor, *, mask: int, vocabulary: int, special: int = 2, probability: float = 0.15,
                ignore_index: int = -100, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
    """Input and target of masked language modelling: of the chosen tokens 80 % become the mask, 10 % random, 10 % stay.

    Args:
        tokens: (N, T).
        mask: the token that masks.
        special: tokens below this one are never chosen, nor put in.
        probability: of a token to be chosen.

    Raises:
        ValueError: for a probability outside [0, 1].

    Returns:
        input (N, T), and target (N, T), which is ignore_index where nothing is to be predicted.

    Source: Devlin et al. 2019, section 3.1.
    """
    if not 0 <= probability <= 1:
        raise ValueError(f"mask_tokens expected a probability in [0, 1], got {probability}")
    chosen = (rand(tokens.shape, generator=generator, device=tokens.device) < probability) & (tokens >= special)
    lot = rand(tokens.shape, generator=generator, device=tokens.device)
    random = randint(special, vocabulary, tokens.shape, generator=generator, dtype=tokens.dtype, device=tokens.device)
    changed = where(lot < 0.8, full_like(tokens, mask), where(lot < 0.9, random, tokens))
    return where(chosen, changed, tokens), where(chosen, tokens, full_like(tokens, ignore_index))
