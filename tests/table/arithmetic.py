"""Rows of ops/arithmetic.py, bitwise.py and the second names of aliases.py."""

import numpy as np

import minidl
from tests.table import Row, sample

A, B, C = sample(3, 4), sample(4, seed=1), sample(3, 1, low=0.5, high=3, seed=2)
INTEGERS = np.array([[3, -5, 7], [-8, 1, 6]])
SHIFTS = np.array([0, 1, 2])


def _trunc_div(a, b, rounding_mode=None):
    return np.trunc(a / b)


ROWS = [
    Row(minidl.add, (A, B), np.add),
    Row(minidl.add, (A, B), lambda a, b, alpha: a + alpha * b, {"alpha": -0.5}, "add alpha"),
    Row(minidl.add, (A, 3), np.add, name="add number"),
    Row(minidl.mul, (A, B), np.multiply),
    Row(minidl.mul, (A, -0.75), np.multiply, name="mul number"),
    Row(minidl.sub, (sample(2, 1, 3), sample(4, 1, seed=1)), lambda a, b, alpha: a - alpha * b, {"alpha": 3},
        "sub alpha"),
    Row(minidl.sub, (2, A), np.subtract, name="sub from number"),
    Row(minidl.sub, (A, B), np.subtract, name="sub"),
    Row(minidl.rsub, (A, B), lambda a, b, alpha: b - alpha * a, {"alpha": 2}),
    Row(minidl.neg, (A,), np.negative),
    Row(minidl.abs, (A,), np.abs),
    Row(minidl.sign, (A,), np.sign),
    Row(minidl.sgn, (A,), np.sign),
    Row(minidl.reciprocal, (C,), np.reciprocal),
    Row(minidl.div, (A, C), np.divide),
    Row(minidl.div, (A, 3), np.divide, name="div number"),
    Row(minidl.div, (A, C), _trunc_div, {"rounding_mode": "trunc"}, "div trunc"),
    Row(minidl.div, (A, C), lambda a, b, rounding_mode: np.floor(a / b), {"rounding_mode": "floor"}, "div floor"),
    Row(minidl.div, (INTEGERS, np.array([2, 3, -4])), _trunc_div, {"rounding_mode": "trunc"}, "div trunc of integers"),
    Row(lambda a, b: a / b, (2.0, C), np.divide, name="number / tensor"),
    Row(minidl.floor_divide, (A, C), np.floor_divide),
    Row(minidl.remainder, (A, C), np.remainder),
    Row(minidl.remainder, (A, -0.7), np.remainder, name="remainder number", half=False),
    Row(minidl.fmod, (A, C), np.fmod),
    Row(minidl.addcmul, (A, B, C), lambda x, a, b, value: x + value * a * b, {"value": 0.5}),
    Row(minidl.addcdiv, (A, B, C), lambda x, a, b, value: x + value * a / b, {"value": 0.5}),
    Row(minidl.lerp, (A, B, 0.25), lambda a, b, w: a + w * (b - a), name="lerp number below a half"),
    Row(minidl.lerp, (A, B, 0.75), lambda a, b, w: a + w * (b - a), name="lerp number above a half"),
    Row(minidl.lerp, (A, B, sample(3, 4, low=0, high=1, seed=3)), lambda a, b, w: a + w * (b - a)),
    Row(minidl.bitwise_and, (INTEGERS, SHIFTS), np.bitwise_and),
    Row(minidl.bitwise_and, (INTEGERS, 5), np.bitwise_and, name="bitwise_and number"),
    Row(minidl.bitwise_xor, (INTEGERS, 5), np.bitwise_xor, name="bitwise_xor number"),
    Row(minidl.bitwise_left_shift, (INTEGERS, 2), np.left_shift, name="bitwise_left_shift number"),
    Row(minidl.bitwise_right_shift, (INTEGERS, 1), np.right_shift, name="bitwise_right_shift number"),
    Row(minidl.div, (INTEGERS, 3), lambda a, b, rounding_mode: np.trunc(a / b).astype(a.dtype), {"rounding_mode": "trunc"},
        "div trunc of integers by a number"),
    Row(minidl.div, (INTEGERS, SHIFTS + 1), lambda a, b, rounding_mode: np.trunc(a / b).astype(a.dtype),
        {"rounding_mode": "trunc"}, "div trunc of integers"),
    Row(minidl.bitwise_or, (INTEGERS, 5), np.bitwise_or),
    Row(minidl.bitwise_xor, (INTEGERS, SHIFTS), np.bitwise_xor),
    Row(minidl.bitwise_not, (INTEGERS,), np.invert),
    Row(minidl.bitwise_left_shift, (INTEGERS, SHIFTS), np.left_shift),
    Row(minidl.bitwise_right_shift, (INTEGERS, SHIFTS), np.right_shift),
    Row(minidl.absolute, (A,), np.abs),
    Row(minidl.arccos, (A / 3,), np.arccos, tolerance=2),
    Row(minidl.arccosh, (C + 1,), np.arccosh),
    Row(minidl.arcsin, (A / 3,), np.arcsin),
    Row(minidl.arcsinh, (A,), np.arcsinh),
    Row(minidl.arctan, (A,), np.arctan),
    Row(minidl.arctan2, (A, C), np.arctan2),
    Row(minidl.arctanh, (A / 3,), np.arctanh),
    Row(minidl.clip, (A, -1.1, 0.7), np.clip, half=False),
    Row(minidl.divide, (A, C), lambda a, b, rounding_mode: np.floor(a / b), {"rounding_mode": "floor"}),
    Row(minidl.fix, (A,), np.trunc),
    Row(minidl.greater, (A, B), np.greater, grad=False),
    Row(minidl.greater_equal, (A, B), np.greater_equal, grad=False),
    Row(minidl.less, (A, B), np.less, grad=False),
    Row(minidl.less_equal, (A, B), np.less_equal, grad=False),
    Row(minidl.multiply, (A, B), np.multiply),
    Row(minidl.negative, (A,), np.negative),
    Row(minidl.not_equal, (A, B), np.not_equal, grad=False),
    Row(minidl.subtract, (A, B), lambda a, b, alpha: a - alpha * b, {"alpha": 2}),
    Row(minidl.true_divide, (A, C), np.divide),
]
