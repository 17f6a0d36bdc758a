"""Arguments of functions over spatial axes: numbers that stand for every axis, and inputs without a batch axis."""

from __future__ import annotations

from typing import Any

from .ops.shape import reshape


def lengths_per_axis(name: str, argument: str, value: Any, axes: int, lowest: int | None) -> tuple[int, ...]:
    """One integer per spatial axis, from an integer or a sequence of one or `axes` of them.

    Raises:
        TypeError: if they are no integers.
        RuntimeError: if their number is wrong or one lies below `lowest`.
    """
    if value.__class__ is int and lowest is not None and value >= lowest:
        return (value,) * axes
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if any(isinstance(n, bool) or not hasattr(n, "__index__") for n in given):
        raise TypeError(f"{name} expected {argument} to be an integer or a sequence of integers, got {value!r}")
    if len(given) not in (1, axes):
        raise RuntimeError(f"{name} expected {argument} to be one integer or {axes} of them, got {value!r}")
    lengths = tuple(n.__index__() for n in given) * (axes // len(given))
    if lowest is not None and min(lengths) < lowest:
        raise RuntimeError(f"{name} expected {argument} of at least {lowest}, got {value!r}")
    return lengths


def batched(input: Any, axes: int) -> Any:
    """A tensor (C, *spatial) as a batch of one; a tensor (N, C, *spatial) itself."""
    return input if input.ndim == axes + 2 else reshape(input, (1, *input.shape))


def unbatched(out: Any, input: Any, axes: int) -> Any:
    """The result for `batched(input)` as that for input."""
    return out if input.ndim == axes + 2 else reshape(out, out.shape[1:])
