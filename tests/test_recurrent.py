"""Recurrent layers: dtypes, memory shared with the user, sequences of different lengths, errors."""

import numpy as np
import pytest

import minidl
from minidl.autograd.gradcheck import gradcheck, gradgradcheck
from minidl.tensor.ops.recurrent import gru_cell, gru_layer, lstm_cell, lstm_layer, rnn_layer

rng = np.random.default_rng(0)


def normal(*shape, dtype=np.float64):
    return minidl.tensor(rng.standard_normal(shape).astype(dtype), requires_grad=True)


def lstm_inputs(steps=3, n=2, i=2, h=2, dtype=np.float64):
    shapes = (steps, n, i), (n, h), (n, h), (4 * h, i), (4 * h, h), (4 * h,), (4 * h,)
    return [normal(*shape, dtype=dtype) for shape in shapes]


def test_the_last_state_is_no_view_of_the_outputs():
    output, h, c = lstm_layer(*[x.detach() for x in lstm_inputs()])
    h.numpy().fill(0)
    assert (output.numpy()[-1] != 0).any()


def test_an_edited_output_is_noticed():
    output, _, _ = lstm_layer(*lstm_inputs())
    output.mul_(2.0)
    with pytest.raises(RuntimeError, match="edited"):
        output.sum().backward()


def test_both_biases_have_gradients_of_their_own():
    inputs = lstm_inputs()
    lstm_layer(*inputs)[0].sum().backward()
    a, b = inputs[-2].grad.numpy(), inputs[-1].grad.numpy()
    np.testing.assert_array_equal(a, b)
    assert not np.shares_memory(a, b)


def test_inputs_that_depend_on_each_other():
    """Gradients of gradients count the layer's own paths only, once."""
    x, w_ih, w_hh = normal(3, 2, 2), normal(8, 2), normal(8, 2)

    def run(x, w_ih, w_hh):
        h = x.sum(0)
        return lstm_layer(x, h, h * 2, w_ih, w_hh)

    gradcheck(run, [x, w_ih, w_hh], fast_mode=True)
    gradgradcheck(run, [x, w_ih, w_hh], fast_mode=True)


def test_backward_twice():
    inputs = lstm_inputs()
    output = lstm_layer(*inputs)[0].sum()
    output.backward(retain_graph=True)
    first = [x.grad.numpy().copy() for x in inputs]
    output.backward()
    for x, once in zip(inputs, first):
        np.testing.assert_allclose(x.grad.numpy(), 2 * once)


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16], ids=str)
def test_states_do_not_stall_in_half(dtype):
    """A cell that adds 1/1024 of its range per step reaches what float32 reaches."""
    steps = 512
    x, h = minidl.zeros(steps, 1, 1, dtype=dtype), minidl.zeros(1, 1, dtype=dtype)
    w = minidl.zeros(4, 1, dtype=dtype)
    bias = minidl.tensor(np.array([20, 20, 0.00390625, 20]).astype(dtype))
    c = lstm_layer(x, h, h, w, w, bias)[2]
    np.testing.assert_allclose(c.numpy().astype(float), steps * 0.00390625, rtol=0.01)


def test_large_gates_saturate():
    x = minidl.full((1, 1, 1), 1e4)
    out, _, c = lstm_layer(x, minidl.zeros(1, 1), minidl.zeros(1, 1), minidl.ones(4, 1), minidl.ones(4, 1))
    assert c.numpy() == 1 and np.isfinite(out.numpy()).all()


@pytest.mark.parametrize("reverse", [False, True])
def test_lengths_agree_with_each_sequence_alone(reverse):
    x, h = normal(4, 3, 2), normal(3, 2)
    weights = [normal(6, 2), normal(6, 2), normal(6), normal(6)]
    lengths, sizes = (4, 2, 1), (3, 2, 1, 1)
    output, last = gru_layer(x, h, *weights, batch_sizes=sizes, reverse=reverse)
    for n, length in enumerate(lengths):
        alone, end = gru_layer(x[:length, n:n + 1], h[n:n + 1], *weights, reverse=reverse)
        np.testing.assert_allclose(output.numpy()[:length, n], alone.numpy()[:, 0])
        np.testing.assert_allclose(last.numpy()[n], end.numpy()[0])
        assert (output.numpy()[length:, n] == 0).all()


def test_no_sequences_and_no_steps():
    for steps, n in ((3, 0), (0, 2)):
        output, h, c = lstm_layer(*lstm_inputs(steps, n))
        assert output.shape == (steps, n, 2) and h.shape == c.shape == (n, 2)


@pytest.mark.parametrize("call, error", [
    (lambda x, h, w, u: rnn_layer(x[0], h, w, u), RuntimeError),
    (lambda x, h, w, u: rnn_layer(x, h[:1], w, u), RuntimeError),
    (lambda x, h, w, u: rnn_layer(x, h, u, w), RuntimeError),
    (lambda x, h, w, u: rnn_layer(x, h, w, u, u), RuntimeError),
    (lambda x, h, w, u: rnn_layer(x, h, w, u, batch_sizes=(1, 2, 2)), RuntimeError),
    (lambda x, h, w, u: rnn_layer(x, h, w, u, batch_sizes=(2, 2)), RuntimeError),
    (lambda x, h, w, u: rnn_layer(x, h, w, u, nonlinearity="gelu"), ValueError),
    (lambda x, h, w, u: gru_layer(x, h, w, u), RuntimeError),
    (lambda x, h, w, u: gru_cell(x, h, w, u), RuntimeError),
    (lambda x, h, w, u: lstm_cell(x[0], (h, h), w, u), RuntimeError),
])
def test_errors(call, error):
    with pytest.raises(error):
        call(minidl.ones(3, 2, 4), minidl.ones(2, 5), minidl.ones(5, 4), minidl.ones(5, 5))
