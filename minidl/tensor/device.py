"""Devices: "cpu" and "cuda:i", and the current one of this thread."""

from __future__ import annotations

import threading
from typing import Any


class Device:
    """Where a tensor's memory lies: Device("cpu"), Device("cuda"), Device("cuda:1"), Device("cuda", 1)."""

    __slots__ = ("type", "index")
    type: str
    index: int | None

    def __init__(self, type: Any = "cpu", index: int | None = None):
        if isinstance(type, Device):
            self.type, self.index = type.type, type.index
            return
        if isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        kind, colon, number = str(type).partition(":")
        if kind not in ("cpu", "cuda") or (colon and (not number.isdecimal() or index is not None)):
            raise ValueError(f"Device expected 'cpu', 'cuda' or 'cuda:<number>', got {type!r}")
        if number:
            index = int(number)
        if index is not None and (isinstance(index, bool) or not isinstance(index, int) or index < 0):
            raise ValueError(f"Device expected an index of 0 or more, got {index!r}")
        self.type = kind
        self.index = None if kind == "cpu" else index

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            try:
                other = Device(other)
            except ValueError:
                return False
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        return f"device({str(self)!r})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __enter__(self) -> Device:
        """Make this the device on which new tensors are made, in this thread."""
        _state.stack = [*_state.stack, self]
        return self

    def __exit__(self, *exc: Any) -> None:
        _state.stack = _state.stack[:-1]


class _State(threading.local):
    stack: list[Device] = []


CPU = Device("cpu")
_state = _State()


def current_device() -> Device:
    """The device on which tensors are made where none is named; Device("cpu") outside `with Device(...)`."""
    return _state.stack[-1] if _state.stack else CPU
