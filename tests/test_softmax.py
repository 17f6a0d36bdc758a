"""Special cases of ops/softmax.py: masked rows, large values, 0-d and empty tensors, samples."""

import math

import numpy as np
import pytest

import minidl
from minidl import tensor
from minidl.tensor.ops.softmax import gumbel_softmax, softmin
from minidl.tensor.random import Generator

INF = math.inf


@pytest.mark.parametrize("dtype", [minidl.float64, minidl.float16], ids=str)
def test_a_masked_row_gives_zeros_and_no_gradient(dtype):
    x = tensor([[-INF, -INF], [-INF, 1.0]], dtype=dtype, requires_grad=True)
    y = minidl.softmax(x, 1)
    np.testing.assert_array_equal(y.numpy(), [[0, 0], [0, 1]])
    (y * tensor([1.0, 2.0], dtype=dtype)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 0)


def test_log_softmax_of_a_masked_row():
    x = tensor([[-INF, -INF], [-INF, 1.0]], requires_grad=True)
    y = minidl.log_softmax(x, 1)
    np.testing.assert_array_equal(y.numpy(), [[-INF, -INF], [-INF, 0]])
    y.backward(minidl.ones_like(y))
    assert np.isfinite(x.grad.numpy()).all()


@pytest.mark.parametrize("function", [minidl.softmax, minidl.log_softmax, softmin])
def test_large_values_and_edge_shapes(function):
    assert np.isfinite(function(tensor([6e4, -6e4], dtype=minidl.float16), 0).numpy()[0 if function is not softmin else 1])
    assert function(tensor(1.0), 0).shape == ()
    assert function(tensor(np.zeros((2, 0))), 1).shape == (2, 0)
    assert function(tensor([1, 2]), 0, dtype=minidl.float64).dtype == minidl.float64
    with pytest.raises(IndexError):
        function(tensor([1.0]), 1)


def test_integers_need_a_dtype():
    with pytest.raises(NotImplementedError, match="dtype="):
        minidl.softmax(tensor([1, 2]), 0)


def test_gumbel_softmax():
    logits = tensor(np.tile(np.log([0.5, 0.25, 0.25]), (4000, 1)), requires_grad=True)
    generator = Generator().manual_seed(1)
    soft = gumbel_softmax(logits, tau=0.5, generator=generator)
    np.testing.assert_allclose(soft.numpy().sum(1), 1)
    hard = gumbel_softmax(logits, hard=True, generator=generator)
    np.testing.assert_array_equal(np.sort(hard.numpy(), 1), np.tile([0.0, 0, 1], (4000, 1)))
    np.testing.assert_allclose(hard.numpy().mean(0), [0.5, 0.25, 0.25], atol=0.03)
    (hard * tensor([1.0, 2, 3])).sum().backward()
    assert np.abs(logits.grad.numpy()).max() > 0


@pytest.mark.parametrize("dtype", [minidl.float64, minidl.float16], ids=str)
def test_log_softmax_of_a_masked_row_has_no_gradient(dtype):
    x = tensor([[-INF, -INF], [-INF, 1.0], [0.0, 0.0]], dtype=dtype, requires_grad=True)
    y = minidl.log_softmax(x, 1)
    (g,) = minidl.autograd.grad(y, x, tensor([[1.0, 3.0]] * 3, dtype=dtype), create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [[0, 0], [1, -1], [-1, 1]], rtol=1e-3)
    g[:, 0].sum().backward()
    np.testing.assert_array_equal(x.grad.numpy()[:2], 0)


@pytest.mark.parametrize("function", [minidl.softmax, minidl.log_softmax, softmin])
def test_an_axis_is_looked_for_before_the_dtype(function):
    with pytest.raises(IndexError, match="dim"):
        function(tensor([1, 2]), 5)
