"""Images in another size, and images read at the points of a grid. Exported by minidl.nn.functional."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from itertools import product
from operator import index as as_int

import numpy as np

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from ..kernels.resampling import Taps
from ..tensor import make_tensor
from .linalg import matmul
from .pointwise import clamp, floor
from .shape import cast_to, reshape, transpose

__all__ = ["affine_grid", "grid_sample", "interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]


# Interpolation: each axis is multiplied by a sparse matrix

def _sampled(xp, x, *, taps):
    return xp.resample(x, taps), lambda g: xp.resample(g, tuple([t if t is None else t.transposed for t in taps]))


_resample = op(Cast.FULL, promote=Promote.NONE)(_sampled)
_average = op(Cast.KEEP, wide=True)(_sampled)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
                antialias=False):
    """The tensor with its spatial axes in another size.

    Args:
        size: an integer or one per spatial axis; or else
        scale_factor: a number or one per spatial axis, by which the size is multiplied, rounded down.
        mode: "nearest", "nearest-exact", "area" (means over windows), or by the number of spatial axes "linear" (1),
            "bilinear", "bicubic" (2), "trilinear" (3).
        align_corners: for the linear and cubic modes: the corner pixels' centres stay where they are, else the image's corners.
        recompute_scale_factor: the scale is what the rounded size comes to, not scale_factor.
        antialias: widen the filter where the image shrinks; for "bilinear" and "bicubic".

    Shapes: (N, C, *spatial) to (N, C, *size), with 1, 2 or 3 spatial axes.
    """
    align = _align(mode, align_corners)
    axes = input.ndim - 2
    size, scales = _output_size(input.shape, axes, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and axes == 2):
        raise ValueError(f"interpolate expected antialias only with mode 'bilinear' or 'bicubic' and a 4-D input, got "
                         f"{mode!r} and shape {input.shape}")
    if mode not in _AXES:
        raise NotImplementedError(f"interpolate expected mode to be one of {', '.join(map(repr, _AXES))}, got the unknown mode "
                                  f"{mode!r}")
    if axes not in _AXES[mode]:
        raise NotImplementedError(f"interpolate expected mode {mode!r} with {' or '.join(map(str, _AXES[mode]))} spatial axes, "
                                  f"got shape {input.shape}")
    _check_image(input, size, mode)
    exact = dtypes.accumulation_dtype(input.dtype) if input.dtype in dtypes.FLOATING else dtypes.float32
    kind = mode + " antialias" if antialias else mode
    if antialias or (mode == "nearest" and axes == 2):  # PyTorch copies an axis whose length stays
        scales = [None if before == after else s for before, after, s in zip(input.shape[2:], size, scales)]
    taps = tuple([_taps(kind, *lengths, align, exact) for lengths in zip(input.shape[2:], size, scales)])
    if input.dtype in dtypes.FLOATING or mode.startswith("nearest"):
        return (_average if mode == "area" else _resample)(input, taps=taps)
    x = cast_to(input, dtypes.float32)
    for i in range(axes):  # bytes are rounded after each axis, the last one first, as in Pillow
        x = clamp(floor(_resample(x, taps=(taps[-1 - i], *(None,) * i)) + 0.5), 0, 255)
    return cast_to(x, input.dtype)


_AXES = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3), "linear": (1,), "bilinear": (2,),
         "bicubic": (2,), "trilinear": (3,)}


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The tensor with its spatial axes in another size, as interpolate."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """The tensor in another size, each pixel that of the nearest one before it; as interpolate."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input, size=None, scale_factor=None):
    """The image in another size by bilinear interpolation with aligned corners; as interpolate."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def _align(mode, align_corners):
    if mode in ("nearest", "nearest-exact", "area") and align_corners is not None:
        raise ValueError(f"interpolate expected align_corners only with mode linear, bilinear, bicubic or trilinear, got it "
                         f"with {mode!r}; leave it out")
    return bool(align_corners)


def _output_size(shape, axes, size, scale_factor, recompute):
    """Lengths of the spatial axes, and the scale factor of each or None."""
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate expected either size or scale_factor, got "
                         f"{'neither' if size is None else 'both'}")
    given = scale_factor if size is None else size
    if isinstance(given, (tuple, list)):
        if len(given) != axes:
            raise ValueError(f"interpolate expected a size or scale_factor of one number per spatial axis, of which shape "
                             f"{shape} has {axes}, got {given}")
    else:
        given = (given,) * max(axes, 0)
    if size is not None:
        if recompute:
            raise ValueError("interpolate expected recompute_scale_factor only with scale_factor, got it with size")
        if any(isinstance(n, bool) for n in given):
            raise TypeError(f"interpolate expected size to be an integer or one per spatial axis, got {size!r}")
        return tuple([as_int(n) for n in given]), (None,) * len(given)
    if not all(hasattr(s, "__float__") for s in given):
        raise TypeError(f"interpolate expected scale_factor to be a number or one per spatial axis, got {scale_factor!r}")
    scales = [float(s) for s in given]
    return tuple([math.floor(n * s) for n, s in zip(shape[2:], scales)]), (None,) * axes if recompute else scales


def _check_image(input, size, mode):
    lowest = 0 if mode == "area" else 1
    if min(size) < lowest or (lowest and min(input.shape[2:]) < 1):
        raise RuntimeError(f"interpolate expected input and output sizes of at least 1, got {input.shape[2:]} and {size}")
    if 0 in input.shape[1:]:
        raise RuntimeError(f"interpolate expected elements in all axes but the batch axis, got shape {input.shape}")
    if input.dtype not in dtypes.FLOATING and (input.dtype != dtypes.uint8 or mode not in _OF_BYTES):
        raise NotImplementedError(f"interpolate with mode {mode!r} expected a floating input, got "
                                  f"{dtypes.dtype_name(input.dtype)}; cast it first")


_OF_BYTES = ("nearest", "nearest-exact", "bilinear", "bicubic")


# The matrices of an axis of n elements that becomes one of `length`. Positions are computed in `exact`, the dtype of the sums

@lru_cache(maxsize=256)
def _taps(kind, n, length, scale_factor, align, exact):
    at = np.arange(length, dtype=exact)
    if align:
        step = exact.type((n - 1) / (length - 1) if length > 1 else 0)
    else:
        step = exact.type(1 / scale_factor if scale_factor else n / length if length else 0)
    if kind == "area":
        return _mean_taps(n, length, exact)
    if kind.endswith("antialias"):
        return _wide_taps(kind, n, length, step, at)
    if kind.startswith("nearest"):
        return _nearest_taps(kind, n, length, np.float32(step))
    if n == length and kind != "bicubic":  # whatever the scale factor, as in PyTorch
        place = at
    else:
        place = at * step if align else (at + exact.type(0.5)) * step - exact.type(0.5)
    if kind == "bicubic":
        return _cubic_taps(n, length, place)
    place = np.maximum(place, 0)
    low = np.minimum(place.astype(int), n - 1)
    part = np.clip(place - low, 0, 1)
    return _join(length, n, [(low, 1 - part), (np.minimum(low + 1, n - 1), part)])


def _nearest_taps(kind, n, length, step):
    at = np.arange(length, dtype=np.float32)  # in float32 whatever the input's dtype, as in PyTorch
    columns = np.floor((at if kind == "nearest" else at + np.float32(0.5)) * step)
    return Taps(np.arange(length), np.minimum(columns.astype(int), n - 1), None, length, n)


def _cubic_taps(n, length, place):
    low = np.minimum(np.floor(place), n - 1)
    part = np.clip(place - low, 0, 1)
    weights = _cubic(part)
    return _join(length, n, [(np.clip(low.astype(int) + k - 1, 0, n - 1), weights[k]) for k in range(4)])


def _mean_taps(n, length, exact):
    at = np.arange(length)
    start, stop = at * n // max(length, 1), -(-(at + 1) * n // max(length, 1))
    counts = stop - start
    rows = np.repeat(at, counts)
    columns = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts) + start[rows]
    return Taps(rows, columns, (1 / counts[rows]).astype(exact), length, n)


def _wide_taps(kind, n, length, step, at):
    """Weights of a filter as wide as the step, of those elements that there are (source: PyTorch's, after Pillow's)."""
    wide = max(step, step.dtype.type(1))
    support = wide * (2 if kind.startswith("bicubic") else 1)
    center = step * (at + at.dtype.type(0.5))
    start = np.maximum((center - support + at.dtype.type(0.5)).astype(int), 0)
    stop = np.minimum((center + support + at.dtype.type(0.5)).astype(int), n)
    columns = start[:, None] + np.arange(int((stop - start).max(initial=0)))
    distance = np.abs((columns - center[:, None] + 0.5) / wide)
    weights = _CURVES[kind](distance) * (columns < stop[:, None])
    weights /= weights.sum(1, keepdims=True)
    rows, places = np.nonzero(columns < stop[:, None])
    return Taps(rows, columns[rows, places], weights[rows, places].astype(at.dtype), length, n)


def _join(length, n, entries):
    columns, weights = zip(*entries)
    return Taps(np.tile(np.arange(length), len(entries)), np.concatenate(columns), np.concatenate(weights), length, n)


def _cubic(t, a=-0.75):
    """Weights of the elements at -1, 0, 1 and 2 for a point at t (source: Keys 1981, cubic convolution)."""
    u = 1 - t
    return (((t - 2) * t + 1) * t * a, ((a + 2) * t - (a + 3)) * t * t + 1, ((a + 2) * u - (a + 3)) * u * u + 1,
            ((u - 2) * u + 1) * u * a)


def _cubic_curve(distance, a=-0.5):
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = (((distance - 5) * distance + 8) * distance - 4) * a
    return np.where(distance < 1, near, np.where(distance < 2, far, 0))


_CURVES = {"bilinear antialias": lambda distance: np.maximum(1 - distance, 0), "bicubic antialias": _cubic_curve}


# Sampling at the points of a grid

@op(Cast.KEEP)
def _take_pixels(xp, x, *, index):
    pixels = x.shape[2]
    return xp.take_pixels(x, index), lambda g: xp.put_pixels(g, index, pixels)


@op(Cast.KEEP)
def _put_pixels(xp, g, *, index, pixels):
    return xp.put_pixels(g, index, pixels), lambda h: xp.take_pixels(h, index)


@op(Cast.KEEP)
def _grid_fractions(xp, grid, *, sizes, how):
    return xp.grid_fractions(grid, sizes, how), lambda g: xp.flip(g * xp.grid_slopes(grid, sizes, how), -1)


@op(Cast.WIDEST, promote=Promote.SAME, wide=True)
def _grid_sample(xp, x, grid, *, sizes, how):
    """x (N, C, P) with P pixels of `sizes` at the points of grid (N, M, D): (N, C, M)."""
    pixels, mode = x.shape[2], how[0]
    corners = xp.grid_positions(grid, sizes, how)

    def input_gradient(g):
        weights = _corner_weights(xp.grid_fractions(grid, sizes, how), mode)
        return _total(xp.put_pixels(g * w[:, None], index, pixels) for w, index in zip(weights, corners))

    def grid_gradient(g):
        fractions = xp.grid_fractions(grid, sizes, how)
        shares = [xp.sum(g * xp.take_pixels(x, index), 1) for index in corners]
        slopes = [_total(w * share for w, share in zip(_corner_weights(fractions, mode, axis), shares))
                  for axis in range(len(sizes))]
        return xp.flip(xp.stack(slopes, axis=-1) * xp.grid_slopes(grid, sizes, how), -1)

    weights = _corner_weights(xp.grid_fractions(grid, sizes, how), mode)
    y = _total(xp.take_pixels(x, index) * w[:, None] for w, index in zip(weights, corners))
    return y, (input_gradient, (lambda g: xp.zeros_like(grid)) if mode == "nearest" else grid_gradient)


def _corner_weights(fractions, mode, by=None):
    """The weight of each corner at points (N, M, D), or its derivative by the coordinate along the axis `by`."""
    factors = [(_DERIVATIVES if axis == by else _WEIGHTS)[mode](fractions[..., axis]) for axis in range(fractions.shape[-1])]
    return [math.prod(corner[1:], start=corner[0]) for corner in product(*factors)]


def _cubic_slopes(t, a=-0.75):
    u = 1 - t
    return (((3 * t - 4) * t + 1) * a, ((3 * a + 6) * t - (2 * a + 6)) * t, -((3 * a + 6) * u - (2 * a + 6)) * u,
            -((3 * u - 4) * u + 1) * a)


_WEIGHTS = {"nearest": lambda t: (t * 0 + 1,), "bilinear": lambda t: (1 - t, t), "bicubic": _cubic}
_DERIVATIVES = {"bilinear": lambda t: (t * 0 - 1, t * 0 + 1), "bicubic": _cubic_slopes}


def _total(parts):
    out = None
    for part in parts:
        out = part if out is None else out + part
    return out


@composed(Cast.WIDEST)
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """The input's pixels at the points of a grid.

    Args:
        grid: coordinates from -1 to 1, x (along the last axis) first.
        mode: "bilinear" (trilinear for 5-D inputs), "nearest", or "bicubic" (4-D inputs only).
        padding_mode: what lies outside: "zeros", the nearest pixel of the "border", or the image's "reflection".
        align_corners: -1 and 1 are the corner pixels' centres, else the image's corners; False if not given.

    Shapes: input (N, C, H, W), grid (N, H_out, W_out, 2), result (N, C, H_out, W_out); or input (N, C, D, H, W), grid
    (N, D_out, H_out, W_out, 3), result (N, C, D_out, H_out, W_out).
    """
    if mode not in _WEIGHTS:
        raise ValueError(f"grid_sample expected mode 'bilinear', 'nearest' or 'bicubic', got {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample expected padding_mode 'zeros', 'border' or 'reflection', got {padding_mode!r}")
    if align_corners is None:
        warnings.warn("grid_sample took align_corners=False, as it was not given; say which you want", stacklevel=2)
    _check_grid(input, grid, mode)
    sizes = input.shape[2:]
    y = _grid_sample(reshape(input, (*input.shape[:2], math.prod(sizes))),
                     reshape(grid, (grid.shape[0], math.prod(grid.shape[1:-1]), len(sizes))),
                     sizes=sizes, how=(mode, padding_mode, bool(align_corners)))
    return reshape(y, (*input.shape[:2], *grid.shape[1:-1]))


def _check_grid(input, grid, mode):
    if input.ndim not in (4, 5) or grid.ndim != input.ndim:
        raise RuntimeError(f"grid_sample expected input and grid both 4-D or both 5-D, got shapes {input.shape} and "
                           f"{grid.shape}")
    if grid.shape[0] != input.shape[0] or grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(f"grid_sample expected a grid of shape ({input.shape[0]}, ..., {input.ndim - 2}) for an input of "
                           f"shape {input.shape}, got {grid.shape}")
    if 0 in input.shape[2:]:
        raise RuntimeError(f"grid_sample expected an input with pixels, got shape {input.shape}")
    if mode == "bicubic" and input.ndim == 5:
        raise RuntimeError(f"grid_sample expected a 4-D input with mode 'bicubic', got shape {input.shape}")
    if input.dtype not in dtypes.FLOATING:
        raise NotImplementedError(f"grid_sample expected a floating input, got {dtypes.dtype_name(input.dtype)}")


@composed(Cast.KEEP)
def affine_grid(theta, size, align_corners=None):
    """The grid of points to which affine maps take the pixels of an image, for grid_sample.

    Args:
        theta: matrices (N, 2, 3), or (N, 3, 4) for volumes.
        size: the image's: (N, C, H, W) or (N, C, D, H, W).
        align_corners: as in grid_sample; False if not given.

    Shapes: (N, H, W, 2), or (N, D, H, W, 3).
    """
    if theta.dtype not in dtypes.FLOATING:
        raise ValueError(f"affine_grid expected a floating theta, got {dtypes.dtype_name(theta.dtype)}")
    size = tuple([as_int(n) for n in size])
    if len(size) == 3:
        raise NotImplementedError(f"affine_grid expected a size of 4 or 5 numbers, got {size}; give it an axis of length 1")
    axes = len(size) - 2
    if axes not in (2, 3):
        raise NotImplementedError(f"affine_grid expected a size of 4 or 5 numbers, got {size}")
    if theta.ndim != 3 or theta.shape[1:] != (axes, axes + 1):
        raise ValueError(f"affine_grid expected theta of shape (N, {axes}, {axes + 1}) for size {size}, got {theta.shape}")
    if min(size) <= 0:
        raise ValueError(f"affine_grid expected a positive size, got {size}")
    if theta.shape[0] != size[0]:
        raise RuntimeError(f"affine_grid expected one matrix for each of {size[0]} images, got theta of shape {theta.shape}")
    if align_corners is None:
        warnings.warn("affine_grid took align_corners=False, as it was not given; say which you want", stacklevel=2)
    points = make_tensor(theta.backend.asarray(_centres(size[2:], bool(align_corners)).astype(theta.dtype)), None)
    return reshape(matmul(points, transpose(theta, 1, 2)), (size[0], *size[2:], axes))


def _centres(sizes, align):
    """(x, y, [z,] 1) of each pixel's centre, a matrix."""
    lines = [np.zeros(1) if n == 1 else np.linspace(-1, 1, n) * (1 if align else (n - 1) / n) for n in sizes]
    planes = np.meshgrid(*lines, indexing="ij")
    return np.stack([*[plane.ravel() for plane in reversed(planes)], np.ones(planes[0].size)], axis=1)


METHODS = ()
IN_PLACE = ()
ON_TENSORS = {
    "resample": lambda x, taps: _resample(x, taps=taps),
    "take_pixels": lambda x, index: _take_pixels(x, index=index),
    "put_pixels": lambda g, index, pixels: _put_pixels(g, index=index, pixels=pixels),
    "grid_fractions": lambda grid, sizes, how: _grid_fractions(grid, sizes=sizes, how=how),
    "grid_slopes": lambda grid, sizes, how: make_tensor(grid.backend.grid_slopes(grid.array, sizes, how), None),
}
