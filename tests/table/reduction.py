"""Rows of ops/reduction.py."""

import numpy as np

import minidl
from tests.table import Row, sample

X = sample(2, 3, 4)
HOLES = sample(3, 4)
HOLES[0, 1] = HOLES[2, 2] = HOLES[2, 0] = np.nan
ZEROS = sample(3, 4, seed=3)
ZEROS[0, 1] = ZEROS[1, 0] = ZEROS[1, 3] = 0


def over(function):
    """A NumPy reduction with PyTorch's argument names."""
    return lambda x, dim=None, keepdim=False: function(x, axis=tuple(dim) if isinstance(dim, list) else dim, keepdims=keepdim)


def variance(x, dim=None, correction=1, keepdim=False):
    return x.var(axis=dim, ddof=correction, keepdims=keepdim)


def deviation(x, dim=None, correction=1, keepdim=False):
    return x.std(axis=dim, ddof=correction, keepdims=keepdim)


def logsumexp(x, dim, keepdim=False):
    return np.log(np.exp(x).sum(dim, keepdims=keepdim))


ROWS = [
    Row(minidl.sum, (X,), over(np.sum)),
    Row(minidl.sum, (X,), over(np.sum), {"dim": (0, -1), "keepdim": True}, "sum dims keepdim"),
    Row(minidl.sum, (sample(),), over(np.sum), {"dim": 0}, "sum 0-d"),
    Row(minidl.sum, (np.arange(6).reshape(2, 3),), over(np.sum), {"dim": 1}, "sum int"),
    Row(minidl.mean, (X,), over(np.mean)),
    Row(minidl.mean, (X,), over(np.mean), {"dim": [1, 2]}, "mean dims"),
    Row(minidl.nansum, (HOLES,), over(np.nansum), {"dim": 1}, grad=False),
    Row(minidl.nanmean, (HOLES,), over(np.nanmean), {"dim": 1, "keepdim": True}, grad=False),
    Row(minidl.nansum, (X,), over(np.nansum), {"dim": 1}, "nansum without nan"),
    Row(minidl.nanmean, (X,), over(np.nanmean), {"dim": 1}, "nanmean without nan"),
    Row(minidl.prod, (sample(2, 4),), over(np.prod)),
    Row(minidl.prod, (ZEROS,), over(np.prod), {"dim": 1, "keepdim": True}, "prod zeros"),
    Row(minidl.var, (X,), variance),
    Row(minidl.var, (X,), variance, {"dim": (0, 2), "correction": 0, "keepdim": True}, "var dims"),
    Row(minidl.std, (X,), deviation, {"dim": 1}),
    Row(minidl.std, (X,), deviation, {"correction": 2}, "std correction"),
    Row(minidl.var_mean, (X,), lambda x, dim: (variance(x, dim), x.mean(dim)), {"dim": 2}),
    Row(minidl.std_mean, (X,), lambda x, dim: (deviation(x, dim), x.mean(dim)), {"dim": (0, 1)}),
    Row(minidl.logsumexp, (X,), logsumexp, {"dim": 1}),
    Row(minidl.logsumexp, (X,), logsumexp, {"dim": (0, -1), "keepdim": True}, "logsumexp dims"),
    Row(minidl.all, (X > -1,), over(np.all), {"dim": 1}),
    Row(minidl.any, (X > 1,), over(np.any), {"dim": (0, 1), "keepdim": True}),
    Row(minidl.count_nonzero, (ZEROS,), lambda x, dim: np.count_nonzero(x, axis=dim), {"dim": 1}, grad=False),
]
