"""Joining tensors: dtypes, empties, errors."""

import pytest

import minidl

F16, F32, F64, I32, I64 = minidl.float16, minidl.float32, minidl.float64, minidl.int32, minidl.int64


@pytest.mark.parametrize("dtypes, result", [
    ((F32, F64), F64), ((I32, F16), F16), ((I64, I32), I64), ((F16, minidl.bfloat16), F32),
    ((minidl.bool, minidl.int8), minidl.int8),
])
@pytest.mark.parametrize("join", [minidl.cat, minidl.stack, minidl.hstack, minidl.vstack, minidl.dstack,
                                  minidl.column_stack])
def test_joined_tensors_promote(join, dtypes, result):
    assert join([minidl.ones(2, 2, dtype=dtype) for dtype in dtypes]).dtype == result


def test_gradients_go_back_in_each_input_s_dtype():
    a, b = minidl.ones(2, dtype=F16, requires_grad=True), minidl.ones(3, dtype=F64, requires_grad=True)
    (minidl.cat([a, b]) * 2).sum().backward()
    assert (a.grad.dtype, b.grad.dtype) == (F16, F64)
    assert b.grad.numpy().tolist() == [2, 2, 2]


def test_empty_vectors_join_anything_and_count_for_the_dtype():
    x, none = minidl.ones(2, 3, dtype=I32), minidl.zeros(0)
    assert minidl.cat([none, x, none], 1).shape == (2, 3)
    assert minidl.cat([x, none]).dtype == F32
    assert minidl.cat([none, none], 1).shape == (0,)
    assert minidl.cat([none, minidl.zeros(0, 3)], 1).shape == (0, 3)
    none.requires_grad_()
    minidl.cat([none, x]).sum().backward()
    assert none.grad.shape == (0,)


@pytest.mark.parametrize("call, error, words", [
    (lambda x: minidl.cat([]), ValueError, "at least one"),
    (lambda x: minidl.stack([]), RuntimeError, "at least one"),
    (lambda x: minidl.cat(x), TypeError, "tuple or list"),
    (lambda x: minidl.cat([x, 1]), TypeError, "position 1"),
    (lambda x: minidl.cat([x, minidl.tensor(1.0)]), RuntimeError, "0-d"),
    (lambda x: minidl.cat([x, x[0]]), RuntimeError, "axis 0"),
    (lambda x: minidl.cat([x, minidl.ones(2, 2)]), RuntimeError, r"\(2, 2\)"),
    (lambda x: minidl.cat([x, x], 2), IndexError, "dim"),
    (lambda x: minidl.stack([x, x], 3), IndexError, "dim"),
    (lambda x: minidl.stack([x, x.t()]), RuntimeError, "one shape"),
    (lambda x: minidl.vstack([]), RuntimeError, "vstack"),
    (lambda x: minidl.block_diag(x.unsqueeze(0)), RuntimeError, "2 axes"),
    (lambda x: minidl.meshgrid(x), RuntimeError, "vectors"),
    (lambda x: minidl.meshgrid(x[0], x[0].cast_to(F64)), RuntimeError, "float64"),
    (lambda x: minidl.meshgrid(x[0], indexing="ji"), RuntimeError, "'xy'"),
    (lambda x: minidl.meshgrid([]), RuntimeError, "at least one"),
    (lambda x: minidl.cartesian_prod(x), RuntimeError, "vectors"),
    (lambda x: minidl.combinations(x), RuntimeError, "vector"),
    (lambda x: minidl.combinations(x[0], -1), RuntimeError, "r >= 0"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(minidl.ones(2, 3))


def test_meshgrid_takes_sequences_and_0_d_tensors():
    a, b = minidl.meshgrid([minidl.tensor(2.0), minidl.ones(3)], indexing="xy")
    assert a.shape == b.shape == (3, 1)


def test_block_diag_of_nothing_and_of_several_dtypes():
    assert minidl.block_diag().shape == (1, 0)
    assert minidl.block_diag(minidl.ones(1, 2, dtype=I32), minidl.tensor(0.5, dtype=F16)).dtype == F16
    assert minidl.block_diag(minidl.ones(2, 0), minidl.ones(1, 1)).numpy().tolist() == [[0], [0], [1]]


def test_combinations_of_few():
    assert minidl.combinations(minidl.arange(2), 3).shape == (0, 3)
    assert minidl.combinations(minidl.arange(3), 0).shape == (0,)
    assert minidl.cartesian_prod(minidl.arange(2)).shape == (2,)
