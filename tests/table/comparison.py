"""Rows of ops/comparison.py."""

import numpy as np

import minidl
from tests.table import Row, sample

A, B = sample(3, 4), sample(4, seed=1)
SOME = np.array([[True, False, True, True]])
MIXED = np.array([0, 3, -2, 0])

ROWS = [
    Row(minidl.eq, (MIXED, 0), np.equal),
    Row(minidl.ne, (MIXED, np.array([0, 0, -2, 1])), np.not_equal),
    Row(minidl.lt, (A, B), np.less, grad=False),
    Row(minidl.le, (A, 0.5), np.less_equal, grad=False),
    Row(minidl.gt, (A, B), np.greater, grad=False),
    Row(minidl.ge, (0.5, A), np.greater_equal, grad=False),
    Row(minidl.isclose, (A, A + 0.25), lambda a, b, atol, rtol: np.isclose(a, b, rtol, atol),
        {"atol": 0.1, "rtol": 0.2}, grad=False),
    Row(minidl.isnan, (A,), np.isnan, grad=False),
    Row(minidl.isfinite, (A,), np.isfinite, grad=False),
    Row(minidl.isinf, (A,), np.isinf, grad=False),
    Row(minidl.isposinf, (A,), np.isposinf, grad=False),
    Row(minidl.isneginf, (A,), np.isneginf, grad=False),
    Row(minidl.isreal, (A,), np.isreal, grad=False),
    Row(minidl.signbit, (A,), np.signbit, grad=False),
    Row(minidl.logical_and, (MIXED, SOME), np.logical_and),
    Row(minidl.logical_or, (A, MIXED), np.logical_or, grad=False),
    Row(minidl.logical_xor, (MIXED, SOME), np.logical_xor),
    Row(minidl.logical_not, (MIXED,), np.logical_not),
    Row(minidl.where, (SOME, A, B), np.where),
    Row(minidl.where, (SOME, A, 2), np.where, name="where number"),
    Row(minidl.where, (SOME,), np.nonzero, name="where alone"),
    Row(minidl.maximum, (A, B), np.maximum),
    Row(minidl.minimum, (A, B), np.minimum),
    Row(minidl.fmax, (A, B), np.fmax),
    Row(minidl.fmin, (A, B), np.fmin),
    Row(minidl.minimum, (A, 0.3), np.minimum, name="minimum number"),
    Row(minidl.fmax, (A, 0.3), np.fmax, name="fmax number"),
    Row(minidl.fmin, (A, 0.3), np.fmin, name="fmin number"),
    Row(minidl.copysign, (A, B), np.copysign),
    Row(minidl.copysign, (A, -1.0), np.copysign, name="copysign number"),
    Row(minidl.heaviside, (A, B), np.heaviside, grad=False),
]
