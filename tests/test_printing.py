"""Tensors as text. The layouts are those that PyTorch prints."""

from __future__ import annotations

import numpy as np
import pytest

import minidl


def tensor(*args, **kwargs):
    return minidl.tensor(*args, **kwargs)


@pytest.mark.parametrize("made, text", [
    (tensor(3.14159), "tensor(3.1416)"),
    (tensor([1.0, 2.0]), "tensor([1., 2.])"),
    (tensor([1.5, 2.0]), "tensor([1.5000, 2.0000])"),
    (tensor([1e-8, 1.0]), "tensor([1.0000e-08, 1.0000e+00])"),
    (tensor([float("nan"), 1.0, -float("inf")]), "tensor([nan, 1., -inf])"),
    (tensor([-1, 10, -100]), "tensor([  -1,   10, -100])"),
    (tensor([True, False]), "tensor([ True, False])"),
    (tensor([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])"),
    (tensor([]), "tensor([])"),
    (minidl.zeros(0, 3), "tensor([], size=(0, 3))"),
    (tensor([], dtype=minidl.int64), "tensor([], dtype=minidl.int64)"),
    (tensor([1.0], dtype=minidl.float64), "tensor([1.], dtype=minidl.float64)"),
    (tensor([1.0], dtype=minidl.bfloat16), "tensor([1.], dtype=minidl.bfloat16)"),
    (tensor(7, dtype=minidl.int32), "tensor(7, dtype=minidl.int32)"),
    (tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
    (tensor([1.0], requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward>)"),
    (tensor(np.zeros((1, 1, 2))), "tensor([[[0., 0.]]], dtype=minidl.float64)"),
    (tensor(np.zeros((2, 1, 1), np.float32)), "tensor([[[0.]],\n\n        [[0.]]])"),
    (tensor(np.arange(2000)), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    (tensor(np.zeros((1001, 2), np.float32)),
     "tensor([[0., 0.],\n        [0., 0.],\n        [0., 0.],\n        ...,\n        [0., 0.],\n        [0., 0.],\n"
     "        [0., 0.]])"),
])
def test_repr(made, text):
    assert repr(made) == str(made) == text


def test_long_lines_are_broken():
    text = repr(tensor(np.arange(26.0), requires_grad=True))
    assert max(map(len, text.splitlines())) <= 80
    assert text.endswith(",\n       dtype=minidl.float64, requires_grad=True)")


def test_format():
    assert f"{tensor(1.5):.3f}" == "1.500" and f"{tensor(2):4d}" == "   2" and f"{tensor(1.5)}" == "1.5"
    assert f"{tensor([1, 2])}" == "tensor([1, 2])"
    with pytest.raises(TypeError):
        f"{tensor([1.0]):.2f}"
