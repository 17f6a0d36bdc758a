"""Tensors and NumPy, DLPack, copy and pickle."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import minidl
from minidl.tensor.conversion import from_dlpack

DTYPES = [minidl.float16, minidl.float32, minidl.float64, minidl.uint8, minidl.int8, minidl.int16, minidl.int32, minidl.int64,
          minidl.bool]


class Tagged(minidl.Tensor):
    """A subclass, as nn.Parameter is one."""


def test_numpy_shares_memory_also_where_grad_is_required():
    tensor = minidl.ones(2, requires_grad=True)
    for array in (tensor.numpy(), np.asarray(tensor)):
        array[0] += 1
    assert tensor.tolist() == [3, 1]


def test_array_protocol():
    tensor = minidl.ones(2)
    assert np.asarray(tensor, np.float64).dtype == np.float64
    fresh = np.array(tensor)
    fresh[0] = 7
    assert tensor.tolist() == [1, 1]
    with pytest.raises(ValueError):
        np.asarray(tensor, np.float64, copy=False)


@pytest.mark.parametrize("left", [np.ones(3, np.float32), np.float32(2), np.float64(2), np.array(2.0, np.float32)], ids=repr)
@pytest.mark.parametrize("operator", ["__add__", "__sub__", "__mul__", "__truediv__", "__lt__"])
def test_numpy_on_the_left(left, operator):
    tensor = minidl.tensor([1.0, 2.0, 4.0], requires_grad=True)
    found = {"__add__": lambda: left + tensor, "__sub__": lambda: left - tensor, "__mul__": lambda: left * tensor,
             "__truediv__": lambda: left / tensor, "__lt__": lambda: left < tensor}[operator]()
    assert isinstance(found, minidl.Tensor)
    np.testing.assert_allclose(found.numpy(), getattr(np.asarray(left, np.float64), operator)(tensor.numpy()))


def test_numpy_functions_give_arrays():
    tensor = minidl.tensor([1.0, 2.0], requires_grad=True)
    for found in (np.exp(tensor), np.sum(tensor), np.concatenate([tensor, tensor]), np.mean(tensor, axis=0)):
        assert isinstance(found, (np.ndarray, np.generic))
    assert np.concatenate([tensor, tensor]).tolist() == [1, 2, 1, 2] and np.sum(tensor) == 3


def test_from_numpy_shares_memory():
    array = np.ones(2, np.float32)
    first, second = minidl.from_numpy(array), minidl.from_numpy(array)
    first[0] = 5
    assert array[0] == 5 and second.tolist() == [5, 1]
    assert first.array is not second.array  # one array object belongs to one tensor


def test_a_tensor_of_a_shared_array_is_another_input():
    x = minidl.tensor([2.0, 3.0], requires_grad=True)
    y = minidl.as_tensor(x.numpy()).requires_grad_()
    dx, = minidl.autograd.grad((x * x * y).sum(), x, create_graph=True)
    dxy, = minidl.autograd.grad(dx.sum(), y)
    assert dxy.tolist() == [4, 6]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dlpack_shares_memory_both_ways(dtype):
    tensor = minidl.zeros(2, 3, dtype=dtype)
    array = np.from_dlpack(tensor)
    assert array.dtype == dtype and array.ctypes.data == tensor.data_ptr()
    back = from_dlpack(array)
    back[0, 0] = 1
    assert tensor[0, 0].item() == 1
    assert from_dlpack(tensor).data_ptr() == tensor.data_ptr()


def test_dlpack_with_torch():
    torch = pytest.importorskip("torch")
    theirs = torch.arange(4.0)
    ours = from_dlpack(theirs)
    ours[0] = 9
    assert theirs[0].item() == 9
    ours = minidl.zeros(3)
    torch.from_dlpack(ours)[1] = 5
    assert ours.tolist() == [0, 5, 0]
    assert minidl.tensor(theirs).tolist() == [9, 1, 2, 3]
    theirs = torch.ones(2, dtype=torch.bfloat16)
    with pytest.raises(BufferError, match="bfloat16; import .*int16"):
        from_dlpack(theirs)
    assert from_dlpack(theirs.view(torch.int16)).view(dtype=minidl.bfloat16).tolist() == [1, 1]


def test_dlpack_refusals():
    with pytest.raises(BufferError, match="bfloat16"):
        np.from_dlpack(minidl.zeros(2, dtype=minidl.bfloat16))
    with pytest.raises(TypeError, match="__dlpack__"):
        from_dlpack([1, 2])
    with pytest.raises(TypeError, match="dtype"):
        from_dlpack(np.ones(2, np.uint32))


# Copies

@pytest.mark.parametrize("dtype", [*DTYPES, minidl.bfloat16], ids=str)
def test_pickle(dtype):
    tensor = minidl.ones(2, 3, dtype=dtype)[:, 1:]
    found = pickle.loads(pickle.dumps(tensor))
    assert found.dtype == dtype and found.tolist() == tensor.tolist() and not found.requires_grad


def test_pickle_keeps_requires_grad_but_no_gradient_and_no_history():
    leaf = minidl.ones(2, requires_grad=True)
    computed = leaf * 2
    computed.sum().backward()
    for tensor in (leaf, computed):
        found = pickle.loads(pickle.dumps(tensor))
        assert found.requires_grad and found.is_leaf and found.grad is None and found.tolist() == tensor.tolist()


@pytest.mark.parametrize("duplicate", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy], ids=["pickle", "deepcopy"])
@pytest.mark.parametrize("dtype", [minidl.float32, minidl.bfloat16], ids=str)
def test_views_of_one_memory_share_it_afterwards(duplicate, dtype):
    whole = minidl.zeros(4, 3, dtype=dtype)
    parts = [whole[1:], whole.T, whole.flatten(), whole[:0]]
    made, *views = duplicate([whole, *parts])
    made[2, 1] = 7
    assert views[0][1, 1].item() == views[1][1, 2].item() == views[2][7].item() == 7 and views[3].shape == (0, 3)
    assert not whole.numpy().astype(np.float32).any()


def test_copy_shares_and_deepcopy_does_not():
    tensor = minidl.zeros(2, requires_grad=True)
    shallow, deep = copy.copy(tensor), copy.deepcopy(tensor)
    with minidl.no_grad():
        tensor[0] = 5
    assert shallow.tolist() == [5, 0] and deep.tolist() == [0, 0]
    assert shallow.requires_grad and deep.requires_grad and shallow.node is not tensor.node


def test_deepcopy_copies_the_gradient_and_keeps_ties():
    tensor = minidl.ones(2, requires_grad=True)
    (tensor * 3).sum().backward()
    a, b = copy.deepcopy([tensor, tensor])
    assert a is b and a.grad.tolist() == [3, 3] and a.grad.data_ptr() != tensor.grad.data_ptr()


def test_deepcopy_of_a_computed_tensor_is_refused():
    with pytest.raises(RuntimeError, match="leaf"):
        copy.deepcopy(minidl.ones(2, requires_grad=True) * 2)


@pytest.mark.parametrize("duplicate", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy],
                         ids=["pickle", "deepcopy", "copy"])
def test_subclass_and_attributes_are_kept(duplicate):
    tensor = Tagged([1.0, 2.0], requires_grad=True)
    tensor.note = ["kept"]
    found = duplicate(tensor)
    assert type(found) is Tagged and found.note == ["kept"] and found.requires_grad


def test_arrays_of_other_layouts_are_copied_whole():
    strided = np.lib.stride_tricks.as_strided(np.arange(4.0), (2, 2), (8, 8))
    tensor = minidl.from_numpy(np.asfortranarray(np.arange(6.0).reshape(2, 3))).T
    for t in (minidl.from_numpy(strided), tensor, minidl.ones(3).expand(2, 3)):
        assert copy.deepcopy(t).tolist() == pickle.loads(pickle.dumps(t)).tolist() == t.tolist()
