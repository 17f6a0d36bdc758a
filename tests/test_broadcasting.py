"""Shapes from hypothesis: broadcasting, reductions over any axes, movements of axes, basic and advanced indexing."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minidl

settings.register_profile("minidl", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("minidl")

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)


def values(shape):
    count = int(np.prod(shape))
    return (np.arange(1, count + 1, dtype=np.float64) / 8).reshape(shape)


def leaf(shape):
    return minidl.tensor(values(shape), requires_grad=True)


def sum_to(array, shape):
    """The textbook form of undoing a broadcast, one axis after the other."""
    while array.ndim > len(shape):
        array = array.sum(0)
    for axis, n in enumerate(shape):
        if n == 1 and array.shape[axis] != 1:
            array = array.sum(axis, keepdims=True)
    return array


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=3))
def test_binary_functions_broadcast_like_numpy(case):
    a, b = map(leaf, case.input_shapes)
    y = a * b
    assert y.shape == case.result_shape
    np.testing.assert_array_equal(y.numpy(), a.numpy() * b.numpy())
    g = values(case.result_shape)
    y.backward(minidl.tensor(g))
    assert a.grad.shape == a.shape and b.grad.shape == b.shape
    np.testing.assert_allclose(a.grad.numpy(), sum_to(g * b.numpy(), a.shape), rtol=1e-12)
    np.testing.assert_allclose(b.grad.numpy(), sum_to(g * a.numpy(), b.shape), rtol=1e-12)


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, min_side=0, max_side=3))
def test_where_broadcasts_three(case):
    c, a, b = case.input_shapes
    condition = minidl.tensor(np.arange(int(np.prod(c))).reshape(c) % 2 == 0)
    a, b = leaf(a), leaf(b)
    y = minidl.where(condition, a, b)
    np.testing.assert_array_equal(y.numpy(), np.where(condition.numpy(), a.numpy(), b.numpy()))
    y.backward(minidl.ones_like(y))
    chosen = np.broadcast_to(condition.numpy(), y.shape).astype(float)
    np.testing.assert_allclose(a.grad.numpy(), sum_to(chosen, a.shape))
    np.testing.assert_allclose(b.grad.numpy(), sum_to(1 - chosen, b.shape))


@given(shapes, st.data(), st.booleans())
def test_sum_and_mean_over_any_axes(shape, data, keepdim):
    axes = data.draw(st.one_of(st.none(), st.lists(st.integers(-len(shape), len(shape) - 1), unique_by=lambda d: d % len(shape))
                               if shape else st.none()))
    axes = axes or None
    x = leaf(shape)
    y = minidl.sum(x, dim=axes, keepdim=keepdim)
    want = x.numpy().sum(axis=None if axes is None else tuple(axes), keepdims=keepdim)
    assert y.shape == want.shape
    np.testing.assert_allclose(y.numpy(), want)
    y.backward(minidl.full(y.shape, 2.0, dtype=minidl.float64))
    np.testing.assert_array_equal(x.grad.numpy(), np.full(shape, 2.0))
    if x.numel():
        np.testing.assert_allclose(minidl.mean(x, dim=axes, keepdim=keepdim).numpy(),
                                   x.numpy().mean(axis=None if axes is None else tuple(axes), keepdims=keepdim))


@given(shapes, st.randoms(use_true_random=False))
def test_permute_reshape_and_back(shape, random):
    order = list(range(len(shape)))
    random.shuffle(order)
    x = leaf(shape)
    y = x.permute(*order) if order else x.permute(())
    np.testing.assert_array_equal(y.numpy(), x.numpy().transpose(order))
    z = y.reshape(-1) if x.numel() else y
    (z * z).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy())


@given(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4), st.data())
def test_basic_indexing_like_numpy(shape, data):
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    x = leaf(shape)
    y = x[index]
    want = x.numpy()[index]
    assert y.shape == want.shape
    np.testing.assert_array_equal(y.numpy(), want)
    if y.numel():
        (y * 3).sum().backward()
        hit = np.zeros(shape)
        hit[index] = 3
        np.testing.assert_array_equal(x.grad.numpy(), hit)


@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), st.data())
def test_integer_indexing_like_numpy(shape, data):
    index = data.draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3)))
    x = leaf(shape)
    y = x[tuple(minidl.tensor(i) for i in index)]
    np.testing.assert_array_equal(y.numpy(), x.numpy()[index])
    y.sum().backward()
    counts = np.zeros(shape)
    np.add.at(counts, index, 1)
    np.testing.assert_array_equal(x.grad.numpy(), counts)


@given(hnp.arrays(np.bool_, hnp.array_shapes(min_dims=1, max_dims=3, max_side=4)))
def test_masks_like_numpy(mask):
    x = leaf(mask.shape)
    y = x[minidl.tensor(mask)]
    np.testing.assert_array_equal(y.numpy(), x.numpy()[mask])
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), mask.astype(float))
    z = minidl.zeros(mask.shape)
    z[minidl.tensor(mask)] = 5
    np.testing.assert_array_equal(z.numpy(), np.where(mask, 5.0, 0.0))


@given(hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2, min_side=1, max_side=3))
def test_matmul_broadcasts_like_numpy(case):
    a, b = map(leaf, case.input_shapes)
    if a.ndim == 0 or b.ndim == 0:
        return
    y = minidl.matmul(a, b)
    np.testing.assert_allclose(y.numpy(), np.matmul(a.numpy(), b.numpy()))
    y.sum().backward()
    assert a.grad.shape == a.shape and b.grad.shape == b.shape
    # d sum(ab) / da[i, k] is the sum over columns of b, whatever was broadcast
    epsilon = np.zeros(a.shape)
    epsilon[(0,) * a.ndim] = 1e-6
    difference = (np.matmul(a.numpy() + epsilon, b.numpy()).sum() - np.matmul(a.numpy() - epsilon, b.numpy()).sum()) / 2e-6
    np.testing.assert_allclose(a.grad.numpy()[(0,) * a.ndim], difference, rtol=1e-6)
