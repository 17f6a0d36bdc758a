"""Padding and shuffling: dtypes, empties, errors."""

import numpy as np
import pytest

import minidl
from minidl.tensor.ops.padding import channel_shuffle, pad, pixel_shuffle, pixel_unshuffle


@pytest.mark.parametrize("dtype, value, border", [
    (minidl.int64, 1.7, 1), (minidl.uint8, 3, 3), (minidl.bool, 2.0, True), (minidl.float16, float("-inf"), float("-inf")),
])
def test_the_value_is_cast_to_the_tensor_s_dtype(dtype, value, border):
    padded = pad(minidl.zeros(1, dtype=dtype), (1, 0), value=value)
    assert padded.dtype == dtype and padded.numpy().tolist() == [border, 0]


@pytest.mark.parametrize("widths", [(), (0, 0), (0, 0, 0, 0)])
@pytest.mark.parametrize("mode", ["constant", "circular"])
def test_padding_nothing_copies(widths, mode):
    x = minidl.ones(1, 2, 3) if len(widths) < 4 else minidl.ones(1, 2, 3, 4)
    if mode == "circular" and not widths:
        return
    padded = pad(x, widths, mode)
    assert padded.shape == x.shape and not np.shares_memory(padded.numpy(), x.numpy())


def test_empty_axes():
    assert pad(minidl.zeros(0, 2), (1, 1, 2, 0)).shape == (2, 4)
    assert pad(minidl.ones(3), (-1, -2)).shape == (0,)
    assert pad(minidl.zeros(0, 3, 3), (1, 2), "reflect").shape == (0, 3, 6)
    assert pad(minidl.zeros(2, 0, 3), (1, 1), "circular").shape == (2, 0, 5)
    assert pad(minidl.ones(2, 3, 4), (-2, -2), "circular").shape == (2, 3, 0)
    assert pixel_shuffle(minidl.zeros(0, 4, 2, 2), 2).shape == (0, 1, 4, 4)


@pytest.mark.parametrize("call, error", [
    (lambda x: pad(x, (1,)), RuntimeError),
    (lambda x: pad(x, (1,) * 8), RuntimeError),
    (lambda x: pad(x, (-2, -3)), RuntimeError),
    (lambda x: pad(x, (1, 1), "mirror"), NotImplementedError),
    (lambda x: pad(x, (1, 1), "reflect", 1.0), RuntimeError),
    (lambda x: pad(x, (4, 0), "reflect"), RuntimeError),
    (lambda x: pad(x, (5, 0), "circular"), RuntimeError),
    (lambda x: pad(x, (1, 1, 1, 1, 1, 1), "replicate"), NotImplementedError),
    (lambda x: pad(minidl.zeros(2, 0, 3), (1, 1), "replicate"), RuntimeError),
    (lambda x: pad(minidl.zeros(0, 3), (1, 1), "reflect"), RuntimeError),
    (lambda x: pad(x, (-2, -2), "reflect"), RuntimeError),
    (lambda x: pad(x, (1.0, 1)), TypeError),
    (lambda x: pixel_shuffle(x, 2), RuntimeError),
    (lambda x: pixel_shuffle(x, 0), RuntimeError),
    (lambda x: pixel_shuffle(x[0], 1), RuntimeError),
    (lambda x: pixel_unshuffle(x, 3), RuntimeError),
    (lambda x: channel_shuffle(x, 2), RuntimeError),
    (lambda x: channel_shuffle(x, 0), RuntimeError),
])
def test_errors(call, error):
    with pytest.raises(error):
        call(minidl.zeros(2, 3, 4))


@pytest.mark.parametrize("shuffle", [lambda x: pixel_shuffle(x, 1), lambda x: pixel_unshuffle(x, 1),
                                     lambda x: channel_shuffle(x, 1)])
def test_shuffling_nothing_copies(shuffle):
    x = minidl.ones(1, 2, 3, 4)
    assert not np.shares_memory(shuffle(x).numpy(), x.numpy())


def test_unshuffling_undoes_shuffling():
    x = minidl.arange(2 * 8 * 3 * 2).reshape(2, 8, 3, 2)
    np.testing.assert_array_equal(pixel_unshuffle(pixel_shuffle(x, 2), 2).numpy(), x.numpy())
