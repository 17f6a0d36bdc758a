"""Matrix products: halves, integers, empties, in-place forms, gradient buffers, errors."""

import tracemalloc

import ml_dtypes
import numpy as np
import pytest

import minidl
from minidl.tensor.kernels.halves import narrow_into, widen_into
from minidl.tensor.ops.linear import bilinear, linear

HALVES = (minidl.float16, minidl.bfloat16)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ones(*shape, dtype=minidl.float32, **more):
    return minidl.ones(shape, dtype=dtype, **more)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("a, b", [
    ((3,), (3,)), ((3,), (5, 3, 2)), ((5, 2, 3), (3,)), ((6, 1, 2, 3), (5, 3, 4)), ((2, 2, 0), (0, 4)), ((0, 3), (3, 4)),
    ((40, 3, 60, 200), (40, 1, 200, 70)), ((300, 9000), (9000, 1100)), ((1, 5000), (5000, 2000)), ((3000, 64), (64, 3000)),
    ((3, 1200, 1000), (3, 1000, 700)),
])
def test_half_products_are_float32_products_rounded_once(a, b, dtype):
    a, b = (normal(*shape, seed=i).astype(dtype) for i, shape in enumerate((a, b)))
    found = minidl.matmul(minidl.tensor(a), minidl.tensor(b))
    want = np.matmul(a.astype(np.float32), b.astype(np.float32))
    assert found.dtype == dtype and found.shape == want.shape
    eps = 2.0 ** (-10 if dtype == minidl.float16 else -7)
    np.testing.assert_allclose(found.numpy().astype(np.float32), want, rtol=eps, atol=eps * 0.02 * max(a.shape[-1], 1) ** 0.5)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("call", [
    lambda x: minidl.dot(x, x), lambda x: minidl.einsum("i,i", x, x), lambda x: minidl.tensordot(x, x, 1),
    lambda x: minidl.inner(x, x), lambda x: linear(x, x), lambda x: minidl.einsum("i->", x),
    lambda x: minidl.addmv(minidl.zeros(1, dtype=x.dtype), x.reshape(1, -1), x),
    lambda x: minidl.addbmm(minidl.zeros(1, 1, dtype=x.dtype), x.reshape(-1, 1, 1), x.reshape(-1, 1, 1)),
])
def test_sums_in_half_accumulate_in_float32(call, dtype):
    assert float(call(ones(4096, dtype=dtype)).numpy().sum()) == 4096


def test_a_large_half_product_takes_little_scratch():
    a, b = ones(64, 8192, dtype=minidl.float16), ones(8192, 4096, dtype=minidl.float16)
    tracemalloc.start()
    out = minidl.matmul(a, b)
    scratch = tracemalloc.get_traced_memory()[1] - out.numpy().nbytes
    tracemalloc.stop()
    assert scratch < 0.25 * 4 * (a.numel() + b.numel())
    assert (out.numpy() == 8192).all()


@pytest.mark.parametrize("shape", [(), (1,), (1100,), (300, 1), (300, 1100)])
def test_any_bias_that_broadcasts(shape):
    x, w, b = normal(300, 5000).astype(np.float16), normal(1100, 5000).astype(np.float16), normal(*shape).astype(np.float16)
    found = linear(*map(minidl.tensor, (x, w, b))).numpy().astype(np.float32)
    np.testing.assert_allclose(found, x.astype(np.float32) @ w.astype(np.float32).T + b.astype(np.float32), rtol=2e-3, atol=0.1)


def test_transposed_half_operands():
    a, b = normal(1500, 900).astype(np.float16), normal(2100, 1500, seed=1).astype(np.float16)
    found = minidl.matmul(minidl.tensor(a).t(), minidl.tensor(b).t()).numpy()
    np.testing.assert_allclose(found.astype(np.float32), (a.astype(np.float32).T @ b.astype(np.float32).T), rtol=2e-3, atol=0.1)


def test_every_float16_is_widened_exactly():
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for source in (half, half[np.isfinite(half)], half.reshape(256, 256).T, half.reshape(256, 256)[:, 3:]):
        out = np.empty(source.shape, np.float32)
        widen_into(out, source)
        np.testing.assert_array_equal(out, source.astype(np.float32))
        assert (np.signbit(out) == np.signbit(source)).all()


@pytest.mark.parametrize("kind", ["all", "near the limits", "ties", "subnormal"])
def test_rounding_to_float16_agrees_with_numpy(kind):
    bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 17, dtype=np.uint32)
    if kind != "all":
        bits = (bits & 0x8FFFFFFF) | (0x40000000 if kind == "near the limits" else 0x30000000)
    if kind == "ties":
        bits = bits & 0xFFFFF000
    x = bits.view(np.float32)
    if kind == "all":
        x[:10] = [np.inf, -np.inf, np.nan, 65504, 65519.99, 65520, -65520, 0, -0.0, 1e-8]
    out = np.empty(x.shape, np.float16)
    narrow_into(out, x)
    with np.errstate(all="ignore"):
        want = x.astype(np.float16)
    numbers = ~np.isnan(x)
    assert (out.view(np.uint16) == want.view(np.uint16))[numbers].all() and np.isnan(out[~numbers]).all()


def test_integers_stay_integers():
    a = minidl.arange(6).reshape(2, 3)
    assert minidl.matmul(a, a.t()).dtype == minidl.int64
    assert minidl.matmul(a, a.t()).numpy().tolist() == [[5, 14], [14, 50]]
    assert minidl.trace(minidl.ones(2, 2, dtype=minidl.uint8)).dtype == minidl.int64
    assert minidl.addmm(a, a[:, :2], a, beta=2).numpy().tolist() == [[3, 6, 9], [18, 27, 36]]


def test_without_its_input_a_sum_ignores_nan():
    nan = minidl.full((2, 2), float("nan"))
    assert minidl.addmm(nan, ones(2, 3), ones(3, 2), beta=0).numpy().tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize("name, shapes", [
    ("addmm_", ((2, 2), (2, 3), (3, 2))), ("addmv_", ((2,), (2, 3), (3,))), ("addr_", ((2, 3), (2,), (3,))),
    ("baddbmm_", ((4, 2, 2), (4, 2, 3), (4, 3, 2))), ("addbmm_", ((2, 2), (4, 2, 3), (4, 3, 2))),
])
def test_in_place_forms(name, shapes):
    x, a, b = (minidl.tensor(normal(*shape, seed=i)) for i, shape in enumerate(shapes))
    want = getattr(x, name[:-1])(a, b, beta=0.5, alpha=2).numpy()
    assert getattr(x, name)(a, b, beta=0.5, alpha=2) is x
    np.testing.assert_array_equal(x.numpy(), want)


def test_a_weight_s_gradient_is_written_into_its_buffer():
    weight = minidl.tensor(normal(4, 3), requires_grad=True)
    buffer = np.empty((4, 3), np.float32)
    weight.grad_buffer = minidl.from_numpy(buffer)
    x, g = normal(5, 3), normal(5, 4, seed=1)
    linear(minidl.tensor(x), weight).backward(minidl.tensor(g))
    assert np.shares_memory(weight.grad.numpy(), buffer)
    np.testing.assert_allclose(buffer, g.T @ x, rtol=1e-5, atol=1e-6)


def test_matrix_power_zero_is_the_identity_with_gradient_zero():
    x = minidl.tensor(normal(2, 3, 3), requires_grad=True)
    y = minidl.matrix_power(x, 0)
    assert (y.numpy() == np.eye(3)).all()
    assert (minidl.autograd.grad(y.sum(), x)[0].numpy() == 0).all()


@pytest.mark.parametrize("call, error", [
    (lambda: minidl.matmul(ones(2, 3), ones(2, 3)), RuntimeError),
    (lambda: minidl.matmul(minidl.tensor(1.0), ones(2)), RuntimeError),
    (lambda: minidl.matmul(ones(2, 2, 3), ones(3, 3, 2)), RuntimeError),
    (lambda: minidl.matmul(ones(2, 2, dtype=minidl.bool), ones(2, 2, dtype=minidl.bool)), RuntimeError),
    (lambda: minidl.mm(ones(2), ones(2, 3)), RuntimeError),
    (lambda: minidl.bmm(ones(2, 2, 3), ones(1, 3, 2)), RuntimeError),
    (lambda: minidl.mv(ones(2, 3), ones(2)), RuntimeError),
    (lambda: minidl.dot(ones(2), ones(3)), RuntimeError),
    (lambda: minidl.outer(ones(2, 2), ones(3)), RuntimeError),
    (lambda: minidl.inner(ones(2), ones(3)), RuntimeError),
    (lambda: minidl.addmm(ones(3, 3), ones(2, 3), ones(3, 2)), RuntimeError),
    (lambda: minidl.addmm(ones(3, 3), ones(2, 3), ones(3, 2), beta=0), RuntimeError),
    (lambda: minidl.addbmm(ones(2, 2), ones(4, 2, 3), ones(4, 2, 3)), RuntimeError),
    (lambda: minidl.addr(minidl.arange(2), minidl.arange(2), minidl.arange(2), alpha=0.5), RuntimeError),
    (lambda: minidl.tensordot(ones(2, 3), ones(2, 3), 1), RuntimeError),
    (lambda: minidl.tensordot(ones(2, 3), ones(2, 3), -1), RuntimeError),
    (lambda: minidl.tensordot(ones(2, 3), ones(2, 3), ([0], [0, 1])), RuntimeError),
    (lambda: minidl.tensordot(ones(2, 3), ones(2, 3), ([5], [0])), IndexError),
    (lambda: minidl.cross(ones(2, 4), ones(2, 4)), RuntimeError),
    (lambda: minidl.cross(ones(2, 3), ones(2, 3), dim=2), IndexError),
    (lambda: minidl.trace(ones(2)), RuntimeError),
    (lambda: minidl.matrix_power(ones(2, 3), 2), RuntimeError),
    (lambda: linear(ones(2, 3), ones(4, 2)), RuntimeError),
    (lambda: linear(ones(2, 3), ones(4, 3), ones(5)), RuntimeError),
    (lambda: linear(minidl.tensor(1.0), ones(4, 3)), RuntimeError),
    (lambda: bilinear(ones(2, 3), ones(3, 3), ones(4, 3, 3)), RuntimeError),
])
def test_errors(call, error):
    with pytest.raises(error):
        call()


def test_an_error_says_both_shapes():
    with pytest.raises(RuntimeError, match=r"\(2, 3\) and \(2, 4\)"):
        minidl.matmul(ones(2, 3), ones(2, 4))
    with pytest.raises(RuntimeError, match=r"last axis of 64, got an input of shape \(32, 63\)"):
        linear(ones(32, 63), ones(10, 64))


def test_bfloat16_of_ml_dtypes_is_multiplied_as_such():
    x = np.ones((2, 300), ml_dtypes.bfloat16)
    assert minidl.matmul(minidl.from_numpy(x), minidl.from_numpy(x).t()).numpy().astype(float).tolist() == [[300, 300]] * 2


@pytest.mark.parametrize("dtype", [minidl.int32, minidl.int8, minidl.uint8, minidl.float16], ids=str)
def test_tensordot_broadcasts_an_axis_of_length_one_in_every_dtype(dtype):
    y = minidl.tensordot(ones(1, 1, 1, dtype=dtype), ones(2, 1, 2, dtype=dtype), dims=[[0, 1], [2, 0]])
    assert y.dtype == dtype
    assert y.tolist() == [[4]]


@pytest.mark.parametrize(("scales", "want"), [
    ({}, [[True, True], [False, True]]), ({"beta": 0}, [[True, True], [False, False]]),
    ({"alpha": False}, [[True, False], [False, True]]), ({"alpha": 256, "beta": 2}, [[True, True], [False, True]])])
def test_addr_of_bools(scales, want):
    y = minidl.addr(minidl.eye(2) > 0, minidl.tensor([True, False]), minidl.tensor([True, True]), **scales)
    assert y.dtype == minidl.bool
    assert y.tolist() == want
