"""Handles of registered hooks."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

_keys = itertools.count().__next__


class RemovableHandle:
    """Says where a hook was entered, and takes it out again."""

    def __init__(self, hooks: dict[int, Any], hook: Callable):
        self._hooks = hooks
        self._key = _keys()
        hooks[self._key] = hook

    def remove(self) -> None:
        """Take the hook out; harmless a second time."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()
