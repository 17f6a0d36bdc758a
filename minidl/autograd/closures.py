"""Reading and rewriting what a pullback closes over.

A pullback keeps what it needs in the cells of its closure. Higher-order gradients come from the same function with
tensors in place of arrays, and half-precision storage from the same function with widened arrays, so both are a copy
of the function with other cells.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any


def collect(item: Any, kind: type, found: list) -> None:
    """Append every object of type `kind` that the functions of a pullback close over, also through nested functions
    and sequences."""
    if item.__class__ is kind:
        found.append(item)
    elif item.__class__ is FunctionType:
        for cell in item.__closure__ or ():
            held = cell.cell_contents
            if held.__class__ is kind:
                found.append(held)
            elif held.__class__ in _NESTED:
                collect(held, kind, found)
    elif item.__class__ is tuple or item.__class__ is list:
        for part in item:
            collect(part, kind, found)


_NESTED = {FunctionType, tuple, list}


def holds(item: Any, kind: type) -> bool:
    """True if the functions of a pullback close over an object of type `kind`."""
    if item.__class__ is FunctionType:
        for cell in item.__closure__ or ():
            if cell.cell_contents.__class__ is kind or holds(cell.cell_contents, kind):
                return True
        return False
    if item.__class__ is tuple or item.__class__ is list:
        for part in item:
            if holds(part, kind):
                return True
        return False
    return item.__class__ is kind


def rebind(item: Any, swap: Callable[[Any], Any]) -> Any:
    """A copy of a pullback whose closures hold `swap(content)`; functions that close over nothing are shared."""
    if isinstance(item, FunctionType):
        if not item.__closure__:
            return item
        cells = tuple(CellType(rebind(cell.cell_contents, swap)) for cell in item.__closure__)
        copy = FunctionType(item.__code__, item.__globals__, item.__name__, item.__defaults__, cells)
        copy.__kwdefaults__ = item.__kwdefaults__
        return copy
    if type(item) in (tuple, list):
        return type(item)(rebind(part, swap) for part in item)
    return swap(item)
