"""Pooling layers: each passes all of its arguments on, and says what it is. The functions have tests of their own."""

import numpy as np
import pytest

import minidl
from minidl.nn import functional as F
from minidl.nn import pooling
from minidl.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AvgPool1d,
    AvgPool2d,
    LPPool1d,
    LPPool2d,
    MaxPool1d,
    MaxPool2d,
    MaxUnpool1d,
    MaxUnpool2d,
)

LENGTHS = {1: (7,), 2: (7, 6), 3: (5, 6, 4)}
axes = pytest.mark.parametrize("n", [1, 2, 3])
lead = pytest.mark.parametrize("lead", [(2, 3), (3,), (0, 3)], ids=["batch", "unbatched", "empty"])


def values(*shape):
    rng = np.random.Generator(np.random.Philox(0))
    return minidl.tensor(rng.standard_normal(shape).astype(np.float32), requires_grad=True)


def layer(name, n):
    return getattr(pooling, f"{name}{n}d")


def line(*numbers):
    return minidl.tensor([[float(x) for x in numbers]])


@axes
@lead
@pytest.mark.parametrize("arguments", [
    {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 2, "dilation": 2, "ceil_mode": True},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True, "return_indices": True},
], ids=str)
def test_max_pool(n, lead, arguments):
    x = values(*lead, *LENGTHS[n])
    found, exact = layer("MaxPool", n)(**arguments)(x), getattr(F, f"max_pool{n}d")(x, **arguments)
    for a, b in zip(found, exact) if "return_indices" in arguments else [(found, exact)]:
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@axes
@lead
@pytest.mark.parametrize("arguments", [
    {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True}, {"kernel_size": 2, "divisor_override": 3},
], ids=str)
def test_avg_pool(n, lead, arguments):
    if n == 1 and "divisor_override" in arguments:
        pytest.skip("AvgPool1d has no divisor_override")
    x = values(*lead, *LENGTHS[n])
    np.testing.assert_array_equal(layer("AvgPool", n)(**arguments)(x).numpy(),
                                  getattr(F, f"avg_pool{n}d")(x, **arguments).numpy())


@axes
@lead
def test_lp_pool(n, lead):
    x = values(*lead, *LENGTHS[n])
    np.testing.assert_array_equal(layer("LPPool", n)(2, 3, 1, True)(x).numpy(),
                                  getattr(F, f"lp_pool{n}d")(x, 2.0, 3, 1, True).numpy())


@axes
@lead
@pytest.mark.parametrize("size", [1, 3])
def test_adaptive_pools(n, lead, size):
    x = values(*lead, *LENGTHS[n])
    np.testing.assert_array_equal(layer("AdaptiveAvgPool", n)(size)(x).numpy(),
                                  getattr(F, f"adaptive_avg_pool{n}d")(x, size).numpy())
    found = layer("AdaptiveMaxPool", n)(size, return_indices=True)(x)
    for a, b in zip(found, getattr(F, f"adaptive_max_pool{n}d")(x, size, True)):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@axes
@lead
def test_max_unpool_puts_maxima_back(n, lead):
    x = values(*lead, *LENGTHS[n])
    largest, places = layer("MaxPool", n)(2, return_indices=True)(x)
    back = layer("MaxUnpool", n)(2)(largest, places, LENGTHS[n])
    assert back.shape == x.shape
    kept = back.numpy() != 0
    np.testing.assert_array_equal(back.numpy()[kept], x.detach().numpy()[kept])
    assert kept.sum() == largest.numel()


def test_values_by_hand():
    x = line(1, 5, 2, 4, 3)
    assert MaxPool1d(2)(x).tolist() == [[5, 4]]
    assert MaxPool1d(2, 1, return_indices=True)(x)[1].tolist() == [[1, 1, 3, 3]]
    assert MaxPool1d(2, None, 0, 2)(x).tolist() == [[2, 3]]  # the fourth argument is dilation
    assert AvgPool1d(2, 2, 1)(x).tolist() == [[0.5, 3.5, 3.5]]
    assert AvgPool1d(2, padding=1, count_include_pad=False)(x).tolist() == [[1, 3.5, 3.5]]
    assert LPPool1d(1, 2)(x).tolist() == [[6, 6]]
    assert AdaptiveAvgPool1d(2)(x).tolist() == [[(1 + 5 + 2) / np.float32(3), 3]]
    assert AdaptiveMaxPool1d(1)(x).tolist() == [[5]]
    assert MaxUnpool1d(2, 2)(line(5, 4), minidl.tensor([[1, 3]])).tolist() == [[0, 5, 0, 4]]


def test_none_keeps_an_axis():
    assert AdaptiveAvgPool2d((None, 2))(values(1, 3, 4, 6)).shape == (1, 3, 4, 2)


def test_gradients_reach_the_input():
    x = values(2, 3, 4, 4)
    MaxPool2d(2)(x).sum().backward()
    assert x.grad.numpy().sum() == 2 * 3 * 4


@pytest.mark.parametrize("made, shown", [
    (MaxPool2d(2, (1, 2)), "MaxPool2d(kernel_size=2, stride=(1, 2), padding=0, dilation=1, ceil_mode=False)"),
    (AvgPool1d(2), "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"),
    (AvgPool2d(2), "AvgPool2d(kernel_size=2, stride=2, padding=0)"),
    (LPPool2d(2, 3), "LPPool2d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)"),
    (AdaptiveMaxPool2d((None, 3)), "AdaptiveMaxPool2d(output_size=(None, 3))"),
    (MaxUnpool2d(2, padding=1), "MaxUnpool2d(kernel_size=(2, 2), stride=(2, 2), padding=(1, 1))"),
], ids=lambda x: type(x).__name__)
def test_repr(made, shown):
    assert repr(made) == shown


@pytest.mark.parametrize("error, call", [
    (RuntimeError, lambda: MaxPool2d(3, padding=2)(values(1, 1, 5, 5))),
    (RuntimeError, lambda: MaxPool2d(3)(values(1, 1, 2, 2))),
    (RuntimeError, lambda: AvgPool2d(2)(values(4, 4))),
    (ValueError, lambda: MaxUnpool1d(2)(line(1), minidl.tensor([[0]]), (9,))),
    (RuntimeError, lambda: MaxUnpool1d(2)(line(1), minidl.tensor([[5]]))),
])
def test_bad_arguments(error, call):
    with pytest.raises(error, match="expected"):
        call()
