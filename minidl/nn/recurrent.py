"""Recurrent layers over whole sequences: RNN, LSTM and GRU, of several layers and both directions."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..tensor import autocast, dtypes
from ..tensor.creation import empty, zeros
from ..tensor.ops.dropout import dropout as dropped
from ..tensor.ops.gathering import index_select
from ..tensor.ops.joining import cat, stack
from ..tensor.ops.recurrent import gru_layer, lstm_layer, rnn_layer
from ..tensor.ops.shape import squeeze, transpose, unsqueeze
from ..tensor.ops.splitting import unbind
from ..tensor.tensor import Tensor
from .init import uniform_
from .module import Module
from .parameter import Parameter
from .utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What RNN, LSTM and GRU share: their parameters, and the way through layers and directions.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".

    The others as in LSTM.
    """

    weight_ih_l0: Parameter

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: Any = None, dtype: Any = None):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_arguments()
        self.dropout = float(dropout)
        output = proj_size or hidden_size
        rows = _GATES[mode] * hidden_size
        for layer, suffix in self._runs():
            features = output * self._directions if layer else input_size
            shapes: dict[str, tuple] = {"weight_ih": (rows, features), "weight_hh": (rows, output)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for name, shape in shapes.items():
                setattr(self, f"{name}_l{layer}{suffix}", Parameter(empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def _check_arguments(self) -> None:
        name = type(self).__name__
        if self.mode not in _GATES:
            raise ValueError(f"{name} expected a mode among {', '.join(_GATES)}, got {self.mode!r}")
        for what in ("bias", "batch_first"):
            if not isinstance(getattr(self, what), bool):
                raise TypeError(f"{name} expected {what} as True or False, got {getattr(self, what)!r}")
        for what, least in (("input_size", 1), ("hidden_size", 1), ("num_layers", 1), ("proj_size", 0)):
            value = getattr(self, what)
            if not isinstance(value, int):
                raise TypeError(f"{name} expected {what} as an integer, got {value!r}")
            if value < least:
                raise ValueError(f"{name} expected {what} of at least {least}, got {value}")
        if self.proj_size >= self.hidden_size:
            raise ValueError(f"{name} expected proj_size less than hidden_size, got {self.proj_size} and {self.hidden_size}")
        if self.proj_size and self.mode != "LSTM":
            raise ValueError(f"{name} expected no proj_size, got {self.proj_size}; only LSTM has projections")
        p = self.dropout
        if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
            raise ValueError(f"{name} expected dropout as a number in [0, 1], got {p!r}")
        if p and self.num_layers == 1:
            warnings.warn(f"{name} drops out between its layers, so dropout={p} has no effect with num_layers=1", stacklevel=4)

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _runs(self) -> list[tuple[int, str]]:
        """(layer, suffix of its parameters' names) for each layer and direction."""
        return [(layer, suffix) for layer in range(self.num_layers) for suffix in ("", "_reverse")[:self._directions]]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [list(self._weights(*run).values()) for run in self._runs()]

    def _weights(self, layer: int, suffix: str) -> dict[str, Any]:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        found = {name: getattr(self, f"{name}_l{layer}{suffix}", None) for name in names}
        return {name: weight for name, weight in found.items() if weight is not None}

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly from [-1 / sqrt(hidden_size), 1 / sqrt(hidden_size)]."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing; here for PyTorch's sake, where it moves the weights into one piece of memory."""

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """The outputs of the last layer, and the last states of all layers and directions.

        Args:
            hx: the initial states, a pair (h_0, c_0) for an LSTM; default zeros.

        Shapes: input (T, N, I), or (N, T, I) with batch_first, or (T, I), or a PackedSequence; outputs the same, with
        directions * H (or directions * proj_size) features. h_0 (layers * directions, N, H or proj_size) and c_0 (layers *
        directions, N, H), without N for an input (T, I); the last states likewise.

        Raises:
            ValueError: for an input that has not 2 or 3 axes, or another dtype than the weights.
            RuntimeError: for other shapes that do not fit, or states of another dtype.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        name = type(self).__name__
        if input.ndim not in (2, 3):
            raise ValueError(f"{name} expected an input of shape (T, N, I) or (T, I), got {input.shape}")
        batched = input.ndim == 3
        if not batched:
            x = unsqueeze(input, 1)
        else:
            x = transpose(input, 0, 1) if self.batch_first else input
        output, states = self._through(x, self._initial(hx, x, batched), None)
        if not batched:
            return squeeze(output, 1), self._as_hx([squeeze(s, 1) for s in states])
        return (transpose(output, 0, 1) if self.batch_first else output), self._as_hx(states)

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[Any, Any]:
        """Through a padded batch in the packed order; the layers take note of how many sequences each step has."""
        _, sizes, order, back = input
        if input.data.ndim != 2:
            raise RuntimeError(f"{type(self).__name__} expected a packed sequence of elements (I,), got data of shape "
                               f"{input.data.shape}")
        x, lengths = pad_packed_sequence(PackedSequence(input.data, sizes))
        states = self._initial(hx, x, True)
        if hx is not None and order is not None:
            states = [index_select(s, 1, order) for s in states]
        output, states = self._through(x, states, tuple(sizes.tolist()))
        if back is not None:
            states = [index_select(s, 1, back) for s in states]
        data = pack_padded_sequence(output, lengths).data
        return PackedSequence(data, sizes, order, back), self._as_hx(states)

    def _initial(self, hx: Any, x: Tensor, batched: bool) -> list[Tensor]:
        """The initial states (layers * directions, N, size), of which an LSTM has two."""
        name = type(self).__name__
        if x.shape[2] != self.input_size:
            raise RuntimeError(f"{name} expected {self.input_size} input features, got an input of shape {x.shape}")
        dtype = self.weight_ih_l0.dtype
        if x.dtype != dtype and autocast.region() is None:
            raise ValueError(f"{name} expected an input of the dtype of its weights, {dtypes.dtype_name(dtype)}, got "
                             f"{dtypes.dtype_name(x.dtype)}; convert one with .to(dtype)")
        runs = self.num_layers * self._directions
        shapes = [(runs, x.shape[1], size) for size in self._state_sizes()]
        if hx is None:
            return [zeros(shape, dtype=x.dtype, device=x.device) for shape in shapes]
        states = [hx] if isinstance(hx, Tensor) else list(hx)
        expected = shapes if batched else [(shape[0], shape[2]) for shape in shapes]
        if [s.shape for s in states] != expected:
            raise RuntimeError(f"{name} expected initial states of shape {' and '.join(map(str, expected))}, got "
                               f"{' and '.join(str(s.shape) for s in states)}")
        return states if batched else [unsqueeze(s, 1) for s in states]

    def _through(self, x: Tensor, states: list[Tensor], sizes: tuple | None) -> tuple[Tensor, list[Tensor]]:
        """All layers: the outputs of the last one (T, N, *) and the last states."""
        if not x.shape[0]:
            raise RuntimeError(f"{type(self).__name__} expected a sequence of at least one step, got an input of shape "
                               f"{x.shape}")
        first = iter(zip(*[unbind(s) for s in states]))
        last = []
        for layer in range(self.num_layers):
            outputs = []
            for suffix in ("", "_reverse")[:self._directions]:
                y, *final = self._layer(x, next(first), self._weights(layer, suffix), sizes, bool(suffix))
                outputs.append(y)
                last.append(final)
            x = cat(outputs, -1) if self.bidirectional else outputs[0]
            if self.dropout and layer + 1 < self.num_layers:
                x = dropped(x, self.dropout, self.training)
        return x, [stack(s) for s in zip(*last)]

    def _layer(self, x: Tensor, states: Any, weights: dict[str, Any], sizes: tuple | None, reverse: bool) -> tuple:
        """One direction of one layer: the outputs and the last states."""
        raise NotImplementedError(f"{type(self).__name__} expected a method _layer; use RNN, LSTM or GRU")

    def _state_sizes(self) -> tuple[int, ...]:
        return (self.hidden_size,)

    def _as_hx(self, states: list[Tensor]) -> Any:
        """The states as the user sees them."""
        return states[0]

    def extra_repr(self) -> str:
        shown = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        changed = [f"{name}={getattr(self, name)}" for name, default in shown.items() if getattr(self, name) != default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *changed])


class RNN(RNNBase):
    """Plain recurrent layers: h_t = tanh(weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh).

    Args:
        nonlinearity: "tanh" or "relu".

    The others as in LSTM; proj_size must be 0.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: Any = None, dtype: Any = None):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN expected the nonlinearity tanh or relu, got {nonlinearity!r}")
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, proj_size, device, dtype)
        self.nonlinearity = nonlinearity

    def _layer(self, x: Tensor, states: Any, weights: dict[str, Any], sizes: tuple | None, reverse: bool) -> tuple:
        return rnn_layer(x, *states, **weights | {"nonlinearity": self.nonlinearity}, batch_sizes=sizes, reverse=reverse)


class LSTM(RNNBase):
    """Layers of long short-term memory.

    Args:
        input_size: features of the input.
        hidden_size: features of the states.
        num_layers: each layer takes the outputs of the one before.
        bias: whether there are bias_ih and bias_hh.
        batch_first: input and outputs are (N, T, *) instead of (T, N, *). States are not concerned.
        dropout: probability with which, in training, each output of all layers but the last is dropped.
        bidirectional: a second run of each layer goes from the last step to the first; outputs of both are joined.
        proj_size: if not 0, h and the outputs are projections of that many features.

    Shapes: weight_ih_l[k] (4 * H, I), of later layers (4 * H, directions * H or directions * proj_size); weight_hh_l[k]
    (4 * H, H or proj_size); bias_ih_l[k] and bias_hh_l[k] (4 * H,); weight_hr_l[k] (proj_size, H); those of the second
    direction end in "_reverse". Gates in the order input, forget, cell, output.

    Raises:
        ValueError: for sizes or a dropout out of range.

    Source: Hochreiter and Schmidhuber, "Long short-term memory", 1997; projections: Sak et al. 2014.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
                         device, dtype)

    def _layer(self, x: Tensor, states: Any, weights: dict[str, Any], sizes: tuple | None, reverse: bool) -> tuple:
        return lstm_layer(x, *states, **weights, batch_sizes=sizes, reverse=reverse)

    def _state_sizes(self) -> tuple[int, ...]:
        return (self.proj_size or self.hidden_size, self.hidden_size)

    def _as_hx(self, states: list[Tensor]) -> Any:
        return tuple(states)


class GRU(RNNBase):
    """Layers of gated recurrent units; gates in the order reset, update, new. Arguments as in LSTM; proj_size must be 0.

    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None):
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
                         device, dtype)

    def _layer(self, x: Tensor, states: Any, weights: dict[str, Any], sizes: tuple | None, reverse: bool) -> tuple:
        return gru_layer(x, *states, **weights, batch_sizes=sizes, reverse=reverse)
