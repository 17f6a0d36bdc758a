"""Loss layers against NumPy: each option reaches its function, reductions, weights as buffers, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl.nn import loss as nn
from minidl.nn.module import Module

RNG = np.random.default_rng(11)
X, Y, Z = RNG.normal(size=(3, 5, 4))
CLASSES = np.array([0, 3, 1, 1, 2])
SIGNS = np.array([1.0, -1, 1, -1, -1])
BITS = (Y > 0).astype(float)
P = 1 / (1 + np.exp(-X))
W = np.array([0.5, 1, 2, 3])
ROWS = np.arange(5)
LOG_P = X - np.log(np.exp(X).sum(1, keepdims=True))


def huber(d, delta):
    return np.where(abs(d) < delta, 0.5 * d * d, delta * (abs(d) - 0.5 * delta))


def softplus(x):
    return np.logaddexp(x, 0)


def distance(a, b, p=2.0, eps=1e-6):
    return (abs(a - b + eps) ** p).sum(-1) ** (1 / p)


def triplet(p, margin):
    far = np.minimum(distance(X, Z, p), distance(Y, Z, p))
    return np.maximum(distance(X, Y, p) - far + margin, 0)


def multi_margin():
    gaps = np.maximum(0.7 - X[ROWS, CLASSES][:, None] + X, 0) ** 2
    gaps[ROWS, CLASSES] = 0
    return (gaps * W[CLASSES][:, None]).sum(1) / 4


def multilabel_margin(labels):
    losses = []
    for x, row in zip(X, labels):
        targets = [c for c in row[:list(row).index(-1)]]
        losses.append(sum(max(0, 1 - (x[t] - x[o])) for t in targets for o in range(4) if o not in targets) / 4)
    return np.array(losses)


LABELS = np.array([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 0, 0, 0], [0, 1, 2, -1], [1, -1, -1, -1]])
COSINE = (X * Y).sum(1) / np.sqrt((X * X).sum(1) * (Y * Y).sum(1))
VAR = abs(Z) + 0.1

CASES = [
    (nn.L1Loss, {}, (X, Y), abs(X - Y)),
    (nn.MSELoss, {}, (X, Y), (X - Y) ** 2),
    (nn.SmoothL1Loss, {"beta": 0.5}, (X, Y), huber(X - Y, 0.5) / 0.5),
    (nn.HuberLoss, {"delta": 0.4}, (X, Y), huber(X - Y, 0.4)),
    (nn.NLLLoss, {}, (X, CLASSES), -X[ROWS, CLASSES]),
    (nn.CrossEntropyLoss, {}, (X, CLASSES), -LOG_P[ROWS, CLASSES]),
    (nn.CrossEntropyLoss, {"label_smoothing": 0.2}, (X, CLASSES), -0.8 * LOG_P[ROWS, CLASSES] - 0.2 * LOG_P.mean(1)),
    (nn.PoissonNLLLoss, {}, (X, VAR), np.exp(X) - VAR * X),
    (nn.PoissonNLLLoss, {"log_input": False, "eps": 0.1}, (P, VAR), P - VAR * np.log(P + 0.1)),
    (nn.PoissonNLLLoss, {"full": True}, (X, VAR + 1),
     np.exp(X) - (VAR + 1) * X + (VAR + 1) * np.log(VAR + 1) - VAR - 1 + 0.5 * np.log(2 * np.pi * (VAR + 1))),
    (nn.GaussianNLLLoss, {}, (X, Y, VAR), 0.5 * (np.log(VAR) + (X - Y) ** 2 / VAR)),
    (nn.GaussianNLLLoss, {"full": True, "eps": 9.0}, (X, Y, VAR), 0.5 * ((X - Y) ** 2 / 9 + math.log(18 * math.pi))),
    (nn.KLDivLoss, {}, (X, P), P * (np.log(P) - X)),
    (nn.KLDivLoss, {"log_target": True}, (X, Y), np.exp(Y) * (Y - X)),
    (nn.BCELoss, {"weight": W}, (P, BITS), -W * (BITS * np.log(P) + (1 - BITS) * np.log(1 - P))),
    (nn.BCEWithLogitsLoss, {"weight": W, "pos_weight": W[::-1].copy()}, (X, BITS),
     W * (W[::-1] * BITS * softplus(-X) + (1 - BITS) * softplus(X))),
    (nn.MarginRankingLoss, {"margin": 0.3}, (X[:, 0], Y[:, 0], SIGNS), np.maximum(-SIGNS * (X - Y)[:, 0] + 0.3, 0)),
    (nn.HingeEmbeddingLoss, {"margin": 0.6}, (X[:, 0], SIGNS), np.where(SIGNS == 1, X[:, 0], np.maximum(0.6 - X[:, 0], 0))),
    (nn.CosineEmbeddingLoss, {"margin": 0.1}, (X, Y, SIGNS), np.where(SIGNS == 1, 1 - COSINE, np.maximum(COSINE - 0.1, 0))),
    (nn.MultiMarginLoss, {"p": 2, "margin": 0.7, "weight": W}, (X, CLASSES), multi_margin()),
    (nn.MultiLabelMarginLoss, {}, (X, LABELS), multilabel_margin(LABELS)),
    (nn.MultiLabelSoftMarginLoss, {"weight": W}, (X, BITS),
     (W * (BITS * softplus(-X) + (1 - BITS) * softplus(X))).mean(1)),
    (nn.SoftMarginLoss, {}, (X, 2 * BITS - 1), softplus((1 - 2 * BITS) * X)),
    (nn.TripletMarginLoss, {"margin": 0.8, "p": 3.0, "swap": True}, (X, Y, Z), triplet(3.0, 0.8)),
    (nn.TripletMarginWithDistanceLoss, {"margin": 0.8, "swap": True}, (X, Y, Z), triplet(2.0, 0.8)),
]


def make(layer, options, **more):
    tensors = {name: minidl.tensor(value) if isinstance(value, np.ndarray) else value for name, value in options.items()}
    return layer(**tensors, **more)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("layer, options, inputs, losses", CASES, ids=lambda v: getattr(v, "__name__", None))
def test_values(layer, options, inputs, losses, reduction):
    made = make(layer, options, reduction=reduction)
    expected = losses if reduction == "none" else getattr(np, reduction)(losses)
    np.testing.assert_allclose(made(*map(minidl.tensor, inputs)).numpy(), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("layer", sorted(set(nn.__all__) - {"TripletMarginWithDistanceLoss"}))
def test_text_and_empty_state(layer):
    made = getattr(nn, layer)()
    assert repr(made) == f"{layer}()" and not made.state_dict()


@pytest.mark.parametrize("layer, log_p", [(nn.CrossEntropyLoss, LOG_P), (nn.NLLLoss, X)])
def test_class_weights_and_ignored_classes(layer, log_p):
    made = make(layer, {"weight": W, "ignore_index": 1})
    kept = CLASSES != 1
    expected = -(W[CLASSES] * log_p[ROWS, CLASSES])[kept].sum() / W[CLASSES][kept].sum()
    assert abs(made(minidl.tensor(X), minidl.tensor(CLASSES)).item() - expected) < 1e-9


def test_batchmean():
    loss = nn.KLDivLoss("batchmean")(minidl.tensor(X), minidl.tensor(P)).item()
    assert abs(loss - (P * (np.log(P) - X)).sum() / 5) < 1e-9


@pytest.mark.parametrize("layer", [nn.CrossEntropyLoss, nn.NLLLoss, nn.BCELoss, nn.BCEWithLogitsLoss, nn.MultiMarginLoss,
                                   nn.MultiLabelSoftMarginLoss])
def test_weights_are_buffers(layer):
    made = layer(weight=minidl.tensor(W))
    assert list(made.state_dict()) == ["weight"] and not list(made.parameters())
    assert made.half().weight.dtype == minidl.float16
    assert "weight" in layer()._buffer_names
    if layer is nn.BCEWithLogitsLoss:
        assert list(layer(pos_weight=minidl.tensor(W)).state_dict()) == ["pos_weight"]


def test_ctc_sums_over_all_alignments():
    """Two frames spell class 2 as 2-, -2 and 22, where the blank is 1."""
    p = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])
    likelihood = 0.5 * 0.6 + 0.3 * 0.3 + 0.5 * 0.3
    frames = minidl.tensor(np.log(p)[:, None])
    loss = nn.CTCLoss(blank=1, reduction="sum")(frames, minidl.tensor([[2]]), (2,), (1,))
    assert abs(loss.item() + math.log(likelihood)) < 1e-9
    impossible = frames, minidl.tensor([[2, 2]]), (2,), (2,)
    assert nn.CTCLoss(1, "sum", zero_infinity=True)(*impossible).item() == 0
    assert nn.CTCLoss(1, "sum")(*impossible).item() == math.inf


def test_a_distance_may_be_a_function_or_a_module():
    class Taxi(Module):
        def forward(self, a, b):
            return (a - b).abs().sum(-1)

    expected = np.maximum(abs(X - Y).sum(1) - abs(X - Z).sum(1) + 1, 0).mean()
    for taxi in (Taxi(), lambda a, b: (a - b).abs().sum(-1)):
        layer = nn.TripletMarginWithDistanceLoss(distance_function=taxi)
        assert abs(layer(*map(minidl.tensor, (X, Y, Z))).item() - expected) < 1e-9
        assert ("(distance_function): Taxi()" in repr(layer)) == isinstance(taxi, Module)
    assert "(distance_function): PairwiseDistance()" in repr(nn.TripletMarginWithDistanceLoss())


def test_gradients_of_halves_are_halves():
    x = minidl.tensor(X).half().requires_grad_()
    loss = nn.CrossEntropyLoss(weight=minidl.tensor(W))(x, minidl.tensor(CLASSES))
    loss.backward()
    assert loss.dtype == x.grad.dtype == minidl.float16 and np.isfinite(x.grad.numpy()).all()


@pytest.mark.parametrize("call, words", [
    (lambda: nn.MSELoss("average")(minidl.ones(2), minidl.ones(2)), "'average'"),
    (lambda: nn.MultiMarginLoss(p=3), "p to be 1 or 2, got 3"),
    (lambda: nn.MultiMarginLoss(weight=minidl.ones(2, 2)), r"\(2, 2\)"),
    (lambda: nn.TripletMarginLoss(margin=0), "TripletMarginLoss expected margin > 0"),
    (lambda: nn.TripletMarginWithDistanceLoss(margin=-1), "TripletMarginWithDistanceLoss expected margin > 0"),
])
def test_bad_arguments(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_delta_is_a_number():
    with pytest.raises(TypeError, match=r"HuberLoss expected delta as a number, got \(1\+0j\)"):
        nn.HuberLoss(delta=1 + 0j)
