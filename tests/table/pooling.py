"""Rows of ops/pooling.py."""

import itertools
import math

import numpy as np

from minidl.tensor.ops import pooling
from tests.table import Row, sample


def window_ranges(length, kernel, stride, padding, dilation, ceil):
    """For each window along an axis the positions that it reads, padding's included."""
    count = (length + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1
    count = math.ceil(count) if ceil else math.floor(count)
    starts = [i * stride - padding for i in range(count)]
    return [range(s, s + dilation * (kernel - 1) + 1, dilation) for s in starts if not ceil or s < length]


def even_ranges(length, size):
    return [range(math.floor(i * length / size), math.ceil((i + 1) * length / size)) for i in range(size)]


def pooled(x, ranges, combine):
    """combine(plane, positions) for each window; positions holds an index tuple per element within the plane."""
    lead = x.ndim - len(ranges)
    planes = x.reshape(-1, *x.shape[lead:])
    out = [[combine(plane, [p for p in itertools.product(*window) if all(0 <= i < n for i, n in zip(p, plane.shape))], window)
            for window in itertools.product(*ranges)] for plane in planes]
    return np.array(out).reshape(*x.shape[:lead], *[len(r) for r in ranges])


def largest(plane, positions, window):
    return max(plane[p] for p in positions)


def place(plane, positions, window):
    return np.ravel_multi_index(max(positions, key=lambda p: plane[p]), plane.shape)


def each(value, axes):
    return value if isinstance(value, tuple) else (value,) * axes


def ranges_of(x, axes, kernel, stride=None, padding=0, dilation=1, ceil=False):
    arguments = [each(v, axes) for v in (kernel, kernel if stride is None else stride, padding, dilation)]
    return [window_ranges(n, *axis, ceil) for n, *axis in zip(x.shape[-axes:], *arguments)]


def maximum(axes, indices=False):
    def reference(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        ranges = ranges_of(x, axes, kernel, stride, padding, dilation, ceil_mode)
        value = pooled(x, ranges, largest)
        return (value, pooled(x, ranges, place)) if return_indices or indices else value
    return reference


def adaptive_maximum(axes, indices=False):
    def reference(x, size, return_indices=False):
        ranges = [even_ranges(n, n if s is None else s) for n, s in zip(x.shape[-axes:], each(size, axes))]
        value = pooled(x, ranges, largest)
        return (value, pooled(x, ranges, place)) if return_indices or indices else value
    return reference


def adaptive_mean(axes):
    def reference(x, size):
        ranges = [even_ranges(n, n if s is None else s) for n, s in zip(x.shape[-axes:], each(size, axes))]
        return pooled(x, ranges, lambda plane, positions, window: np.mean([plane[p] for p in positions]))
    return reference


def average(axes):
    def reference(x, kernel, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        def mean(plane, positions, window):
            total = sum(plane[p] for p in positions)
            if divisor_override:
                return total / divisor_override
            counted = [min(r.stop, n + pad) - r.start for r, n, pad in zip(window, plane.shape, each(padding, axes))]
            return total / (math.prod(counted) if count_include_pad else len(positions))
        return pooled(x, ranges_of(x, axes, kernel, stride, padding, 1, ceil_mode), mean)
    return reference


def norm(axes):
    def reference(x, p, kernel, stride=None, ceil_mode=False):
        def root(plane, positions, window):
            values = np.abs([plane[q] for q in positions])
            if abs(p) == math.inf:
                return values.max() if p > 0 else values.min()
            return (np.mean(values ** p) * math.prod(each(kernel, axes))) ** (1 / p)
        return pooled(x, ranges_of(x, axes, kernel, stride, 0, 1, ceil_mode), root)
    return reference


def unpooled(x, indices, kernel, stride=None, padding=0, output_size=None):
    axes = len(kernel)
    stride = kernel if stride is None else stride
    size = output_size or [(n - 1) * s + k - 2 * padding for n, s, k in zip(x.shape[-axes:], stride, kernel)]
    out = np.zeros((*x.shape[:-axes], math.prod(size)))
    np.put_along_axis(out, indices.reshape(*x.shape[:-axes], -1), x.reshape(*x.shape[:-axes], -1), -1)
    return out.reshape(*x.shape[:-axes], *size)


LINE, PLANE, BLOCK = sample(1, 2, 7), sample(2, 1, 4, 3), sample(1, 1, 3, 2, 4)
NAMED = {1: LINE, 2: PLANE, 3: BLOCK}


def named(name, axes):
    return getattr(pooling, f"{name}{axes}d")


def with_indices(name, axes):
    return getattr(pooling, f"{name}{axes}d_with_indices")


ROWS = [
    *[Row(named("max_pool", n), (x, 2), maximum(n)) for n, x in NAMED.items()],
    *[Row(named("max_pool", n), (x, 2, 1, 1), maximum(n), {"return_indices": True}, f"max_pool{n}d padding indices")
      for n, x in NAMED.items()],
    *[Row(with_indices("max_pool", n), (x, 2), maximum(n, True)) for n, x in NAMED.items()],
    Row(pooling.max_pool1d, (LINE[0], 3, 2, 1, 2, True), maximum(1), name="max_pool1d dilation ceil unbatched"),
    Row(pooling.max_pool2d, (PLANE, (2, 1), (1, 2)), maximum(2), name="max_pool2d per axis"),
    Row(pooling.max_pool2d, (sample(1, 1, 5, 5), 3, 2, 1), maximum(2), name="max_pool2d overlapping"),
    *[Row(named("avg_pool", n), (x, 2), average(n)) for n, x in NAMED.items()],
    *[Row(named("avg_pool", n), (x, 2, 1, 1, False, False), average(n), name=f"avg_pool{n}d padding not counted")
      for n, x in NAMED.items()],
    *[Row(named("avg_pool", n), (x, 2, 2, 1, True), average(n), name=f"avg_pool{n}d padding ceil") for n, x in NAMED.items()],
    Row(pooling.avg_pool2d, (PLANE[0], (3, 2), 1), average(2), {"divisor_override": 5}, name="avg_pool2d divisor unbatched"),
    Row(pooling.avg_pool2d, (PLANE, (3, 2), 4), average(2), name="avg_pool2d one window"),
    Row(pooling.avg_pool1d, (LINE, 2, 3), average(1), name="avg_pool1d gaps"),
    *[Row(named("adaptive_avg_pool", n), (x, 2), adaptive_mean(n)) for n, x in NAMED.items()],
    *[Row(named("adaptive_avg_pool", n), (x, 1), adaptive_mean(n), name=f"adaptive_avg_pool{n}d all")
      for n, x in NAMED.items()],
    Row(pooling.adaptive_avg_pool2d, (PLANE[0], (None, 5)), adaptive_mean(2), name="adaptive_avg_pool2d grows unbatched"),
    *[Row(named("adaptive_max_pool", n), (x, 2), adaptive_maximum(n)) for n, x in NAMED.items()],
    *[Row(with_indices("adaptive_max_pool", n), (x, 2), adaptive_maximum(n, True)) for n, x in NAMED.items()],
    Row(pooling.adaptive_max_pool2d, (PLANE, (2, 3)), adaptive_maximum(2), {"return_indices": True},
        name="adaptive_max_pool2d even indices"),
    Row(pooling.adaptive_max_pool2d, (PLANE[0], (None, 5)), adaptive_maximum(2), name="adaptive_max_pool2d grows unbatched"),
    *[Row(named("lp_pool", n), (x, 2, 2), norm(n)) for n, x in NAMED.items()],
    Row(pooling.lp_pool1d, (LINE, 4, 3, 2, True), norm(1), name="lp_pool1d fourth powers ceil", tolerance=3),
    Row(pooling.lp_pool2d, (PLANE, math.inf, 2, 1), norm(2), name="lp_pool2d maximum"),
    Row(pooling.lp_pool2d, (PLANE, -math.inf, 2, 1), norm(2), name="lp_pool2d minimum"),
    Row(pooling.lp_pool1d, (sample(1, 6, low=0.5), 1.5, 2), norm(1), name="lp_pool1d unbatched fraction"),
    Row(pooling.max_unpool1d, (sample(2, 3), np.array([[1, 2, 5], [0, 3, 4]]), (2,)), unpooled),
    Row(pooling.max_unpool2d, (sample(1, 1, 2, 2), np.array([[[[5, 2], [12, 19]]]]), (2, 2), None, 0, (4, 5)), unpooled),
    Row(pooling.max_unpool3d, (sample(1, 1, 1, 2), np.array([[[[3, 4]]]]), (2, 1, 2)), unpooled),
]
