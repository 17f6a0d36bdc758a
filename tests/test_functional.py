"""vjp, jvp, Jacobians, Hessians, and the checkers themselves."""

from __future__ import annotations

import numpy as np
import pytest

import minidl
from minidl.autograd import Function, GradcheckError, functional, gradcheck, gradgradcheck

X = np.array([0.5, 1.5])
Y = np.array([2.0, -1.0])


def t(values):
    return minidl.tensor(values)


def f(x, y):
    return x * x * y, (x * y).sum()


def test_vjp_and_jvp():
    v = np.array([1.0, 3.0])
    out, g = functional.vjp(lambda x: x * x, t(X), t(v))
    np.testing.assert_array_equal(out.numpy(), X * X)
    np.testing.assert_array_equal(g.numpy(), 2 * X * v)
    outs, tangents = functional.jvp(f, (t(X), t(Y)), (t(v), t(v)))
    np.testing.assert_allclose(tangents[0].numpy(), 2 * X * Y * v + X * X * v)
    np.testing.assert_allclose(tangents[1].numpy(), (v * Y + X * v).sum())
    assert not tangents[0].requires_grad and not outs[0].requires_grad


def test_jacobian_of_several():
    (a, b), (c, d) = functional.jacobian(f, (t(X), t(Y)))
    np.testing.assert_allclose(a.numpy(), np.diag(2 * X * Y))
    np.testing.assert_allclose(b.numpy(), np.diag(X * X))
    np.testing.assert_allclose(c.numpy(), Y)
    np.testing.assert_allclose(d.numpy(), X)


def test_hessian_hvp_vhp():
    def g(x):
        return (x * x * x).sum() * x[0]

    h = functional.hessian(g, t(X)).numpy()
    x, y = X
    np.testing.assert_allclose(h, [[12 * x * x, 3 * y * y], [3 * y * y, 6 * x * y]])
    v = np.array([1.0, -2.0])
    np.testing.assert_allclose(functional.hvp(g, t(X), t(v))[1].numpy(), h @ v)
    np.testing.assert_allclose(functional.vhp(g, t(X), t(v))[1].numpy(), v @ h)
    two = functional.hessian(lambda a, b: (a * a * b).sum(), (t(X), t(Y)))
    np.testing.assert_allclose(two[0][1].numpy(), np.diag(2 * X))
    np.testing.assert_allclose(two[1][1].numpy(), np.zeros((2, 2)))


def test_jacobian_can_be_differentiated():
    x = minidl.tensor(X, requires_grad=True)
    functional.jacobian(lambda a: a * a * a, x, create_graph=True).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * X)


def test_strategy():
    assert functional.jacobian(lambda a: a * 2, t(X), strategy="reverse-mode").shape == (2, 2)
    for strategy, words in [("forward-mode", "not available"), ("sideways", "'sideways'")]:
        with pytest.raises(ValueError, match=f"jacobian .*{words}"):
            functional.jacobian(lambda a: a * 2, t(X), strategy=strategy)
        with pytest.raises(ValueError, match=f"hessian .*{words}"):
            functional.hessian(lambda a: a.sum(), t(X), outer_jacobian_strategy=strategy)


def test_strict_and_wrong_arguments():
    with pytest.raises(RuntimeError, match="strict"):
        functional.jacobian(lambda a, b: a * 2, (t(X), t(Y)), strict=True)
    with pytest.raises(RuntimeError, match="vector v"):
        functional.vjp(lambda a: a * 2, t(X))
    with pytest.raises(TypeError, match="tensors, got float"):
        functional.vjp(lambda a: 1.0, t(X))
    with pytest.raises(RuntimeError, match="one element"):
        functional.hessian(lambda a: a * a, t(X))


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * x


class WrongTwice(Wrong):
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 2 * x.detach()


@pytest.mark.parametrize("fast", [False, True])
def test_checkers_find_faults(fast):
    x = minidl.tensor(X, requires_grad=True)
    with pytest.raises(GradcheckError, match="input 0.*analytical"):
        gradcheck(Wrong.apply, x, fast_mode=fast)
    assert not gradcheck(Wrong.apply, x, raise_exception=False, fast_mode=fast)
    assert gradcheck(WrongTwice.apply, x, fast_mode=fast)
    assert not gradgradcheck(WrongTwice.apply, x, raise_exception=False, fast_mode=fast)
    assert gradcheck(f, (x, minidl.tensor(Y, requires_grad=True)), fast_mode=fast)
    with pytest.raises(ValueError, match="requires grad"):
        gradcheck(f, (t(X), t(Y)))
