"""einsum: forms of the call, broadcasting, empties, errors."""

import numpy as np
import pytest

import minidl


def ones(*shape, **more):
    return minidl.ones(shape, **more)


@pytest.mark.parametrize("equation, shapes, result", [
    ("...ij,...jk->...ik", ((2, 1, 3, 4), (5, 4, 2)), (2, 5, 3, 2)), ("i...,...", ((3, 2), (1,)), (2, 3)),
    ("aB,Bc", ((2, 3), (3, 4)), (2, 4)), ("Ab,bC", ((2, 3), (3, 4)), (2, 4)), ("bA", ((2, 3),), (3, 2)),
    ("ij,jk->ik", ((0, 3), (3, 4)), (0, 4)), ("ij,jk->ik", ((2, 0), (0, 4)), (2, 4)), (",->", ((), ()), ()),
    ("ij,jk->ik", ((2, 1), (3, 4)), (2, 4)), ("...->", ((2, 3),), ()), ("i,ij->ij", ((2,), (2, 3)), (2, 3)),
])
def test_shapes(equation, shapes, result):
    out = minidl.einsum(equation, *[ones(*shape) for shape in shapes])
    assert out.shape == result
    assert minidl.einsum(equation, [ones(*shape) for shape in shapes]).shape == result


def test_a_permutation_is_a_view():
    x = ones(2, 3)
    assert np.shares_memory(minidl.einsum("ij->ji", x).numpy(), x.numpy())


def test_many_operands_are_contracted_in_a_cheap_order():
    vector, matrices = ones(64), [ones(64, 64) for _ in range(4)]
    out = minidl.einsum("ab,bc,cd,de,e->a", *matrices, vector)
    assert (out.numpy() == 64.0 ** 4).all()


@pytest.mark.parametrize("equation, shapes", [
    ("ij,jk->ik", ((2, 3), (4, 4))), ("ij,jk->il", ((2, 3), (3, 4))), ("ij->ii", ((2, 3),)), ("ij->ij->", ((2, 3),)),
    ("i1", ((2, 3),)), ("ijk", ((2, 3),)), ("i", ((2, 3),)), ("ij,jk->ik", ((2, 3),)), ("...ij...", ((2, 3),)),
    (".ij", ((2, 3),)),
    ("ii", ((2, 3),)), ("ij;jk", ((2, 3), (3, 2))), ("ij,jk-ik", ((2, 3), (3, 2))), ("ij->......", ((2, 3),)),
])
def test_errors(equation, shapes):
    with pytest.raises(RuntimeError):
        minidl.einsum(equation, *[ones(*shape) for shape in shapes])


@pytest.mark.parametrize("arguments", [("ij",), (ones(2),), (ones(2), [60])])
def test_calls_of_neither_form(arguments):
    with pytest.raises(ValueError):
        minidl.einsum(*arguments)
