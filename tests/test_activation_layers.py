"""Activation layers and the adaptive softmax: each option reaches its function, in place, in text and in state dicts."""

import math

import numpy as np
import pytest

import minidl
from minidl.nn import activation as nn
from minidl.nn.adaptive import AdaptiveLogSoftmaxWithLoss

X = np.random.default_rng(3).normal(size=(4, 6, 2, 2)) * 3


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def softplus(x):
    return np.logaddexp(x, 0)


def elu(x, alpha, inner=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) * inner))


GAUSS = np.vectorize(lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2)
SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772

MAY_BE_IN_PLACE = [
    (nn.ReLU, (), lambda x: np.maximum(x, 0), "ReLU()"),
    (nn.ReLU6, (), lambda x: x.clip(0, 6), "ReLU6()"),
    (nn.LeakyReLU, (0.2,), lambda x: np.where(x > 0, x, 0.2 * x), "LeakyReLU(negative_slope=0.2)"),
    (nn.ELU, (0.5,), lambda x: elu(x, 0.5), "ELU(alpha=0.5)"),
    (nn.CELU, (0.5,), lambda x: elu(x, 0.5, 2), "CELU(alpha=0.5)"),
    (nn.SELU, (), lambda x: SCALE * elu(x, ALPHA), "SELU()"),
    (nn.SiLU, (), lambda x: x * sigmoid(x), "SiLU()"),
    (nn.Mish, (), lambda x: x * np.tanh(softplus(x)), "Mish()"),
    (nn.Hardtanh, (-0.5, 2.0), lambda x: x.clip(-0.5, 2), "Hardtanh(min_val=-0.5, max_val=2.0)"),
    (nn.Hardsigmoid, (), lambda x: (x + 3).clip(0, 6) / 6, "Hardsigmoid()"),
    (nn.Hardswish, (), lambda x: x * (x + 3).clip(0, 6) / 6, "Hardswish()"),
    (nn.Threshold, (0.1, 5.0), lambda x: np.where(x > 0.1, x, 5), "Threshold(threshold=0.1, value=5.0)"),
]
OTHERS = [
    (nn.PReLU, (6, 0.125), lambda x: np.where(x > 0, x, x / 8), "PReLU(num_parameters=6)"),
    (nn.PReLU, (), lambda x: np.where(x > 0, x, 0.25 * x), "PReLU(num_parameters=1)"),
    (nn.GELU, (), GAUSS, "GELU(approximate='none')"),
    (nn.GELU, ("tanh",), lambda x: x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)),
     "GELU(approximate='tanh')"),
    (nn.GLU, (1,), lambda x: x[:, :3] * sigmoid(x[:, 3:]), "GLU(dim=1)"),
    (nn.Sigmoid, (), sigmoid, "Sigmoid()"),
    (nn.LogSigmoid, (), lambda x: -softplus(-x), "LogSigmoid()"),
    (nn.Tanh, (), np.tanh, "Tanh()"),
    (nn.Tanhshrink, (), lambda x: x - np.tanh(x), "Tanhshrink()"),
    (nn.Softsign, (), lambda x: x / (1 + abs(x)), "Softsign()"),
    (nn.Softplus, (2.0, 30.0), lambda x: softplus(2 * x) / 2, "Softplus(beta=2.0, threshold=30.0)"),
    (nn.Hardshrink, (0.3,), lambda x: np.where(abs(x) > 0.3, x, 0), "Hardshrink(0.3)"),
    (nn.Softshrink, (0.3,), lambda x: np.sign(x) * np.maximum(abs(x) - 0.3, 0), "Softshrink(0.3)"),
    (nn.Softmax, (-1,), lambda x: softmax(x, -1), "Softmax(dim=-1)"),
    (nn.Softmax, (), lambda x: softmax(x, 1), "Softmax(dim=None)"),
    (nn.Softmin, (2,), lambda x: softmax(-x, 2), "Softmin(dim=2)"),
    (nn.LogSoftmax, (0,), lambda x: np.log(softmax(x, 0)), "LogSoftmax(dim=0)"),
    (nn.Softmax2d, (), lambda x: softmax(x, 1), "Softmax2d()"),
]


@pytest.mark.parametrize("layer, args, expected, text", MAY_BE_IN_PLACE + OTHERS, ids=lambda v: getattr(v, "__name__", None))
def test_values_and_text(layer, args, expected, text):
    made = layer(*args)
    assert repr(made) == text
    np.testing.assert_allclose(made.double()(minidl.tensor(X)).detach().numpy(), expected(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("layer, args, expected, text", MAY_BE_IN_PLACE, ids=lambda v: getattr(v, "__name__", None))
def test_in_place(layer, args, expected, text):
    made, x = layer(*args, inplace=True), minidl.tensor(X)
    assert made(x) is x
    np.testing.assert_allclose(x.numpy(), expected(X), rtol=1e-9, atol=1e-12)
    if layer not in (nn.Hardsigmoid, nn.Hardswish):
        assert "inplace=True" in repr(made)


@pytest.mark.parametrize("layer", sorted(nn.__all__))
def test_empty_input(layer):
    args = (0.0, 1.0) if layer == "Threshold" else ()
    shape = (0, 1, 4, 4)
    result = (0, 1, 4, 2) if layer == "GLU" else shape
    assert getattr(nn, layer)(*args)(minidl.zeros(shape)).shape == result


def test_rrelu_draws_slopes_in_training_only():
    layer, x = nn.RReLU(0.2, 0.4), -minidl.ones(1000, dtype=minidl.float64)
    drawn = -layer(x).numpy()
    assert 0.2 <= drawn.min() < 0.22 and 0.38 < drawn.max() < 0.4
    np.testing.assert_allclose(layer.eval()(x).numpy(), -0.3)
    assert repr(layer) == "RReLU(lower=0.2, upper=0.4)"
    assert nn.RReLU(inplace=True)(x) is x


def test_prelu_learns_its_weight():
    layer = nn.PReLU(2)
    layer(minidl.tensor([[-1.0, -2.0], [3.0, -4.0]])).sum().backward()
    assert layer.weight.grad.tolist() == [-1, -6]
    assert list(layer.state_dict()) == ["weight"]
    layer.weight.data = minidl.zeros(2)
    layer.reset_parameters()
    assert layer.weight.tolist() == [0.25, 0.25]


def test_softmax2d_of_one_image():
    np.testing.assert_allclose(nn.Softmax2d()(minidl.tensor(X[0])).numpy(), softmax(X[0], 0))


@pytest.mark.parametrize("call, words", [
    (lambda: nn.Softmax2d()(minidl.ones(2, 2)), r"\(N, C, H, W\).*\(2, 2\)"),
    (lambda: nn.Hardtanh(1, 1), "min_val below max_val"),
    (lambda: AdaptiveLogSoftmaxWithLoss(8, 10, [5, 3]), r"\[1, 9\].*\[5, 3\]"),
    (lambda: AdaptiveLogSoftmaxWithLoss(8, 10, [10]), "cutoffs"),
    (lambda: AdaptiveLogSoftmaxWithLoss(8, 10, []), "cutoffs"),
    (lambda: AdaptiveLogSoftmaxWithLoss(8, 10, [2, 4], div_value=4), "fewer cutoffs"),
])
def test_bad_arguments(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# Adaptive softmax

def adaptive():
    return AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], div_value=2.0, head_bias=True).double()


def full_log_probabilities(layer, x):
    p = {name: value.numpy() for name, value in layer.state_dict().items()}
    head = np.log(softmax(x @ p["head.weight"].T + p["head.bias"], 1))
    logits = [x @ p[f"tail.{i}.0.weight"].T @ p[f"tail.{i}.1.weight"].T for i in (0, 1)]
    return np.concatenate([head[:, :3], *(np.log(softmax(t, 1)) + head[:, 3 + i:4 + i] for i, t in enumerate(logits))], 1)


@pytest.mark.parametrize("target", [[0, 3, 9, 5, 2], [1, 1, 1, 1, 1], [7, 7, 8, 9, 6]])
def test_adaptive_softmax_gives_log_probabilities_of_targets(target):
    layer, x = adaptive(), np.random.default_rng(0).normal(size=(5, 8))
    expected = full_log_probabilities(layer, x)
    np.testing.assert_allclose(np.exp(expected).sum(1), 1)
    output, loss = layer(minidl.tensor(x), minidl.tensor(target))
    np.testing.assert_allclose(output.detach().numpy(), expected[range(5), target], rtol=1e-9)
    assert abs(loss.item() + expected[range(5), target].mean()) < 1e-12
    one = layer(minidl.tensor(x[1]), minidl.tensor(target[1]))
    assert one.output.shape == () and abs(one.output.item() - expected[1, target[1]]) < 1e-12


def test_adaptive_softmax_of_all_classes():
    layer, x = adaptive(), np.random.default_rng(0).normal(size=(5, 8))
    expected = full_log_probabilities(layer, x)
    np.testing.assert_allclose(layer.log_prob(minidl.tensor(x)).detach().numpy(), expected, rtol=1e-9)
    assert layer.predict(minidl.tensor(x)).tolist() == expected.argmax(1).tolist()


def test_adaptive_softmax_gradients_are_those_of_all_log_probabilities():
    layer, x, target = adaptive(), minidl.tensor(np.random.default_rng(0).normal(size=(4, 8))), minidl.tensor([0, 4, 9, 2])
    layer(x, target).loss.backward()
    found = {name: p.grad.numpy().copy() for name, p in layer.named_parameters()}
    layer.zero_grad()
    (-layer.log_prob(x)[minidl.arange(4), target].mean()).backward()
    for name, p in layer.named_parameters():
        np.testing.assert_allclose(found[name], p.grad.numpy(), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("shape, target, words", [((2, 8), [1, 10], "got 10"), ((2, 8), [1], r"\(2, 8\) and \(1,\)"),
                                                  ((8,), [1], r"\(8,\) and \(1,\)")])
def test_adaptive_softmax_refuses(shape, target, words):
    with pytest.raises(RuntimeError, match=words):
        adaptive()(minidl.ones(shape, dtype=minidl.float64), minidl.tensor(target))
