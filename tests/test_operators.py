"""Python's operators on tensors, numbers and arrays."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import minidl

VALUES = np.array([1.0, 2.0, -3.0], np.float32)
WHOLE = np.array([1, 2, -3])
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor]


@pytest.mark.parametrize("function", [*ARITHMETIC, *COMPARISONS], ids=lambda f: f.__name__)
@pytest.mark.parametrize("other", [2, 2.5, np.float64(2.5), np.int64(2), np.array([2.0, 0.5, 4.0], np.float32)], ids=repr)
def test_both_sides(function, other):
    plain = other.item() if isinstance(other, np.generic) else other
    for values in (VALUES, WHOLE):
        for found, want in ((function(minidl.tensor(values), other), function(values, plain)),
                            (function(other, minidl.tensor(values)), function(plain, values))):
            assert isinstance(found, minidl.Tensor)
            np.testing.assert_allclose(found.numpy(), want, rtol=1e-6)
            assert found.dtype == (want.dtype if want.dtype != np.float64 else np.float32)


@pytest.mark.parametrize("function", [*BITS, operator.lshift, operator.rshift], ids=lambda f: f.__name__)
def test_bits(function):
    np.testing.assert_array_equal(function(minidl.tensor(WHOLE), 3).numpy(), function(WHOLE, 3))
    np.testing.assert_array_equal(function(3, minidl.tensor(abs(WHOLE))).numpy(), function(3, abs(WHOLE)))
    if function in BITS:
        flags = np.array([True, False, True])
        np.testing.assert_array_equal(function(minidl.tensor(flags), True).numpy(), function(flags, True))


def test_unary():
    x = minidl.tensor(VALUES)
    np.testing.assert_array_equal((-x).numpy(), -VALUES)
    np.testing.assert_array_equal(abs(x).numpy(), abs(VALUES))
    assert (+x) is x
    np.testing.assert_array_equal((~minidl.tensor(WHOLE)).numpy(), ~WHOLE)
    np.testing.assert_array_equal((~minidl.tensor([True, False])).numpy(), [False, True])


def test_powers():
    x = minidl.tensor(VALUES)
    np.testing.assert_allclose((x ** 2).numpy(), VALUES ** 2)
    np.testing.assert_allclose((2 ** x).numpy(), 2 ** VALUES)
    np.testing.assert_allclose((abs(x) ** x).numpy(), abs(VALUES) ** VALUES)


def test_matrix_product():
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal((minidl.tensor(a) @ minidl.tensor(a.T)).numpy(), a @ a.T)


@pytest.mark.parametrize("function", [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
                                      operator.imod, operator.ipow], ids=lambda f: f.__name__)
def test_in_place(function):
    leaf = minidl.tensor([1.0, 2.0, 4.0], requires_grad=True)
    x = leaf * 1
    y = function(x, 2.0)
    assert y is x
    np.testing.assert_allclose(x.numpy(), function(np.array([1.0, 2.0, 4.0]), 2.0))
    x.sum().backward()
    assert leaf.grad is not None


@pytest.mark.parametrize("function", [operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift],
                         ids=lambda f: f.__name__)
def test_bits_in_place(function):
    x = minidl.tensor(WHOLE)
    assert function(x, 3) is x
    np.testing.assert_array_equal(x.numpy(), function(WHOLE.copy(), 3))


def test_a_result_that_does_not_fit_is_refused():
    x = minidl.tensor(WHOLE)
    for function in (operator.iadd, operator.itruediv, operator.ipow):
        with pytest.raises((RuntimeError, TypeError), match="dtype"):
            function(x, 0.5)
    np.testing.assert_array_equal(x.numpy(), WHOLE)


def test_other_objects():
    x = minidl.tensor(VALUES)
    for other in (None, "a", [1.0, 2.0, 3.0], object()):
        assert (x == other) is False and (x != other) is True
        for function in (*ARITHMETIC, operator.lt):
            with pytest.raises(TypeError):
                function(x, other)


def test_tensors_are_hashed_by_identity():
    x, y = minidl.tensor(VALUES), minidl.tensor(VALUES)
    assert len({x, y}) == 2 and {x: 1}[x] == 1
    with pytest.raises(KeyError):
        {x: 1}[y]


def test_the_other_side_may_know_how():
    class Other:
        def __radd__(self, left):
            return "mine"

    assert minidl.tensor(VALUES) + Other() == "mine"


def test_zero_d_tensors_do_not_widen():
    x = minidl.tensor(VALUES)
    assert (x * minidl.tensor(2.0, dtype=minidl.float64)).dtype == minidl.float32
    assert (minidl.tensor(WHOLE, dtype=minidl.int8) + minidl.tensor(300)).dtype == minidl.int8
    assert (minidl.tensor(WHOLE) * minidl.tensor(0.5)).dtype == minidl.float32


def test_invert_refuses_floats():
    with pytest.raises(TypeError, match="integers or bools, got float32"):
        ~minidl.tensor(VALUES)
    assert (~minidl.tensor(WHOLE)).tolist() == [-2, -3, 2]


def test_the_matrix_product_refuses_numbers():
    for product in (lambda x: x @ 2, lambda x: 2 @ x, lambda x: x @ "a"):
        with pytest.raises(TypeError, match="unsupported operand"):
            product(minidl.ones(2))
