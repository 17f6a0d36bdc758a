"""Rows of ops/dropout.py, with masks drawn from a generator of a fixed seed."""

import math

import numpy as np

from minidl.tensor.ops import dropout as ops
from minidl.tensor.random import Generator
from tests.table import Row, sample


def seeded(function, **attributes):
    return lambda x: function(x, training=True, generator=Generator().manual_seed(3), **attributes)


def kept(shape, p):
    return Generator().manual_seed(3).uniform(shape, np.dtype(np.float32)) >= p


def plain(mask_shape, p):
    return lambda x: x * kept(mask_shape, p) / (1 - p)


def alpha(mask_shape, p):
    floor = -1.7580993408473766
    a = 1 / math.sqrt((1 - p) * (1 + p * floor ** 2))
    return lambda x: a * np.where(kept(mask_shape, p), x, floor) - a * p * floor


ROWS = [
    Row(seeded(ops.dropout, p=0.3), (sample(4, 5),), plain((4, 5), 0.3), name="dropout"),
    Row(seeded(ops.dropout, p=1), (sample(4, 5),), lambda x: x * 0, name="dropout of everything"),
    Row(seeded(ops.dropout1d), (sample(2, 3, 4),), plain((2, 3, 1), 0.5), name="dropout1d"),
    Row(seeded(ops.dropout1d), (sample(3, 4),), plain((3, 1), 0.5), name="dropout1d of one sample"),
    Row(seeded(ops.dropout2d), (sample(2, 3, 2, 2),), plain((2, 3, 1, 1), 0.5), name="dropout2d"),
    Row(seeded(ops.dropout3d), (sample(2, 3, 1, 2, 2),), plain((2, 3, 1, 1, 1), 0.5), name="dropout3d"),
    Row(seeded(ops.dropout3d), (sample(3, 1, 2, 2),), plain((3, 1, 1, 1), 0.5), name="dropout3d of one sample"),
    Row(seeded(ops.alpha_dropout, p=0.3), (sample(4, 5),), alpha((4, 5), 0.3), name="alpha_dropout"),
    Row(seeded(ops.feature_alpha_dropout, p=0.3), (sample(4, 3, 2),), alpha((4, 3, 1), 0.3), name="feature_alpha_dropout"),
]
