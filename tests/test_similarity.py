"""Special cases of ops/similarity.py: zero vectors, zero distances, halves, broadcasting, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl import tensor
from minidl.tensor.ops.similarity import cosine_similarity, normalize, pairwise_distance, pdist

ZERO = np.array([[0.0, 0.0], [3.0, 4.0]])


@pytest.mark.parametrize("dtype", [minidl.float64, minidl.float16], ids=str)
@pytest.mark.parametrize("function", [normalize, lambda x: cosine_similarity(x, minidl.ones_like(x))])
def test_a_zero_vector_stays_and_has_no_gradient(function, dtype):
    x = tensor(ZERO, dtype=dtype, requires_grad=True)
    y = function(x)
    np.testing.assert_array_equal(y.numpy()[0], 0)
    assert y.dtype == dtype
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy()[0], 0)
    assert np.isfinite(x.grad.numpy()).all()


def test_normalize_float16():
    x = tensor(np.array([[3e4, 4e4], [3e-4, 4e-4]], np.float16))
    np.testing.assert_allclose(normalize(x).numpy(), [[0.6, 0.8]] * 2, rtol=2e-3)


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, math.inf])
@pytest.mark.parametrize("function", [minidl.cdist, lambda x, y, p: pdist(minidl.cat((x, y)), p)])
def test_no_slope_at_distance_zero(function, p):
    x = tensor(np.ones((2, 3)), requires_grad=True)
    function(x, x.detach(), p).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 0)


def test_cdist_through_a_product_agrees():
    rng = np.random.default_rng(0)
    a, b = (tensor(rng.standard_normal(shape), requires_grad=True) for shape in ((2, 1, 30, 4), (3, 7, 4)))
    found = []
    for mode in ("use_mm_for_euclid_dist_if_necessary", "donot_use_mm_for_euclid_dist"):
        y = minidl.cdist(a, b, compute_mode=mode)
        found.append([y.numpy(), *(g.numpy() for g in minidl.autograd.grad(y.sum(), (a, b)))])
    assert found[0][0].shape == (2, 3, 30, 7)
    for product, direct in zip(*found):
        np.testing.assert_allclose(product, direct, rtol=1e-9)


@pytest.mark.parametrize(("a", "b", "shape"), [
    ((0, 4), (5, 4), (0, 5)), ((3, 0), (2, 0), (3, 2)), ((2, 3, 4), (5, 4), (2, 3, 5))])
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, math.inf])
def test_shapes_of_cdist(a, b, shape, p):
    assert minidl.cdist(tensor(np.ones(a)), tensor(np.ones(b)), p).shape == shape


def test_shapes_of_pairs():
    assert pdist(tensor(np.ones((1, 3)))).shape == (0,)
    assert pdist(tensor(np.ones((4, 0))), math.inf).shape == (6,)
    assert pairwise_distance(tensor(np.ones((3, 4))), tensor(np.ones(4)), keepdim=True).shape == (3, 1)
    assert pairwise_distance(tensor(np.ones(4)), tensor(np.ones(4))).shape == ()


@pytest.mark.parametrize(("call", "error"), [
    (lambda: minidl.cdist(tensor(np.ones((2, 3))), tensor(np.ones((2, 4)))), RuntimeError),
    (lambda: minidl.cdist(tensor(np.ones(3)), tensor(np.ones((2, 3)))), RuntimeError),
    (lambda: minidl.cdist(tensor(ZERO), tensor(ZERO), -1), RuntimeError),
    (lambda: minidl.cdist(tensor(ZERO), tensor(ZERO), compute_mode="fast"), ValueError),
    (lambda: minidl.cdist(tensor([[1]]), tensor([[1]])), RuntimeError),
    (lambda: pdist(tensor([1.0])), RuntimeError), (lambda: pdist(tensor(ZERO), -1), RuntimeError),
    (lambda: cosine_similarity(tensor([[1]]), tensor([[1]])), RuntimeError)])
def test_errors(call, error):
    with pytest.raises(error, match="expected"):
        call()


def test_a_p_of_normalize_is_a_number():
    with pytest.raises(TypeError, match="normalize expected a number as p, got None"):
        normalize(tensor(ZERO), None)


def test_a_zero_d_operand_counts_for_the_dtype():
    one, halves = tensor(1.0), minidl.ones(2, 3, dtype=minidl.float16)
    for y in (cosine_similarity(one, halves), cosine_similarity(halves, one)):
        assert y.dtype == minidl.float32
        np.testing.assert_allclose(y.numpy(), 1, rtol=1e-6)
