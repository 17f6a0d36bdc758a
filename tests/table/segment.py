"""Rows of ops/segment.py and ops/embedding.py."""

import numpy as np

from minidl.nn.functional import (
    embedding,
    embedding_bag,
    one_hot,
    segment_max,
    segment_mean,
    segment_min,
    segment_softmax,
    segment_sum,
)
from tests.table import Row, sample

VALUES = sample(5, 2)
INDEX = np.array([3, 0, 3, 1, 0])
TABLE = sample(4, 3)
PLACES = np.array([[1, 3], [0, 1]])
FLAT = np.array([1, 3, 0, 1, 2])
OFFSETS = np.array([0, 2, 2])


def by_segment(function):
    return lambda v, i, n: np.stack([function(v[i == s], 0) if (i == s).any() else np.zeros(v.shape[1:]) for s in range(n)])


def softmax(v, i):
    out = np.empty(v.shape)
    for s in i:
        e = np.exp(v[i == s])
        out[i == s] = e / e.sum(0)
    return out


def bags(function, starts, ends, skip=-1):
    """function of the rows of each bag, zeros for an empty one."""
    def reference(places, table, *rest, per_sample_weights=None, **options):
        places, factors = places.reshape(-1), 1 if per_sample_weights is None else per_sample_weights.reshape(-1, 1)
        rows = table[places] * factors
        return np.stack([function(rows[a:b][places[a:b] != skip], 0) if (places[a:b] != skip).any() else np.zeros(3)
                         for a, b in zip(starts, ends)])

    return reference


def weighted(places, table, factors):
    return embedding_bag(places, table, mode="sum", per_sample_weights=factors)


BY_ROW, BY_OFFSET = ([0, 2], [2, 4]), ([0, 2, 2], [2, 2, 5])

ROWS = [
    Row(segment_sum, (VALUES, INDEX, 5), by_segment(np.sum), tolerance=2),
    Row(segment_sum, (sample(4, 72, low=-1, high=1)[:, :72], np.array([1, 0, 1, 1]), 2), by_segment(np.sum),
        name="segment_sum of long rows", tolerance=3),
    Row(segment_mean, (VALUES, INDEX, 5), by_segment(np.mean), tolerance=2),
    Row(segment_max, (VALUES, INDEX, 5), by_segment(np.max)),
    Row(segment_min, (VALUES[:, 0], INDEX, 5), by_segment(np.min)),
    Row(segment_softmax, (VALUES, INDEX), softmax, tolerance=2),
    Row(embedding, (PLACES, TABLE), lambda i, w: w[i], tolerance=2),
    Row(embedding_bag, (PLACES, TABLE), bags(np.mean, *BY_ROW), tolerance=2),
    Row(embedding_bag, (FLAT, TABLE, OFFSETS), bags(np.sum, *BY_OFFSET), {"mode": "sum"}, "embedding_bag sum", tolerance=4),
    Row(embedding_bag, (FLAT, TABLE, OFFSETS), bags(np.max, *BY_OFFSET), {"mode": "max"}, "embedding_bag max"),
    Row(embedding_bag, (FLAT, TABLE, np.array([0, 2, 5])), bags(np.mean, [0, 2], [2, 5], 1),
        {"include_last_offset": True, "padding_idx": 1}, "embedding_bag padding_idx, include_last_offset", tolerance=2),
    Row(weighted, (PLACES, TABLE, sample(2, 2, seed=1)), lambda i, w, f: bags(np.sum, *BY_ROW)(i, w, per_sample_weights=f),
        name="embedding_bag weights", tolerance=4),
    Row(one_hot, (PLACES, 5), lambda i, n: np.eye(n)[i].astype(np.int64)),
]
