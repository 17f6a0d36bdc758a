"""Resampling: sums of a few neighbours along axes, and pixels read at positions that a grid gives."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ..dtypes import accumulation_dtype

_OUTSIDE = -100.0  # a coordinate of which no neighbour lies in an image
_quiet = np.errstate(invalid="ignore")  # a point that is not finite makes its pixel nan, or 0 if the mode is nearest


class Taps:
    """A sparse matrix by which an axis is multiplied: element `rows[i]` of the result takes `weights[i]` times element
    `columns[i]`, or the element itself where weights is None.

    It is kept as steps, each of which adds at most one entry to each row, so that a product is a few vectorized reads,
    and neither an entry that is missing nor one that is not finite touches other rows.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray | None, length: int, inputs: int):
        self.rows, self.columns, self.weights = rows, columns, weights
        self.length, self.inputs = length, inputs

    @cached_property
    def steps(self) -> list[tuple]:
        """(rows or None for all of them, columns, weights) of the first entries of each row, of the second ones, ..."""
        order = np.argsort(self.rows, kind="stable")
        rows, columns = self.rows[order], self.columns[order]
        rank = np.arange(rows.size) - np.searchsorted(rows, rows)
        steps = []
        for i in range(int(rank.max(initial=-1)) + 1):
            here = rank == i
            weights = None if self.weights is None else self.weights[order][here]
            steps.append((None if here.sum() == self.length else rows[here], columns[here], weights))
        return steps

    @cached_property
    def transposed(self) -> Taps:
        """The matrix with rows and columns exchanged."""
        turned = Taps(self.columns, self.rows, self.weights, self.inputs, self.length)
        turned.transposed = self  # type: ignore[misc]
        return turned


class ResamplingKernels:
    """Separable interpolation and grid sampling."""

    module: Any
    asarray: Any
    zeros: Any
    where: Any
    floor: Any
    rint: Any
    abs: Any
    fmod: Any
    arange: Any
    take: Any
    scatter_add: Any
    concatenate: Any
    broadcast_to: Any
    stack: Any

    def resample(self, x: Any, taps: tuple) -> Any:
        """x multiplied along its last axes by one matrix each, or None to leave an axis; axes that shrink go first."""
        pairs = [(axis, t) for axis, t in enumerate(taps, x.ndim - len(taps)) if t is not None]
        for axis, matrix in sorted(pairs, key=lambda pair: (pair[1].length / max(pair[1].inputs, 1), -pair[0])):
            x = self._resample_axis(x, matrix, axis)
        return x

    def _resample_axis(self, x: Any, taps: Taps, axis: int) -> Any:
        lead, column = (slice(None),) * axis, (-1,) + (1,) * (x.ndim - axis - 1)
        out: Any = None
        for rows, columns, weights in taps.steps:
            part = self.take(x, self.asarray(columns), axis)
            if weights is not None:
                part *= self.asarray(weights, x.dtype).reshape(column)
            if out is None and rows is None:
                out = part
                continue
            if out is None:
                out = self.zeros((*x.shape[:axis], taps.length, *x.shape[axis + 1:]), x.dtype)
            if rows is None:
                out += part
            else:
                out[lead + (self.asarray(rows),)] += part
        return self.zeros((*x.shape[:axis], taps.length, *x.shape[axis + 1:]), x.dtype) if out is None else out

    # Pixels: images (N, C, P), positions (N, M) of integers below P, or P for a pixel that is 0

    def take_pixels(self, x: Any, index: Any) -> Any:
        """The pixels of each image at its positions, (N, C, M)."""
        n, channels, pixels = x.shape
        padded = self.concatenate((x, self.zeros((n, channels, 1), x.dtype)), axis=2).reshape(-1)
        return self.take(padded, self._flat_positions(index, channels, pixels + 1))

    def put_pixels(self, g: Any, index: Any, pixels: int) -> Any:
        """Images (N, C, pixels) of zeros with g (N, C, M) added at the positions; the gradient of take_pixels."""
        n, channels, _ = g.shape
        out = self.zeros(n * channels * (pixels + 1), accumulation_dtype(g.dtype))
        self.scatter_add(out, self._flat_positions(index, channels, pixels + 1).reshape(-1), g.reshape(-1))
        return out.reshape(n, channels, pixels + 1)[..., :pixels].astype(g.dtype)

    def _flat_positions(self, index: Any, channels: int, stride: int) -> Any:
        n = index.shape[0]
        return (self.arange(n * channels) * stride).reshape(n, channels, 1) + index[:, None]

    # Grids (N, M, D) of coordinates from -1 to 1, those of the last axis first. `how` is mode, padding mode, align_corners

    @_quiet
    def grid_positions(self, grid: Any, sizes: tuple, how: tuple) -> list:
        """The positions (N, M) that each corner of a cell takes; corners in row-major order of the axes."""
        mode, padding, align = how
        columns = []
        for axis, size in enumerate(sizes):
            c = self._coordinate(grid, axis, sizes, how)[0]
            base = self._lower(self.where(self.abs(c) < 2 ** 31, c, _OUTSIDE), mode)
            taps = [base + offset for offset in _OFFSETS[mode]]
            if mode == "bicubic":
                taps = [self._padded(tap, size, padding, align)[0] for tap in taps]
            columns.append(taps)
        return [self._position(corner, sizes) for corner in product(*columns)]

    def _position(self, corner: tuple, sizes: tuple) -> Any:
        """Of whole coordinates along all axes."""
        index: Any = 0
        inside: Any = True
        for coordinate, size in zip(corner, sizes):
            inside = inside & (coordinate >= 0) & (coordinate < size)
            index = index * size + self.where(inside, coordinate, 0).astype(int)
        return self.where(inside, index, math.prod(sizes))

    @_quiet
    def grid_fractions(self, grid: Any, sizes: tuple, how: tuple) -> Any:
        """How far in its cell each point lies, from 0 to 1, (N, M, D) in the order of sizes; 0 if the mode is nearest."""
        if how[0] == "nearest":
            return self.zeros(grid.shape, grid.dtype)
        coordinates = [self._coordinate(grid, axis, sizes, how)[0] for axis in range(len(sizes))]
        return self.stack([c - self._lower(c, how[0]) for c in coordinates], axis=-1)

    @_quiet
    def grid_slopes(self, grid: Any, sizes: tuple, how: tuple) -> Any:
        """The derivatives of grid_fractions by the grid's coordinates, (N, M, D) in the order of sizes."""
        slopes = [self._coordinate(grid, axis, sizes, how)[1] for axis in range(len(sizes))]
        return self.stack([self.broadcast_to(slope, grid.shape[:-1]) for slope in slopes], axis=-1).astype(grid.dtype)

    def _lower(self, coordinate: Any, mode: str) -> Any:
        return self.rint(coordinate) if mode == "nearest" else self.floor(coordinate)

    def _coordinate(self, grid: Any, axis: int, sizes: tuple, how: tuple) -> tuple:
        """Coordinates in pixels along an axis, and their derivatives by the grid's."""
        mode, padding, align = how
        size, c = sizes[axis], grid[..., len(sizes) - 1 - axis]
        c, slope = ((c + 1) / 2 * (size - 1), (size - 1) / 2) if align else (((c + 1) * size - 1) / 2, size / 2)
        sign: Any = self.asarray(1)
        if mode != "bicubic":
            c, sign = self._padded(c, size, padding, align)
        return c, sign * slope

    def _padded(self, c: Any, size: int, padding: str, align: bool) -> tuple:
        """Coordinates brought into the image as the padding mode says, and the signs of their derivatives."""
        sign: Any = self.asarray(1)
        if padding == "reflection":
            c, sign = self._reflected(c, *((0, size - 1) if align else (-0.5, size)))
        if padding != "zeros":
            sign = sign * ((c > 0) & (c < size - 1))
            c = self.where(c > 0, self.where(c < size - 1, c, size - 1), 0)
        return c, sign

    def _reflected(self, c: Any, low: float, span: int) -> tuple:
        """Coordinates reflected at low and low + span as often as it takes."""
        if span == 0:
            return c * 0, self.asarray(0)
        distance = self.abs(c - low)
        rest = self.fmod(distance, span)
        odd = self.fmod(self.floor(distance / span), 2) == 1
        return self.where(odd, span - rest, rest) + low, self.where(odd, -1, 1) * self.where(c < low, -1, 1)


_OFFSETS = {"nearest": (0,), "bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}
