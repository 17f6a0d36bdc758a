"""User-defined Functions."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import minidl
from minidl.autograd import Function, grad, gradcheck, gradgradcheck, once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 3 * x * x


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = minidl.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * y


class SumAndDifference(Function):
    @staticmethod
    def forward(ctx, a, b, factor):
        ctx.factor = factor
        return (a + b) * factor, (a - b) * factor

    @staticmethod
    def backward(ctx, gs, gd):
        return (gs + gd) * ctx.factor, (gs - gd) * ctx.factor, None


class WithContext(Function):
    @staticmethod
    def forward(x, power):
        return x ** power

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.power = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * ctx.power * x ** (ctx.power - 1), None


def leaf(*values):
    return minidl.tensor(np.array(values), requires_grad=True)


@pytest.mark.parametrize("function", [Cube.apply, Exp.apply, lambda x: SumAndDifference.apply(x, x * x, 3.0),
                                      lambda x: WithContext.apply(x, 3)])
def test_gradients_and_their_gradients(function):
    assert gradcheck(function, leaf(0.5, 1.5))
    assert gradgradcheck(function, leaf(0.5, 1.5))


def test_unused_output_counts_as_zero_or_none():
    a, b = leaf(1.0), leaf(2.0)
    SumAndDifference.apply(a, b, 2.0)[1].sum().backward()
    assert (a.grad.item(), b.grad.item()) == (2.0, -2.0)

    class Raw(SumAndDifference):
        @staticmethod
        def forward(ctx, a, b):
            ctx.set_materialize_grads(False)
            return a + b, a - b

        @staticmethod
        def backward(ctx, gs, gd):
            assert gs is None
            return gd, -gd

    Raw.apply(a, b)[1].sum().backward()


def test_needs_input_grad_and_constants():
    class Product(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False)
            return g * b, None

    a = leaf(2.0)
    Product.apply(a, minidl.tensor([3.0], dtype=minidl.float64)).sum().backward()
    assert a.grad.item() == 3.0


def test_nothing_is_recorded_inside_forward_or_without_need():
    class Check(Function):
        @staticmethod
        def forward(ctx, x):
            assert not (x * 2).requires_grad
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    assert Check.apply(leaf(1.0)).requires_grad
    assert not Check.apply(minidl.tensor([1.0])).requires_grad
    with minidl.no_grad():
        assert not Check.apply(leaf(1.0)).requires_grad


def test_returned_input_and_non_differentiable_output():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            positive = x > 0
            rounded = x.clone()
            ctx.mark_non_differentiable(rounded)
            return x, rounded, positive

        @staticmethod
        def backward(ctx, g, *_):
            return g * 7

    x = leaf(1.0)
    same, rounded, positive = Same.apply(x)
    assert same is not x and not rounded.requires_grad and not positive.requires_grad
    same.sum().backward()
    assert x.grad.item() == 7.0


def test_saved_tensors_are_freed_guarded_and_make_no_cycle():
    x = leaf(1.0, 2.0)
    y = Exp.apply(x)
    loss = y.sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    h = x * 1
    z = Cube.apply(h)
    h.add_(1)
    with pytest.raises(RuntimeError, match="Cube saved a tensor.*edited in place"):
        z.sum().backward()
    gc.collect()
    gc.disable()
    try:
        y = Exp.apply(x)
        alive = weakref.ref(y.array)
        del y
        assert alive() is None
    finally:
        gc.enable()


def test_faults_of_the_user_are_named():
    class Wrong(Cube):
        @staticmethod
        def backward(ctx, g):
            return g, g

    with pytest.raises(RuntimeError, match="Wrong.backward expected to return 1 gradients.*got 2"):
        Wrong.apply(leaf(1.0)).sum().backward()

    class Misshaped(Cube):
        @staticmethod
        def backward(ctx, g):
            return minidl.ones(3)

    with pytest.raises(RuntimeError, match=r"shape \(2,\) for argument 0, got \(3,\)"):
        Misshaped.apply(leaf(1.0, 2.0)).sum().backward()

    class NoTensor(Cube):
        @staticmethod
        def forward(ctx, x):
            return 3.0

    with pytest.raises(TypeError, match="NoTensor.forward expected to return tensors, got float"):
        NoTensor.apply(leaf(1.0))


def test_once_differentiable():
    class Once(Cube):
        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g * 3 * x * x

    x = leaf(2.0)
    Once.apply(x).sum().backward()
    assert x.grad.item() == 12.0
    y = Once.apply(x)
    g, = grad((y * y).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()
