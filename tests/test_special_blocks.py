"""What the CPU computes in blocks or on the bits of halves is what the reference computes."""

import numpy as np
import pytest

from minidl.tensor.backend import Backend, backend_of
from minidl.tensor.backends import cpu
from minidl.tensor.dtypes import bfloat16, float16, float32, float64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape, order", [((), "C"), ((0, 3), "C"), ((cpu._BLOCK,), "C"), ((3, cpu._BLOCK // 2 + 1), "C"),
                                          ((3, cpu._BLOCK), "F")])
def test_erf_in_blocks(dtype, shape, order):
    x = np.asarray(np.random.default_rng(0).standard_normal(shape) * 3, dtype, order=order)
    xp = backend_of(x)
    np.testing.assert_array_equal(xp.erf(x), Backend.erf(xp, x))
    assert xp.erf(x).shape == shape and xp.erf(x).dtype == dtype


def silu(xp, x):
    return x * xp.sigmoid(x)


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64])
@pytest.mark.parametrize("shape, order", [((), "C"), ((0, 3), "C"), ((cpu._BLOCK,), "C"), ((3, cpu._BLOCK // 2 + 1), "C"),
                                          ((3, cpu._BLOCK), "F")])
def test_a_formula_in_blocks(dtype, shape, order):
    x = np.asarray(np.random.default_rng(0).standard_normal(shape) * 3, order=order).astype(dtype)
    xp = backend_of(x)
    y = xp.by_blocks(silu, x)
    assert y.shape == shape and y.dtype == dtype
    np.testing.assert_allclose(y.astype(float64), Backend.by_blocks(xp, silu, x).astype(float64), rtol=1e-6)


def test_a_formula_of_halves_is_computed_in_float32_without_a_copy_of_all():
    seen = []

    def square(xp, x):
        seen.append((x.dtype, x.size))
        return x * x

    x = np.full(4 * cpu._BLOCK + 1, 0.1, float16)
    y = backend_of(x).by_blocks(square, x)
    assert {d for d, _ in seen} == {np.dtype(float32)} and max(n for _, n in seen) == cpu._BLOCK
    assert (y == (x[:1].astype(float32) ** 2).astype(float16)).all()


@pytest.mark.parametrize("dtype", [float16, bfloat16])
def test_relu_of_halves_looks_at_bits(dtype):
    bits = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    x = bits.view(dtype)
    xp = backend_of(x)
    y = xp.relu(x).astype(float32)
    wide = x.astype(float32)
    np.testing.assert_array_equal(y, np.maximum(wide, 0))
    assert not np.signbit(y[~np.isnan(y)]).any()
    g = np.full(x.shape, 3, dtype)
    expected = np.where(wide > 0, 3, 0)
    passed = xp.relu_gradient(g, xp.relu(x)).astype(float32)
    np.testing.assert_array_equal(passed[~np.isnan(wide)], expected[~np.isnan(wide)])


def test_relu_gradient_of_halves_keeps_subnormals():
    g = np.array([1e-7, -1e-7, 1.0], float16)
    xp = backend_of(g)
    np.testing.assert_array_equal(xp.relu_gradient(g, np.array([1, 0, 2], float16)), np.array([g[0], 0, 1], float16))
