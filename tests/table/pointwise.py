"""Rows of ops/pointwise.py and trigonometry.py."""

import math

import numpy as np

import minidl
from tests.table import Row, sample

A, B = sample(3, 4), sample(4, seed=1)
POSITIVE = sample(3, 4, low=0.1, high=3)
UNIT = sample(3, 4, low=-0.9, high=0.9)
SHARE = sample(3, 4, low=0.1, high=0.9)
ABOVE_ONE = sample(5, low=1.2, high=4)
erf = np.vectorize(math.erf)


def erfinv(y):
    """Newton's method."""
    x = np.zeros_like(y)
    for _ in range(60):
        x = x - (erf(x) - y) / (2 / math.sqrt(math.pi) * np.exp(-x * x))
    return x


def logit(x, eps):
    x = np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))


ROWS = [
    Row(minidl.exp, (A,), np.exp),
    Row(minidl.exp2, (A,), np.exp2),
    Row(minidl.expm1, (A,), np.expm1),
    Row(minidl.log, (POSITIVE,), np.log),
    Row(minidl.log2, (POSITIVE,), np.log2),
    Row(minidl.log10, (POSITIVE,), np.log10),
    Row(minidl.log1p, (UNIT,), np.log1p),
    Row(minidl.logaddexp, (A, B), np.logaddexp),
    Row(minidl.logaddexp2, (A, B), np.logaddexp2),
    Row(minidl.xlogy, (A, POSITIVE), lambda x, y: x * np.log(y)),
    Row(minidl.xlogy, (A, 2.5), lambda x, y: x * np.log(y), name="xlogy number"),
    Row(minidl.xlogy, (2.5, POSITIVE), lambda x, y: x * np.log(y), name="xlogy of number"),
    Row(minidl.sqrt, (POSITIVE,), np.sqrt),
    Row(minidl.rsqrt, (POSITIVE,), lambda x: 1 / np.sqrt(x)),
    Row(minidl.square, (A,), np.square),
    Row(minidl.pow, (POSITIVE, B), np.power),
    Row(minidl.pow, (A, 3), np.power, name="pow 3"),
    Row(minidl.pow, (POSITIVE, -1.5), np.power, name="pow fraction"),
    Row(minidl.pow, (A, 0), np.power, name="pow 0"),
    Row(minidl.pow, (1.5, A), np.power, name="pow of number"),
    Row(minidl.pow, (0, POSITIVE), np.power, name="pow of 0"),
    Row(minidl.pow, (np.array([2, -3, 1]), np.array([3, 2, 0])), np.power, name="pow of integers"),
    Row(minidl.float_power, (POSITIVE, 2), lambda x, p: x ** p, same_dtype=False),
    Row(minidl.sigmoid, (A,), lambda x: 1 / (1 + np.exp(-x))),
    Row(minidl.logit, (SHARE,), lambda x: np.log(x / (1 - x))),
    Row(minidl.logit, (SHARE,), logit, {"eps": 0.25}, "logit eps"),
    Row(minidl.erf, (A,), erf),
    Row(minidl.erfc, (A,), np.vectorize(math.erfc)),
    Row(minidl.erfinv, (UNIT,), erfinv),
    Row(minidl.ceil, (A,), np.ceil),
    Row(minidl.floor, (A,), np.floor),
    Row(minidl.trunc, (A,), np.trunc),
    Row(minidl.round, (A,), np.round, half=False),
    Row(minidl.round, (A,), lambda x, decimals: np.round(x, decimals), {"decimals": 1}, "round decimals", half=False),
    Row(minidl.round, (A * 20,), lambda x, decimals: np.round(x, decimals), {"decimals": -1}, "round tens", half=False),
    Row(minidl.frac, (A,), lambda x: x - np.trunc(x)),
    Row(minidl.clamp, (A, -1.1, 0.7), np.clip, half=False),
    Row(minidl.clamp, (A, B, B + 0.8), np.clip, name="clamp tensors", half=False),
    Row(minidl.clamp, (A, None, B), lambda x, low, high: np.minimum(x, high), name="clamp above"),
    Row(minidl.clamp_min, (A, 0.3), np.maximum),
    Row(minidl.clamp_max, (A, 0.3), np.minimum),
    Row(minidl.nan_to_num, (A,), lambda x: x),
    Row(minidl.sin, (A,), np.sin),
    Row(minidl.cos, (A,), np.cos),
    Row(minidl.tan, (UNIT,), np.tan),
    Row(minidl.asin, (UNIT,), np.arcsin),
    Row(minidl.acos, (UNIT,), np.arccos),
    Row(minidl.atan, (A,), np.arctan),
    Row(minidl.atan2, (A, B), np.arctan2),
    Row(minidl.sinh, (A,), np.sinh),
    Row(minidl.cosh, (A,), np.cosh),
    Row(minidl.tanh, (A,), np.tanh),
    Row(minidl.asinh, (A,), np.arcsinh),
    Row(minidl.acosh, (ABOVE_ONE,), np.arccosh),
    Row(minidl.atanh, (UNIT,), np.arctanh),
    Row(minidl.sinc, (A,), np.sinc),
    Row(minidl.hypot, (A, B), np.hypot),
    Row(minidl.deg2rad, (A * 30,), np.deg2rad),
    Row(minidl.rad2deg, (A,), np.rad2deg),
]
