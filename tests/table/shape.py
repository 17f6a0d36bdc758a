"""Rows of ops/shape.py, ops/flipping.py and the views of ops/splitting.py."""

import numpy as np

import minidl
from tests.table import Row, sample

X = sample(2, 3, 4)
M = sample(3, 4)


def windows(x, dimension, size, step):
    view = np.lib.stride_tricks.sliding_window_view(x, size, dimension)
    return view[(slice(None),) * dimension + (slice(None, None, step),)]


def method(name):
    def call(x, *args, **kwargs):
        return getattr(x, name)(*args, **kwargs)

    call.__name__ = name
    return call


ROWS = [
    Row(minidl.reshape, (M, (2, -1)), lambda x, s: x.reshape(s)),
    Row(minidl.reshape, (M[0], (4, 1)), lambda x, s: x.reshape(s), name="reshape vector"),
    Row(method("view_as"), (sample(4), sample(2, 2)), lambda x, y: x.reshape(2, 2), name="view_as"),
    Row(method("reshape_as"), (M, sample(12)), lambda x, y: x.reshape(12), name="reshape_as"),
    Row(minidl.flatten, (X,), lambda x, start_dim: x.reshape(2, 12), {"start_dim": 1}),
    Row(minidl.flatten, (np.array(0.5),), lambda x: x.reshape(1), name="flatten 0-d"),
    Row(minidl.ravel, (M,), np.ravel),
    Row(minidl.unflatten, (M, 1, (2, -1)), lambda x, dim, sizes: x.reshape(3, 2, 2)),
    Row(minidl.squeeze, (sample(1, 3, 1),), np.squeeze),
    Row(minidl.squeeze, (sample(1, 3, 1),), lambda x, dim: x[0], {"dim": (0, 1)}, "squeeze dims"),
    Row(minidl.unsqueeze, (M,), lambda x, dim: np.expand_dims(x, -2), {"dim": -2}),
    Row(minidl.atleast_1d, (np.array(0.5),), np.atleast_1d),
    Row(minidl.atleast_2d, (sample(3),), np.atleast_2d),
    Row(minidl.atleast_3d, (sample(3), M), np.atleast_3d),
    Row(minidl.permute, (X, (2, 0, -2)), lambda x, dims: np.transpose(x, (2, 0, 1))),
    Row(minidl.transpose, (X, 0, -1), np.swapaxes),
    Row(minidl.swapaxes, (X, 0, 1), np.swapaxes),
    Row(minidl.swapdims, (X, 0, 1), np.swapaxes, name="swapdims"),
    Row(minidl.t, (M,), np.transpose),
    Row(minidl.movedim, (X, (0, 1), (-1, 0)), np.moveaxis),
    Row(minidl.moveaxis, (X, 0, 2), np.moveaxis, name="moveaxis"),
    Row(method("expand"), (sample(3, 1), 2, -1, 4), lambda x, *s: np.broadcast_to(x, (2, 3, 4)), name="expand"),
    Row(method("expand"), (M, (3, 4)), lambda x, s: x, name="expand to the same"),
    Row(method("expand_as"), (sample(3, 1), M), lambda x, y: np.broadcast_to(x, (3, 4)), name="expand_as"),
    Row(minidl.broadcast_to, (sample(4), (2, 4)), np.broadcast_to),
    Row(minidl.broadcast_tensors, (sample(3, 1), sample(1, 4, seed=1)), lambda *a: tuple(np.broadcast_arrays(*a))),
    Row(method("sum_to_size"), (X, 3, 1), lambda x, *s: x.sum(axis=(0, 2)).reshape(3, 1), name="sum_to_size", tolerance=2),
    Row(minidl.clone, (M,), np.copy),
    Row(lambda x: x.t().contiguous(), (M,), np.transpose, name="contiguous"),
    Row(minidl.flip, (X, (0, 2)), np.flip),
    Row(minidl.fliplr, (M,), np.fliplr),
    Row(minidl.flipud, (M,), np.flipud),
    Row(minidl.roll, (X, (1, -2), (0, 2)), np.roll),
    Row(minidl.roll, (M, 5), np.roll, name="roll flattened"),
    *[Row(minidl.rot90, (M, k), np.rot90, name=f"rot90 {k}") for k in range(4)],
    Row(minidl.rot90, (X, -1, (2, 0)), np.rot90, name="rot90 dims"),
    Row(method("repeat"), (M, 2, 1, 3), lambda x, *r: np.tile(x, r), name="repeat", tolerance=2),
    Row(minidl.tile, (X, (2, 2)), np.tile, tolerance=2),
    Row(minidl.repeat_interleave, (M, 2), np.repeat),
    Row(minidl.repeat_interleave, (M, 2), lambda x, r, dim: np.repeat(x, r, dim), {"dim": 1}, "repeat_interleave dim"),
    Row(minidl.repeat_interleave, (M, np.array([2, 0, 3])), lambda x, r, dim: np.repeat(x, r, dim), {"dim": 0},
        "repeat_interleave counts", tolerance=2),
    Row(minidl.repeat_interleave, (np.array([2, 0, 3]),), lambda r: np.array([0, 0, 2, 2, 2]),
        name="repeat_interleave of counts"),
    Row(minidl.select, (X, 1, -1), lambda x, dim, i: x[:, i]),
    Row(minidl.narrow, (X, 2, 1, 2), lambda x, *a: x[:, :, 1:3]),
    Row(minidl.unbind, (X, 1), lambda x, dim: tuple(x[:, i] for i in range(3))),
    Row(minidl.split, (X, 2, -1), lambda x, size, dim: (x[..., :2], x[..., 2:])),
    Row(minidl.split, (X, [1, 3], 2), lambda x, sizes, dim: (x[..., :1], x[..., 1:]), name="split lengths"),
    Row(minidl.chunk, (sample(5, 2), 2), lambda x, n: (x[:3], x[3:])),
    Row(minidl.tensor_split, (sample(5, 2), 3), lambda x, n: tuple(np.array_split(x, n))),
    Row(minidl.tensor_split, (sample(5, 2), (1, -1)), lambda x, cuts: (x[:1], x[1:4], x[4:]), name="tensor_split at"),
    Row(minidl.hsplit, (M, 2), lambda x, n: tuple(np.hsplit(x, n))),
    Row(minidl.vsplit, (M, [1]), lambda x, n: tuple(np.vsplit(x, n))),
    Row(minidl.dsplit, (X, 2), lambda x, n: tuple(np.dsplit(x, n))),
    Row(method("unfold"), (sample(2, 7), 1, 3, 2), windows, name="unfold", tolerance=2),
    Row(method("unfold"), (sample(7, 2), 0, 5, 1), windows, name="unfold long windows", tolerance=2),
]
