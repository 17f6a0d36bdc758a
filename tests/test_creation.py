"""New tensors: dtypes, shared memory, ranges, errors."""

import numpy as np
import pytest

import minidl

F16, F32, F64, I32, I64, U8 = (minidl.float16, minidl.float32, minidl.float64, minidl.int32, minidl.int64, minidl.uint8)
BF16 = minidl.bfloat16


@pytest.mark.parametrize("data, dtype", [
    (1, I64), (True, minidl.bool), (1.5, F32), ([], F32), ([1, 2.0], F32), ([True, 2], I64), ([True, 2.5], F32),
    (np.float64(1), F64), ([np.float64(1)], F64), (np.ones(2, np.float16), F16), (range(3), I64), (np.ones(2, np.int32), I32),
    ([np.ones(2), np.ones(2, np.float32)], F64), ((1, 2), I64), ([np.int32(1)], I32), (np.ones(1, BF16), BF16),
])
def test_dtype_of_data(data, dtype):
    assert minidl.tensor(data).dtype == dtype
    assert minidl.as_tensor(data).dtype == dtype


def test_tensor_copies_and_as_tensor_shares():
    a = np.arange(3.0)
    copy, shared, also = minidl.tensor(a), minidl.as_tensor(a), minidl.from_numpy(a)
    a[0] = 7
    assert copy.numpy()[0] == 0 and shared.numpy()[0] == 7 and also.numpy()[0] == 7
    assert minidl.as_tensor(shared) is shared
    assert not np.shares_memory(minidl.tensor(shared).numpy(), a)
    assert minidl.tensor(a[::-1]).numpy().tolist() == [2, 1, 7]


def test_as_tensor_to_another_dtype_keeps_the_graph():
    x = minidl.ones(2, requires_grad=True)
    minidl.as_tensor(x, dtype=F64).sum().backward()
    assert x.grad.dtype == F32 and x.grad.numpy().tolist() == [1, 1]


def test_tensors_of_tensors_and_numbers():
    x = minidl.tensor([minidl.tensor(1.5), minidl.tensor(2.0)])
    assert x.dtype == F32 and x.numpy().tolist() == [1.5, 2]
    assert minidl.tensor([[1, 2], [3, 4]], dtype=BF16).dtype == BF16
    assert minidl.tensor(1e6, dtype=F16).numpy() == minidl.tensor([1e6]).cast_to(F16).numpy()[0] == np.inf


@pytest.mark.parametrize("bad, error", [
    ([1], TypeError), (np.float64(1), TypeError), (np.array(["a"]), TypeError), (np.array([1j]), TypeError),
    (np.array([None]), TypeError), (np.arange(3).astype(">i4"), TypeError),
])
def test_from_numpy_refuses(bad, error):
    with pytest.raises(error, match="from_numpy"):
        minidl.from_numpy(bad)


@pytest.mark.parametrize("bad", ["a", None, ["a"], 1j, [[1, 2], [3]], {1}])
def test_tensor_refuses(bad):
    with pytest.raises((TypeError, ValueError)):
        minidl.tensor(bad)


@pytest.mark.parametrize("data, dtype, words", [
    (2 ** 70, None, f"int64.*got {2 ** 70}"), ([[1], [2 ** 70]], None, f"int64.*got {2 ** 70}"), (2 ** 63, I64, "int64"),
    (300, minidl.int8, r"int8 can hold, in \[-128, 127\], got 300"), ([0, -129], minidl.int8, "got -129"),
    ([256], U8, "got 256"), (10 ** 400, F32, "float32"), (np.array([2 ** 63], np.uint64), None, "int64"),
])
def test_integers_that_do_not_fit(data, dtype, words):
    with pytest.raises(RuntimeError, match=f"tensor expected .*{words}"):
        minidl.tensor(data, dtype=dtype)


def test_negative_numbers_wrap_around_in_uint8():
    assert minidl.tensor(-1, dtype=U8).item() == 255 and minidl.tensor([[-2, 3]], dtype=U8).tolist() == [[254, 3]]


@pytest.mark.parametrize("make, value", [(minidl.zeros, 0), (minidl.ones, 1)])
def test_constants(make, value):
    for size in (2, 3), ((2, 3),), ([2, 3],), (np.int64(2), 3):
        x = make(*size, dtype=I32)
        assert x.shape == (2, 3) and x.dtype == I32 and (x.numpy() == value).all()
    assert make(()).shape == () and make(2).dtype == F32 and make(size=(0, 2)).shape == (0, 2)
    assert make(2, requires_grad=True).requires_grad and make(2, dtype="float16").dtype == F16
    like = getattr(minidl, make.__name__ + "_like")
    source = minidl.zeros(2, 3, dtype=U8)
    assert (like(source).shape, like(source).dtype, like(source, dtype=F64).dtype) == ((2, 3), U8, F64)
    new = getattr(source, "new_" + make.__name__)
    assert new(4, 1).shape == new((4, 1)).shape == (4, 1) and new(1).dtype == U8 and new(1, dtype=F16).dtype == F16


def test_empty_has_the_shape_and_dtype_asked_for():
    assert minidl.empty(2, 3, dtype=minidl.bool).shape == (2, 3)
    source = minidl.ones(3, dtype=F16)
    assert minidl.empty_like(source).dtype == source.new_empty(2).dtype == F16


@pytest.mark.parametrize("value, dtype", [(1, I64), (True, minidl.bool), (1.5, F32)])
def test_full_takes_the_dtype_of_its_value(value, dtype):
    x = minidl.full((2,), value)
    assert x.dtype == dtype and x.numpy().tolist() == [value] * 2
    assert minidl.scalar_tensor(value).dtype == F32


def test_full_like_and_new_full_keep_the_tensor_s_dtype():
    x = minidl.zeros(2, dtype=I32)
    assert minidl.full_like(x, 1.7).numpy().tolist() == x.new_full((2,), 1.7).numpy().tolist() == [1, 1]
    assert minidl.full_like(x, 1.5, dtype=F64).numpy().tolist() == [1.5, 1.5]
    assert minidl.full((), minidl.tensor(2.5, dtype=F64)).dtype == F64
    assert x.new_tensor([1.5]).dtype == I32 and minidl.ones(1).new_tensor(np.ones(1)).dtype == F32
    assert minidl.full((1,), -1, dtype=U8).numpy().tolist() == [255]


@pytest.mark.parametrize("args, attributes, values, dtype", [
    ((3,), {}, [0, 1, 2], I64),
    ((1, 4), {}, [1, 2, 3], I64),
    ((5, 0, -2), {}, [5, 3, 1], I64),
    ((2.5,), {}, [0, 1, 2], F32),
    ((1, 0, -0.25), {}, [1, 0.75, 0.5, 0.25], F32),
    ((3, 3), {}, [], I64),
    ((), {"end": 2}, [0, 1], I64),
    ((0, 1, 0.5), {"dtype": F16}, [0, 0.5], F16),
    ((0.5, 3), {"dtype": I64}, [0, 1, 2], I64),
    ((0.5, 3), {"dtype": I32}, [0, 1, 2], I32),
    ((0, 9, 4), {"dtype": U8}, [0, 4, 8], U8),
])
def test_arange(args, attributes, values, dtype):
    x = minidl.arange(*args, **attributes)
    assert x.dtype == dtype and x.numpy().tolist() == values


def test_arange_of_fractions_has_as_many_elements_as_fit():
    assert minidl.arange(0, 1, 0.1).shape == (10,)
    assert minidl.arange(minidl.tensor(3)).dtype == I64
    assert minidl.arange(2**53, 2**53 + 3).numpy().tolist() == [2**53, 2**53 + 1, 2**53 + 2]


@pytest.mark.parametrize("args, attributes, values", [
    ((0, 1, 5), {}, [0, 0.25, 0.5, 0.75, 1]),
    ((3, -3, 3), {"dtype": F64}, [3, 0, -3]),
    ((0, 10, 4), {"dtype": I64}, [0, 3, 6, 10]),
    ((10, -3, 5), {"dtype": I32}, [10, 6, 3, 0, -3]),
    ((2, 5, 1), {}, [2]),
    ((2, 5, 0), {}, []),
])
def test_linspace(args, attributes, values):
    assert minidl.linspace(*args, **attributes).numpy().tolist() == values


def test_linspace_is_symmetric():
    x = minidl.linspace(-1, 1, 101, dtype=F32).numpy()
    np.testing.assert_array_equal(x, -x[::-1])


def test_logspace():
    np.testing.assert_allclose(minidl.logspace(0, 2, 3).numpy(), [1, 10, 100])
    assert minidl.logspace(0, 4, 5, base=2, dtype=I64).numpy().tolist() == [1, 2, 4, 8, 16]


def test_eye():
    assert minidl.eye(2, 3, dtype=I64).numpy().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert minidl.eye(0).shape == (0, 0)


def test_the_default_dtype_is_asked_for_at_each_call():
    minidl.set_default_dtype(F64)
    try:
        found = {make.dtype for make in (minidl.zeros(1), minidl.ones(1), minidl.empty(1), minidl.full((1,), 0.5),
                                         minidl.arange(1.0), minidl.linspace(0, 1, 2), minidl.eye(1), minidl.tensor(0.5),
                                         minidl.rand(1), minidl.randn(1))}
    finally:
        minidl.set_default_dtype(F32)
    assert found == {F64}


@pytest.mark.parametrize("call, error", [
    (lambda: minidl.ones(-1), RuntimeError),
    (lambda: minidl.ones(2.0), TypeError),
    (lambda: minidl.ones("a"), TypeError),
    (lambda: minidl.ones(2, dtype=I64, requires_grad=True), RuntimeError),
    (lambda: minidl.ones(2, dtype="complex64"), TypeError),
    (lambda: minidl.full(2, 1), TypeError),
    (lambda: minidl.full((2,), minidl.ones(1)), TypeError),
    (lambda: minidl.full((2,), 300, dtype=U8), RuntimeError),
    (lambda: minidl.full((2,), float("nan"), dtype=I64), RuntimeError),
    (lambda: minidl.eye(-1), RuntimeError),
    (lambda: minidl.eye(2.0), TypeError),
    (lambda: minidl.arange(), TypeError),
    (lambda: minidl.arange(0, 1, 0), RuntimeError),
    (lambda: minidl.arange(1, 0), RuntimeError),
    (lambda: minidl.arange(float("inf")), RuntimeError),
    (lambda: minidl.arange(2, dtype=minidl.bool), NotImplementedError),
    (lambda: minidl.arange(0, 3, 0.5, dtype=I64), ValueError),
    (lambda: minidl.linspace(0, 1, -1), RuntimeError),
    (lambda: minidl.linspace(0, 1, 2.0), TypeError),
    (lambda: minidl.linspace(minidl.ones(2), 1, 3), RuntimeError),
    (lambda: minidl.logspace(0, 1, 3, dtype=minidl.bool), NotImplementedError),
])
def test_errors(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("dtype", [None, minidl.float16, minidl.float64])
def test_none_is_no_number(dtype):
    with pytest.raises(TypeError, match="expected numbers"):
        minidl.tensor([[1.0, None]], dtype=dtype)
    assert minidl.tensor([[1.0, float("nan")]], dtype=dtype).isnan().any()
