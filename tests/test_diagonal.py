"""Diagonals and triangles: shared memory, empty diagonals, non-finite values, errors."""

import numpy as np
import pytest

import minidl


def test_a_diagonal_can_be_written_in_place():
    x = minidl.zeros(3, 4)
    x.diagonal(1).add_(2.0)
    assert x.numpy().tolist() == [[0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2]]


@pytest.mark.parametrize("offset, length", [(3, 0), (7, 0), (-2, 0), (2, 1)])
def test_diagonals_outside_are_empty(offset, length):
    assert minidl.ones(2, 3).diagonal(offset).shape == (length,)
    assert minidl.zeros(0, 3).diagonal(offset).shape == (0,)
    assert minidl.zeros(0).diag_embed(offset).shape == (abs(offset),) * 2


def test_triangles_drop_what_is_not_finite():
    x = minidl.full((2, 2), float("nan"), requires_grad=True)
    y = x.tril(-2)
    y.backward(minidl.full((2, 2), float("inf")))
    assert not y.numpy().any() and not x.grad.numpy().any()
    assert minidl.ones(2, 2, dtype=minidl.bool).triu(1).numpy().tolist() == [[False, True], [False, False]]


def test_triangles_in_place():
    x = minidl.ones(2, 2)
    assert x.triu_() is x and x.numpy().tolist() == [[1, 1], [0, 1]]
    assert x.tril_(-1).numpy().tolist() == [[0, 0], [0, 0]]


def test_indices_of_triangles():
    found = minidl.tril_indices(2, 3, 1, dtype=minidl.int32)
    assert found.dtype == minidl.int32
    np.testing.assert_array_equal(found.numpy(), [[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]])
    assert minidl.triu_indices(0, 3).shape == (2, 0)


@pytest.mark.parametrize("call, error", [
    (lambda: minidl.ones(3).diagonal(), IndexError),
    (lambda: minidl.ones(3, 3).diagonal(0, 1, -1), RuntimeError),
    (lambda: minidl.ones(3).diag_embed(0, 0, 0), RuntimeError),
    (lambda: minidl.ones(3).diag_embed(0, 0, 3), IndexError),
    (lambda: minidl.tensor(1.0).diag_embed(), IndexError),
    (lambda: minidl.ones(1, 1, 1).diag(), RuntimeError),
    (lambda: minidl.tensor(1.0).diag(), RuntimeError),
    (lambda: minidl.ones(3).tril(), RuntimeError),
    (lambda: minidl.tril_indices(-1, 2), RuntimeError),
    (lambda: minidl.triu_indices(2, 2, dtype=minidl.float32), NotImplementedError),
])
def test_errors(call, error):
    with pytest.raises(error):
        call()
