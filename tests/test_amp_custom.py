"""custom_fwd and custom_bwd: user-defined operations under autocast."""

from __future__ import annotations

import numpy as np
import pytest

import minidl
from minidl import amp, autograd
from minidl.amp.custom import custom_bwd, custom_fwd

SEEN: list = []


class Product(autograd.Function):
    """a @ b in whatever autocast says, in both directions."""

    @staticmethod
    @custom_fwd
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        SEEN.append((a.dtype, (a @ b).dtype))
        return a @ b

    @staticmethod
    @custom_bwd
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        SEEN.append((g.dtype, (a @ b).dtype))
        return g @ b.T, a.T @ g


class Exact(autograd.Function):
    """a @ b in float32, with a scaled by the entry of a dict."""

    @staticmethod
    @custom_fwd(cast_inputs=minidl.float32)
    def forward(ctx, a, others, index):
        b = others["b"]
        SEEN.append((a.dtype, b[0].dtype, index.dtype, (a @ b[0]).dtype))
        ctx.b = b[0]
        return a @ b[0]

    @staticmethod
    @custom_bwd
    def backward(ctx, g):
        SEEN.append((g.dtype, (g @ ctx.b.T).dtype))
        return g @ ctx.b.T, None, None


@pytest.fixture(autouse=True)
def seen():
    SEEN.clear()


@pytest.fixture
def a():
    return minidl.tensor(np.cos(np.arange(6, dtype=np.float32)).reshape(2, 3), requires_grad=True)


@pytest.fixture
def b():
    return minidl.tensor(np.sin(np.arange(9, dtype=np.float32)).reshape(3, 3), requires_grad=True)


@pytest.mark.parametrize("half", [minidl.float16, minidl.bfloat16], ids=str)
def test_backward_runs_in_the_state_of_forward(half, a, b):
    with amp.autocast(dtype=half):
        y = Product.apply(a, b)
    y.float().sum().backward()
    assert SEEN == [(minidl.float32, half), (half, half)]
    assert a.grad.dtype == b.grad.dtype == minidl.float32


def test_outside_a_region_backward_stays_outside(a, b):
    y = Product.apply(a, b)
    with amp.autocast():
        y.sum().backward()
        assert (a @ b).dtype == minidl.float16
    assert SEEN == [(minidl.float32, minidl.float32)] * 2


def test_backward_also_sees_what_lists_moved(a, b):
    with amp.autocast(), amp.lists(add_full=[minidl.matmul]):
        y = Product.apply(a, b)
    y.sum().backward()
    assert SEEN == [(minidl.float32, minidl.float32)] * 2


def test_cast_inputs_casts_and_switches_autocast_off(a, b):
    full = minidl.float32
    with amp.autocast():
        y = Exact.apply(a.half(), {"b": [b.detach().half()]}, minidl.tensor([1]))
        assert (a @ b).dtype == minidl.float16
        y.sum().backward()
    assert SEEN == [(full, full, minidl.int64, full), (full, full)]
    assert a.grad.dtype == full


def test_cast_inputs_has_no_effect_outside_a_region(a, b):
    y = Exact.apply(a.half(), {"b": [b.detach().half()]}, minidl.tensor([1]))
    assert y.dtype == minidl.float16 and SEEN[0][0] == minidl.float16


def test_cast_inputs_leaves_float64_alone():
    one = minidl.ones(1, 1, dtype=minidl.float64)
    with amp.autocast():
        Exact.apply(one, {"b": [one]}, minidl.tensor([1]))
    assert SEEN[0][:2] == (minidl.float64, minidl.float64)


def test_device_type_says_whose_tensors_are_cast(a, b):
    class Other(autograd.Function):
        @staticmethod
        @custom_fwd(cast_inputs=minidl.float16, device_type="cuda")
        def forward(ctx, x):
            SEEN.append(x.dtype)
            return x.clone()

        @staticmethod
        @custom_bwd(device_type="cuda")
        def backward(ctx, g):
            return g

    with amp.autocast():
        Other.apply(a).sum().backward()
    assert SEEN == [minidl.float32] and a.grad.dtype == minidl.float32


def test_errors(a):
    with pytest.raises(TypeError, match="floating dtype as cast_inputs, got int64"):
        custom_fwd(cast_inputs=minidl.int64)

    class WithoutContext(autograd.Function):
        @staticmethod
        @custom_fwd
        def forward(x):
            return x.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    with pytest.raises(TypeError, match="custom_fwd expected forward"):
        WithoutContext.apply(a)

    class HalfDecorated(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        @custom_bwd
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match="decorated with custom_fwd"):
        HalfDecorated.apply(a).sum().backward()
