"""Borders around tensors, and elements moved between channels and pixels. Exported by minidl.nn.functional."""

from __future__ import annotations

from operator import index as as_int

from ...autograd.edits import owner_of
from ...autograd.op import Cast
from .. import dtypes
from ..apply import op
from ..sizes import sizes_of
from .flipping import flip
from .indexing import _slice
from .joining import cat
from .shape import clone, expand, permute, reshape
from .splitting import narrow

__all__ = ["channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle"]


@op(Cast.KEEP)
def _pad(xp, x, *, shape, place, value):
    out = xp.full(shape, value, x.dtype)
    out[place] = x
    return out, lambda g: g[place]


def pad(input, pad, mode="constant", value=None):
    """The tensor with a border; negative widths cut off.

    Args:
        pad: (left, right, top, bottom, front, back, ...): the widths before and after the last axis, then those of the axis
            before it, and so on.
        mode: "constant": filled with `value`, for any number of axes. "reflect" (about the edge elements), "replicate" (the
            edge elements) and "circular" (the other end's): for the last 1, 2 or 3 axes of a tensor with one or two more
            (a channel axis and maybe a batch axis).
        value: 0 if it is not given.
    """
    widths = sizes_of("pad", pad)
    if len(widths) % 2 or len(widths) > 2 * input.ndim:
        raise RuntimeError(f"pad expected two widths per axis and at most {2 * input.ndim} of them for a tensor of shape "
                           f"{input.shape}, got {widths}")
    pairs = [(input.ndim - 1 - i, widths[2 * i], widths[2 * i + 1]) for i in range(len(widths) // 2)]
    for axis, before, after in pairs:
        if input.shape[axis] + before + after < 0:
            raise RuntimeError(f"pad expected widths that leave a length of at least 0, got {(before, after)} for axis "
                               f"{axis} of shape {input.shape}")
    if mode == "constant":
        return _constant(input, pairs, 0 if value is None else value)
    if mode not in _BORDERS:
        raise NotImplementedError(f"pad expected mode 'constant', 'reflect', 'replicate' or 'circular', got {mode!r}")
    if value is not None and value != 0:
        raise RuntimeError(f"pad expected no value with mode {mode!r}, got {value}")
    if not 1 <= len(pairs) <= 3 or input.ndim not in (len(pairs) + 1, len(pairs) + 2):
        raise NotImplementedError(f"pad with mode {mode!r} expected widths for the last 1, 2 or 3 axes of a tensor with one or "
                                  f"two axes more, got {widths} for shape {input.shape}")
    _check_border(mode, input.shape, pairs)
    out = input
    for axis, before, after in pairs:
        out = _BORDERS[mode](out, axis, before, after)
    return clone(out) if out is input or not any(widths) else out


def _constant(input, pairs, value):
    kept = [slice(None)] * input.ndim
    place, shape = list(kept), list(input.shape)
    for axis, before, after in pairs:
        length = shape[axis]
        kept[axis] = slice(max(-before, 0), length - max(-after, 0))
        shape[axis] = length + before + after
        place[axis] = slice(max(before, 0), shape[axis] - max(after, 0))
    if any(min(before, after) < 0 for _, before, after in pairs):
        input = _slice(input, index=tuple(kept))
    if isinstance(value, float) and input.dtype not in dtypes.FLOATING:
        value = bool(value) if input.dtype == dtypes.bool_ else int(value)
    return _pad(input, shape=tuple(shape), place=tuple(place), value=value)


def _check_border(mode, shape, pairs):
    """Refuse what has nothing to be made from: empty axes, and borders wider than what they repeat."""
    if mode != "circular" and 0 in shape[len(shape) - len(pairs) - 1:]:
        raise RuntimeError(f"pad with mode {mode!r} expected elements in all axes but the batch axis, got shape {shape}")
    for axis, before, after in pairs:
        length = shape[axis]
        if shape[axis] + before + after < 1 and mode != "circular":
            raise RuntimeError(f"pad with mode {mode!r} expected widths that leave a length of at least 1, got "
                               f"{(before, after)} for axis {axis} of shape {shape}")
        limit = {"reflect": length - 1, "circular": length}.get(mode)
        if limit is not None and max(before, after) > limit:
            raise RuntimeError(f"pad with mode {mode!r} expected widths of at most {limit} for axis {axis} of shape {shape}, "
                               f"got {(before, after)}")


def _reflect(x, axis, before, after):
    length = x.shape[axis]
    parts = [x]
    if before > 0:
        parts.insert(0, flip(narrow(x, axis, 1, before), axis))
    if after > 0:
        parts.append(flip(narrow(x, axis, length - 1 - after, after), axis))
    return _cut(_join(parts, axis), axis, before, after)


def _replicate(x, axis, before, after):
    parts = [x]
    if before > 0:
        parts.insert(0, _edge(x, axis, 0, before))
    if after > 0:
        parts.append(_edge(x, axis, x.shape[axis] - 1, after))
    return _cut(_join(parts, axis), axis, before, after)


def _circular(x, axis, before, after):
    x = _cut(x, axis, before, after)
    parts = [x]
    if before > 0:
        parts.insert(0, narrow(x, axis, x.shape[axis] - before, before))
    if after > 0:
        parts.append(narrow(x, axis, 0, after))
    return _join(parts, axis)


def _edge(x, axis, place, width):
    return expand(narrow(x, axis, place, 1), (*x.shape[:axis], width, *x.shape[axis + 1:]))


def _cut(x, axis, before, after):
    start, stop = max(-before, 0), x.shape[axis] - max(-after, 0)
    return narrow(x, axis, start, stop - start) if before < 0 or after < 0 else x


def _join(parts, axis):
    return cat(parts, axis) if len(parts) > 1 else parts[0]


_BORDERS = {"reflect": _reflect, "replicate": _replicate, "circular": _circular}


def pixel_shuffle(input, upscale_factor):
    """Channels spread over pixels.

    Shapes: (*, C * r * r, H, W) to (*, C, H * r, W * r), where r is upscale_factor.
    """
    r = _factor("pixel_shuffle", input, upscale_factor)
    *batch, channels, height, width = input.shape
    if channels % (r * r):
        raise RuntimeError(f"pixel_shuffle expected a number of channels that {r} * {r} divides, got shape {input.shape}")
    n = len(batch)
    x = reshape(input, (*batch, channels // (r * r), r, r, height, width))
    x = permute(x, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return _fresh(reshape(x, (*batch, channels // (r * r), height * r, width * r)), input)


def pixel_unshuffle(input, downscale_factor):
    """Pixels gathered into channels, the inverse of pixel_shuffle.

    Shapes: (*, C, H * r, W * r) to (*, C * r * r, H, W), where r is downscale_factor.
    """
    r = _factor("pixel_unshuffle", input, downscale_factor)
    *batch, channels, height, width = input.shape
    if height % r or width % r:
        raise RuntimeError(f"pixel_unshuffle expected a height and width that {r} divides, got shape {input.shape}")
    n = len(batch)
    x = reshape(input, (*batch, channels, height // r, r, width // r, r))
    x = permute(x, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return _fresh(reshape(x, (*batch, channels * r * r, height // r, width // r)), input)


def channel_shuffle(input, groups):
    """Channels of `groups` groups interleaved: the first of each group, then the second of each, and so on.

    Shapes: (N, C, *) to (N, C, *)
    """
    groups = as_int(groups)
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expected a tensor of at least 3 axes, got shape {input.shape}")
    if groups <= 0 or input.shape[1] % groups:
        raise RuntimeError(f"channel_shuffle expected a positive number of groups that divides the channels of shape "
                           f"{input.shape}, got {groups}")
    batch, channels, *rest = input.shape
    x = reshape(input, (batch, groups, channels // groups, *rest))
    x = permute(x, (0, 2, 1, *range(3, x.ndim)))
    return _fresh(reshape(x, input.shape), input)


def _factor(name, input, factor):
    factor = as_int(factor)
    if input.ndim < 3:
        raise RuntimeError(f"{name} expected a tensor of at least 3 axes, got shape {input.shape}")
    if factor <= 0:
        raise RuntimeError(f"{name} expected a positive factor, got {factor}")
    return factor


def _fresh(out, input):
    """A tensor with memory of its own: where nothing moved, the reshapes have shown the input's."""
    return clone(out) if owner_of(out.array) is owner_of(input.array) else out


METHODS = ()
IN_PLACE = ()
ON_TENSORS: dict = {}
