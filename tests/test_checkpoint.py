"""Recomputation: the same gradients, less memory, nothing advanced twice."""

from __future__ import annotations

import numpy as np
import pytest

import minidl
from minidl.autograd import checkpoint, grad
from minidl.tensor import random


def leaf(*shape, seed=0):
    return minidl.tensor(np.random.Generator(np.random.Philox(seed)).standard_normal(shape), requires_grad=True)


def block(x, w):
    return minidl.tanh(minidl.exp(x * 0.1).matmul(w)) * x


def test_gradients_are_those_without():
    x, w = leaf(3, 3), leaf(3, 3, seed=1)
    expected = grad((block(x, w) ** 2).sum(), [x, w])
    found = grad((checkpoint(block, x, w) ** 2).sum(), [x, w])
    for f, e in zip(found, expected):
        np.testing.assert_array_equal(f.numpy(), e.numpy())


def test_parameters_used_inside_get_their_gradient_in_every_mode():
    x, w = leaf(3, 3), leaf(3, 3, seed=1)
    (block(x, w)).sum().backward()
    expected = w.grad.numpy().copy()
    w.grad = x.grad = None
    checkpoint(lambda t: block(t, w), x).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), expected)
    found, = grad(checkpoint(lambda t: block(t, w), x.detach()).sum(), w)
    np.testing.assert_array_equal(found.numpy(), expected)


def test_higher_gradients_and_nesting():
    def twice(x, w):
        return checkpoint(block, checkpoint(block, x, w), w)

    x, w = leaf(3, 3), leaf(3, 3, seed=1)
    results = []
    for function in (lambda: block(block(x, w), w), lambda: twice(x, w), lambda: checkpoint(twice, x, w)):
        g, = grad((function() ** 2).sum(), w, create_graph=True)
        results.append(grad((g ** 2).sum(), [x, w]))
    for other in results[1:]:
        for f, e in zip(other, results[0]):
            np.testing.assert_allclose(f.numpy(), e.numpy(), rtol=1e-12)


def test_edits_inside_are_repeated():
    def edits(x):
        h = x * 2
        h.add_(1)
        return h * h

    x = leaf(3)
    np.testing.assert_array_equal(grad(checkpoint(edits, x).sum(), x)[0].numpy(), 4 * (2 * x.numpy() + 1))


def test_random_numbers_agree_and_advance_once():
    def noisy(x):
        noise = random.default_generator().normal(x.shape, x.dtype)
        return x * x * minidl.tensor(noise)

    x = leaf(4)
    random.manual_seed(3)
    grad(noisy(x).sum(), x)
    after = random.default_generator().get_state().numpy()
    random.manual_seed(3)
    y = checkpoint(noisy, x)
    expected, = grad(y.sum(), x, retain_graph=True)
    np.testing.assert_array_equal(random.default_generator().get_state().numpy(), after)
    np.testing.assert_allclose(expected.numpy() * x.numpy() / 2, y.numpy())


def test_it_holds_less():
    def chain(x):
        for _ in range(20):
            x = minidl.exp(x * 0.01)
        return x

    def held(function):
        x = minidl.ones(50_000, requires_grad=True)
        with minidl.track_memory():
            y = function(x)
            assert y.requires_grad
            return minidl.memory_stats()["cpu"]["current"]

    assert held(lambda x: checkpoint(chain, x)) < held(chain) / 10


def test_keyword_arguments_are_passed_on():
    x = leaf(3)
    y = checkpoint(lambda t, factor: t * t * factor, x, factor=3.0, use_reentrant=False)
    np.testing.assert_allclose(grad(y.sum(), x)[0].numpy(), 6 * x.numpy())


def test_several_outputs_and_backward_twice():
    x = leaf(3)
    a, b = checkpoint(lambda t: (t * t, minidl.exp(t)), x)
    (a + b).sum().backward(retain_graph=True)
    (a + b).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * (2 * x.numpy() + np.exp(x.numpy())))


def test_under_no_grad_it_is_a_plain_call():
    with minidl.no_grad():
        assert not checkpoint(block, leaf(3, 3), leaf(3, 3)).requires_grad


def test_a_function_that_does_something_else_again_is_an_error():
    calls = []

    def moody(x):
        calls.append(1)
        return x * x if len(calls) == 1 else minidl.exp(x)

    y = checkpoint(moody, leaf(2)).sum()
    with pytest.raises(RuntimeError, match="do the same again"):
        y.backward()


def test_an_edited_argument_is_an_error():
    h = leaf(2) * 1
    y = checkpoint(lambda t: t * t, h)
    h.add_(1)
    with pytest.raises(RuntimeError, match="argument 0.*edited in place"):
        y.sum().backward()


def test_running_statistics_move_once():
    import minidl.nn.functional as F

    x = leaf(4, 3)
    mean, var = minidl.zeros(3, dtype=minidl.float64), minidl.ones(3, dtype=minidl.float64)
    y = checkpoint(lambda t: F.batch_norm(t, mean, var, training=True), x)
    after = mean.numpy().copy()
    y.sum().backward()
    np.testing.assert_array_equal(mean.numpy(), after)
    np.testing.assert_allclose(after, 0.1 * x.numpy().mean(0))
