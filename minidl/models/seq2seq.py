"""A Transformer from one sequence of tokens to another, with greedy and beam search."""

from __future__ import annotations

import math

from .. import nn
from ..autograd.mode import no_grad
from ..tensor.creation import arange, full, tensor
from ..tensor.ops.joining import cat
from ..tensor.ops.shape import unsqueeze
from ..tensor.ops.softmax import log_softmax
from ..tensor.tensor import Tensor


class SinusoidalPositions(nn.Module):
    """Adds sines and cosines of the position in wavelengths from 2 pi to 20,000 pi.

    Shapes: input (N, T, width), result the same.

    Source: Vaswani et al. 2017, section 3.5.
    """

    def __init__(self, width: int):
        super().__init__()
        self.width = width

    def forward(self, input: Tensor) -> Tensor:
        t = input.shape[1]
        rates = (arange(0, self.width, 2, device=input.device).float() * (-math.log(10000.0) / self.width)).exp()
        angles = unsqueeze(arange(t, device=input.device).float(), 1) * rates
        waves = cat([unsqueeze(angles.sin(), 2), unsqueeze(angles.cos(), 2)], 2).reshape(t, -1)[:, :self.width]
        return input + waves.to(input.dtype)


class Seq2SeqTransformer(nn.Module):
    """Encoder and decoder over one vocabulary, whose embedding the last layer shares.

    Args:
        vocabulary: number of tokens, the special ones included.
        width, heads, layers, feedforward: of the Transformer; as many layers in encoder and decoder.
        padding, begin, end: the special tokens.

    Shapes: source (N, S) and target (N, T) int64, padded behind; logits (N, T, vocabulary) of the token after each of target.

    Raises:
        ValueError: for tokens of another shape.

    Source: Vaswani et al. 2017, with norms before the sublayers.
    """

    def __init__(self, vocabulary: int, width: int = 128, heads: int = 4, layers: int = 2, feedforward: int = 256,
                 dropout: float = 0.1, *, padding: int = 0, begin: int = 1, end: int = 2):
        super().__init__()
        self.padding, self.begin, self.end = padding, begin, end
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=padding)
        nn.init.normal_(self.embedding.weight, 0.0, width ** -0.5)
        self.scale = math.sqrt(width)
        self.positions = SinusoidalPositions(width)
        self.drop = nn.Dropout(dropout)
        self.transformer = nn.Transformer(width, heads, layers, layers, feedforward, dropout, batch_first=True,
                                          norm_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.decode(target, self.encode(source), source == self.padding)

    def encode(self, source: Tensor) -> Tensor:
        """What the decoder looks at: (N, S, width)."""
        return self.transformer.encoder(self._embed(source), src_key_padding_mask=source == self.padding)

    def decode(self, target: Tensor, memory: Tensor, memory_padding: Tensor) -> Tensor:
        """Logits (N, T, vocabulary) from the target so far and the encoder's output."""
        t = target.shape[1]
        mask = arange(t, device=target.device).view(1, t) > arange(t, device=target.device).view(t, 1)
        y = self.transformer.decoder(self._embed(target), memory, tgt_mask=mask, memory_key_padding_mask=memory_padding,
                                     tgt_key_padding_mask=target == self.padding, tgt_is_causal=True)
        return nn.functional.linear(y, self.embedding.weight)

    def _embed(self, tokens: Tensor) -> Tensor:
        if tokens.ndim != 2:
            raise ValueError(f"Seq2SeqTransformer expected tokens of shape (N, T), got {tokens.shape}")
        return self.drop(self.positions(self.embedding(tokens) * self.scale))

    def translate(self, source: Tensor, max_length: int, *, beams: int = 1, length_penalty: float = 0.6) -> list[list[int]]:
        """The most likely targets, without begin and end, by beam search; beams=1 is greedy search.

        Call `eval()` first: in training mode dropout acts here too. A target that reaches max_length without an end is
        given only where none has ended.

        Args:
            source: (N, S).
            max_length: longest target, in tokens, with its end.
            beams: candidates that are kept for each source; the search ends when so many have ended.
            length_penalty: alpha in ((5 + length) / 6)^alpha, by which log-probabilities are divided.

        Raises:
            ValueError: for beams or max_length below 1, or a negative length_penalty.

        Source: Wu et al. 2016, equation 14.
        """
        if beams < 1 or max_length < 1:
            raise ValueError(f"translate expected beams and max_length of at least 1, got {beams} and {max_length}")
        if length_penalty < 0:
            raise ValueError(f"translate expected a length_penalty of at least 0, got {length_penalty}")
        with no_grad():
            return [self._search(source[i:i + 1], max_length, beams, length_penalty) for i in range(source.shape[0])]

    def _search(self, source: Tensor, max_length: int, beams: int, length_penalty: float) -> list[int]:
        memory, padding = self.encode(source), source == self.padding
        alive = full((1, 1), self.begin, device=source.device)
        scores = tensor([0.0], device=source.device)
        finished: list[tuple[float, list[int]]] = []
        for length in range(1, max_length + 1):
            n = alive.shape[0]
            logits = self.decode(alive, memory.expand(n, -1, -1), padding.expand(n, -1))[:, -1].float()
            totals = unsqueeze(scores, 1) + log_softmax(logits, -1)
            totals[:, [self.padding, self.begin]] = -math.inf
            best, flat = totals.flatten().topk(min(2 * beams, totals.numel()))
            rows, tokens = (flat // totals.shape[1]).tolist(), (flat % totals.shape[1]).tolist()
            keep: list[int] = []
            for i, (row, token, score) in enumerate(zip(rows, tokens, best.tolist())):
                if score == -math.inf:
                    continue
                if token != self.end and len(keep) < beams:
                    keep.append(i)
                elif token == self.end and i < beams:
                    finished.append((score / _penalty(length, length_penalty), alive[row, 1:].tolist()))
            if not keep or len(finished) >= beams:
                break
            if finished and max(finished)[0] >= best[keep[0]].item() / _penalty(max_length, length_penalty):
                break  # whatever is alive can only become less likely
            index = tensor([rows[i] for i in keep], device=source.device)
            added = tensor([[tokens[i]] for i in keep], device=source.device)
            alive, scores = cat([alive[index], added], 1), best[tensor(keep, device=source.device)]
        if not finished:
            return alive[0, 1:].tolist()
        return max(finished)[1]


def _penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha
