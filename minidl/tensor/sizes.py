"""Size arguments: `f(2, 3)`, `f((2, 3))` and `f([2, 3])` mean the same."""

from __future__ import annotations

from operator import index as as_int
from typing import Any


def sizes_of(name: str, first: Any, more: tuple = ()) -> tuple[int, ...]:
    """The tuple that sizes mean, given one by one or as one sequence.

    Raises:
        TypeError: if a size is no integer.
    """
    given = (first, *more) if more or not isinstance(first, (tuple, list)) else first
    try:
        return tuple(map(as_int, given))
    except TypeError:
        raise TypeError(f"{name} expected integers, or one sequence of integers, got {given!r}") from None


def lengths_of(name: str, first: Any, more: tuple = ()) -> tuple[int, ...]:
    """The lengths of a new tensor's axes, given one by one or as one sequence.

    Raises:
        RuntimeError: if a length is negative.
    """
    lengths = sizes_of(name, first, more)
    if min(lengths, default=0) < 0:
        raise RuntimeError(f"{name} expected lengths that are not negative, got {lengths}")
    return lengths
