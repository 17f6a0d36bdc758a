"""out= on exported functions."""

import numpy as np
import pytest

import minidl
from minidl.tensor.out import NAMES

A = minidl.tensor([1.0, 4.0])


def test_every_listed_function_that_exists_takes_out():
    import inspect

    for name in NAMES:
        if hasattr(minidl, name):
            assert "out" in inspect.signature(getattr(minidl, name)).parameters, name


def test_result_is_written_and_returned():
    out = minidl.zeros(2)
    version = out._version
    assert minidl.sqrt(A, out=out) is out and out._version == version + 1
    np.testing.assert_array_equal(out.numpy(), [1.0, 2.0])
    wide = minidl.zeros(2, dtype=minidl.float64)
    assert minidl.add(A, 1, out=wide).dtype == minidl.float64


def test_empty_out_takes_the_shape_and_tuples_are_filled():
    values, indices = minidl.empty(0), minidl.empty(0, dtype=minidl.int64)
    found = minidl.sort(A, descending=True, out=(values, indices))
    assert found.values is values
    np.testing.assert_array_equal(values.numpy(), [4.0, 1.0])
    np.testing.assert_array_equal(indices.numpy(), [1, 0])


def test_bad_outs():
    with pytest.raises(RuntimeError, match=r"shape \(2,\), got \(3,\)"):
        minidl.exp(A, out=minidl.zeros(3))
    with pytest.raises(RuntimeError, match="float32.*int64"):
        minidl.exp(A, out=minidl.zeros(2, dtype=minidl.int64))
    with pytest.raises(TypeError, match="Tensor, got ndarray"):
        minidl.exp(A, out=np.zeros(2))
    with pytest.raises(RuntimeError, match="not recorded"):
        minidl.exp(minidl.ones(2, requires_grad=True), out=minidl.zeros(2))
    with pytest.raises(TypeError, match="tuple of 2"):
        minidl.sort(A, out=minidl.zeros(2))


@pytest.mark.parametrize("name, args, dtype", [
    ("argmax", (A, 0), minidl.int32), ("all", (A, 0), minidl.float32), ("isposinf", (A,), minidl.uint8),
    ("nonzero", (A,), minidl.float32), ("take", (A, minidl.tensor([0])), minidl.float64), ("floor", (A,), minidl.float64),
    ("sin", (A,), minidl.int64), ("gather", (A, 0, minidl.tensor([0])), minidl.float64)])
def test_a_result_that_keeps_its_dtype_needs_exactly_that(name, args, dtype):
    with pytest.raises(RuntimeError, match="cannot store a result of dtype"):
        getattr(minidl, name)(*args, out=minidl.empty(0, dtype=dtype))


def test_all_and_any_fill_uint8_too_and_arithmetic_casts():
    assert minidl.all(A, 0, out=minidl.empty((), dtype=minidl.uint8)).dtype == minidl.uint8
    assert minidl.sin(A, out=minidl.empty(0, dtype=minidl.float16)).dtype == minidl.float16
    assert minidl.nanmean(A, out=minidl.empty(())).item() == 2.5
    with pytest.raises(RuntimeError, match="cannot store"):
        minidl.sort(A, out=(minidl.empty(0, dtype=minidl.float64), minidl.empty(0, dtype=minidl.int64)))


def test_out_needs_memory_of_its_own():
    with pytest.raises(RuntimeError, match="expanded"):
        minidl.exp(minidl.ones(3), out=minidl.zeros(1).expand(3))
    x, square = minidl.ones(5), minidl.ones(2, 2)
    for function, args, out in ((minidl.exp, (x[:-1],), x[1:]), (minidl.exp, (square.t(),), square),
                                (minidl.add, (square[0], square), square)):
        with pytest.raises(RuntimeError, match="shares no memory"):
            function(*args, out=out)
    minidl.exp(x[::2][:2], out=x[1::2])
    minidl.add(square[:], 1, out=square)
    assert square.tolist() == [[2, 2], [2, 2]]
    assert minidl.nn.functional.normalize(square, out=minidl.empty(0)).shape == (2, 2)


def test_exported_functions_pickle_and_keep_their_signatures():
    import inspect
    import pickle

    for function in (minidl.mean, minidl.exp, minidl.isclose, minidl.nn.functional.cross_entropy, minidl.linalg.norm,
                     minidl.absolute):
        assert pickle.loads(pickle.dumps(function)) is function and function.__doc__
    assert list(inspect.signature(minidl.isclose).parameters)[:2] == ["input", "other"]
