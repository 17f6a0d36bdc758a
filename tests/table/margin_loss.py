"""Rows of ops/margin_loss.py."""

import numpy as np

from minidl.tensor.ops.margin_loss import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from tests.table import Row, sample
from tests.table.loss import CLASS_WEIGHT, CLASSES, reduce, with_class_weight

X, T = sample(3, 4), sample(3, 4, seed=1)
SIGNS = np.array([1, -1, 1])
MANY_SIGNS = np.array([[1, -1, 1, -1], [-1, -1, 1, 1], [1, 1, 1, -1]])
TRIPLET = (sample(3, 4), sample(3, 4, seed=1), sample(3, 4, seed=2))


def cosine(a, b, target, margin=0.0, reduction="mean"):
    similarity = (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return reduce(np.where(target == 1, 1 - similarity, np.maximum(similarity - margin, 0)), reduction)


def hinge(x, target, margin=1.0, reduction="mean"):
    return reduce(np.where(target == 1, x, np.maximum(margin - x, 0)), reduction)


def ranking(a, b, target, margin=0.0, reduction="mean"):
    return reduce(np.maximum(-target * (a - b) + margin, 0), reduction)


def multi(x, target, p=1, margin=1.0, weight=None, reduction="mean"):
    losses = []
    for row, y in zip(np.atleast_2d(x), np.atleast_1d(target)):
        others = [max(0.0, margin - row[y] + row[i]) ** p for i in range(len(row)) if i != y]
        losses.append(sum(others) * (1 if weight is None else weight[y]) / len(row))
    return reduce(np.array(losses), reduction)


def weighted_multi(x, target, **attributes):
    def call(x, target, weight, **attributes):
        return multi_margin_loss(x, target, weight=weight, **attributes)
    return with_class_weight(call, CLASS_WEIGHT)(x, target, **attributes)


def multilabel(x, target, reduction="mean"):
    losses = []
    for row, indices in zip(np.atleast_2d(x), np.atleast_2d(target)):
        stop = list(indices).index(-1) if -1 in indices else len(indices)
        labels = list(indices[:stop])
        losses.append(sum(max(0.0, 1 - (row[j] - row[i])) for j in labels for i in range(len(row)) if i not in labels)
                      / len(row))
    return reduce(np.array(losses) if x.ndim > 1 else np.array(losses[0]), reduction)


def multilabel_soft(x, target, weight=1.0, reduction="mean"):
    p = 1 / (1 + np.exp(-x))
    return reduce((-(target * np.log(p) + (1 - target) * np.log(1 - p)) * weight).mean(-1), reduction)


def norm(p, eps=1e-6):
    return lambda a, b: (np.abs(a - b + eps) ** p).sum(-1) ** (1 / p)


def triplet(anchor, positive, negative, margin=1.0, p=2, swap=False, reduction="mean", distance=None):
    distance = norm(p) if distance is None else distance
    far = distance(anchor, negative)
    far = np.minimum(far, distance(positive, negative)) if swap else far
    return reduce(np.maximum(distance(anchor, positive) - far + margin, 0), reduction)


def squared(a, b):
    difference = a - b
    return (difference * difference).sum(-1)


ROWS = [
    Row(cosine_embedding_loss, (X, T, SIGNS), cosine, {"margin": -0.5}, tolerance=2),
    Row(cosine_embedding_loss, (X[0], T[0], np.array(-1)), cosine, {"margin": -0.8}, "cosine_embedding_loss of one pair",
        tolerance=2),
    Row(hinge_embedding_loss, (X, MANY_SIGNS), hinge, {"margin": 1.03}),
    Row(hinge_embedding_loss, (X, MANY_SIGNS), hinge, {"reduction": "none", "margin": 0.53}, "hinge_embedding_loss none"),
    Row(margin_ranking_loss, (sample(4), sample(4, seed=1), np.array([1, -1, 1, -1])), ranking, {"margin": 0.57},
        same_dtype=False),
    Row(multi_margin_loss, (X, CLASSES), multi, tolerance=2),
    Row(multi_margin_loss, (X, CLASSES), multi, {"p": 2, "margin": 0.7, "reduction": "none"}, "multi_margin_loss squared",
        tolerance=4),
    Row(weighted_multi, (X, CLASSES), lambda x, t, **a: multi(x, t, weight=CLASS_WEIGHT, **a), {"reduction": "sum"},
        "multi_margin_loss weighted", tolerance=2),
    Row(multi_margin_loss, (X[0], np.array(1)), multi, name="multi_margin_loss of one sample", tolerance=2),
    Row(multilabel_margin_loss, (X, np.array([[3, 0, -1, 1], [-1, 0, 1, 2], [2, 1, 3, -1]])), multilabel,
        {"reduction": "none"}, tolerance=2),
    Row(multilabel_margin_loss, (X[0], np.array([3, 0, -1, 1])), multilabel, name="multilabel_margin_loss of one sample",
        tolerance=2),
    Row(multilabel_soft_margin_loss, (X, sample(3, 4, low=0.1, high=0.9), sample(4, low=0.5)), multilabel_soft, tolerance=2),
    Row(multilabel_soft_margin_loss, (X, (MANY_SIGNS > 0).astype(np.float64)), multilabel_soft, {"reduction": "none"},
        "multilabel_soft_margin_loss none", tolerance=2),
    Row(soft_margin_loss, (X, MANY_SIGNS.astype(np.float64)), lambda x, t: np.log1p(np.exp(-t * x)).mean(), tolerance=2),
    Row(triplet_margin_loss, TRIPLET, triplet, {"margin": 1.5, "swap": True, "reduction": "none"}, tolerance=4),
    Row(triplet_margin_loss, TRIPLET, triplet, {"p": 3, "margin": 4.0}, "triplet_margin_loss cubic", tolerance=2),
    Row(triplet_margin_with_distance_loss, TRIPLET, triplet, {"margin": 3.0}, tolerance=2),
    Row(lambda a, p, n: triplet_margin_with_distance_loss(a, p, n, distance_function=squared_of_tensors, margin=20.0), TRIPLET,
        lambda a, p, n: triplet(a, p, n, 20.0, distance=squared), name="triplet_margin_with_distance_loss squared",
        tolerance=2),
]


def squared_of_tensors(a, b):
    return ((a - b) * (a - b)).sum(-1)
