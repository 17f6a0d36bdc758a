"""Rows of ops/recurrent.py: T=3 steps, N=2 sequences, I=2 inputs, H=2 units."""

import numpy as np

from minidl.tensor.ops import recurrent
from tests.table import Row, sample

STEPS, SEQUENCES, HIDDEN = 3, 2, 2
X, H0, C0 = (sample(*shape, low=-1, high=1) for shape in ((STEPS, SEQUENCES, 2), (SEQUENCES, HIDDEN), (2, 2)))
SIZES = (2, 2, 1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(x, h, c, w_ih, w_hh, b_ih=0.0, b_hh=0.0, w_hr=None):
    i, f, g, o = np.split(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return (h if w_hr is None else h @ w_hr.T), c


def gru_step(x, h, w_ih, w_hh, b_ih=0.0, b_hh=0.0):
    ours, theirs = np.split(x @ w_ih.T + b_ih, 3, 1), np.split(h @ w_hh.T + b_hh, 3, 1)
    r, z = sigmoid(ours[0] + theirs[0]), sigmoid(ours[1] + theirs[1])
    return ((1 - z) * np.tanh(ours[2] + r * theirs[2]) + z * h,)


def rnn_step(nonlinearity):
    return lambda x, h, w_ih, w_hh, b_ih=0.0, b_hh=0.0: (nonlinearity(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh),)


def layer(step, states):
    """The reference of a layer: `step` at each time for the sequences that have it."""
    def run(x, *arguments, batch_sizes=None, reverse=False, nonlinearity=None):
        now, weights = list(arguments[:states]), [0.0 if w is None else w for w in arguments[states:]]
        outputs = np.zeros((*x.shape[:2], now[0].shape[1]))
        for t in range(STEPS)[::-1 if reverse else 1]:
            n = SEQUENCES if batch_sizes is None else batch_sizes[t]
            new = step(x[t, :n], *[s[:n] for s in now], *weights)
            outputs[t, :n] = new[0]
            now = [np.concatenate((a, s[n:])) for a, s in zip(new, now)]
        return (outputs, *now)

    return run


def weights(gates, bias=True, state=HIDDEN):
    shapes = [(gates * HIDDEN, 2), (gates * HIDDEN, state)] + [(gates * HIDDEN,)] * 2 * bias
    return tuple(sample(*shape, low=-1, high=1, seed=i) for i, shape in enumerate(shapes))


def rows(function, states, gates, step, **attributes):
    name = function.__name__ + "".join(f" {v}" for v in attributes.values())
    variants = {"": {}, " reverse": {"reverse": True}, " lengths": {"batch_sizes": SIZES},
                " lengths reverse": {"batch_sizes": SIZES, "reverse": True}}
    reference = layer(step, len(states))
    return [*[Row(function, (X, *states, *weights(gates)), reference, {**attributes, **more}, name + note, tolerance=2)
              for note, more in variants.items()],
            Row(function, (X, *states, *weights(gates, bias=False)), reference, attributes, name + " without bias",
                tolerance=2)]


def lstm_cell(x, h, c, *weights):
    return recurrent.lstm_cell(x, (h, c), *weights)


relu_step, tanh_step = rnn_step(lambda x: np.maximum(x, 0)), rnn_step(np.tanh)
P0, PROJECTION = sample(SEQUENCES, 1, low=-1, high=1), sample(1, HIDDEN, low=-1, high=1)
CELL = (recurrent.gru_cell, 3, gru_step), (recurrent.rnn_tanh_cell, 1, tanh_step), (recurrent.rnn_relu_cell, 1, relu_step)
ROWS = [
    *rows(recurrent.lstm_layer, (H0, C0), 4, lstm_step),
    *rows(recurrent.gru_layer, (H0,), 3, gru_step),
    *rows(recurrent.rnn_layer, (H0,), 1, tanh_step),
    *rows(recurrent.rnn_layer, (H0,), 1, relu_step, nonlinearity="relu"),
    Row(recurrent.lstm_layer, (X, P0, C0, *weights(4, state=1), PROJECTION), layer(lstm_step, 2), name="lstm_layer projected",
        tolerance=2),
    Row(recurrent.lstm_layer, (X, P0, C0, *weights(4, bias=False, state=1), None, None, PROJECTION), layer(lstm_step, 2),
        {"reverse": True}, "lstm_layer projected without bias", tolerance=2),
    Row(lstm_cell, (X[0], H0, C0, *weights(4)), lstm_step, tolerance=2),
    *[Row(cell, (X[0], H0, *weights(gates)), lambda *a, step=step: step(*a)[0], tolerance=2) for cell, gates, step in CELL],
]
