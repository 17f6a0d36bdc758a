"""One clock for graph nodes and in-place edits, and which memory was edited when.

Edits are rare and nodes are many, so nodes carry a time only and an edit is entered in a table under the array that
owns the memory: views share their owner's entry. Backward looks here only when some edit came after its node.
"""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from typing import Any

tick = itertools.count(1).__next__


@dataclass(slots=True)
class _Edits:
    owner: weakref.ref
    last: int
    count: int


_table: dict[int, _Edits] = {}
latest = 0


def owner_of(array: Any) -> Any:
    """The array that owns the memory that `array` shows."""
    kind = type(array)
    base: Any = getattr(array, "base", None)
    while base is not None:
        if type(base) is kind:  # as_strided puts a helper object between a view and its base
            array = base
        base = getattr(base, "base", None)
    return array


def record_edit(array: Any) -> None:
    """Note that the memory of `array` has just been written in place."""
    global latest
    owner = owner_of(array)
    key = id(owner)
    entry = _table.get(key)
    latest = now = tick()
    if entry is not None:
        entry.last = now
        entry.count += 1
        return
    _table[key] = _Edits(weakref.ref(owner, lambda _: _table.pop(key, None)), now, 1)


def last_edit(array: Any) -> int:
    """The time of the last in-place edit of the memory of `array`; 0 if there was none."""
    entry = _table.get(id(owner_of(array)))
    return entry.last if entry is not None else 0


def edit_count(array: Any) -> int:
    """How often the memory of `array` has been edited in place."""
    entry = _table.get(id(owner_of(array)))
    return entry.count if entry is not None else 0
