"""What the windows of a convolution read, as matrices for BLAS: a block of images, or of rows, at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .windows import taps

_CACHED = 1 << 17  # elements of a block on a CPU: half a megabyte of float32, so that it stays in the second-level cache
_LARGE = 1 << 26   # on a GPU, where few large products are fast
_LONG = 24         # a product over fewer elements than this is not worth a pass that adds it


class Columns:
    """Matrices (groups, taps * channels, positions) of x (N, C, *spatial) for windows of one geometry.

    Positions are ordered (row, image, other axes) where rows are windows along the first spatial axis. What the elements of
    a kernel's first axis read are the same rows, shifted: they need not be copied for each, only sliced at another row. So
    with `split` there is one product for each of them, over matrices that hold the taps of the other axes only; their sum is
    the convolution. With a stride, rows are stored by their remainder. Without split there is one product over all taps.

    Args:
        xp: the backend.
        shape: of x.
        start: the position at which the first window begins; negative where it reads padding.
        size: number of windows along each spatial axis.
        outputs: output channels of a group.
        dtype: of the matrices.
    """

    def __init__(self, xp: Any, shape: tuple, kernel: tuple, stride: tuple, start: tuple, dilation: tuple, groups: int,
                 size: tuple, outputs: int, dtype: Any):
        self.xp, self.start, self.size, self.groups, self.dtype = xp, start[0], tuple(size), groups, dtype
        self.images, self.channels, self.length = shape[0], shape[1] // groups, shape[2]
        self.stride, self.inner = stride[0], math.prod(kernel[1:])
        self.taps = taps(shape[3:], self.size[1:], kernel[1:], stride[1:], tuple(-s for s in start[1:]), dilation[1:])
        shifts = [tap * dilation[0] for tap in range(kernel[0])]
        long = self.inner * self.channels
        alone = self.channels == 1 and groups > 1
        self.split = kernel[0] > 1 and (alone or (long >= _LONG and outputs <= 3 * long))
        if self.split:
            self.offsets = sorted({shift % self.stride for shift in shifts})
            self.parts = [(self.offsets.index(shift % self.stride), shift // self.stride) for shift in shifts]
        else:
            self.offsets = shifts
            self.parts = []
        self.extra = max((first for _, first in self.parts), default=0)
        limit = (2 if alone else 1) * _CACHED if xp.device_type == "cpu" else _LARGE  # many short products need long rows
        per_row = max(1, groups * math.prod(self.size[1:]) * max(len(self.offsets) * long, outputs))
        self.rows = max(1, min(self.size[0], limit // per_row))
        self.step = max(1, min(self.images, limit // (per_row * self.rows))) if self.rows == self.size[0] else 1
        self.buffers: dict[tuple, Any] = {}

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """(images, rows) of each block."""
        for image in range(0, self.images, self.step):
            for row in range(0, self.size[0], self.rows):
                yield slice(image, min(image + self.step, self.images)), slice(row, min(row + self.rows, self.size[0]))

    def load(self, x: Any, block: tuple) -> list:
        """The matrices of a block, one per product. They are overwritten by the next block."""
        images, rows = block
        first = self.start + rows.start * self.stride + self.offsets[0]
        height = rows.stop - rows.start + self.extra
        low = min(max(0, first), self.length)
        high = min(self.length, first + (height - 1) * self.stride + self.offsets[-1] - self.offsets[0] + 1)
        part = self.xp.widened(x[images, :, low:max(high, low)])
        part = part.reshape(part.shape[0], self.groups, self.channels, *part.shape[2:])
        part = part.transpose(1, 2, 3, 0, *range(4, part.ndim))
        count = part.shape[3]
        buffer = self._buffer(count, height)
        for place, offset in enumerate(self.offsets):
            self._load_rows(buffer[:, place], part, first + offset - self.offsets[0], height, low)
        width = count * math.prod(self.size[1:])
        if not self.split:
            return [buffer.reshape(self.groups, len(self.offsets) * self.inner * self.channels, height * width)]
        matrices = buffer.reshape(self.groups, len(self.offsets), self.inner * self.channels, height * width)
        positions = (height - self.extra) * width
        return [matrices[:, place, :, first * width:first * width + positions] for place, first in self.parts]

    def _load_rows(self, target: Any, part: Any, first: int, height: int, before: int) -> None:
        """Rows first, first + stride, ... of x into target (groups, taps, channels, height, ...); part lacks `before` rows."""
        low = min(max(0, -(first // self.stride)), height)
        high = max(low, min(height, (self.length - 1 - first) // self.stride + 1))
        target[:, :, :, :low] = 0
        target[:, :, :, high:] = 0
        if high > low:
            begin = first + low * self.stride - before
            lines = part[:, :, begin:begin + (high - low - 1) * self.stride + 1:self.stride]
            for tap, windows, reads in self.taps:
                target[:, tap, :, low:high][(...,) + windows[2:]] = lines[(...,) + reads[2:]]

    def weights(self, w: Any) -> list:
        """The matrices (groups, outputs, taps * channels) of w (groups, outputs, channels, *kernel), one per product."""
        groups, outputs, channels, rows, *_ = w.shape
        w = w.reshape(groups, outputs, channels, rows, self.inner)
        if self.split:
            parts = [w[:, :, :, row].swapaxes(2, 3).reshape(groups, outputs, self.inner * channels) for row in range(rows)]
        else:
            parts = [w.transpose(0, 1, 3, 4, 2).reshape(groups, outputs, rows * self.inner * channels)]
        return [self.xp.module.ascontiguousarray(part) for part in parts]  # a turned weight has steps that BLAS does not take

    def weight_gradient(self, totals: list, kernel: tuple) -> Any:
        """(groups * outputs, channels, *kernel) from matrices (groups, taps * channels, outputs), one per product."""
        groups, outputs = totals[0].shape[0], totals[0].shape[2]
        w = self.xp.stack(totals, 1).reshape(groups, kernel[0], self.inner, self.channels, outputs)
        return w.transpose(0, 4, 3, 1, 2).reshape(groups * outputs, self.channels, *kernel)

    def values(self, g: Any, block: tuple) -> Any:
        """(groups, positions of the block, outputs) from g (N, O, *windows); products with it are faster than transposed."""
        part = self.xp.widened(g[block[0], :, block[1]])
        part = part.reshape(part.shape[0], self.groups, -1, *part.shape[2:])
        part = part.transpose(1, 3, 0, *range(4, part.ndim), 2)
        values = self.xp.empty(part.shape, self.dtype)
        values[...] = part
        return values.reshape(self.groups, -1, part.shape[-1])

    def store(self, out: Any, y: Any, block: tuple) -> None:
        """Put products (groups, outputs, positions of the block) where they belong in out (N, groups, outputs, *windows)."""
        target = out[block[0], :, :, block[1]]
        moved = target.transpose(1, 2, 3, 0, *range(4, target.ndim))
        y = y.reshape(moved.shape)
        if out.dtype == self.dtype:
            moved[...] = y
        else:
            scratch = self.xp.empty(target.shape, self.dtype)
            scratch.transpose(1, 2, 3, 0, *range(4, target.ndim))[...] = y
            self.xp.assign(target, scratch)

    def _buffer(self, count: int, height: int) -> Any:
        """Zeros where no window ever reads within x, kept from block to block."""
        shape = (self.groups, len(self.offsets), self.inner, self.channels, height, count, *self.size[1:])
        if shape not in self.buffers:
            self.buffers[shape] = self.xp.zeros(shape, self.dtype)
        return self.buffers[shape]
