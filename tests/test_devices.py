"""Devices: their names, moving tensors between them, and what is said where there is no GPU. CUDA here is the fake."""

from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import pytest

import minidl
import minidl.cuda
from minidl.tensor import backend
from minidl.tensor.backends import cupy as cupy_backend
from minidl.tensor.conversion import from_dlpack
from minidl.tensor.device import Device, current_device
from minidl.tensor.threads import get_num_threads, set_num_threads
from tests import fake_cuda


@pytest.fixture
def cuda():
    with fake_cuda.installed() as module:
        yield module


@pytest.mark.parametrize("made, text", [
    (Device("cpu"), "cpu"), (Device(), "cpu"), (Device("cuda"), "cuda"), (Device("cuda:1"), "cuda:1"),
    (Device("cuda", 1), "cuda:1"),
    (Device(2), "cuda:2"), (Device(Device("cuda:3")), "cuda:3"), (Device(type="cuda", index=0), "cuda:0"),
])
def test_names(made, text):
    assert str(made) == text and made == text and made == Device(text) and hash(made) == hash(Device(text))
    assert repr(made) == f"device('{text}')" and pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made


@pytest.mark.parametrize("arguments", [("tpu",), ("cuda:x",), ("cuda:",), ("cuda:1", 1), ("cuda", -1), (-1,), ("cuda", True),
                                       (None,)])
def test_names_of_nothing(arguments):
    with pytest.raises(ValueError, match="Device expected"):
        Device(*arguments)


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert not minidl.cuda.is_available() and minidl.cuda.device_count() == 0
    for use in (lambda: minidl.tensor([1.0], device="cuda"), lambda: minidl.ones(2).cuda(), minidl.cuda.synchronize):
        with pytest.raises(RuntimeError, match=r"minidl\[cuda12\].*minidl\[cuda13\]"):
            use()


@pytest.mark.parametrize("count, message", [(RuntimeError("cudaErrorInsufficientDriver"), "cudaErrorInsufficientDriver"),
                                            (0, "finds none")])
def test_without_a_gpu(cuda, count, message):
    def device_count():
        if isinstance(count, Exception):
            raise count
        return count

    cuda.cuda.runtime.getDeviceCount = device_count
    with pytest.raises(RuntimeError, match=message):
        minidl.tensor([1.0], device="cuda")
    assert not minidl.cuda.is_available()


def test_importing_minidl_makes_no_cuda_backend():
    assert backend._makers["cuda"] is cupy_backend.make


def test_creation_and_the_current_device(cuda):
    assert minidl.tensor([1.0], device="cuda").device == "cuda:0"
    with minidl.cuda.device(1):
        assert minidl.zeros(2, device="cuda").device == "cuda:1" and minidl.cuda.current_device() == 1
    assert minidl.tensor([1, 2], device="cuda:1").device == Device("cuda", 1)
    with minidl.device("cuda"):
        assert current_device() == "cuda"
        for made in (minidl.zeros(2), minidl.tensor([1, 2]), minidl.tensor(np.ones(2)), minidl.rand(2), minidl.arange(3)):
            assert made.device == "cuda:0"
        assert minidl.tensor(minidl.ones(1, device="cpu")).device == "cpu"
    minidl.cuda.set_device("cuda:1")
    assert minidl.ones(1, device="cuda").device == "cuda:1"
    minidl.cuda.set_device(0)
    minidl.cuda.synchronize()
    assert minidl.cuda.is_available() and minidl.cuda.device_count() == 2
    with pytest.raises(RuntimeError, match="no device cuda:7.*2 CUDA device"):
        minidl.zeros(2, device="cuda:7")
    with pytest.raises(ValueError):
        minidl.cuda.set_device("cpu")


def test_what_a_cuda_tensor_is(cuda):
    tensor = minidl.tensor([[1.0, 2.0], [3.0, 4.0]], device="cuda", requires_grad=True)
    assert tensor.is_cuda and not tensor.is_cpu and tensor.get_device() == 0
    assert repr(tensor) == "tensor([[1., 2.],\n        [3., 4.]], device='cuda:0', requires_grad=True)"
    assert tensor.type() == "minidl.cuda.FloatTensor"
    assert tensor[1, 0].item() == 3 and tensor.tolist() == [[1, 2], [3, 4]] and bool(tensor[0, 0]) and float(tensor[1, 1]) == 4
    assert tensor.T.stride() == (1, 2) and tensor[1].storage_offset() == 2 and not tensor.T.is_contiguous()
    tensor.numpy()[0, 0] = 9  # a copy
    assert tensor[0, 0].item() == 1
    with pytest.raises(TypeError, match="numpy"):
        np.asarray(tensor)


def test_moving_is_differentiable(cuda):
    x = minidl.tensor([1.0, 2.0], requires_grad=True)
    y = x.to("cuda")
    assert y.device == "cuda:0" and not y.is_leaf and y.to("cuda") is y.cuda() is y
    z = (y * y).cpu().double()
    (z * z).sum().backward()
    assert x.grad.device == "cpu" and x.grad.dtype == minidl.float32 and x.grad.tolist() == [4, 32]


def test_moving_has_gradients_of_gradients(cuda):
    x = minidl.tensor([1.0, 2.0], requires_grad=True)
    y = x.cuda()
    g, = minidl.autograd.grad((y * y * y).sum(), x, create_graph=True)
    assert g.device == "cpu"
    gg, = minidl.autograd.grad(g.sum(), x)
    assert gg.tolist() == [6, 12]


def test_moving_between_cuda_devices(cuda):
    x = minidl.tensor([1.0, 2.0], device="cuda:0", requires_grad=True)
    y = x.to("cuda:1")
    assert y.device == "cuda:1" and y.tolist() == [1, 2]
    y.backward(minidl.tensor([3.0, 4.0], device="cuda:1"))
    assert x.grad.device == "cuda:0" and x.grad.tolist() == [3, 4]


def test_to_takes_device_and_dtype_together(cuda):
    x = minidl.ones(2)
    other = minidl.zeros(1, dtype=minidl.float16, device="cuda")
    for moved in (x.to("cuda", minidl.float16), x.to(other), x.type_as(other), x.to(dtype="float16", device="cuda:0")):
        assert moved.device == "cuda:0" and moved.dtype == minidl.float16
    with pytest.raises(RuntimeError, match="CUDA"):
        x.cuda("cpu")


def test_leaves_move_as_leaves_where_nothing_is_recorded(cuda):
    x = minidl.ones(2, requires_grad=True)
    with minidl.no_grad():
        assert x.cuda().is_leaf and not x.cuda().requires_grad


def test_mixed_devices_are_an_error_that_names_both(cuda):
    with pytest.raises(RuntimeError, match="cpu.*cuda:0|cuda:0.*cpu"):
        minidl.ones(2) + minidl.ones(2, device="cuda")
    with pytest.raises(RuntimeError, match="cuda:0.*cuda:1"):
        minidl.ones(2, device="cuda:0") + minidl.ones(2, device="cuda:1")


def test_copy_across_devices(cuda):
    source = minidl.tensor([1.0, 2.0], dtype=minidl.float64, device="cuda", requires_grad=True)
    target = minidl.zeros(3, 2)
    target.copy_(source)
    target.sum().backward()
    assert target.device == "cpu" and target.tolist() == [[1, 2]] * 3
    assert source.grad.device == "cuda:0" and source.grad.tolist() == [3, 3]
    assert minidl.zeros(2, device="cuda").copy_(minidl.ones(2)).tolist() == [1, 1]


def test_numpy_arrays_do_not_mix_in(cuda):
    with pytest.raises((RuntimeError, TypeError)):
        minidl.ones(2, device="cuda") * np.ones(2, np.float32)


def test_views_know_their_edits(cuda):
    x = minidl.ones(3, device="cuda", requires_grad=True)
    y = x * 1
    z = y * y
    y[0] = 5
    with pytest.raises(RuntimeError, match="edited"):
        z.sum().backward()
    y = x * 1
    y[:2].zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 1]


@pytest.mark.parametrize("duplicate", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
def test_copies_stay_on_their_device(cuda, duplicate):
    with minidl.cuda.device(1):
        tensor = minidl.tensor([1.0, 2.0], device="cuda:1", requires_grad=True)
        found = duplicate(tensor)
        assert found.device == "cuda:1" and found.tolist() == [1, 2] and found.requires_grad


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16, minidl.float32, minidl.float64, minidl.uint8, minidl.int16,
                                   minidl.int32, minidl.int64], ids=str)
def test_scattering_in_dtypes_that_cupy_cannot_add(cuda, dtype):
    xp = backend.backend_for(Device("cuda"))
    out = xp.on_device(np.array([4 if dtype.kind == "u" else -4, 0, 5]).astype(dtype), None, Device("cuda"))
    index, values = cuda.asarray(np.array([0, 2, 0])), cuda.asarray(np.array([1, 2, 3]).astype(dtype))
    expected = out.get()
    xp.scatter_add(out, index, values)
    np.add.at(expected, np.array([0, 2, 0]), np.array([1, 2, 3]).astype(dtype))
    np.testing.assert_array_equal(out.get().astype(np.float64), expected.astype(np.float64))


def test_repeats_of_each_element(cuda):
    xp = backend.backend_for(Device("cuda"))
    assert xp.repeat(cuda.arange(3), cuda.asarray([1, 0, 2])).tolist() == [0, 2, 2]


def test_dlpack_names_the_device(monkeypatch):
    class OnGPU:
        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **options):
            raise AssertionError

    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(RuntimeError, match="CuPy"):
        from_dlpack(OnGPU())


def test_threads():
    before = get_num_threads()
    try:
        set_num_threads(1)
        assert get_num_threads() == 1
    finally:
        set_num_threads(before)
    for wrong, error in ((0, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="set_num_threads"):
            set_num_threads(wrong)


def test_threads_without_threadpoolctl(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with pytest.raises(ImportError, match="pip install threadpoolctl"):
        set_num_threads(1)


@pytest.mark.parametrize("flip", [False, True], ids=["cuda first", "cpu first"])
def test_a_0d_cpu_tensor_joins_a_cuda_tensor(cuda, flip):
    scale = minidl.tensor(3.0, dtype=minidl.float64, requires_grad=True)
    x = minidl.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    y = scale * x if flip else x * scale
    assert y.device == "cuda:0" and y.dtype == minidl.float32 and y.tolist() == [3, 6]
    y.sum().backward()
    assert scale.grad.device == "cpu" and scale.grad.item() == 3 and scale.grad.dtype == minidl.float64
    assert x.grad.device == "cuda:0" and x.grad.tolist() == [3, 3]
