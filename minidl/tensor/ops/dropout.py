"""Dropout in its forms. The masks come from a Generator and are kept as truth values."""

from __future__ import annotations

import math
import warnings

from ...autograd.op import Cast
from .. import dtypes
from ..apply import op
from ..inplace import in_place
from ..random import default_generator

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
]

_SELU_FLOOR = -1.7580993408473766  # SELU's value at -infinity: -scale * alpha


@op(Cast.KEEP, wide=True)
def _dropout(xp, x, *, mask, scale):
    """x * scale where mask, else 0."""
    return x * scale * mask, lambda g: g * scale * mask


@op(Cast.KEEP, wide=True)
def _alpha_dropout(xp, x, *, mask, scale, shift, dropped):
    """x * scale + shift where mask, else dropped."""
    return xp.where(mask, x * scale + shift, dropped), lambda g: g * scale * mask


@op(Cast.KEEP)
def _erase(xp, x):
    """Zeros, whatever x holds."""
    return xp.zeros_like(x), lambda g: g * 0


_in_place = {function: in_place(function) for function in (_dropout, _alpha_dropout, _erase)}


def dropout(input, p=0.5, training=True, inplace=False, *, generator=None):
    """Zero each element with probability p and divide the others by 1 - p, in training.

    Args:
        inplace: write into the input.
        generator: default this thread's run-time stream.

    Raises:
        ValueError: for p outside [0, 1].
    """
    _check("dropout", p, input, training)
    return _drop(input, input.shape, p, inplace, generator) if training else input


def dropout1d(input, p=0.5, training=True, inplace=False, *, generator=None):
    """dropout of whole channels of an input of shape (N, C, L) or (C, L)."""
    _check("dropout1d", p, input, training)
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d expected an input of shape (N, C, L) or (C, L), got {input.shape}")
    return _drop(input, _channels(input, 3), p, inplace, generator) if training else input


def dropout2d(input, p=0.5, training=True, inplace=False, *, generator=None):
    """dropout of whole channels of an input of shape (N, C, H, W). Three axes count as (N, C, L), as in PyTorch."""
    _check("dropout2d", p, input, training)
    if input.ndim != 4:
        what = "takes it for (N, C, L)" if input.ndim == 3 else "drops along its first two axes"
        warnings.warn(f"dropout2d expected an input of shape (N, C, H, W), got {input.shape}, and {what}; "
                      f"use dropout1d or dropout", stacklevel=2)
    return _drop(input, _channels(input, input.ndim), p, inplace, generator) if training else input


def dropout3d(input, p=0.5, training=True, inplace=False, *, generator=None):
    """dropout of whole channels of an input of shape (N, C, D, H, W) or (C, D, H, W)."""
    _check("dropout3d", p, input, training)
    if input.ndim not in (4, 5):
        warnings.warn(f"dropout3d expected an input of shape (N, C, D, H, W) or (C, D, H, W), got {input.shape}, and drops "
                      f"along its first axis; use dropout", stacklevel=2)
    return _drop(input, _channels(input, 5), p, inplace, generator) if training else input


def alpha_dropout(input, p=0.5, training=False, inplace=False, *, generator=None):
    """Dropout for SELU networks: dropped elements take SELU's lowest value; mean and variance are kept.

    Source: Klambauer et al. 2017, Self-Normalizing Neural Networks.
    """
    _check("alpha_dropout", p, input, training)
    return _alpha_drop(input, input.shape, p, inplace, generator) if training else input


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False, *, generator=None):
    """alpha_dropout of whole channels of an input of shape (N, C, ...)."""
    _check("feature_alpha_dropout", p, input, training)
    return _alpha_drop(input, _channels(input, input.ndim), p, inplace, generator) if training else input


def _drop(input, mask_shape, p, inplace, generator):
    if p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return _run(_erase, input, inplace)
    return _run(_dropout, input, inplace, mask=_mask(input, mask_shape, p, generator), scale=1 / (1 - p))


def _alpha_drop(input, mask_shape, p, inplace, generator):
    if p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return _run(_erase, input, inplace)
    scale = 1 / math.sqrt((_SELU_FLOOR ** 2 * p + 1) * (1 - p))
    shift = -_SELU_FLOOR * scale * p
    mask = _mask(input, mask_shape, p, generator)
    return _run(_alpha_dropout, input, inplace, mask=mask, scale=scale, shift=shift, dropped=_SELU_FLOOR * scale + shift)


def _mask(input, shape, p, generator):
    """True where an element is kept."""
    generator = default_generator() if generator is None else generator
    return generator.uniform(shape, dtypes.float32, input.device) >= p


def _run(function, input, inplace, **attributes):
    return (_in_place[function] if inplace else function)(input, **attributes)


def _channels(input, batched):
    """The shape of one mask value per channel; an input of fewer axes than `batched` has no batch axis."""
    if input.ndim < 2:
        raise RuntimeError(f"channel-wise dropout expected at least 2 axes, got an input of shape {input.shape}")
    kept = 2 if input.ndim >= batched else 1
    return input.shape[:kept] + (1,) * (input.ndim - kept)


def _check(name, p, input, training):
    if not 0 <= p <= 1:
        raise ValueError(f"{name} expected p in [0, 1], got {p}")
    if training and input.dtype not in dtypes.FLOATING:
        raise RuntimeError(f"{name} expected a floating input, got {dtypes.dtype_name(input.dtype)}; cast it first")


METHODS = ()
ON_TENSORS: dict = {}
