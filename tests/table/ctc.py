"""Rows of ops/ctc.py. The reference adds up the probabilities of all alignments one by one."""

import itertools

import numpy as np

from minidl.tensor.ops.ctc import ctc_loss
from tests.table import Row, sample


def probability(log_probs, target, blank):
    """Of all paths that spell the target."""
    frames, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=frames):
        merged = [c for i, c in enumerate(path) if (i == 0 or path[i - 1] != c) and c != blank]
        if merged == list(target):
            total += np.exp(sum(log_probs[t, c] for t, c in enumerate(path)))
    return total


def reference(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean"):
    losses = []
    start = 0
    for n, (frames, count) in enumerate(zip(np.ravel(input_lengths), np.ravel(target_lengths))):
        x = log_probs if log_probs.ndim == 2 else log_probs[:, n]
        target = targets[n, :count] if targets.ndim == 2 else targets[start:start + count]
        start += count
        losses.append(-np.log(probability(x[:frames], target, blank)))
    losses = np.array(losses)
    if reduction == "mean":
        return (losses / np.maximum(np.ravel(target_lengths), 1)).mean()
    return losses.sum() if reduction == "sum" else losses if log_probs.ndim == 3 else losses[0]


X = sample(4, 2, 3, low=-2, high=-0.2)
PADDED = np.array([[1, 1], [2, 0]])

ROWS = [
    Row(ctc_loss, (X, PADDED, np.array([4, 3]), np.array([2, 1])), reference, tolerance=4),
    Row(ctc_loss, (X, np.array([1, 0, 1]), (4, 4), (1, 2)), reference, {"reduction": "none", "blank": 2},
        "ctc_loss of targets one after the other", tolerance=4),
    Row(ctc_loss, (X[:, 0], np.array([2, 1]), np.array(4), np.array(2)), reference, {"reduction": "none"},
        "ctc_loss of one sequence", tolerance=4),
    Row(ctc_loss, (X, PADDED, (3, 2), (0, 1)), reference, {"reduction": "sum"}, "ctc_loss with an empty target", tolerance=4),
]
