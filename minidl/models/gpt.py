"""GPT: a decoder-only Transformer language model."""

from __future__ import annotations

import math

from .. import nn
from ..autograd.mode import no_grad
from ..nn import functional as F
from ..nn import init
from ..tensor.creation import arange
from ..tensor.ops.joining import cat
from ..tensor.ops.sampling import multinomial
from ..tensor.ops.softmax import softmax
from ..tensor.random import Generator
from ..tensor.tensor import Tensor


class CausalSelfAttention(nn.Module):
    """Multi-head attention of each position over itself and those before it."""

    def __init__(self, width: int, heads: int, dropout: float, bias: bool):
        super().__init__()
        if width % heads:
            raise ValueError(f"GPT expected a width that is a multiple of its {heads} heads, got {width}")
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.proj = nn.Linear(width, width, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        n, t, width = input.shape
        qkv = self.qkv(input).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True)
        return F.dropout(self.proj(y.transpose(1, 2).reshape(n, t, width)), self.dropout, self.training)


class GPTBlock(nn.Module):
    """Attention and a two-layer perceptron, each after a LayerNorm and beside a shortcut."""

    def __init__(self, width: int, heads: int, dropout: float, bias: bool):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, bias=bias)
        self.attention = CausalSelfAttention(width, heads, dropout, bias)
        self.norm2 = nn.LayerNorm(width, bias=bias)
        self.fc = nn.Linear(width, 4 * width, bias=bias)
        self.proj = nn.Linear(4 * width, width, bias=bias)
        self.drop = nn.Dropout(dropout)

    def forward(self, input: Tensor) -> Tensor:
        x = input + self.attention(self.norm1(input))
        return x + self.drop(self.proj(F.gelu(self.fc(self.norm2(x)))))


class GPT(nn.Module):
    """Embeddings of tokens and positions, pre-norm Transformer blocks, and a head that shares the tokens' embedding.

    Args:
        vocabulary: number of tokens.
        context: longest sequence.
        layers, heads, width: of the Transformer.
        dropout: after embeddings, attention and perceptron.
        bias: whether linear layers and norms have biases.

    Shapes: tokens (N, T) int64 with T <= context, logits (N, T, vocabulary).

    Raises:
        ValueError: for tokens of another shape, and longer sequences.

    Source: Radford et al. 2019, with the settings of Karpathy's nanoGPT.
    """

    def __init__(self, vocabulary: int, context: int = 64, layers: int = 4, heads: int = 4, width: int = 128,
                 dropout: float = 0.0, bias: bool = False):
        super().__init__()
        self.context = context
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([GPTBlock(width, heads, dropout, bias) for _ in range(layers)])
        self.norm = nn.LayerNorm(width, bias=bias)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:  # what feeds the shortcuts starts smaller, so that their sum does not grow with depth
                init.normal_(parameter, 0.0, 0.02 / math.sqrt(2 * layers) if name.endswith("proj.weight") else 0.02)
            elif name.endswith("bias"):
                init.zeros_(parameter)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.ndim != 2 or tokens.shape[1] > self.context:
            raise ValueError(f"GPT expected tokens of shape (N, T) with T <= {self.context}, got {tokens.shape}; cut the "
                             f"sequences or make a larger context")
        x = self.drop(self.tokens(tokens) + self.positions(arange(tokens.shape[1], device=tokens.device)))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)

    def generate(self, tokens: Tensor, length: int, *, temperature: float = 1.0, top_k: int | None = None,
                 generator: Generator | None = None) -> Tensor:
        """Continue sequences token by token, by sampling. Call `eval()` first: in training mode dropout acts here too.

        Args:
            tokens: (N, T) with T >= 1.
            length: tokens to add.
            temperature: divides the logits; 0 takes the most likely token.
            top_k: sample among the k most likely tokens only.

        Shapes: result (N, T + length).

        Raises:
            ValueError: for no token to begin with, a negative temperature or length, or top_k below 1.
        """
        if tokens.ndim != 2 or not tokens.shape[1]:
            raise ValueError(f"generate expected tokens of shape (N, T) with T >= 1, got {tokens.shape}")
        if length < 0 or temperature < 0 or (top_k is not None and top_k < 1):
            raise ValueError(f"generate expected length and temperature of at least 0 and top_k of at least 1, got {length}, "
                             f"{temperature} and {top_k}")
        with no_grad():
            for _ in range(length):
                logits = self(tokens[:, -self.context:])[:, -1].float()
                if temperature == 0:
                    following = logits.argmax(-1, keepdim=True)
                else:
                    logits = logits / temperature
                    if top_k is not None:
                        floor = logits.topk(min(top_k, logits.shape[-1]))[0][:, -1:]
                        logits = logits.masked_fill(logits < floor, -math.inf)
                    following = multinomial(softmax(logits, -1), 1, generator=generator)
                tokens = cat([tokens, following], 1)
        return tokens
