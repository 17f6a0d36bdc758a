"""Recurrent layers for one direction, over all time steps in one op each, and their cells.

The layers are what minidl.nn's LSTM, GRU and RNN are made of.
"""

from __future__ import annotations

from ...autograd.backward import grad
from ...autograd.op import Cast
from ..apply import op
from ..tensor import Tensor
from .activation import relu as relu_of
from .activation import sigmoid
from .joining import cat, stack
from .linear import linear
from .shape import reshape, unsqueeze
from .splitting import chunk, narrow, select
from .trigonometry import tanh

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]


@op(Cast.HALF, wide=True, replay=True)
def _lstm(xp, x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, *, sizes, reverse):
    projection = _given(w_hr)
    values, kept = xp.lstm(x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse)

    def gradients(g):
        *most, bias, gw_hr = xp.lstm_gradients(*g, x, w_ih, w_hh, projection(), kept, sizes, reverse)
        return (*most, bias, _another(bias), gw_hr)

    return values, gradients


@op(Cast.HALF, wide=True, replay=True)
def _gru(xp, x, h0, w_ih, w_hh, b_ih, b_hh, *, sizes, reverse):
    values, kept = xp.gru(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse)
    return values, lambda g: xp.gru_gradients(*g, x, w_ih, w_hh, kept, sizes, reverse)


@op(Cast.HALF, wide=True, replay=True)
def _rnn(xp, x, h0, w_ih, w_hh, b_ih, b_hh, *, relu, sizes, reverse):
    values, kept = xp.rnn(x, h0, w_ih, w_hh, b_ih, b_hh, relu, sizes, reverse)

    def gradients(g):
        *most, bias = xp.rnn_gradients(*g, x, w_ih, w_hh, kept, relu, sizes, reverse)
        return (*most, bias, _another(bias))

    return values, gradients


def _given(parameter):
    """A function that gives the parameter. A pullback that closed over a None among the op's inputs would have it widened."""
    return _nothing if parameter is None else lambda: parameter


def _nothing():
    return None


def _another(bias):
    """Both biases have the same gradient, and each leaf keeps an array of its own."""
    return bias if isinstance(bias, Tensor) or bias is None else bias.copy()


# Layers

def lstm_layer(input, h0, c0, weight_ih, weight_hh, bias_ih=None, bias_hh=None, weight_hr=None, *, batch_sizes=None,
               reverse=False):
    """One direction of an LSTM layer over all time steps; gates in the order input, forget, cell, output.

    Args:
        weight_hr: projects the hidden state to P features.
        batch_sizes: how many sequences, the first ones, each step concerns, integers that do not grow; default all. Outputs are
            zero at the other places.
        reverse: run from the last step to the first. Outputs stay in order of time.

    Shapes: input (T, N, I), h0 (N, P), c0 (N, H), weight_ih (4 * H, I), weight_hh (4 * H, P), biases (4 * H,), weight_hr
    (P, H); P is H without weight_hr. Returns (T, N, P), the last h (N, P) and the last c (N, H).

    Raises:
        RuntimeError: for shapes that do not fit.

    Source: Hochreiter and Schmidhuber 1997; projection: Sak et al. 2014.
    """
    hidden = weight_hh.shape[0] // 4
    _check("lstm", input, h0, weight_ih, weight_hh, bias_ih, bias_hh, 4, hidden if weight_hr is None else weight_hr.shape[0],
           batch_sizes)
    if c0.shape != (input.shape[1], hidden) or (weight_hr is not None and weight_hr.shape != (h0.shape[1], hidden)):
        raise RuntimeError(f"lstm expected c0 of shape {(input.shape[1], hidden)} and weight_hr of shape "
                           f"{(h0.shape[1], hidden)}, got {c0.shape} and {None if weight_hr is None else weight_hr.shape}")
    return _lstm(input, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, weight_hr, sizes=batch_sizes, reverse=reverse)


def gru_layer(input, h0, weight_ih, weight_hh, bias_ih=None, bias_hh=None, *, batch_sizes=None, reverse=False):
    """One direction of a GRU layer over all time steps; gates in the order reset, update, new. Arguments as in lstm_layer.

    Shapes: input (T, N, I), h0 (N, H), weight_ih (3 * H, I), weight_hh (3 * H, H), biases (3 * H,). Returns (T, N, H) and the
    last h (N, H).

    Source: Cho et al. 2014, in the form whose reset gate is applied after the product.
    """
    _check("gru", input, h0, weight_ih, weight_hh, bias_ih, bias_hh, 3, weight_hh.shape[0] // 3, batch_sizes)
    return _gru(input, h0, weight_ih, weight_hh, bias_ih, bias_hh, sizes=batch_sizes, reverse=reverse)


def rnn_layer(input, h0, weight_ih, weight_hh, bias_ih=None, bias_hh=None, nonlinearity="tanh", *, batch_sizes=None,
              reverse=False):
    """One direction of a plain recurrent layer over all time steps: h = tanh (or relu) of the sum of what input and state
    contribute. Arguments as in lstm_layer.

    Shapes: input (T, N, I), h0 (N, H), weight_ih (H, I), weight_hh (H, H), biases (H,). Returns (T, N, H) and the last h
    (N, H).

    Raises:
        ValueError: for a nonlinearity other than "tanh" and "relu".
    """
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"rnn expected the nonlinearity tanh or relu, got {nonlinearity!r}")
    _check("rnn", input, h0, weight_ih, weight_hh, bias_ih, bias_hh, 1, weight_hh.shape[0], batch_sizes)
    return _rnn(input, h0, weight_ih, weight_hh, bias_ih, bias_hh, relu=nonlinearity == "relu", sizes=batch_sizes,
                reverse=reverse)


def _check(name, input, h0, w_ih, w_hh, b_ih, b_hh, gates, state, batch_sizes):
    rows = w_hh.shape[0]
    if input.ndim != 3:
        raise RuntimeError(f"{name} expected an input of shape (T, N, I), got {input.shape}")
    expected = {"h0": (h0, (input.shape[1], state)), "weight_ih": (w_ih, (rows // gates * gates, input.shape[2])),
                "weight_hh": (w_hh, (rows // gates * gates, state)), "bias_ih": (b_ih, (rows,)), "bias_hh": (b_hh, (rows,))}
    for what, (tensor, shape) in expected.items():
        if tensor is not None and tensor.shape != shape:
            raise RuntimeError(f"{name} expected {what} of shape {shape} for an input of shape {input.shape} and weight_hh of "
                               f"shape {w_hh.shape}, got {tensor.shape}")
    if batch_sizes is not None:
        pairs = zip((input.shape[1], *batch_sizes), batch_sizes)
        if len(batch_sizes) != input.shape[0] or any(not 0 <= n <= before for before, n in pairs):
            raise RuntimeError(f"{name} expected {input.shape[0]} batch_sizes that do not grow, the first at most "
                               f"{input.shape[1]}, got {tuple(batch_sizes)}")


# Cells: layers of one step

def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an LSTM: (h, c) from an input (N, I) and hx, the pair of states (N, H)."""
    h, c = hx
    return lstm_layer(_step("lstm_cell", input), h, c, w_ih, w_hh, b_ih, b_hh)[1:]


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a GRU: h (N, H) from an input (N, I) and the state hx (N, H)."""
    return gru_layer(_step("gru_cell", input), hx, w_ih, w_hh, b_ih, b_hh)[1]


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a recurrent layer with tanh: h (N, H) from an input (N, I) and the state hx (N, H)."""
    return rnn_layer(_step("rnn_tanh_cell", input), hx, w_ih, w_hh, b_ih, b_hh)[1]


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a recurrent layer with relu: h (N, H) from an input (N, I) and the state hx (N, H)."""
    return rnn_layer(_step("rnn_relu_cell", input), hx, w_ih, w_hh, b_ih, b_hh, "relu")[1]


def _step(name, input):
    if input.ndim != 2:
        raise RuntimeError(f"{name} expected an input of shape (N, I), got {input.shape}")
    return unsqueeze(input, 0)


# On tensors: the recurrence step by step. Its gradients are taken by the engine, at aliases of the inputs, so that paths which
# lead from one input to another outside the layer are not counted.

def _aliases(inputs):
    return [None if x is None else reshape(x, x.shape) for x in inputs]


def _gradients_at(outputs, gradients, inputs):
    wanted = [x for x in inputs if x is not None and x.requires_grad]
    found = iter(grad(outputs, wanted, gradients, create_graph=True, allow_unused=True))
    return [next(found) if x is not None and x.requires_grad else None for x in inputs]


def _unrolled(x, states, cell, sizes, reverse):
    """Outputs and last states of a layer whose step is `cell(input, states) -> states`, the first of which is put out."""
    outputs = [None] * x.shape[0]
    for t in (reversed(range(x.shape[0])) if reverse else range(x.shape[0])):
        n = x.shape[1] if sizes is None else sizes[t]
        new = cell(narrow(select(x, 0, t), 0, 0, n), [narrow(s, 0, 0, n) for s in states])
        rest = [narrow(s, 0, n, x.shape[1] - n) for s in states]
        outputs[t] = cat([new[0], rest[0] * 0])
        states = [cat([a, b]) for a, b in zip(new, rest)]
    return (stack(outputs) if outputs else reshape(states[0], (1, *states[0].shape))[:0], *states)


def _lstm_of_tensors(x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse):
    inputs = x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr = _aliases((x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr))

    def cell(x, states):
        i, f, g, o = chunk(linear(x, w_ih, b_ih) + linear(states[0], w_hh, b_hh), 4, 1)
        c = sigmoid(f) * states[1] + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)
        return (h if w_hr is None else linear(h, w_hr)), c

    values = _unrolled(x, (h0, c0), cell, sizes, reverse)
    return values, (values, inputs)


def _lstm_gradients_of_tensors(gy, gh, gc, x, w_ih, w_hh, w_hr, kept, sizes, reverse):
    values, inputs = kept
    found = _gradients_at(values, (gy, gh, gc), inputs)
    return (*found[:5], found[5] if found[5] is not None else found[6], found[7])


def _gru_of_tensors(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse):
    inputs = x, h0, w_ih, w_hh, b_ih, b_hh = _aliases((x, h0, w_ih, w_hh, b_ih, b_hh))

    def cell(x, states):
        ours, theirs = chunk(linear(x, w_ih, b_ih), 3, 1), chunk(linear(states[0], w_hh, b_hh), 3, 1)
        r, z = sigmoid(ours[0] + theirs[0]), sigmoid(ours[1] + theirs[1])
        new = tanh(ours[2] + r * theirs[2])
        return (new + z * (states[0] - new),)

    values = _unrolled(x, (h0,), cell, sizes, reverse)
    return values, (values, inputs)


def _gru_gradients_of_tensors(gy, gh, x, w_ih, w_hh, kept, sizes, reverse):
    return _gradients_at(kept[0], (gy, gh), kept[1])


def _rnn_of_tensors(x, h0, w_ih, w_hh, b_ih, b_hh, relu, sizes, reverse):
    inputs = x, h0, w_ih, w_hh, b_ih, b_hh = _aliases((x, h0, w_ih, w_hh, b_ih, b_hh))

    def cell(x, states):
        a = linear(x, w_ih, b_ih) + linear(states[0], w_hh, b_hh)
        return (relu_of(a) if relu else tanh(a),)

    values = _unrolled(x, (h0,), cell, sizes, reverse)
    return values, (values, inputs)


def _rnn_gradients_of_tensors(gy, gh, x, w_ih, w_hh, kept, relu, sizes, reverse):
    found = _gradients_at(kept[0], (gy, gh), kept[1])
    return (*found[:4], found[4] if found[4] is not None else found[5])


METHODS = ()
ON_TENSORS = {"lstm": _lstm_of_tensors, "lstm_gradients": _lstm_gradients_of_tensors, "gru": _gru_of_tensors,
              "gru_gradients": _gru_gradients_of_tensors, "rnn": _rnn_of_tensors, "rnn_gradients": _rnn_gradients_of_tensors}
