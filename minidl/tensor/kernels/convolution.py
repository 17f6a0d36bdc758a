"""Convolutions and their gradients: matrix products over blocks of images that fit into the processor's cache.

All three functions take x (N, C, *lengths), w (O, C / groups, *kernel) and g (N, O, *windows), in any number of spatial
axes. Halves are brought to float32 block by block and multiplied in it; there is no full float32 copy of them.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ..dtypes import HALF, accumulation_dtype, float32
from .columns import Columns
from .halves import narrow_into, widen_into
from .windows import ALL, image_blocks, taps

_quiet = np.errstate(all="ignore")  # what is too large for a half becomes inf, as in PyTorch
_FEW = 16  # below so many positions a product per image is not worth it


class ConvolutionKernels:
    """Convolutions and their gradients."""

    module: Any
    zeros: Any
    empty: Any
    flip: Any
    device_type: str

    @_quiet
    def convolution(self, x: Any, w: Any, bias: Any, size: tuple, stride: tuple, padding: tuple, dilation: tuple,
                    groups: int) -> Any:
        """Cross-correlation of zero-padded x with w in `size` windows, (N, O, *size); bias may be None."""
        out = self.empty((x.shape[0], w.shape[0], *size), x.dtype)
        w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
        self._correlate(out, x, w, bias, stride, tuple(-p for p in padding), dilation)
        return out

    @_quiet
    def convolution_input(self, g: Any, w: Any, bias: Any, length: tuple, stride: tuple, padding: tuple, dilation: tuple,
                          groups: int) -> Any:
        """The gradient of convolution for an input of lengths `length`; also the transposed convolution of g.

        The elements at one remainder by the stride come from some of the taps only, which make a convolution of g of stride
        1 with the turned weight.
        """
        w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:]).swapaxes(1, 2)
        out = self.empty((g.shape[0], groups * w.shape[1], *length), g.dtype)
        ones = (1,) * len(length)
        for phase in itertools.product(*map(range, stride)):
            part = out[(ALL, ALL) + tuple(slice(first, None, s) for first, s in zip(phase, stride))]
            axes = [_phase(*axis) for axis in zip(phase, w.shape[3:], stride, padding, dilation)]
            if any(taken is None for taken, _, _ in axes):
                part[...] = 0 if bias is None else bias.reshape(-1, *ones)
                continue
            turned = w[(ALL, ALL, ALL) + tuple(taken for taken, _, _ in axes)]
            self._correlate(part, g, turned, bias, ones, tuple(a[1] for a in axes), tuple(a[2] for a in axes))
        return out

    @_quiet
    def convolution_weight(self, g: Any, x: Any, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple,
                           groups: int) -> Any:
        """The gradient of convolution for a weight of spatial lengths `kernel`."""
        outputs, channels = g.shape[1] // groups, x.shape[1] // groups
        start = tuple(-p for p in padding)
        if x.size == 0 or g.size == 0:
            total = self.zeros((groups * outputs, channels, *kernel), x.dtype)
        elif _is_pointwise(x, kernel, stride, start, g.shape[2:]):
            total = self._pointwise_weight(g, x, groups, stride)
        elif x.ndim == 3 and channels == 1 < groups:
            total = 0
            for some, reads, first in self._pieces(x.shape, g.shape[2], *kernel, *stride, *start, *dilation):
                total = total + self._weight_by_columns(g[:, :, None, some], x[:, :, None, reads], (1, *kernel), (1, *stride),
                                                        (0, first), (1, *dilation), groups)
        else:
            total = self._weight_by_columns(g, x, kernel, stride, start, dilation, groups)
        return total.reshape(groups * outputs, channels, *kernel).astype(x.dtype, copy=False)

    def _weight_by_columns(self, g: Any, x: Any, kernel: tuple, stride: tuple, start: tuple, dilation: tuple,
                           groups: int) -> Any:
        columns = Columns(self, x.shape, kernel, stride, start, dilation, groups, g.shape[2:], g.shape[1] // groups,
                          accumulation_dtype(x.dtype))
        totals: list = []
        for block in columns.blocks():
            values = columns.values(g, block)
            for i, matrix in enumerate(columns.load(x, block)):
                product = self.module.matmul(matrix, values)
                if i == len(totals):
                    totals.append(product)
                else:
                    totals[i] += product
        return columns.weight_gradient(totals, kernel)

    # Cross-correlation: out[window] = sum over taps of x[window * stride + tap * dilation + start] * w[tap]

    def _correlate(self, out: Any, x: Any, w: Any, bias: Any, stride: tuple, start: tuple, dilation: tuple) -> None:
        """Into out (N, O, *windows), from w (groups, outputs, channels, *kernel)."""
        if out.size == 0:
            return
        groups, outputs, channels, *kernel = w.shape
        w = self.widened(w)
        out = out.reshape(out.shape[0], groups, outputs, *out.shape[2:])
        if bias is not None:
            bias = self.widened(bias).reshape(groups, outputs)
        if _is_pointwise(x, kernel, stride, start, out.shape[3:]):
            self._pointwise(out, x, w, bias, stride)
        elif x.ndim == 3 and channels == 1 < groups:
            for some, reads, first in self._pieces(x.shape, out.shape[3], *kernel, *stride, *start, *dilation):
                self._by_columns(out[:, :, :, None, some], x[:, :, None, reads], w[:, :, :, None], bias, (1, *stride),
                                 (0, first), (1, *dilation))
        else:
            self._by_columns(out, x, w, bias, stride, start, dilation)

    def _by_columns(self, out: Any, x: Any, w: Any, bias: Any, stride: tuple, start: tuple, dilation: tuple) -> None:
        groups, outputs, _, *kernel = w.shape
        columns = Columns(self, x.shape, tuple(kernel), stride, start, dilation, groups, out.shape[3:], outputs, w.dtype)
        weights = columns.weights(w)
        for block in columns.blocks():
            y = None
            for matrix, positions in zip(weights, columns.load(x, block)):
                product = self.module.matmul(matrix, positions)
                if y is None:
                    y = product
                else:
                    y += product
            if bias is not None:
                y += bias[:, :, None]
            columns.store(out, y, block)

    def _pieces(self, shape: tuple, windows: int, kernel: int, stride: int, start: int, dilation: int) -> Any:
        """Channels by themselves along one axis are images of one row, cut so that a row's columns stay in the cache: for
        each piece its windows, the elements that they read, and the first window's start among these."""
        step = max(1, (1 << 17 if self.device_type == "cpu" else 1 << 26) // (shape[1] * kernel))
        for first in range(0, windows, step):
            last = min(first + step, windows) - 1
            low = min(max(0, start + first * stride), shape[2])
            high = max(low, start + last * stride + (kernel - 1) * dilation + 1)
            yield slice(first, last + 1), slice(low, high), start + first * stride - low

    # A kernel of one element: a product per image, without columns

    def _pointwise(self, out: Any, x: Any, w: Any, bias: Any, stride: tuple) -> None:
        images, groups, outputs, *size = out.shape
        w = w.reshape(groups, outputs, w.shape[2])
        for block in self._image_blocks(images, out[0].size + x[0].size):
            y = self.module.matmul(w, _positions(self.widened(x[block]), groups, stride, size))
            if bias is not None:
                y += bias[:, :, None]
            self.assign(out[block], y.reshape(y.shape[0], groups, outputs, *size))

    def _pointwise_weight(self, g: Any, x: Any, groups: int, stride: tuple) -> Any:
        size = g.shape[2:]
        total = 0
        for block in self._image_blocks(g.shape[0], g[0].size + x[0].size):
            values = _positions(self.widened(g[block]), groups, (1,) * len(size), size)
            positions = _positions(self.widened(x[block]), groups, stride, size)
            total = total + self.module.add.reduce(self.module.matmul(values, positions.swapaxes(2, 3)), axis=0)
        return total

    # Columns of windows as arrays of their own

    def unfold(self, x: Any, size: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> Any:
        """What each window reads, (N, C, elements of the kernel, *size); padding reads 0."""
        out = self.zeros((*x.shape[:2], math.prod(kernel), *size), x.dtype)
        for number, windows, reads in taps(x.shape[2:], size, kernel, stride, padding, dilation):
            out[:, :, number][windows] = x[reads]
        return out

    @_quiet
    def fold(self, columns: Any, length: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> Any:
        """Columns (N, C, elements of the kernel, *windows) added up where `unfold` reads them, (N, C, *length)."""
        images, channels = columns.shape[:2]
        size = columns.shape[3:]
        out = self.empty((images, channels, *length), columns.dtype)
        for block in self._image_blocks(images, channels * math.prod(length)):
            part = columns[block]
            total = self.zeros((part.shape[0], channels, *length), accumulation_dtype(columns.dtype))
            for number, windows, reads in taps(length, size, kernel, stride, padding, dilation):
                total[reads] += part[:, :, number][windows]
            self.assign(out[block], total)
        return out

    # Halves, a block at a time

    def widened(self, x: Any) -> Any:
        """A float32 copy of halves, any other array itself."""
        if x.dtype not in HALF:
            return x
        wide = self.empty(x.shape, float32)
        self.assign(wide, x)
        return wide

    def assign(self, out: Any, x: Any) -> None:
        """out[...] = x, between half dtypes and float32 too."""
        if self.device_type != "cpu" or out.dtype == x.dtype:
            out[...] = x
        elif out.dtype in HALF:
            narrow_into(out, self.module.ascontiguousarray(x))
        else:
            widen_into(out, x)

    def _image_blocks(self, images: int, per_image: int) -> Any:
        return image_blocks(images, per_image, 1 << 17 if self.device_type == "cpu" else 1 << 26)


def _phase(phase: int, kernel: int, stride: int, padding: int, dilation: int) -> tuple[slice | None, int, int]:
    """The taps that reach elements phase, phase + stride, ... in reverse order, and the start and dilation of the convolution
    with them; None where there are no such taps."""
    taken = [tap for tap in reversed(range(kernel)) if (phase + padding - tap * dilation) % stride == 0]
    if not taken:
        return None, 0, 1
    step = taken[0] - taken[1] if len(taken) > 1 else 1
    end = taken[-1] - step
    return slice(taken[0], end if end >= 0 else None, -step), (phase + padding - taken[0] * dilation) // stride, max(
        1, step * dilation // stride)


def _is_pointwise(x: Any, kernel: Any, stride: tuple, start: tuple, size: tuple) -> bool:
    fits = all((n - 1) * s < length for n, s, length in zip(size, stride, x.shape[2:]))
    return math.prod(kernel) == 1 and not any(start) and fits and math.prod(size) >= _FEW


def _positions(x: Any, groups: int, stride: tuple, size: Any) -> Any:
    """(images, groups, channels, positions) of what a kernel of one element reads."""
    steps = tuple(slice(0, (n - 1) * s + 1, s) for n, s in zip(size, stride))
    x = x[(ALL, ALL) + steps]
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, math.prod(size))
