"""Parameter: the tensor that a Module learns. Where it is an attribute of a Module, the Module finds it."""

from __future__ import annotations

from typing import Any

from ..tensor.creation import empty
from ..tensor.tensor import Tensor


class Parameter(Tensor):
    """A leaf tensor that is part of a model: assigned to an attribute of a Module, it is one of its parameters.

    Args:
        data: its initial values; a tensor's memory is shared. Default: empty.
        requires_grad: whether backward computes its gradient.
    """

    def __init__(self, data: Any = None, requires_grad: bool = True):
        super().__init__(() if data is None or isinstance(data, Tensor) else data)
        if isinstance(data, Tensor):
            self.array = data.array[...]
        if requires_grad:
            self.requires_grad_()

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    __str__ = __repr__


class UninitializedParameter(Parameter):
    """A parameter of a lazy layer, whose shape the first input tells."""

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(Tensor((), dtype, device), requires_grad)

    def materialize(self, shape: Any) -> None:
        """Become a Parameter of a shape, not yet initialized; optimizers that hold it hold that one then."""
        self.data = empty(tuple(shape), dtype=self.dtype, device=self.device)
        self.__class__ = Parameter  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<UninitializedParameter>"

    __str__ = __repr__


class UninitializedBuffer(Tensor):
    """A buffer of a lazy layer, whose shape the first input tells."""

    def materialize(self, shape: Any) -> None:
        """Become a Tensor of a shape, not yet initialized."""
        self.data = empty(tuple(shape), dtype=self.dtype, device=self.device)
        self.__class__ = Tensor  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<UninitializedBuffer>"

    __str__ = __repr__


def is_uninitialized(tensor: Any) -> bool:
    """True for a parameter or buffer whose shape is not known yet."""
    return isinstance(tensor, (UninitializedParameter, UninitializedBuffer))
