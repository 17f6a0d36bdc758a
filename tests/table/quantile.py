"""Rows of ops/quantile.py."""

import numpy as np

import minidl
from tests.table import Row, sample

X = sample(2, 3, 4)
HOLES = sample(3, 5)
HOLES[0, 1] = HOLES[2, 2] = HOLES[2, 0] = np.nan


def lower_median(x, dim=None, keepdim=False):
    if dim is None:
        return np.sort(x, None)[(x.size - 1) // 2]
    index = np.take(np.argsort(x, dim), [(x.shape[dim] - 1) // 2], dim)
    values = np.take_along_axis(x, index, dim)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


def quantile(x, q, dim=None, keepdim=False, interpolation="linear"):
    return np.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)


def nanquantile(x, q, dim=None, keepdim=False, interpolation="linear"):
    return np.nanquantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)


ROWS = [
    Row(minidl.median, (X,), lower_median),
    Row(minidl.median, (X,), lower_median, {"dim": 1, "keepdim": True}, "median dim"),
    Row(minidl.nanmedian, (sample(7),), lower_median),
    Row(minidl.nanmedian, (HOLES,), lambda x, dim: (np.array([np.sort(r)[(np.isfinite(r).sum() - 1) // 2] for r in x]),
                                                   np.array([np.argsort(r)[(np.isfinite(r).sum() - 1) // 2] for r in x])),
        {"dim": 1}, "nanmedian dim", grad=False),
    Row(minidl.mode, (np.array([[1, 3, 3, 2, 1], [4, 4, 0, 0, 0]]),), lambda x: (np.array([1, 0]), np.array([4, 4]))),
    Row(minidl.mode, (X,), lambda x, dim: (x.min(dim), x.argmin(dim)), {"dim": 1}, "mode of different"),
    Row(minidl.quantile, (X,), quantile, {"q": 0.3}, half=False),
    *[Row(minidl.quantile, (X,), quantile, {"q": 0.4, "dim": 1, "keepdim": True, "interpolation": way}, f"quantile {way}",
          half=False) for way in ("linear", "lower", "higher", "midpoint", "nearest")],
    Row(lambda x: minidl.quantile(x, minidl.tensor([0.1, 0.5, 0.9], x.dtype), dim=2), (X,),
        lambda x: np.quantile(x, [0.1, 0.5, 0.9], axis=2), name="quantile several", half=False),
    Row(minidl.quantile, (X, np.array([0.1, 0.5, 0.9])), quantile, {"dim": 2}, "quantile input and q", half=False),
    Row(minidl.nanquantile, (HOLES,), nanquantile, {"q": 0.6, "dim": 1}, half=False, grad=False),
]
