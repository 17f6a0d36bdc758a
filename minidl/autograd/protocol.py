"""What the engine needs of a tensor. minidl.Tensor has these; the engine never names that class."""

from __future__ import annotations

from typing import Any, Protocol


class TensorLike(Protocol):
    """An array and its place in the graph."""

    array: Any  # a NumPy or CuPy array, or another one that a Backend serves
    node: Any   # Node or Leaf, or None where no gradient is wanted
    xp: Any     # a backend whose functions take tensors: the pullbacks of higher-order gradients run on it

    @staticmethod
    def like(array: Any, node: Any = None) -> TensorLike:
        """A tensor of the same kind around another array and node; it holds no reference to this one."""

    def cast_to(self, dtype: Any) -> TensorLike:
        """This tensor in another dtype, recorded."""

    def sum_to_size(self, *size: int) -> TensorLike:
        """This tensor summed over the axes along which `size` was broadcast, recorded."""

    def __add__(self, other: TensorLike) -> TensorLike: ...


def is_tensor(value: Any) -> bool:
    """True for anything with the attributes above."""
    return hasattr(value, "node") and hasattr(value, "array")
