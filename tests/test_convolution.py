"""Convolutions beyond the op table: paths that need larger inputs, halves, empty batches, bad arguments."""

import importlib
import tracemalloc

import numpy as np
import pytest

import minidl
from minidl.tensor.ops import convolution as ops
from tests.table import sample
from tests.table.convolution import correlate, spread

columns = importlib.import_module("minidl.tensor.kernels.columns")


def tensor(*shape, dtype=minidl.float64, seed=0, requires_grad=False):
    return minidl.tensor(sample(*shape, seed=seed), dtype=dtype, requires_grad=requires_grad)


GEOMETRIES = [  # lengths, kernel, groups * channels, outputs, arguments
    ((9, 7), (3, 3), 8, 4, {"padding": 1}),
    ((9, 7), (3, 3), 8, 4, {"padding": (2, 0), "stride": (2, 1)}),
    ((9, 8), (4, 3), 9, 3, {"padding": 3, "stride": 3, "dilation": (2, 1)}),
    ((9, 7), (2, 5), 8, 6, {"groups": 2, "padding": 2}),
    ((9, 7), (3, 3), 4, 40, {}),
    ((40,), (3,), 30, 2, {"padding": 1}),
    ((40,), (5,), 2, 3, {"stride": 2, "padding": 4}),
    ((4, 3, 5), (2, 2, 3), 6, 2, {"padding": 1}),
    ((9, 7), (3, 3), 6, 6, {"groups": 6, "padding": 1}),
    ((9, 7), (3, 3), 6, 12, {"groups": 6, "stride": 2}),
    ((9, 7), (1, 1), 6, 4, {"groups": 2}),
    ((40,), (3,), 4, 8, {"groups": 4, "padding": 4, "dilation": 2}),
    ((40,), (4,), 4, 4, {"groups": 4, "stride": 3, "padding": 2}),
    ((4, 3, 5), (2, 2, 3), 4, 8, {"groups": 4, "padding": 1}),
]


@pytest.mark.parametrize("how", [{}, {"padding": 3, "dilation": 2}, {"padding": 700}, {"stride": 2, "padding": 5}])
@pytest.mark.parametrize("dtype", [minidl.float64, minidl.float16], ids=str)
def test_depthwise_convolution_of_long_signals_piece_by_piece(how, dtype):
    """300 channels with 9 taps are cut into pieces of 48 windows."""
    x, w = tensor(2, 300, 130, dtype=dtype, requires_grad=True), tensor(300, 1, 9, seed=1, dtype=dtype, requires_grad=True)
    y = ops.conv1d(x, w, groups=300, **how)
    tolerance = 1e-10 if dtype == minidl.float64 else 5e-2
    expected = correlate(x.numpy().astype(float), w.numpy().astype(float), groups=300, **how)
    np.testing.assert_allclose(y.numpy().astype(float), expected, atol=tolerance)
    g = sample(*y.shape, seed=2).astype(y.numpy().dtype)
    _, gw = minidl.autograd.grad(y, [x, w], minidl.tensor(g))
    for tap in (0, 4, 8):
        one = np.zeros((300, 1, 9))
        one[:, :, tap] = 1
        reads = correlate(x.numpy().astype(float), one, groups=300, **how)
        np.testing.assert_allclose(gw.numpy()[:, 0, tap].astype(float), (g * reads).sum((0, 2)), atol=tolerance)


@pytest.mark.parametrize("elements", [1 << 17, 500, 60], ids=["images", "few rows", "one row"])
@pytest.mark.parametrize("lengths, kernel, channels, outputs, how", GEOMETRIES)
def test_block_by_block(monkeypatch, elements, lengths, kernel, channels, outputs, how):
    """Values and both gradients, however images and rows are cut into blocks."""
    monkeypatch.setattr(columns, "_CACHED", elements)
    axes = len(lengths)
    x = tensor(5, channels, *lengths, requires_grad=True)
    w = tensor(outputs, channels // how.get("groups", 1), *kernel, seed=1, requires_grad=True)
    y = getattr(ops, f"conv{axes}d")(x, w, **how)
    np.testing.assert_allclose(y.numpy(), correlate(x.numpy(), w.numpy(), **how), atol=1e-10)
    g = minidl.tensor(sample(*y.shape, seed=2))
    gx, gw = minidl.autograd.grad(y, [x, w], g)
    extra = tuple(n - m for n, m in zip(lengths, spread(g.numpy(), w.numpy(), **how).shape[2:]))
    np.testing.assert_allclose(gx.numpy(), spread(g.numpy(), w.numpy(), output_padding=extra, **how), atol=1e-10)
    direction = sample(*w.shape, seed=3)
    np.testing.assert_allclose((gw.numpy() * direction).sum(), (g.numpy() * correlate(x.numpy(), direction, **how)).sum())


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("kernel", [1, 3])
def test_halves_are_accumulated_in_float32(groups, kernel):
    """600 terms of 1 and 1/4096: a float16 accumulator would lose the small ones."""
    x = minidl.ones((2, 600 * groups // kernel ** 2 // groups * groups, 5, 5), dtype=minidl.float16)
    w = np.full((groups, x.shape[1] // groups, kernel, kernel), 2.0 ** -12, np.float16)
    w[:, 0, 0, 0] = 1
    y = ops.conv2d(x, minidl.tensor(w), groups=groups)
    assert y.dtype == minidl.float16
    np.testing.assert_allclose(y.numpy(), np.full(y.shape, w[0].astype(float).sum()).astype(np.float16))


def test_halves_that_overflow_become_infinite_without_a_warning():
    x = minidl.full((1, 2, 4, 4), 6e4, dtype=minidl.float16)
    y = ops.conv2d(x, minidl.ones((1, 2, 3, 3), dtype=minidl.float16))
    assert np.isinf(y.numpy()).all()


@pytest.mark.parametrize("dtype", [minidl.float32, minidl.float16], ids=str)
def test_scratch_is_small(dtype):
    """A convolution of 13 MB (in float32) needs scratch of a block, not of the input or its columns."""
    x, w = minidl.ones((16, 64, 56, 56), dtype=dtype), minidl.ones((8, 64, 3, 3), dtype=dtype)
    tracemalloc.start()
    y = ops.conv2d(x, w, padding=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - y.numpy().nbytes < 6e6


def test_an_empty_batch_gives_an_empty_result_and_zero_gradients():
    x, w = tensor(0, 2, 5, 5, requires_grad=True), tensor(3, 2, 3, 3, requires_grad=True)
    b = tensor(3, requires_grad=True)
    y = ops.conv2d(x, w, b)
    assert y.shape == (0, 3, 3, 3)
    y.backward(minidl.zeros_like(y))
    assert x.grad.shape == x.shape and not w.grad.numpy().any() and not b.grad.numpy().any()
    assert ops.conv_transpose2d(tensor(0, 3, 3, 3), w).shape == (0, 2, 5, 5)
    assert ops.unfold(tensor(0, 2, 5, 5), 3).shape == (0, 18, 9)
    assert ops.fold(tensor(0, 18, 9), (5, 5), 3).shape == (0, 2, 5, 5)


def test_no_input_channels_leave_the_bias():
    y = ops.conv2d(tensor(2, 0, 5, 5), tensor(3, 0, 3, 3), minidl.ones(3, dtype=minidl.float64))
    np.testing.assert_array_equal(y.numpy(), np.ones((2, 3, 3, 3)))


def test_integers_are_convolved_exactly():
    x, w = np.arange(18).reshape(1, 2, 3, 3), np.arange(8).reshape(1, 2, 2, 2)
    y = ops.conv2d(minidl.tensor(x), minidl.tensor(w))
    assert y.dtype == minidl.int64
    np.testing.assert_array_equal(y.numpy(), correlate(x, w))


X, W, T = tensor(2, 4, 5, 5), tensor(6, 4, 3, 3), tensor(4, 6, 3, 3)
ERRORS = [
    (RuntimeError, "4 axes", lambda: ops.conv2d(tensor(4, 5), W)),
    (RuntimeError, "4 axes", lambda: ops.conv2d(X, tensor(6, 4, 3))),
    (RuntimeError, "channels", lambda: ops.conv2d(X, tensor(6, 3, 3, 3))),
    (RuntimeError, "groups", lambda: ops.conv2d(X, W, groups=0)),
    (RuntimeError, "divide", lambda: ops.conv2d(X, tensor(6, 1, 3, 3), groups=4)),
    (TypeError, "groups", lambda: ops.conv2d(X, W, groups=1.0)),
    (RuntimeError, "stride", lambda: ops.conv2d(X, W, stride=0)),
    (RuntimeError, "stride", lambda: ops.conv2d(X, W, stride=(1, 1, 1))),
    (TypeError, "stride", lambda: ops.conv2d(X, W, stride=1.5)),
    (RuntimeError, "padding", lambda: ops.conv2d(X, W, padding=-1)),
    (RuntimeError, "'same', 'valid'", lambda: ops.conv2d(X, W, padding="full")),
    (RuntimeError, "stride 1", lambda: ops.conv2d(X, W, padding="same", stride=2)),
    (RuntimeError, "dilation", lambda: ops.conv2d(X, W, dilation=0)),
    (RuntimeError, "at least as large", lambda: ops.conv2d(X, tensor(6, 4, 7, 7))),
    (RuntimeError, "bias", lambda: ops.conv2d(X, W, tensor(5))),
    (RuntimeError, "empty", lambda: ops.conv2d(tensor(2, 4, 0, 5), W, padding=2)),
    (NotImplementedError, "bool", lambda: ops.conv2d(minidl.ones((1, 1, 3, 3), dtype=minidl.bool), tensor(1, 1, 2, 2))),
    (RuntimeError, "channels", lambda: ops.conv_transpose2d(X, W)),
    (RuntimeError, "output_padding", lambda: ops.conv_transpose2d(X, T, output_padding=1)),
    (RuntimeError, "output_padding", lambda: ops.conv_transpose2d(X, T, output_padding=-1, stride=2)),
    (TypeError, "padding", lambda: ops.conv_transpose2d(X, T, padding="same")),
    (RuntimeError, "bias", lambda: ops.conv_transpose2d(X, T, tensor(4))),
    (RuntimeError, "leaves a result", lambda: ops.conv_transpose2d(tensor(2, 4, 1, 1), T, padding=2)),
    (RuntimeError, "unfold", lambda: ops.unfold(X, 7)),
    (RuntimeError, "two of them", lambda: ops.unfold(X, (3,))),
    (RuntimeError, "kernel_size", lambda: ops.unfold(X, 0)),
    (RuntimeError, "may be 0", lambda: ops.unfold(tensor(2, 0, 5, 5), 3)),
    (RuntimeError, "multiple of 9", lambda: ops.fold(tensor(2, 35, 9), 5, 3)),
    (RuntimeError, "3 \\* 3", lambda: ops.fold(tensor(2, 36, 5), 5, 3)),
    (RuntimeError, "output_size", lambda: ops.fold(tensor(2, 36, 9), (5, 5, 5), 3)),
]


@pytest.mark.parametrize("error, words, call", ERRORS)
def test_bad_arguments(error, words, call):
    with pytest.raises(error, match=words):
        call()
