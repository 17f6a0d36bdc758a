"""What a Tensor tells about itself, its dtypes, and how it is overwritten as a whole."""

from __future__ import annotations

import numpy as np
import pytest

import minidl
from minidl.tensor import dtypes, inspection

F32, F64, F16, I64, I32, U8, BOOL = (minidl.float32, minidl.float64, minidl.float16, minidl.int64, minidl.int32, minidl.uint8,
                                     minidl.bool)


@pytest.mark.parametrize("data, dtype", [
    (1.5, F32), (2, I64), (True, BOOL), ([1, 2.5], F32), ([True, 2], I64), ([], F32), ([[1, 2], [3, 4]], I64),
    (np.float64(1), F64), ([np.float64(1)], F64), (np.arange(3, dtype=np.int32), I32), (np.ones(2, np.uint16), I64),
    (np.ones(2, ">f4"), F32), (range(3), I64), (minidl.tensor([1.0], dtype=F16), F16), ([minidl.tensor(1.0)] * 2, F32),
])
def test_dtype_of_data(data, dtype):
    assert minidl.tensor(data).dtype == dtype


@pytest.mark.parametrize("data, error", [("text", TypeError), (1j, TypeError), ([[1, 2], [3]], ValueError), (None, TypeError),
                                         (object(), TypeError), ({"a": 1}, TypeError), ([2 ** 63], RuntimeError)])
def test_data_that_is_no_tensor(data, error):
    with pytest.raises(error):
        minidl.tensor(data)


def test_the_constructor_copies_and_takes_requires_grad():
    values = np.ones(3, np.float32)
    tensor = minidl.Tensor(values, requires_grad=True)
    values[0] = 7
    assert tensor.tolist() == [1, 1, 1] and tensor.requires_grad and tensor.is_leaf
    with pytest.raises(RuntimeError, match="floating"):
        minidl.Tensor([1, 2], requires_grad=True)


def test_layout():
    whole = minidl.tensor(np.arange(24.0, dtype=np.float32)).reshape(2, 3, 4)
    part = whole.permute(2, 0, 1)[1:]
    assert part.size() == part.shape == (3, 2, 3) and part.size(-1) == 3 and part.dim() == part.ndim == 3
    assert part.numel() == part.nelement() == 18 and len(part) == 3
    assert part.stride() == (1, 12, 4) and part.stride(1) == 12 and part.storage_offset() == 1
    assert whole.is_contiguous() and not part.is_contiguous()
    assert part.element_size() == part.itemsize == 4 and part.nbytes == 72
    assert part.is_floating_point() and not part.is_cuda and part.is_cpu and part.get_device() == -1
    assert part.data_ptr() == whole.data_ptr() + 4


@pytest.mark.parametrize("call", [lambda t: t.size(2), lambda t: t.stride(-3), lambda t: t[0, 0].size(0)])
def test_axes_out_of_range(call):
    with pytest.raises(IndexError):
        call(minidl.zeros(2, 3))


def test_transposes():
    tensor = minidl.zeros(2, 3, 4, requires_grad=True)
    assert tensor.T.shape == (4, 3, 2) and tensor.mT.shape == tensor.mH.shape == (2, 4, 3)
    assert tensor[0].H.shape == (4, 3) and tensor[0, 0].T.shape == (4,)
    assert tensor.T.requires_grad
    for call in (lambda: tensor.H, lambda: tensor[0, 0].mT):
        with pytest.raises(RuntimeError):
            call()


def test_questions():
    tensor = minidl.zeros(2, 3)
    assert inspection.is_tensor(tensor) and not inspection.is_tensor(tensor.numpy())
    assert inspection.is_same_size(tensor, minidl.ones(2, 3)) and not tensor.is_same_size(minidl.ones(3, 2))
    assert inspection.is_floating_point(tensor) and not minidl.tensor(1).is_floating_point()
    assert inspection.numel(tensor) == 6


def test_hash_is_by_identity():
    a, b = minidl.tensor(1.0), minidl.tensor(1.0)
    assert len({a, b, a}) == 2


@pytest.mark.parametrize("a, b, expected", [
    (F32, F64, F64), (I64, F16, F16), (U8, minidl.int8, minidl.int16), (BOOL, U8, U8), (F16, minidl.bfloat16, F32),
    ("float32", int, F32),
])
def test_promote_types(a, b, expected):
    assert dtypes.promote_types(a, b) == dtypes.promote_types(b, a) == expected


@pytest.mark.parametrize("a, b, expected", [
    (minidl.ones(2, dtype=F16), minidl.tensor(1.0, dtype=F64), F16), (minidl.ones(2, dtype=I64), 1.5, F32),
    (minidl.ones(2, dtype=BOOL), 1, I64), (1, 2.0, F32), (minidl.tensor(1, dtype=I32), minidl.tensor(1, dtype=I64), I64),
])
def test_result_type(a, b, expected):
    assert dtypes.result_type(a, b) == expected


@pytest.mark.parametrize("source, target, expected", [(F32, I64, False), (I64, F16, True), (I64, BOOL, False),
                                                      (I64, U8, True), (F64, F16, True), (BOOL, F32, True)])
def test_can_cast(source, target, expected):
    assert dtypes.can_cast(source, target) is expected


def test_default_dtype():
    try:
        minidl.set_default_dtype(F64)
        assert minidl.get_default_dtype() == minidl.tensor(1.0).dtype == F64
    finally:
        minidl.set_default_dtype(F32)
    with pytest.raises(TypeError, match="floating"):
        minidl.set_default_dtype(I64)


def test_python_s_types_as_dtypes():
    x = minidl.ones(2)
    assert (x.to(float).dtype, x.to(int).dtype, x.to(bool).dtype) == (F64, I64, BOOL)
    assert minidl.zeros(2, dtype=float).dtype == minidl.tensor([1], dtype=float).dtype == F64


# Overwriting

def test_copy_broadcasts_casts_and_is_recorded():
    source = minidl.tensor([1.0, 2.0], dtype=F64, requires_grad=True)
    history = minidl.ones(3, 2, requires_grad=True)
    target = history * 1
    assert target.copy_(source) is target
    (target * minidl.tensor([[1.0], [10.0], [100.0]])).sum().backward()
    assert target.tolist() == [[1, 2]] * 3 and target.dtype == F32
    assert source.grad.tolist() == [111, 111] and source.grad.dtype == F64
    assert history.grad is None or not history.grad.numpy().any()


def test_copy_into_a_part():
    source = minidl.tensor(5.0, requires_grad=True)
    target = minidl.zeros(2, 2)
    target[0].copy_(source)
    target.sum().backward()
    assert target.tolist() == [[5, 5], [0, 0]] and source.grad.item() == 2


def test_copy_does_not_make_the_source_its_own_leaf():
    source = minidl.ones(2, requires_grad=True)
    target = minidl.zeros(2).copy_(source)
    assert not target.is_leaf and target.node is not source.node


@pytest.mark.parametrize("source, error", [(np.ones((3, 2)), RuntimeError), (np.ones((1, 2, 2)), RuntimeError)])
def test_copy_of_a_shape_that_does_not_fit(source, error):
    with pytest.raises(error, match="copy_"):
        minidl.zeros(2, 2).copy_(minidl.tensor(source))


def test_copy_wants_a_tensor():
    with pytest.raises(TypeError):
        minidl.zeros(2).copy_([1, 2])


def test_fill_and_zero():
    value = minidl.tensor(2.0, requires_grad=True)
    filled = minidl.zeros(3).fill_(value)
    filled.sum().backward()
    assert filled.tolist() == [2, 2, 2] and value.grad.item() == 3
    computed = minidl.ones(2, requires_grad=True) * 1
    assert computed.zero_().tolist() == [0, 0] and computed.requires_grad
    assert minidl.zeros(2, dtype=I64).fill_(7).tolist() == [7, 7]
    with pytest.raises(RuntimeError, match="0-d"):
        filled.fill_(minidl.ones(3))


@pytest.mark.parametrize("edit", [lambda t: t.fill_(1), lambda t: t.zero_(), lambda t: t.copy_(minidl.ones(2))])
def test_leaves_are_not_overwritten_while_recording(edit):
    leaf = minidl.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        edit(leaf)
    before = leaf._version
    with minidl.no_grad():
        edit(leaf)
    assert leaf.requires_grad and leaf.is_leaf and leaf._version == before + 1


def test_overwriting_what_backward_needs_is_seen():
    x = minidl.ones(2, requires_grad=True)
    y = x * 2
    z = y * y
    y.zero_()
    with pytest.raises(RuntimeError, match="mul"):
        z.sum().backward()


def test_detach():
    x = minidl.ones(2, requires_grad=True)
    y = x * 2
    alias = y.detach()
    assert not alias.requires_grad and alias.numpy().base is not None
    alias[0] = 5
    assert y.tolist() == [5, 2]
    assert y.detach_() is y and y.is_leaf and not y.requires_grad
    with pytest.raises(RuntimeError, match="view"):
        (x * 2)[0].detach_()


def test_data():
    x = minidl.ones(2, requires_grad=True)
    x.data[0] = 3
    assert x.tolist() == [3, 1] and not x.data.requires_grad
    x.data = minidl.zeros(4, dtype=F64)
    assert x.shape == (4,) and x.dtype == F64 and x.requires_grad
    x.sum().backward()
    assert x.grad.shape == (4,)
