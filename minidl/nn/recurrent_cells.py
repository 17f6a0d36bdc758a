"""Cells: one step of a recurrent layer, for loops of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..tensor.creation import empty, zeros
from ..tensor.ops.recurrent import gru_cell, lstm_cell, rnn_relu_cell, rnn_tanh_cell
from ..tensor.ops.shape import squeeze, unsqueeze
from ..tensor.tensor import Tensor
from .init import uniform_
from .module import Module
from .parameter import Parameter

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """What RNNCell, LSTMCell and GRUCell share.

    Args:
        input_size: features of the input.
        hidden_size: features of the states.
        bias: whether there are bias_ih and bias_hh.
        num_chunks: number of gates.

    Shapes: weight_ih (num_chunks * H, I), weight_hh (num_chunks * H, H), bias_ih and bias_hh (num_chunks * H,).
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(empty((rows, hidden_size), device=device, dtype=dtype))
        self.bias_ih = Parameter(empty(rows, device=device, dtype=dtype)) if bias else None
        self.bias_hh = Parameter(empty(rows, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly from [-1 / sqrt(hidden_size), 1 / sqrt(hidden_size)]."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0
        for weight in self.parameters():
            uniform_(weight, -bound, bound)

    def _step(self, cell: Callable, input: Tensor, states: list[Tensor] | None, count: int = 1) -> list[Tensor]:
        """The states after a step from a batch of inputs or one alone; `cell` takes and returns lists of states."""
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name} expected an input of shape (N, I) or (I,), got {input.shape}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"{name} expected {self.input_size} input features, got an input of shape {input.shape}")
        expected = (*input.shape[:-1], self.hidden_size)
        states = states or [zeros(expected, dtype=input.dtype, device=input.device)] * count
        for state in states:
            if state.ndim not in (1, 2):
                raise ValueError(f"{name} expected states of shape {expected}, got {state.shape}")
            if state.shape != expected:
                raise RuntimeError(f"{name} expected states of shape {expected}, got {state.shape}")
        if input.ndim == 2:
            return cell(input, states)
        return [squeeze(s, 0) for s in cell(unsqueeze(input, 0), [unsqueeze(s, 0) for s in states])]

    @property
    def _weights(self) -> tuple:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(RNNCellBase):
    """A step of a plain recurrent layer: h' = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh).

    Args:
        nonlinearity: "tanh" or "relu".

    The others as in RNNCellBase.

    Shapes: input (N, I) or (I,); h, default zeros, and the result (N, H) or (H,).
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
                 dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state.

        Raises:
            ValueError: for an input or state of other than 1 or 2 axes.
            RuntimeError: for other shapes that do not fit, or a nonlinearity that is not known.
        """
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"RNNCell expected the nonlinearity tanh or relu, got {self.nonlinearity!r}")
        cell = rnn_tanh_cell if self.nonlinearity == "tanh" else rnn_relu_cell
        return self._step(lambda x, states: [cell(x, *states, *self._weights)], input, None if hx is None else [hx])[0]

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """A step of an LSTM, whose states are the pair (h, c). Arguments as in RNNCellBase.

    Shapes: input (N, I) or (I,); h and c, default zeros, and the results (N, H) or (H,).
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The next states (h, c); errors as in RNNCell."""
        states = None if hx is None else list(hx)
        h, c = self._step(lambda x, pair: lstm_cell(x, pair, *self._weights), input, states, 2)
        return h, c


class GRUCell(RNNCellBase):
    """A step of a GRU. Arguments as in RNNCellBase.

    Shapes: input (N, I) or (I,); h, default zeros, and the result (N, H) or (H,).
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state; errors as in RNNCell."""
        return self._step(lambda x, states: [gru_cell(x, *states, *self._weights)], input, None if hx is None else [hx])[0]
