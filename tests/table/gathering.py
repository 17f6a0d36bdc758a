"""Rows of ops/gathering.py."""

import numpy as np

import minidl
from tests.table import Row, sample

X = sample(3, 4)
SRC = sample(4, 3, seed=1)
DISTINCT = np.array([[2, 0], [1, 2], [0, 1]])             # along axis 0
REPEATED = np.array([[0, 2, 2], [0, 1, 2], [0, 0, 2], [0, 1, 2]])
VECTOR = np.array([2, 0, 2])
EXPANDED = np.broadcast_to(np.array([[2], [0], [2]]), (3, 4))
WITH_ZEROS = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, 1.25], [0.5, 3.0, 0.0], [0.75, 2.5, 2.25]])
REDUCTIONS = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}


def gathered(x, dim, index):
    return np.take_along_axis(x[tuple(slice(n) if i != dim else slice(None) for i, n in enumerate(index.shape))], index, dim)


def scattered(combine):
    """out[..., index[i, j], ...] = combine(out[...], src[i, j]), one after the other."""
    def reference(x, dim, index, src, *rest, **options):
        out = x.copy()
        for place in np.ndindex(index.shape):
            target = (*place[:dim], index[place], *place[dim + 1:])
            out[target] = combine(out[target], src[place] if np.ndim(src) else src)
        return out

    return reference


def reduced(x, dim, index, src, reduce, include_self=True):
    out = x.copy()
    for place in np.ndindex(x.shape):
        values = [src[p] for p in np.ndindex(index.shape) if (*p[:dim], index[p], *p[dim + 1:]) == place]
        if values:
            out[place] = REDUCTIONS[reduce]([x[place], *values] if include_self else values)
    return out


def sliced(combine):
    """As scattered, for slices along an axis."""
    def reference(x, dim, index, source, **options):
        out = np.moveaxis(x, dim, 0).copy()
        values = np.moveaxis(source, dim, 0) if np.ndim(source) else np.broadcast_to(source, (len(index), *out.shape[1:]))
        for place, value in zip(index, values):
            out[place] = combine(out[place], value * options.get("alpha", 1))
        return np.moveaxis(out, 0, dim)

    return reference


def put(x, index, source, accumulate=False):
    out = x.copy()
    if accumulate:
        np.add.at(out.reshape(-1), index, source)
    else:
        out.reshape(-1)[index] = source
    return out


def method(name):
    return lambda x, *args: getattr(x, name)(*args)


last, total, product = lambda a, b: b, lambda a, b: a + b, lambda a, b: a * b

ROWS = [
    Row(minidl.gather, (X, 0, DISTINCT), gathered),
    Row(minidl.gather, (X, 1, np.array([[3, 3, 0, 1, 3]])), gathered, name="gather repeated", tolerance=2),
    Row(lambda x, dim, index: minidl.gather(x, dim, index[:, :1].expand(3, 4)), (X, 0, EXPANDED), gathered,
        name="gather of an expanded index", tolerance=2),
    Row(minidl.gather, (np.array(0.5), 0, np.array([0, 0])), lambda x, dim, index: x[None][index], name="gather 0-d"),
    Row(minidl.scatter, (X, 0, DISTINCT, SRC), scattered(last)),
    Row(minidl.scatter, (X, 1, np.array([[1, 1, 0], [2, 1, 1]]), SRC), scattered(last), name="scatter repeated"),
    Row(minidl.scatter, (X, 0, DISTINCT, 0.5), scattered(last), name="scatter a number"),
    Row(minidl.scatter, (X, 0, REPEATED[:, :3], SRC), scattered(total), {"reduce": "add"}, "scatter add", tolerance=2),
    Row(minidl.scatter, (X, 0, REPEATED, SRC), scattered(product), {"reduce": "multiply"}, "scatter multiply", tolerance=4),
    Row(minidl.scatter_add, (X, 0, REPEATED, SRC), scattered(total), tolerance=2),
    Row(lambda x, dim, index, src: minidl.scatter_add(x, dim, index[:, :1].expand(3, 4), src),
        (X, 0, EXPANDED, sample(3, 4, seed=2)), scattered(total), name="scatter_add of an expanded index", tolerance=2),
    Row(minidl.scatter_add, (np.array(0.5), 0, np.array(0), np.array(2.0)), lambda x, dim, index, src: x + src,
        name="scatter_add 0-d"),
    *[Row(minidl.scatter_reduce, (X, 0, REPEATED, SRC, reduce), reduced, {"include_self": include_self},
          f"scatter_reduce {reduce}{'' if include_self else ' without self'}", tolerance=4)
      for reduce in REDUCTIONS for include_self in (True, False)],
    Row(minidl.scatter_reduce, (X, 0, REPEATED, WITH_ZEROS, "prod"), reduced, name="scatter_reduce prod with zeros",
        tolerance=4, gradgrad=False),
    Row(minidl.index_select, (X, 1, VECTOR), lambda x, dim, i: x[:, i], tolerance=2),
    Row(minidl.index_select, (np.array(0.5), 0, np.array([0])), lambda x, dim, i: x, name="index_select 0-d"),
    Row(minidl.index_add, (X, 1, VECTOR, sample(3, 3, seed=1)), sliced(total), tolerance=2),
    Row(minidl.index_add, (X, 0, VECTOR, sample(3, 4, seed=1)), sliced(total), {"alpha": -0.5}, "index_add alpha", tolerance=2),
    Row(minidl.index_copy, (X, 0, np.array([2, 0]), sample(2, 4, seed=1)), sliced(last)),
    Row(minidl.index_copy, (X, -1, VECTOR, sample(3, 3, seed=1)), sliced(last), name="index_copy repeated"),
    Row(minidl.index_fill, (X, 1, np.array([0, -1]), 0.5), sliced(last)),
    Row(minidl.index_fill, (X, 0, VECTOR, np.array(0.5)), sliced(last), name="index_fill 0-d tensor"),
    Row(minidl.take, (X, np.array([[11, -1], [3, 3]])), lambda x, i: x.reshape(-1)[i], tolerance=2),
    Row(method("put"), (X, np.array([[5, -1]]), sample(1, 2, seed=1)), put, name="put"),
    Row(method("put"), (X, np.array([5, 5]), sample(2, seed=1), True), put, name="put accumulate"),
    Row(minidl.take_along_dim, (X, np.array([[0], [-1], [1]]), 1), lambda x, i, dim: np.take_along_axis(x, i, dim)),
    Row(minidl.take_along_dim, (sample(1, 4), np.array([[0, 1], [3, 3]]), 1),
        lambda x, i, dim: np.take_along_axis(np.broadcast_to(x, (2, 4)), i, dim), name="take_along_dim broadcast", tolerance=2),
    Row(minidl.take_along_dim, (X, np.array([[7], [2]])), lambda x, i: x.reshape(-1)[i.reshape(-1)],
        name="take_along_dim flattened"),
]
