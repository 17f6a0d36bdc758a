"""How tensors print: `tensor([1., 2.], dtype=minidl.float64, grad_fn=<MulBackward>)`, laid out as PyTorch does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..autograd.graph import Leaf
from . import dtypes
from .conversion import item
from .graph_methods import grad_fn
from .tensor import Tensor

PRECISION = 4      # digits after the point
THRESHOLD = 1000   # larger tensors are summarised
EDGE = 3           # items shown at each end of a summarised axis
LINE_WIDTH = 80


def represent(self: Tensor) -> str:
    """repr(): the values as PyTorch shows them, with dtype, device and history where they are not the usual ones."""
    values = self.backend.to_numpy(self.array)
    head = "tensor("
    text = _body(values, len(head))
    last_line = len(text) - text.rfind("\n") + 1
    parts = [head, text]
    for note in _notes(self):
        if last_line + len(note) + 2 > LINE_WIDTH:
            parts.append(",\n" + " " * len(head) + note)
            last_line = len(head) + len(note)
        else:
            parts.append(", " + note)
            last_line += len(note) + 2
    return "".join(parts) + ")"


def format_(self: Tensor, spec: str) -> str:
    """format(): a 0-d tensor as its number."""
    return format(item(self), spec) if not self.ndim else object.__format__(self, spec)


def _notes(tensor: Tensor) -> list[str]:
    """What is said after the values, where it is not what one expects."""
    notes = []
    if tensor.device.type != "cpu":
        notes.append(f"device='{tensor.device}'")
    plain = {dtypes.get_default_dtype()}
    if tensor.numel():
        plain |= {dtypes.int64, dtypes.bool_}
    elif tensor.ndim != 1:
        notes.append(f"size={tensor.shape}")
    if tensor.dtype not in plain:
        notes.append(f"dtype=minidl.{dtypes.dtype_name(tensor.dtype)}")
    node = grad_fn(tensor)
    if node is not None:
        notes.append(f"grad_fn=<{''.join(part.capitalize() for part in node.name().split('_'))}Backward>")
    elif type(tensor.node) is Leaf:
        notes.append("requires_grad=True")
    return notes


def _body(values: np.ndarray, indent: int) -> str:
    if not values.size:
        return "[]"
    if values.dtype in dtypes.HALF:
        values = values.astype(np.float32)
    summarise = values.size > THRESHOLD
    style = _Style(_edges(values) if summarise else values)
    return _nested(values, indent, summarise, style)


def _edges(values: np.ndarray) -> np.ndarray:
    """The items that a summary shows."""
    for axis, n in enumerate(values.shape):
        if n > 2 * EDGE:
            values = np.take(values, [*range(EDGE), *range(n - EDGE, n)], axis)
    return values


def _nested(values: np.ndarray, indent: int, summarise: bool, style: _Style) -> str:
    if values.ndim == 0:
        return style.text(values.item())
    short = summarise and values.shape[0] > 2 * EDGE
    if values.ndim == 1:
        shown = [*values[:EDGE].tolist(), *values[-EDGE:].tolist()] if short else values.tolist()
        cells = [style.text(value) for value in shown]
        if short:
            cells.insert(EDGE, " ...")
        per_line = max(1, (LINE_WIDTH - indent) // (style.width + 2))
        lines = [", ".join(cells[i:i + per_line]) for i in range(0, len(cells), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = [*values[:EDGE], *values[-EDGE:]] if short else list(values)
    blocks = [_nested(np.asarray(row), indent + 1, summarise, style) for row in rows]
    if short:
        blocks.insert(EDGE, "...")
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(blocks) + "]"


class _Style:
    """One format for all values: whole numbers, fixed point, or an exponent where they differ in size too much."""

    def __init__(self, values: np.ndarray):
        self.floating = values.dtype in dtypes.FLOATING
        if not self.floating:
            self.width = max(len(str(value)) for value in values.ravel().tolist())
            return
        finite = values[np.isfinite(values) & (values != 0)].astype(np.float64)
        self.whole, self.exponent, self.width = True, False, 1
        if not finite.size:
            return
        sizes = np.abs(finite)
        low, high = sizes.min(), sizes.max()
        self.whole = bool((finite == np.ceil(finite)).all())
        self.exponent = bool(high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4))
        self.width = max(len(self._plain(value)) for value in finite.tolist())

    def _plain(self, value: float) -> str:
        if self.exponent:
            return f"{value:.{PRECISION}e}"
        if self.whole:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{PRECISION}f}"

    def text(self, value: Any) -> str:
        return (self._plain(value) if self.floating else str(value)).rjust(self.width)


METHODS: dict[str, Any] = {"__repr__": represent, "__str__": represent, "__format__": format_}
