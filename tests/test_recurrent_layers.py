"""RNN, LSTM and GRU over layers and directions against a loop in NumPy; packed sequences; cells; errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minidl
from minidl.nn.recurrent import GRU, LSTM, RNN, RNNBase
from minidl.nn.recurrent_cells import GRUCell, LSTMCell, RNNCell
from minidl.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence

rng = np.random.default_rng(0)
FEATURES, H = 3, 4
KINDS = {
    "rnn": (RNN, {}), "relu": (RNN, {"nonlinearity": "relu"}), "lstm": (LSTM, {}), "projection": (LSTM, {"proj_size": 2}),
    "gru": (GRU, {}),
}


def make(kind, **options):
    layer, more = KINDS[kind]
    return layer(FEATURES, H, **more, **options, dtype=minidl.float64)


def normal(*shape):
    return rng.standard_normal(shape)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(model, x, states, suffix):
    """One step of one layer and direction, written from the definition."""
    def weight(name, default=0.0):
        found = getattr(model, name + suffix, None)
        return default if found is None else found.detach().numpy()

    h = states[0]
    ours = x @ weight("weight_ih").T + weight("bias_ih")
    theirs = h @ weight("weight_hh").T + weight("bias_hh")
    if model.mode == "RNN_TANH":
        return [np.tanh(ours + theirs)]
    if model.mode == "RNN_RELU":
        return [np.maximum(ours + theirs, 0)]
    if model.mode == "GRU":
        (r, z, n), (hr, hz, hn) = (np.split(a, 3, -1) for a in (ours, theirs))
        z = sigmoid(z + hz)
        return [(1 - z) * np.tanh(n + sigmoid(r + hr) * hn) + z * h]
    i, f, g, o = np.split(ours + theirs, 4, -1)
    c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return [h @ weight("weight_hr").T if model.proj_size else h, c]


def reference(model, x, states):
    """Outputs (T, N, *) and last states (layers * directions, N, *) of an input (T, N, I)."""
    last = [[] for _ in states]
    place = 0
    for layer in range(model.num_layers):
        directions = []
        for suffix in ("", "_reverse") if model.bidirectional else ("",):
            now = [s[place] for s in states]
            outputs = {}
            for t in reversed(range(len(x))) if suffix else range(len(x)):
                now = step(model, x[t], now, f"_l{layer}{suffix}")
                outputs[t] = now[0]
            directions.append(np.stack([outputs[t] for t in range(len(x))]))
            for kept, s in zip(last, now):
                kept.append(s)
            place += 1
        x = np.concatenate(directions, -1)
    return x, [np.stack(s) for s in last]


def initial(model, n):
    runs = model.num_layers * (2 if model.bidirectional else 1)
    sizes = [model.proj_size or H, H] if isinstance(model, LSTM) else [H]
    return [normal(runs, n, size) for size in sizes]


def as_hx(states):
    tensors = tuple(minidl.tensor(s) for s in states)
    return tensors if len(tensors) > 1 else tensors[0]


def as_list(hx):
    return list(hx) if isinstance(hx, tuple) else [hx]


def near(found, want):
    np.testing.assert_allclose(found.detach().numpy(), want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [
    {}, {"bias": False}, {"num_layers": 2}, {"bidirectional": True}, {"num_layers": 3, "bidirectional": True, "bias": False},
    {"batch_first": True, "num_layers": 2},
], ids=lambda options: " ".join(options) or "plain")
def test_values(kind, options):
    model = make(kind, **options)
    x, states = normal(5, 2, FEATURES), initial(model, 2)
    want, last = reference(model, x, states)
    output, hx = model(minidl.tensor(x.swapaxes(0, 1) if model.batch_first else x), as_hx(states))
    near(output, want.swapaxes(0, 1) if model.batch_first else want)
    for a, b in zip(as_list(hx), last):
        near(a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_without_a_batch_and_without_initial_states(kind, batch_first):
    model = make(kind, num_layers=2, bidirectional=True, batch_first=batch_first)
    x = normal(4, FEATURES)
    want, last = reference(model, x[:, None], [s * 0 for s in initial(model, 1)])
    output, hx = model(minidl.tensor(x))
    near(output, want[:, 0])
    for a, b in zip(as_list(hx), last):
        near(a, b[:, 0])
    output, hx = model(minidl.tensor(x), as_hx([s[:, 0] * 0 for s in initial(model, 1)]))
    near(output, want[:, 0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [[4, 2, 1], [1, 4, 2], [3, 3, 3]])
def test_packed_sequences_are_each_run_alone(kind, lengths):
    model = make(kind, num_layers=2, bidirectional=True)
    parts, states = [normal(n, FEATURES) for n in lengths], initial(model, 3)
    output, hx = model(pack_sequence([minidl.tensor(x) for x in parts], enforce_sorted=False), as_hx(states))
    padded, _ = pad_packed_sequence(output)
    for i, x in enumerate(parts):
        want, last = reference(model, x[:, None], [s[:, i:i + 1] for s in states])
        near(padded[:len(x), i], want[:, 0])
        for a, b in zip(as_list(hx), last):
            near(a[:, i], b[:, 0])


def test_sorted_packed_sequences_stay_sorted():
    model = make("gru")
    packed = pack_sequence([minidl.tensor(normal(n, FEATURES)) for n in (3, 1)])
    output, _ = model(packed)
    assert output.sorted_indices is None and output.batch_sizes is packed.batch_sizes and output.data.shape == (4, H)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind):
    """Of each parameter and the input, along one random direction, against central differences."""
    model = make(kind, num_layers=2, bidirectional=True)
    x = minidl.tensor(normal(3, 2, FEATURES), requires_grad=True)

    def value():
        y, hx = model(pack_padded_sequence(x, [1, 3], enforce_sorted=False))
        return sum(((t + i) ** 3).sum() for i, t in enumerate([y.data, *as_list(hx)]))

    value().backward()
    for tensor in (x, *model.parameters()):
        direction, array, values = normal(*tensor.shape), tensor.numpy(), []
        with minidl.no_grad():
            for move in (1e-6, -2e-6, 1e-6):
                array += move * direction
                values.append(value().item())
        found = (tensor.grad.numpy() * direction).sum()
        np.testing.assert_allclose(found, (values[0] - values[1]) / 2e-6, rtol=1e-5, atol=1e-6)


def test_padding_gets_no_gradient():
    model = make("lstm", bidirectional=True)
    x = pad_sequence([minidl.ones(n, FEATURES, dtype=minidl.float64) for n in (1, 3)]).requires_grad_()
    model(pack_padded_sequence(x, [1, 3], enforce_sorted=False))[0].data.sum().backward()
    gradient = x.grad.numpy()
    assert (gradient[1:, 0] == 0).all() and (gradient[:, 1] != 0).any(1).all() and (gradient[0, 0] != 0).any()


def test_dropout_lies_between_layers_in_training_only():
    model = make("rnn", num_layers=2, dropout=1.0)
    x, states = normal(3, 2, FEATURES), [np.zeros((2, 2, H))]
    nothing, _ = reference(model, x, states)
    near(model.eval()(minidl.tensor(x))[0], nothing)
    want = []
    h = np.zeros((2, H))
    for _ in range(3):  # the second layer sees zeros
        h, = step(model, np.zeros((2, H)), [h], "_l1")
        want.append(h)
    near(model.train()(minidl.tensor(x))[0], np.stack(want))


def test_dropout_comes_from_the_default_stream():
    model = make("gru", num_layers=2, dropout=0.5)
    x = minidl.tensor(normal(3, 2, FEATURES))
    runs = []
    for seed in (1, 1, 2):
        minidl.manual_seed(seed)
        runs.append(model(x)[0].detach().numpy())
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


def test_parameters_are_named_in_pytorch_order():
    names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"]
    model = make("projection", num_layers=2, bidirectional=True)
    want = [f"{name}_l{layer}{suffix}" for layer in (0, 1) for suffix in ("", "_reverse") for name in names]
    assert list(model.state_dict()) == want
    assert [w.shape for w in model.all_weights[2]] == [(16, 4), (16, 2), (16,), (16,), (2, 4)]
    assert [len(w) for w in make("gru", bias=False).all_weights] == [2]
    assert model.flatten_parameters() is None


def test_initial_parameters():
    model = LSTM(50, 100)
    for weight in model.parameters():
        values = weight.detach().numpy()
        assert np.abs(values).max() <= 0.1 and np.abs(values).max() > 0.095 and abs(values.mean()) < 0.02
    minidl.manual_seed(3)
    first = GRU(3, 4).weight_hh_l0.detach().numpy()
    minidl.manual_seed(3)
    np.testing.assert_array_equal(GRU(3, 4).weight_hh_l0.detach().numpy(), first)


@pytest.mark.parametrize("layer", [RNN, LSTM, GRU])
def test_half_precision_stays_near(layer):
    model = layer(FEATURES, H, 2, bidirectional=True)
    x = normal(4, 2, FEATURES).astype(np.float32)
    want = model(minidl.tensor(x))[0].detach().numpy()
    output, hx = model.half()(minidl.tensor(x).half())
    assert output.dtype == as_list(hx)[0].dtype == minidl.float16
    np.testing.assert_allclose(output.detach().numpy().astype(np.float32), want, atol=4e-3)


def test_an_empty_batch():
    output, h = GRU(FEATURES, H)(minidl.zeros(3, 0, FEATURES))
    assert output.shape == (3, 0, H) and h.shape == (1, 0, H)


def test_text():
    assert repr(LSTM(3, 4, 2, False, True, 0.5, True, 2)) == (
        "LSTM(3, 4, proj_size=2, num_layers=2, bias=False, batch_first=True, dropout=0.5, bidirectional=True)")
    assert repr(GRU(3, 4)) == "GRU(3, 4)"
    assert repr(RNNCell(3, 4, False, "relu")) == "RNNCell(3, 4, bias=False, nonlinearity=relu)"


def test_all_are_of_one_kind():
    assert all(isinstance(make(kind), RNNBase) for kind in KINDS)
    assert RNN(3, 4, 1, "relu").mode == "RNN_RELU"


@pytest.mark.parametrize("make_it, error, message", [
    (lambda: GRU(0, 4), ValueError, "input_size of at least 1, got 0"),
    (lambda: GRU(3, -1), ValueError, "hidden_size"),
    (lambda: GRU(3, 4.0), TypeError, "hidden_size as an integer, got 4.0"),
    (lambda: GRU(3, 4, 0), ValueError, "num_layers"),
    (lambda: GRU(3, 4, bias=1), TypeError, "bias"),
    (lambda: GRU(3, 4, 2, dropout=1.5), ValueError, r"\[0, 1\], got 1.5"),
    (lambda: GRU(3, 4, 2, dropout=True), ValueError, "dropout"),
    (lambda: GRU(3, 4, proj_size=2), ValueError, "only LSTM"),
    (lambda: LSTM(3, 4, proj_size=4), ValueError, "proj_size less than hidden_size"),
    (lambda: RNN(3, 4, nonlinearity="sine"), ValueError, "tanh or relu, got 'sine'"),
    (lambda: RNNBase("ELMAN", 3, 4), ValueError, "mode"),
])
def test_arguments_that_do_not_fit(make_it, error, message):
    with pytest.raises(error, match=message):
        make_it()


def test_dropout_with_one_layer_warns():
    with pytest.warns(UserWarning, match="no effect"):
        GRU(3, 4, dropout=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GRU(3, 4, 2, dropout=0.5)


@pytest.mark.parametrize("call, error, message", [
    (lambda: GRU(3, 4)(minidl.ones(3)), ValueError, r"\(T, N, I\) or \(T, I\), got \(3,\)"),
    (lambda: GRU(3, 4)(minidl.ones(2, 2, 4)), RuntimeError, "3 input features"),
    (lambda: GRU(3, 4)(minidl.ones(0, 2, 3)), RuntimeError, "at least one step"),
    (lambda: GRU(3, 4)(minidl.ones(2, 2, 3), minidl.ones(2, 2, 4)), RuntimeError, r"\(1, 2, 4\), got \(2, 2, 4\)"),
    (lambda: GRU(3, 4)(minidl.ones(2, 3), minidl.ones(1, 1, 4)), RuntimeError, r"\(1, 4\), got \(1, 1, 4\)"),
    (lambda: LSTM(3, 4)(minidl.ones(2, 2, 3), minidl.ones(1, 2, 4)), RuntimeError, r"\(1, 2, 4\) and \(1, 2, 4\), got"),
    (lambda: GRU(3, 4)(minidl.ones(2, 2, 3).half()), ValueError, "GRU expected .* weights, float32, got float16"),
    (lambda: LSTM(3, 4)(pack_sequence([minidl.ones(2, 3).double()])), ValueError, "LSTM expected .* float32, got float64"),
    (lambda: GRU(3, 4)(minidl.ones(2, 2, 3), minidl.ones(1, 2, 4).half()), RuntimeError, "one dtype"),
    (lambda: GRU(3, 4)(pack_sequence([minidl.ones(2)])), RuntimeError, "packed sequence of elements"),
    (lambda: GRUCell(3, 4)(minidl.ones(1, 2, 3)), ValueError, r"\(N, I\) or \(I,\)"),
    (lambda: GRUCell(3, 4)(minidl.ones(2, 4)), RuntimeError, "3 input features"),
    (lambda: GRUCell(3, 4)(minidl.ones(2, 3), minidl.ones(1, 2, 4)), ValueError, "states"),
    (lambda: LSTMCell(3, 4)(minidl.ones(2, 3), (minidl.ones(2, 4), minidl.ones(3, 4))), RuntimeError, r"got \(3, 4\)"),
    (lambda: RNNCell(3, 4, nonlinearity="sine")(minidl.ones(2, 3)), RuntimeError, "sine"),
])
def test_inputs_that_do_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("cell, mode", [
    (lambda bias: RNNCell(FEATURES, H, bias, dtype=minidl.float64), "RNN_TANH"),
    (lambda bias: RNNCell(FEATURES, H, bias, "relu", dtype=minidl.float64), "RNN_RELU"),
    (lambda bias: LSTMCell(FEATURES, H, bias, dtype=minidl.float64), "LSTM"),
    (lambda bias: GRUCell(FEATURES, H, bias, dtype=minidl.float64), "GRU"),
])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lead", [(2,), ()])
def test_cells(cell, mode, bias, lead):
    model = cell(bias)
    assert list(model.state_dict()) == ["weight_ih", "weight_hh", "bias_ih", "bias_hh"][:4 if bias else 2]
    model.mode, model.proj_size = mode, 0
    x, states = normal(*lead, FEATURES), [normal(*lead, H) for _ in range(2 if mode == "LSTM" else 1)]
    for given, start in ((as_hx(states), states), (None, [s * 0 for s in states])):
        for a, b in zip(as_list(model(minidl.tensor(x), given)), step(model, x, start, "")):
            near(a, b)
