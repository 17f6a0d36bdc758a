"""Recurrent models of token sequences: a tagger and a language model."""

from __future__ import annotations

from typing import Any

from .. import nn
from ..nn import init
from ..nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from ..tensor.tensor import Tensor


class LSTMTagger(nn.Module):
    """One label for each token: embedding, bidirectional LSTM, linear layer.

    Args:
        vocabulary: number of tokens.
        labels: number of labels.
        embedding: features of a token.
        hidden: features of each direction.
        layers: of the LSTM.
        dropout: after the embedding, between the layers and before the labels.

    Shapes: tokens (N, T) int64, lengths (N,) on the CPU, logits (N, T, labels); those after a sequence's end mean nothing.
    """

    def __init__(self, vocabulary: int, labels: int, embedding: int = 100, hidden: int = 100, layers: int = 1,
                 dropout: float = 0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.drop = nn.Dropout(dropout)
        self.lstm = nn.LSTM(embedding, hidden, layers, batch_first=True, bidirectional=True,
                            dropout=dropout if layers > 1 else 0.0)
        self.out = nn.Linear(2 * hidden, labels)

    def forward(self, tokens: Tensor, lengths: Any) -> Tensor:
        packed = pack_padded_sequence(self.drop(self.embedding(tokens)), lengths, batch_first=True, enforce_sorted=False)
        y, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=tokens.shape[1])
        return self.out(self.drop(y))


class LSTMLanguageModel(nn.Module):
    """The next token after each token: embedding, LSTM, linear layer.

    Args:
        tied: share the embedding with the last layer; needs embedding == hidden.

    Shapes: tokens (N, T) int64, logits (N, T, vocabulary), state (h, c) each (layers, N, hidden).

    Raises:
        ValueError: for tied weights of different sizes.
    """

    def __init__(self, vocabulary: int, embedding: int = 128, hidden: int = 256, layers: int = 1, dropout: float = 0.0, *,
                 tied: bool = False):
        super().__init__()
        if tied and embedding != hidden:
            raise ValueError(f"LSTMLanguageModel expected embedding == hidden for tied weights, got {embedding} and {hidden}")
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.drop = nn.Dropout(dropout)
        self.lstm = nn.LSTM(embedding, hidden, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
        self.out = nn.Linear(hidden, vocabulary)
        if tied:
            self.out.weight = self.embedding.weight
            init.normal_(self.embedding.weight, 0.0, hidden ** -0.5)  # the embedding's own scale makes too large logits

    def forward(self, tokens: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        y, state = self.lstm(self.drop(self.embedding(tokens)), state)
        return self.out(self.drop(y)), state
