"""dtype and device conversions, and tensors as Python numbers and sequences."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minidl

CASTS = {"half": minidl.float16, "bfloat16": minidl.bfloat16, "float": minidl.float32, "double": minidl.float64,
         "byte": minidl.uint8, "char": minidl.int8, "short": minidl.int16, "int": minidl.int32, "long": minidl.int64,
         "bool": minidl.bool}


@pytest.mark.parametrize("method, dtype", CASTS.items())
def test_casts(method, dtype):
    source = minidl.tensor([0.0, 1.0, 3.0])
    cast = getattr(source, method)()
    assert cast.dtype == dtype and getattr(cast, method)() is cast
    assert cast.tolist() == ([False, True, True] if method == "bool" else [0, 1, 3])


@pytest.mark.parametrize("arguments, keywords", [
    (("float64",), {}), ((minidl.float64,), {}), (("cpu", minidl.float64), {}), ((minidl.device("cpu"), "float64", True), {}),
    ((), {"dtype": minidl.float64}), ((), {"device": "cpu", "dtype": "float64"}), ((minidl.float64, False, True), {}),
    ((minidl.zeros(1, dtype=minidl.float64),), {}), ((), {"other": minidl.zeros(1, dtype=minidl.float64)}),
    ((None, minidl.float64), {}),
])
def test_to(arguments, keywords):
    source = minidl.ones(2, requires_grad=True)
    result = source.to(*arguments, **keywords)
    assert result.dtype == minidl.float64 and result.device == "cpu"
    result.sum().backward()
    assert source.grad.dtype == minidl.float32


def test_to_without_a_change_is_the_tensor_itself():
    source = minidl.ones(2)
    assert source.to("cpu") is source.to(minidl.float32) is source.to(source) is source.cpu() is source
    copy = source.to("cpu", copy=True)
    assert copy is not source and copy.data_ptr() != source.data_ptr()


@pytest.mark.parametrize("arguments, error", [(("tpu",), ValueError), (("float32", 3), TypeError), (("complex64",), ValueError),
                                              (("cpu", "float32", True, True, True), TypeError)])
def test_to_nowhere(arguments, error):
    with pytest.raises(error):
        minidl.ones(2).to(*arguments)


def test_casts_are_differentiable_and_saturate_silently():
    source = minidl.tensor([1.0, 1e30], requires_grad=True)
    half = source.half()
    assert half.tolist() == [1, math.inf]
    half.backward(minidl.ones(2, dtype=minidl.float16))
    assert source.grad.tolist() == [1, 1] and source.grad.dtype == minidl.float32


def test_type():
    tensor = minidl.ones(2)
    assert tensor.type() == "minidl.FloatTensor" and tensor.long().type() == "minidl.LongTensor"
    assert tensor.type(minidl.float16).dtype == minidl.float16
    assert tensor.type_as(minidl.zeros(1, dtype=minidl.int32)).dtype == minidl.int32


@pytest.mark.parametrize("dtype", CASTS.values(), ids=str)
def test_item_and_tolist_give_python_numbers(dtype):
    tensor = minidl.ones(1, 1, dtype=dtype)
    kind = type(tensor.item())
    assert kind is {"f": float, "V": float, "i": int, "u": int, "b": bool}[dtype.kind]
    assert type(tensor.tolist()[0][0]) is kind and type(tensor[0, 0].tolist()) is kind


@pytest.mark.parametrize("shape", [(2,), (0,)])
@pytest.mark.parametrize("convert", [lambda t: t.item(), bool, float, int])
def test_only_one_element_is_a_number(shape, convert):
    with pytest.raises((RuntimeError, TypeError)):
        convert(minidl.zeros(*shape))


def test_numbers():
    assert int(minidl.tensor(2.7)) == 2 and float(minidl.tensor([[3]])) == 3.0 and complex(minidl.tensor(1.0)) == 1
    assert bool(minidl.tensor([0.0])) is False and bool(minidl.tensor(3)) is True
    assert [10, 20, 30][minidl.tensor(1)] == 20 and list(range(minidl.tensor([3]))) == [0, 1, 2]
    for wrong in (minidl.tensor(1.0), minidl.tensor([1, 2])):
        with pytest.raises(TypeError):
            [10, 20][wrong]


def test_sequences():
    tensor = minidl.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = tensor
    assert first.tolist() == [1, 2] and second.requires_grad and len(tensor) == 2
    assert [row.tolist() for row in reversed(tensor)] == [[3, 4], [1, 2]]
    assert 3 in tensor and 5 not in tensor and minidl.tensor(4.0) in tensor
    for call in (len, iter):
        with pytest.raises(TypeError, match="0-d"):
            call(minidl.tensor(1.0))
    with pytest.raises(RuntimeError):
        "text" in tensor  # noqa: B015


@pytest.mark.parametrize("shape", [(1 << 14,), (3, 70, 130), (130, 3, 70)])
def test_large_casts_between_float16_and_float32_are_numpys(shape):
    rng = np.random.Generator(np.random.Philox(5))
    count = int(np.prod(shape))
    values = (rng.standard_normal(count) * 2.0 ** rng.integers(-30, 20, count)).astype(np.float32)
    values[:8] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 65519.9, 65520.0, -1e-8]
    for x in (values.reshape(shape), values.reshape(shape[::-1]).T, np.nan_to_num(values, posinf=1, neginf=1).reshape(shape)):
        with np.errstate(all="ignore"):
            want = x.astype(np.float16)
        half = minidl.tensor(x).half()
        np.testing.assert_array_equal(half.numpy(), want)
        np.testing.assert_array_equal(np.signbit(half.numpy()), np.signbit(want))
        np.testing.assert_array_equal(half.float().numpy(), want.astype(np.float32))
        np.testing.assert_array_equal(minidl.neg(half).numpy(), -want)
