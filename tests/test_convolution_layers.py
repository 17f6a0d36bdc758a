"""Convolutional layers against NumPy references of the functions: arguments, padding modes, output_size, text, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl.nn import convolution
from minidl.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from tests.table import sample
from tests.table.convolution import correlate, spread

f64 = minidl.float64
LENGTHS, KERNEL = (7, 6, 5), (3, 2, 3)


def layer_of(name, axes, **how):
    return getattr(convolution, f"{name}{axes}d")(4, 6, KERNEL[:axes], dtype=f64, **how)


def with_bias(y, layer):
    return y if layer.bias is None else y + layer.bias.detach().numpy().reshape(-1, *(1,) * (y.ndim - 2))


ARGUMENTS = [{}, {"stride": 2, "padding": 1}, {"groups": 2, "bias": False}, {"dilation": 2, "padding": 2}]


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("how", ARGUMENTS)
def test_convolution(axes, how):
    layer, x = layer_of("Conv", axes, **how), sample(2, 4, *LENGTHS[:axes])
    y = layer(minidl.tensor(x)).detach().numpy()
    how = {key: value for key, value in how.items() if key != "bias"}
    np.testing.assert_allclose(y, with_bias(correlate(x, layer.weight.detach().numpy(), **how), layer), atol=1e-12)
    np.testing.assert_allclose(layer(minidl.tensor(x[0])).detach().numpy(), y[0], atol=1e-12)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("how", [*ARGUMENTS, {"stride": 3, "output_padding": 2}])
def test_transposed_convolution(axes, how):
    layer, x = layer_of("ConvTranspose", axes, **how), sample(2, 4, *LENGTHS[:axes])
    y = layer(minidl.tensor(x)).detach().numpy()
    how = {key: value for key, value in how.items() if key != "bias"}
    np.testing.assert_allclose(y, with_bias(spread(x, layer.weight.detach().numpy(), **how), layer), atol=1e-12)
    np.testing.assert_allclose(layer(minidl.tensor(x[0])).detach().numpy(), y[0], atol=1e-12)


@pytest.mark.parametrize("mode, numpy_mode", [("zeros", "constant"), ("reflect", "reflect"), ("replicate", "edge"),
                                              ("circular", "wrap")])
@pytest.mark.parametrize("padding, widths", [(1, [(1, 1)] * 3), ((2, 1, 0), [(2, 2), (1, 1), (0, 0)]), ("valid", [(0, 0)] * 3),
                                             ("same", [(1, 1), (0, 1), (1, 1)])])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_padding(axes, padding, widths, mode, numpy_mode):
    layer = layer_of("Conv", axes, padding=padding[:axes] if isinstance(padding, tuple) else padding, padding_mode=mode)
    x = sample(2, 4, *LENGTHS[:axes])
    padded = np.pad(x, [(0, 0), (0, 0), *widths[:axes]], mode=numpy_mode)
    y = layer(minidl.tensor(x)).detach().numpy()
    np.testing.assert_allclose(y, with_bias(correlate(padded, layer.weight.detach().numpy()), layer), atol=1e-12)


@pytest.mark.parametrize("size", [(15, 12), (16, 12), (17, 13), (2, 6, 15, 13)])
def test_output_size_in_place_of_output_padding(size):
    layer = ConvTranspose2d(4, 6, (3, 2), stride=(3, 2), padding=(1, 0), output_padding=1, dilation=(1, 1), dtype=f64)
    x = minidl.tensor(sample(2, 4, 5, 6))
    least = (3 * 4 - 2 + 3, 2 * 5 + 2)
    assert layer(x).shape[2:] == tuple(n + 1 for n in least)
    if size[-2] > least[0] + 2:
        with pytest.raises(ValueError, match=r"from \(13, 12\) to \(15, 13\)"):
            layer(x, output_size=size)
    else:
        y = layer(x, size).detach().numpy()
        extra = tuple(n - m for n, m in zip(size[-2:], least))
        expected = spread(x.numpy(), layer.weight.detach().numpy(), stride=(3, 2), padding=(1, 0), output_padding=extra)
        np.testing.assert_allclose(y, with_bias(expected, layer), atol=1e-12)


def test_output_size_without_a_batch():
    layer = ConvTranspose1d(2, 3, 3, stride=2)
    assert layer(minidl.ones(2, 4), [10]).shape == layer(minidl.ones(2, 4), [3, 10]).shape == (3, 10)
    with pytest.raises(ValueError, match="1 or 2 lengths"):
        layer(minidl.ones(2, 4), [1, 3, 10])


def test_depthwise_separable_is_both_convolutions():
    layer = convolution.DepthwiseSeparableConv2d(4, 6, 3, stride=2, padding=1, dtype=f64)
    x = sample(2, 4, 7, 6)
    state = {name: value.numpy() for name, value in layer.state_dict().items()}
    assert list(state) == ["depthwise.weight", "depthwise.bias", "pointwise.weight", "pointwise.bias"]
    middle = with_bias(correlate(x, state["depthwise.weight"], stride=2, padding=1, groups=4), layer.depthwise)
    expected = with_bias(correlate(middle, state["pointwise.weight"]), layer.pointwise)
    np.testing.assert_allclose(layer(minidl.tensor(x)).detach().numpy(), expected, atol=1e-12)


def test_depthwise_separable_without_bias():
    layer = convolution.DepthwiseSeparableConv2d(4, 6, 3, bias=False, padding="same", padding_mode="reflect")
    assert list(layer.state_dict()) == ["depthwise.weight", "pointwise.weight"]
    assert layer(minidl.ones(4, 5, 5)).shape == (6, 5, 5)


@pytest.mark.parametrize("dtype", [minidl.float32, minidl.float16, minidl.bfloat16], ids=str)
def test_dtype_of_parameters_results_and_gradients(dtype):
    layer = Conv2d(2, 3, 3, dtype=dtype)
    y = layer(minidl.ones((1, 2, 4, 4), dtype=dtype))
    y.sum().backward()
    assert y.dtype == layer.bias.dtype == layer.weight.grad.dtype == layer.bias.grad.dtype == dtype


@pytest.mark.parametrize("layer, fan", [(Conv2d(16, 32, 3), 144), (ConvTranspose2d(16, 32, 3), 288),
                                        (Conv2d(16, 32, 3, groups=4), 36)])
def test_initial_values_are_uniform_up_to_the_bound(layer, fan):
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    bound = 1 / math.sqrt(fan)
    assert 0.95 * bound < abs(w).max() <= bound and 0.7 * bound < abs(b).max() <= bound
    assert abs(w.std() * math.sqrt(3) / bound - 1) < 0.06


TEXTS = [
    (Conv1d(4, 6, 3), (6, 4, 3), "Conv1d(4, 6, kernel_size=(3,), stride=(1,))"),
    (Conv2d(4, 6, 3, 2, 1, 1, 2, False, "circular"), (6, 2, 3, 3),
     "Conv2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), groups=2, bias=False, padding_mode=circular)"),
    (Conv3d(4, 6, 3, padding="same", dilation=2), (6, 4, 3, 3, 3),
     "Conv3d(4, 6, kernel_size=(3, 3, 3), stride=(1, 1, 1), padding=same, dilation=(2, 2, 2))"),
    (ConvTranspose2d(4, 6, (3, 2), 2, 1, 1, 2), (4, 3, 3, 2),
     "ConvTranspose2d(4, 6, kernel_size=(3, 2), stride=(2, 2), padding=(1, 1), output_padding=(1, 1), groups=2)"),
    (ConvTranspose3d(4, 6, 1), (4, 6, 1, 1, 1), "ConvTranspose3d(4, 6, kernel_size=(1, 1, 1), stride=(1, 1, 1))"),
]


@pytest.mark.parametrize("layer, shape, text", TEXTS)
def test_shape_of_the_weight_and_text(layer, shape, text):
    assert layer.weight.shape == shape and repr(layer) == text
    assert list(layer.state_dict()) == ["weight", "bias"][:1 + (layer.bias is not None)]


ERRORS = [
    (ValueError, "Conv2d expected a positive number of groups", lambda: Conv2d(4, 6, 3, groups=0)),
    (ValueError, "divides", lambda: Conv2d(4, 6, 3, groups=4)), (ValueError, "divides", lambda: Conv2d(3, 6, 3, groups=2)),
    (ValueError, "'mirror'", lambda: Conv1d(4, 6, 3, padding_mode="mirror")),
    (ValueError, "'full'", lambda: Conv1d(4, 6, 3, padding="full")),
    (ValueError, "stride 1", lambda: Conv2d(4, 6, 3, stride=(1, 2), padding="same")),
    (RuntimeError, "Conv2d expected kernel_size", lambda: Conv2d(4, 6, (3, 3, 3))),
    (RuntimeError, "Conv2d expected stride", lambda: Conv2d(4, 6, 3, stride=0)),
    (RuntimeError, "Conv3d expected padding", lambda: Conv3d(4, 6, 3, padding=-1)),
    (TypeError, "Conv1d expected dilation", lambda: Conv1d(4, 6, 3, dilation=1.5)),
    (ValueError, "padding_mode 'zeros'", lambda: ConvTranspose2d(4, 6, 3, padding_mode="circular")),
    (TypeError, "number or a tuple", lambda: ConvTranspose2d(4, 6, 3, padding="same")),
    (RuntimeError, "output_padding less", lambda: ConvTranspose2d(4, 6, 3, output_padding=1)(minidl.ones(1, 4, 3, 3))),
    (RuntimeError, "channels", lambda: Conv2d(4, 6, 3)(minidl.ones(1, 3, 5, 5))),
    (RuntimeError, "4 axes", lambda: Conv2d(4, 6, 3)(minidl.ones(5, 5))),
]


@pytest.mark.parametrize("kind, message, call", ERRORS)
def test_errors(kind, message, call):
    with pytest.raises(kind, match=message):
        call()
