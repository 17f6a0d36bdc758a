"""Rows of ops/convolution.py."""

import itertools

import numpy as np

from minidl.tensor.ops import convolution as ops
from tests.table import Row, sample


def per_axis(value, axes):
    return value if isinstance(value, tuple) else (value,) * axes


def correlate(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation, an output element at a time."""
    axes = w.ndim - 2
    if x.ndim == axes + 1:
        return correlate(x[None], w, bias, stride, padding, dilation, groups)[0]
    stride, dilation, kernel = per_axis(stride, axes), per_axis(dilation, axes), w.shape[2:]
    reach = [d * (k - 1) for d, k in zip(dilation, kernel)]
    if padding == "same":
        margins = [(r // 2, r - r // 2) for r in reach]
    else:
        margins = [(p, p) for p in per_axis(0 if padding == "valid" else padding, axes)]
    x = np.pad(x, [(0, 0), (0, 0), *margins])
    size = [(n - r - 1) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride)]
    out = np.zeros((len(x), len(w), *size))
    count, channels = len(w) // groups, w.shape[1]
    for o, place in itertools.product(range(len(w)), np.ndindex(*size)):
        window = tuple(slice(i * s, i * s + r + 1, d) for i, s, r, d in zip(place, stride, reach, dilation))
        seen = x[(slice(None), slice(o // count * channels, (o // count + 1) * channels), *window)]
        out[(slice(None), o, *place)] = (seen * w[o]).reshape(len(x), -1).sum(1) + (0 if bias is None else bias[o])
    return out


def spread(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution, an input element at a time."""
    axes = w.ndim - 2
    if x.ndim == axes + 1:
        return spread(x[None], w, bias, stride, padding, output_padding, groups, dilation)[0]
    stride, padding, dilation = per_axis(stride, axes), per_axis(padding, axes), per_axis(dilation, axes)
    reach = [d * (k - 1) for d, k in zip(dilation, w.shape[2:])]
    extra = per_axis(output_padding, axes)
    full = [(n - 1) * s + r + 1 + e for n, s, r, e in zip(x.shape[2:], stride, reach, extra)]
    count = w.shape[1]
    out = np.zeros((len(x), count * groups, *full))
    for i, place in itertools.product(range(x.shape[1]), np.ndindex(*x.shape[2:])):
        group = i // (x.shape[1] // groups)
        window = tuple(slice(o * s, o * s + r + 1, d) for o, s, r, d in zip(place, stride, reach, dilation))
        value = x[(slice(None), i, *place)].reshape(-1, 1, *(1,) * axes)
        out[(slice(None), slice(group * count, (group + 1) * count), *window)] += value * w[i]
    out = out[(slice(None), slice(None), *[slice(p, n - p) for p, n in zip(padding, full)])]
    return out if bias is None else out + bias.reshape(-1, *(1,) * axes)


def weight_gradient(g, x, kernel, how):
    """The sum over outputs of g times what they read, from the gradient of one weight element at a time."""
    out = np.zeros((g.shape[1], x.shape[1] // how[3], *kernel))
    for place in np.ndindex(*out.shape):
        w = np.zeros(out.shape)
        w[place] = 1
        out[place] = (correlate(x, w, None, *how) * g).sum()
    return out


def columns(x, kernel_size, dilation=1, padding=0, stride=1):
    if x.ndim == 3:
        return columns(x[None], kernel_size, dilation, padding, stride)[0]
    kernel = per_axis(kernel_size, 2)
    rows = []
    for c, place in itertools.product(range(x.shape[1]), np.ndindex(*kernel)):
        w = np.zeros((1, x.shape[1], *kernel))
        w[(0, c, *place)] = 1
        rows.append(correlate(x, w, None, stride, padding, dilation).reshape(len(x), -1))
    return np.stack(rows, 1)


def folded(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    if x.ndim == 2:
        return folded(x[None], output_size, kernel_size, dilation, padding, stride)[0]
    kernel = per_axis(kernel_size, 2)
    channels = x.shape[1] // (kernel[0] * kernel[1])
    out = np.zeros((len(x), channels, *output_size))
    for place in np.ndindex(*out.shape[1:]):  # the transpose of a linear map, an element at a time
        one = np.zeros((1, *out.shape[1:]))
        one[(0, *place)] = 1
        out[(slice(None), *place)] = (columns(one, kernel, dilation, padding, stride) * x).sum((1, 2))
    return out


def x(*shape):
    return sample(*shape)


def w(*shape):
    return sample(*shape, seed=1, low=-1, high=1)


def b(n):
    return sample(n, seed=2)


ROWS = [
    Row(ops.conv1d, (x(2, 2, 6), w(3, 2, 3), b(3)), correlate),
    Row(ops.conv1d, (x(2, 7), w(2, 1, 3)), correlate, {"stride": 2, "padding": 1, "groups": 2}, "conv1d unbatched groups"),
    Row(ops.conv1d, (x(1, 2, 5), w(1, 2, 2), b(1)), correlate, {"padding": "same", "dilation": 3}, "conv1d same"),
    Row(ops.conv2d, (x(2, 2, 4, 3), w(2, 2, 3, 2), b(2)), correlate, {"padding": 1}),
    Row(ops.conv2d, (x(1, 1, 6, 5), w(2, 1, 2, 3)), correlate, {"stride": (2, 3), "dilation": (2, 1)}, "conv2d dilation"),
    Row(ops.conv2d, (x(1, 8, 3, 3), w(2, 8, 3, 3)), correlate, {"padding": 1}, "conv2d product per kernel row"),
    Row(ops.conv2d, (x(1, 8, 5, 2), w(1, 8, 3, 3)), correlate, {"padding": 1, "stride": 2, "dilation": (2, 1)},
        "conv2d product per kernel row, strided"),
    Row(ops.conv2d, (x(1, 4, 3, 3), w(4, 2, 2, 2), b(4)), correlate, {"groups": 2, "padding": "valid"}, "conv2d groups"),
    Row(ops.conv2d, (x(1, 2, 4, 4), w(4, 1, 3, 3), b(4)), correlate, {"groups": 2, "padding": 1}, "conv2d depthwise"),
    Row(ops.conv2d, (x(2, 2, 4, 4), w(2, 1, 3, 2)), correlate, {"groups": 2, "padding": 1, "stride": 2},
        "conv2d depthwise strided"),
    Row(ops.conv2d, (x(1, 2, 4, 4), w(3, 2, 1, 1), b(3)), correlate, {}, "conv2d pointwise"),
    Row(ops.conv2d, (x(1, 1, 7, 8), w(2, 1, 1, 1)), correlate, {"stride": 2}, "conv2d pointwise strided"),
    Row(ops.conv2d, (x(1, 3, 3), w(1, 1, 2, 2)), correlate, {"padding": "same"}, "conv2d same, even kernel"),
    Row(ops.conv3d, (x(1, 2, 2, 3, 2), w(1, 2, 2, 2, 1), b(1)), correlate, {"padding": (1, 0, 1), "stride": (1, 1, 2)}),
    Row(ops.conv3d, (x(2, 3, 2, 3), w(2, 1, 2, 1, 2)), correlate, {"groups": 2, "padding": (0, 1, 1)},
        "conv3d unbatched depthwise"),
    Row(ops.conv_transpose1d, (x(2, 2, 3), w(2, 2, 3), b(2)), spread, {"stride": 2, "padding": 1, "output_padding": 1}),
    Row(ops.conv_transpose1d, (x(2, 4), w(2, 1, 2)), spread, {"groups": 2, "dilation": 2, "output_padding": 1},
        "conv_transpose1d unbatched depthwise"),
    Row(ops.conv_transpose2d, (x(1, 2, 3, 2), w(2, 2, 3, 2), b(2)), spread, {"stride": (1, 2), "padding": (1, 0)}),
    Row(ops.conv_transpose2d, (x(1, 4, 2, 2), w(4, 1, 2, 3), b(2)), spread, {"groups": 2, "stride": 3, "dilation": 2},
        "conv_transpose2d groups"),
    Row(ops.conv_transpose3d, (x(1, 1, 2, 2, 2), w(1, 2, 1, 2, 2), b(2)), spread, {"stride": 2, "output_padding": (1, 0, 1)}),
    Row(ops._convolution_weight, (x(2, 2, 2, 3), sample(2, 1, 3, 4, seed=3)), weight_gradient,
        {"kernel": (2, 2), "how": ((1, 1), (0, 0), (1, 1), 1)}, "gradient of conv2d for the weight"),
    Row(ops.unfold, (x(1, 2, 3, 4),), columns, {"kernel_size": 2}),
    Row(ops.unfold, (x(2, 4, 3),), columns, {"kernel_size": (3, 2), "dilation": (1, 2), "padding": 1, "stride": (2, 1)},
        "unfold unbatched"),
    Row(ops.fold, (x(1, 4, 6),), folded, {"output_size": (3, 4), "kernel_size": 2}),
    Row(ops.fold, (x(6, 4),), folded, {"output_size": (4, 4), "kernel_size": (3, 2), "dilation": (1, 2), "padding": (1, 0),
                                       "stride": (2, 1)}, "fold unbatched"),
]
