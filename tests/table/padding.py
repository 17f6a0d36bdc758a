"""Rows of ops/padding.py."""

import numpy as np

from minidl.tensor.ops.padding import channel_shuffle, pad, pixel_shuffle, pixel_unshuffle
from tests.table import Row, sample

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def reference(x, widths, mode="constant", value=0):
    pairs = [(0, 0)] * x.ndim
    for i in range(len(widths) // 2):
        pairs[-1 - i] = widths[2 * i], widths[2 * i + 1]
    grown = [(max(a, 0), max(b, 0)) for a, b in pairs]
    cut = tuple(slice(max(-a, 0), -max(-b, 0) or None) for a, b in pairs)
    if mode == "constant":
        return np.pad(x, grown, constant_values=value)[cut]
    if mode == "circular":
        return np.pad(x[cut], grown, mode="wrap")
    return np.pad(x, grown, mode=MODES[mode])[cut]


def shuffled(x, r):
    n, c, h, w = x.shape
    return x.reshape(n, c // r**2, r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // r**2, h * r, w * r)


def unshuffled(x, r):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4).reshape(n, c * r**2, h // r, w // r)


ROWS = [
    Row(pad, (sample(2, 3), (1, 2)), reference),
    Row(pad, (sample(2, 3), (1, -1, 0, 2), "constant", 1.5), reference, name="pad value"),
    Row(pad, (sample(2, 3), (-1, -1)), reference, name="pad negative"),
    *[Row(pad, (sample(2, 5), (2, 1), mode), reference, name=f"pad {mode} 1d", tolerance=2) for mode in MODES],
    *[Row(pad, (sample(1, 3, 4), (2, 1, 1, 2), mode), reference, name=f"pad {mode} 2d", tolerance=3) for mode in MODES],
    *[Row(pad, (sample(1, 2, 2, 3), (1, 0, 0, 1, 1, 1), mode), reference, name=f"pad {mode} 3d", tolerance=3)
      for mode in MODES],
    *[Row(pad, (sample(2, 4), (-1, 2), mode), reference, name=f"pad {mode} negative", tolerance=2) for mode in MODES],
    Row(pixel_shuffle, (sample(1, 8, 1, 2), 2), shuffled),
    Row(pixel_unshuffle, (sample(1, 1, 4, 6), 2), unshuffled),
    Row(channel_shuffle, (sample(1, 6, 2, 1), 3), lambda x, g: x.reshape(1, 3, 2, 2, 1).swapaxes(1, 2).reshape(x.shape)),
]
