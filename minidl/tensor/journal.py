"""A journal of running statistics, so that a step which a loss scaler skips does not move them.

A kernel that is about to move statistics in place calls `note`. A step that is taken commits, one that is skipped rolls
back what its thread has moved since the last commit. While no scaler lives nothing is kept.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from ..autograd import edits


class _Journal(threading.local):
    def __init__(self) -> None:
        self.before: dict[int, tuple] = {}  # id of the array -> (array, copy of what it was at the last commit)


_journal = _Journal()
_owners: weakref.WeakSet = weakref.WeakSet()  # of all threads: a scaler may be made in another one than it is used in


def open_for(owner: Any) -> None:
    """Keep what statistics were, as long as the owner lives."""
    _owners.add(owner)


def note(array: Any) -> None:
    """Statistics in this array are about to be moved in place."""
    if _owners and id(array) not in _journal.before:
        _journal.before[id(array)] = (array, array.copy())


def roll_back() -> None:
    """Put all statistics back to what they were at the last commit."""
    for array, before in _journal.before.values():
        array[...] = before
        edits.record_edit(array)
    _journal.before.clear()


def commit() -> None:
    """Statistics stay as they are now."""
    _journal.before.clear()
