"""A journal of running statistics, so that a step which a loss scaler skips does not move them.

A kernel that is about to move statistics in place calls `note`; a scaler rolls back or commits at the end of its
iteration. Without a scaler in this thread nothing is kept.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from ..autograd import edits


class _Journal(threading.local):
    def __init__(self) -> None:
        self.owners: weakref.WeakSet = weakref.WeakSet()
        self.before: dict[int, tuple] = {}  # id of the array -> (array, copy of what it was at the last commit)


_journal = _Journal()


def open_for(owner: Any) -> None:
    """Keep what statistics were, as long as the owner lives."""
    _journal.owners.add(owner)


def note(array: Any) -> None:
    """Statistics in this array are about to be moved in place."""
    if _journal.owners and id(array) not in _journal.before:
        _journal.before[id(array)] = (array, array.copy())


def roll_back() -> None:
    """Put all statistics back to what they were at the last commit."""
    for array, before in _journal.before.values():
        array[...] = before
        edits.record_edit(array)


def commit() -> None:
    """Statistics stay as they are now."""
    _journal.before.clear()
