"""Rows of ops/loss.py and ops/cross_entropy.py."""

import math

import numpy as np

import minidl
from minidl.tensor.ops.cross_entropy import cross_entropy, nll_loss
from minidl.tensor.ops.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from tests.table import Row, sample

X, T = sample(3, 4), sample(3, 4, seed=1)
P = sample(3, 4, low=0.1, high=0.9)
WEIGHT = sample(3, 4, low=0.5, high=2, seed=2)
CLASS_WEIGHT = np.array([0.5, 1.0, 2.0, 0.25])
CLASSES = np.array([2, 0, 3])
IMAGES = np.array([[[2, 0], [3, 1]], [[1, 2], [0, 0]]])


def reduce(losses, reduction="mean"):
    return {"none": lambda x: x, "mean": np.mean, "sum": np.sum}[reduction](losses)


def of_difference(losses):
    return lambda x, t, reduction="mean", **attributes: reduce(losses(x - t, **attributes), reduction)


def weighted(losses):
    """The mean is divided by the sum of the weights."""
    return lambda x, t, reduction, weight: (losses(x - t) * weight).sum() / weight.sum()


def huber(d, delta=1.0):
    return np.where(np.abs(d) < delta, d * d / 2, delta * (np.abs(d) - delta / 2))


def log_softmax(x, axis):
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def of_classes(log_p, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """-log_p of the targets, smoothed, element by element."""
    log_p = log_p[None] if log_p.ndim == 1 else log_p
    rows = np.moveaxis(log_p, 1, -1).reshape(-1, log_p.shape[1])
    classes = rows.shape[1]
    weight = np.ones(classes) if weight is None else weight
    losses, total = [], 0.0
    for row, index in zip(rows, np.ravel(target)):
        if index == ignore_index:
            losses.append(0.0)
            continue
        total += weight[index]
        losses.append(-(1 - label_smoothing) * weight[index] * row[index]
                      - label_smoothing / classes * (weight * row).sum())
    if reduction == "none":
        return np.array(losses).reshape(np.shape(target))
    return sum(losses) / (total if reduction == "mean" else 1)


def cross_entropy_reference(x, target, weight=None, **attributes):
    return of_classes(log_softmax(x, 1 if x.ndim > 1 else 0), target, weight, **attributes)


def of_probabilities(x, target, weight=1.0, reduction="mean", label_smoothing=0.0):
    axis = 1 if x.ndim > 1 else 0
    target = target * (1 - label_smoothing) + label_smoothing / x.shape[axis]
    losses = -(log_softmax(x, axis) * target * weight).sum(axis)
    return reduce(losses, reduction)


def with_class_weight(function, weight):
    """The function with weights of the classes, which have no gradient."""
    def call(x, target, **attributes):
        return function(x, target, minidl.tensor(weight, dtype=x.dtype), **attributes)
    return call


def weighted_cross_entropy(x, target, **attributes):
    return with_class_weight(cross_entropy, CLASS_WEIGHT)(x, target, **attributes)


def weighted_nll(x, target, **attributes):
    return with_class_weight(nll_loss, CLASS_WEIGHT)(x, target, **attributes)


def divergence(x, t, reduction="mean", log_target=False):
    losses = np.exp(t) * (t - x) if log_target else t * (np.log(t) - x)
    return losses.sum() / len(x) if reduction == "batchmean" else reduce(losses, reduction)


def bce(p, t, weight=1.0, reduction="mean"):
    return reduce(-(t * np.log(p) + (1 - t) * np.log(1 - p)) * weight, reduction)


def bce_logits(x, t, weight=1.0, reduction="mean", pos_weight=1.0):
    p = 1 / (1 + np.exp(-x))
    return reduce(-(pos_weight * t * np.log(p) + (1 - t) * np.log(1 - p)) * weight, reduction)


def gaussian(x, t, var, full=False, reduction="mean"):
    var = var[..., None] if var.ndim < x.ndim else var
    losses = 0.5 * (np.log(var) + (x - t) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0)
    return reduce(losses, reduction)


def poisson(x, t, log_input=True, full=False, eps=1e-8, reduction="mean"):
    losses = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    if full:
        large = np.maximum(t, 1.0)
        losses = losses + np.where(t > 1, large * np.log(large) - large + 0.5 * np.log(2 * np.pi * large), 0)
    return reduce(losses, reduction)


def entropy_rows():
    """cross_entropy with class indices along all its paths."""
    paths = {
        "": (cross_entropy, X, CLASSES, None, {}),
        " sum": (cross_entropy, X, CLASSES, None, {"reduction": "sum"}),
        " none": (cross_entropy, X, CLASSES, None, {"reduction": "none"}),
        " ignoring": (cross_entropy, X, CLASSES, None, {"ignore_index": 0}),
        " weighted": (weighted_cross_entropy, X, CLASSES, CLASS_WEIGHT, {}),
        " weighted none": (weighted_cross_entropy, X, CLASSES, CLASS_WEIGHT, {"reduction": "none", "ignore_index": 3}),
        " smoothed": (cross_entropy, X, CLASSES, None, {"label_smoothing": 0.2, "ignore_index": 2}),
        " smoothed weighted": (weighted_cross_entropy, X, CLASSES, CLASS_WEIGHT, {"label_smoothing": 0.2}),
        " of one sample": (cross_entropy, X[0], np.array(1), None, {}),
        " of images": (cross_entropy, sample(2, 4, 2, 2), IMAGES, None, {"reduction": "none"}),
        " of images weighted": (weighted_cross_entropy, sample(2, 4, 2, 2), IMAGES, CLASS_WEIGHT, {"ignore_index": 1}),
    }
    return [Row(function, (x, target), lambda x, t, weight=weight, **a: cross_entropy_reference(x, t, weight, **a), attributes,
                "cross_entropy" + name, tolerance=2) for name, (function, x, target, weight, attributes) in paths.items()]


ROWS = [
    *entropy_rows(),
    Row(cross_entropy, (X, P), of_probabilities, {"label_smoothing": 0.1}, "cross_entropy of probabilities", tolerance=4),
    Row(cross_entropy, (sample(2, 3, 4), sample(2, 3, 4, low=0.1, high=0.9)), of_probabilities, {"reduction": "none"},
        "cross_entropy of probabilities, of sequences", tolerance=4),
    Row(weighted_cross_entropy, (X, P), lambda x, t, **a: of_probabilities(x, t, CLASS_WEIGHT, **a), {"reduction": "sum"},
        "cross_entropy of probabilities, weighted", tolerance=4),
    Row(nll_loss, (X, CLASSES), of_classes),
    Row(nll_loss, (sample(2, 4, 2, 2), IMAGES), of_classes, {"reduction": "none", "ignore_index": 1}, "nll_loss of images"),
    Row(weighted_nll, (X, CLASSES), lambda x, t, **a: of_classes(x, t, CLASS_WEIGHT, **a), {"ignore_index": 0},
        "nll_loss weighted"),
    Row(mse_loss, (X, T), of_difference(np.square), tolerance=2),
    Row(mse_loss, (X, T), of_difference(np.square), {"reduction": "none"}, "mse_loss none", tolerance=4),
    Row(mse_loss, (X, T, "mean", WEIGHT), weighted(np.square), name="mse_loss weighted", tolerance=2),
    Row(l1_loss, (X, T), of_difference(np.abs), {"reduction": "sum"}, tolerance=2),
    Row(l1_loss, (X, T, "mean", WEIGHT), weighted(np.abs), name="l1_loss weighted", tolerance=2),
    Row(smooth_l1_loss, (X, T), of_difference(lambda d, beta: huber(d, beta) / beta), {"beta": 0.7}, tolerance=2),
    Row(smooth_l1_loss, (X, T), of_difference(lambda d, beta: np.abs(d)), {"beta": 0.0}, "smooth_l1_loss beta 0", tolerance=2),
    Row(huber_loss, (X, T), of_difference(huber), {"delta": 1.3, "reduction": "none"}, tolerance=2),
    Row(huber_loss, (X, T, "sum", 0.9, WEIGHT), lambda x, t, reduction, delta, weight: (huber(x - t, delta) * weight).sum(),
        name="huber_loss weighted", tolerance=2),
    Row(kl_div, (X, P), divergence, {"reduction": "batchmean"}, tolerance=4),
    Row(kl_div, (X, T), divergence, {"log_target": True, "reduction": "none"}, "kl_div log_target", tolerance=4),
    Row(binary_cross_entropy, (P, sample(3, 4, low=0.1, high=0.9, seed=1), WEIGHT), bce, tolerance=4),
    Row(binary_cross_entropy, (P, sample(3, 4, low=0.1, high=0.9, seed=1)), bce, {"reduction": "none"},
        "binary_cross_entropy none", tolerance=4),
    Row(binary_cross_entropy_with_logits, (X, P), bce_logits, tolerance=2),
    Row(binary_cross_entropy_with_logits, (X, P, WEIGHT, "none", sample(4, low=0.5, high=3)), bce_logits,
        name="binary_cross_entropy_with_logits weighted", tolerance=4),
    Row(gaussian_nll_loss, (X, T, sample(3, 4, low=0.5, high=2)), gaussian, {"full": True}, tolerance=2),
    Row(gaussian_nll_loss, (X, T, sample(3, low=0.5, high=2)), gaussian, {"reduction": "none"},
        "gaussian_nll_loss of one variance a row", tolerance=4),
    Row(poisson_nll_loss, (X, sample(3, 4, low=0.1, high=4, seed=1)), poisson, tolerance=2),
    Row(poisson_nll_loss, (P, sample(3, 4, low=0.1, high=4, seed=1)), poisson,
        {"log_input": False, "full": True, "reduction": "none"}, "poisson_nll_loss of rates", tolerance=4),
]
