"""Rows of ops/resampling.py."""

from itertools import product

import numpy as np

from minidl.tensor.ops.resampling import (
    _grid_fractions,
    _put_pixels,
    _take_pixels,
    affine_grid,
    grid_sample,
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from tests.table import Row, sample


def keys(d, a):
    """The cubic convolution kernel at a distance (Keys 1981)."""
    d = abs(d)
    return (a + 2) * d**3 - (a + 3) * d**2 + 1 if d < 1 else a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0


def line(y, m, mode, step, align, antialias):
    """A vector in length m."""
    n = len(y)
    at = np.arange(m)
    if mode == "area":
        return np.array([y[i * n // m:-(-(i + 1) * n // m)].mean() for i in at])
    if mode.startswith("nearest"):
        return y[np.minimum(np.floor((at + (mode == "nearest-exact") / 2) * step).astype(int), n - 1)]
    if align:
        step = (n - 1) / max(m - 1, 1)
    place = at * step if align and not antialias else (at + 0.5) * step - 0.5  # PyTorch's filters keep the half
    if antialias:
        wide = max(step, 1)
        kernel = (lambda d: keys(d, -0.5)) if mode == "bicubic" else (lambda d: max(1 - abs(d), 0))
        weights = np.array([[kernel((j - p) / wide) for j in range(n)] for p in place])
        return (weights / weights.sum(1, keepdims=True)) @ y
    if mode == "bicubic":
        return np.array([sum(keys(p - j, -0.75) * y[min(max(j, 0), n - 1)] for j in range(-3, n + 3)) for p in place])
    return np.interp(place, np.arange(n), y)


def resized(x, size=None, scale_factor=None, mode="nearest", align_corners=False, recompute_scale_factor=False,
            antialias=False):
    axes = x.ndim - 2
    each = [v if isinstance(v, tuple) else (v,) * axes for v in (size, scale_factor)]
    for axis, length, factor in zip(range(2, x.ndim), *each):
        n = x.shape[axis]
        length = length or int(n * factor)
        step = 1 / factor if factor and not recompute_scale_factor else n / length
        x = np.apply_along_axis(line, axis, x, length, mode, step, align_corners, antialias)
    return x


def placed(c, n, padding):
    """A position along an axis of n pixels brought into the image by (mode, lower and upper edge to reflect at)."""
    mode, low, high = padding
    if mode == "reflection":
        for _ in range(20):
            c = 2 * low - c if c < low else 2 * high - c if c > high else c
    return c if mode == "zeros" else min(max(c, 0), n - 1)


def pixel(image, position):
    inside = all(0 <= p < n for p, n in zip(position, image.shape[1:]))
    return image[(slice(None), *position)] if inside else np.zeros(len(image))


def point(image, coordinates, mode, padding_mode, align):
    """All channels of an image at one point, by the definition."""
    taps = []
    for c, n in zip(coordinates[::-1], image.shape[1:]):
        padding = (padding_mode, 0, n - 1) if align else (padding_mode, -0.5, n - 0.5)
        c = (c + 1) / 2 * (n - 1) if align else ((c + 1) * n - 1) / 2
        if mode == "bicubic":
            low = int(np.floor(c))
            taps.append([(int(placed(low + k, n, padding)), keys(c - low - k, -0.75)) for k in (-1, 0, 1, 2)])
            continue
        c = placed(c, n, padding)
        low = int(np.floor(c))
        taps.append([(int(np.rint(c)), 1)] if mode == "nearest" else [(low, 1 - c + low), (low + 1, c - low)])
    return sum(pixel(image, [p for p, _ in corner]) * np.prod([w for _, w in corner]) for corner in product(*taps))


def sampled(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *place in np.ndindex(*grid.shape[:-1]):
        out[(n, slice(None), *place)] = point(x[n], grid[(n, *place)], mode, padding_mode, align_corners)
    return out


def affine(theta, size, align_corners=False):
    lines = [np.linspace(-1, 1, n) if align_corners else (2 * np.arange(n) + 1) / n - 1 for n in size[2:]]
    points = np.stack([*reversed(np.meshgrid(*lines, indexing="ij")), np.ones(size[2:])], -1)
    return np.stack([points @ t.T for t in theta])


def off_kinks(grid, sizes):
    """The grid moved off the borders of cells, of pixels and of images of these sizes (those of x, y, ...)."""
    n = np.array(sizes)
    return ((np.floor((grid + 1) * n * 2) + 0.4) / (2 * n) - 1).astype(np.float16).astype(np.float64)


def grids(sizes, *shape, reach=1.5):
    return off_kinks(sample(*shape, len(sizes), low=-reach, high=reach), sizes)


LINE, IMAGE, VOLUME = sample(1, 2, 5), sample(1, 1, 3, 5), sample(1, 1, 2, 3, 2)
INDEX = np.array([[0, 2, 2, 4], [1, 4, 0, 3]])


def cells(grid, sizes, how):
    c = ((grid[..., ::-1] + 1) * np.array(sizes) - 1) / 2
    return c - np.floor(c)


def put(g, index):
    out = np.zeros((*g.shape[:2], 5))
    for n, c, m in np.ndindex(*g.shape):
        out[n, c, index[n, m]] += g[n, c, m]
    return out[..., :4]


def taken(x, index):
    return np.concatenate([x, np.zeros((2, 2, 1))], 2)[np.arange(2)[:, None, None], np.arange(2)[:, None], index[:, None]]


def resize(x, note="", tolerance=4, **attributes):
    mode = attributes.get("mode", "nearest")
    return Row(interpolate, (x,), resized, attributes, name=f"interpolate {mode} {x.ndim - 2}d {note}", tolerance=tolerance)


def at_points(x, grid, note="", **attributes):
    name = f"grid_sample {x.ndim - 2}d {' '.join(map(str, attributes.values()))} {note}"
    return Row(grid_sample, (x, grid), sampled, {"align_corners": False, **attributes}, name=name, tolerance=16)


ROWS = [
    *[resize(x, size=s, mode=mode) for mode in ("nearest", "nearest-exact", "area")
      for x, s in ((LINE, 7), (IMAGE, (5, 2)), (VOLUME, (3, 2, 5)))],
    *[resize(x, f"align {align}", size=s, mode=mode, align_corners=align) for align in (False, True)
      for mode, x, s in (("linear", LINE, 7), ("bilinear", IMAGE, (5, 2)), ("bicubic", IMAGE, (5, 2)),
                         ("trilinear", VOLUME, (3, 2, 3)))],
    *[resize(IMAGE, f"scale {scale} {again}", scale_factor=scale, mode=mode, recompute_scale_factor=again)
      for mode in ("nearest", "bilinear", "bicubic") for scale in (0.7, (2.0, 1.5)) for again in (False, True)],
    *[resize(IMAGE, f"antialias {align}", size=(2, 3), mode=mode, antialias=True, align_corners=align)
      for mode in ("bilinear", "bicubic") for align in (False, True)],
    resize(IMAGE, "antialias grown", size=(4, 7), mode="bicubic", antialias=True),
    resize(LINE, "to one", size=1, mode="linear", align_corners=True),
    Row(upsample, (IMAGE, None, 2, "bilinear"), resized, tolerance=4),
    Row(upsample_nearest, (IMAGE, 4), resized),
    Row(upsample_bilinear, (IMAGE, 4), lambda x, size: resized(x, size, mode="bilinear", align_corners=True), tolerance=4),
    *[at_points(IMAGE, grids((5, 3), 1, 2, 3), mode=mode, padding_mode=padding)
      for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection")],
    *[at_points(IMAGE, grids((4, 2), 1, 2, 3), mode=mode, padding_mode=padding, align_corners=True)
      for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection")],
    *[at_points(VOLUME, grids((2, 3, 2), 1, 2, 1, 2), mode=mode, padding_mode=padding)
      for mode in ("bilinear", "nearest") for padding in ("zeros", "border", "reflection")],
    at_points(sample(2, 2, 3, 2), grids((2, 3), 2, 1, 2), "batch"),
    *[Row(affine_grid, (sample(2, 2, 3), (2, 1, 2, 3), align), affine, name=f"affine_grid 2d {align}", tolerance=8)
      for align in (False, True)],
    *[Row(affine_grid, (sample(1, 3, 4), (1, 1, 2, 2, 2), align), affine, name=f"affine_grid 3d {align}", tolerance=8)
      for align in (False, True)],
    Row(lambda x, index: _take_pixels(x, index=index.array), (sample(2, 2, 4), INDEX), taken, name="take_pixels"),
    Row(lambda g, index: _put_pixels(g, index=index.array, pixels=4), (sample(2, 2, 4), INDEX), put, name="put_pixels",
        tolerance=2),
    Row(_grid_fractions, (grids((5, 3), 1, 3),), cells, {"sizes": (3, 5), "how": ("bilinear", "zeros", False)}, tolerance=8),
]
