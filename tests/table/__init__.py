"""The op table: one row per op (several where its arguments take different paths), tested by tests/test_ops.py.

A row names a function, sample inputs, attributes and a NumPy float64 reference. All properties that every op must have
are then tested over all rows, so a row is all the test that a new op needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Row:
    """One function at one set of arguments.

    Args:
        function: the minidl function; takes `*inputs, **attributes`.
        inputs: NumPy arrays (floating ones in float64: they are cast to each dtype under test and checked for
            gradients; integer and bool ones are passed as tensors), or other values, passed as they are.
        reference: NumPy in float64: `reference(*inputs, **attributes)`, returns an array or a tuple of them.
        attributes: keyword arguments.
        name: unique; the function's name, with a note where a function has several rows: "conv2d groups".
        grad: floating inputs are differentiable, as are the floating outputs.
        gradgrad: and so are the gradients. False only where PyTorch has none either.
        half: the row is run in float16 and bfloat16 too.
        tolerance: factor on the dtype's tolerance, for ill-conditioned functions.
        same_dtype: a floating output has the dtype of the inputs.
    """

    function: Callable
    inputs: tuple
    reference: Callable
    attributes: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    grad: bool = True
    gradgrad: bool = True
    half: bool = True
    tolerance: float = 1.0
    same_dtype: bool = True

    def __post_init__(self) -> None:
        self.name = self.name or self.function.__name__

    def __repr__(self) -> str:
        return self.name


def sample(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    """Float64 values spread over (low, high), distinct, none at 0, the same on every run. Kept representable in
    float16 so that casting to a half does not move the point at which the reference is taken."""
    rng = np.random.Generator(np.random.Philox(seed + 1000 * len(shape) + sum(shape)))
    count = int(np.prod(shape))
    grid = low + (high - low) * (np.arange(count) + 0.5 + 0.3 * rng.uniform(-1, 1, count)) / max(count, 1)
    rng.shuffle(grid)
    grid = grid.astype(np.float16).astype(np.float64)
    grid[grid == 0] = (high - low) / 64
    return grid.reshape(shape)
