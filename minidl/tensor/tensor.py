"""The Tensor: an array, its place in the graph, and what it is a view of. Its functions are bound in methods.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..autograd import edits
from ..autograd.graph import Leaf
from . import dtypes
from .backend import Backend, backend_of
from .convert import to_array
from .device import Device

_new = object.__new__


class Tensor:
    """A multi-dimensional array of one dtype on one device, which can record how it was computed.

    Make one with `minidl.tensor`, `minidl.zeros`, ...; `Tensor(data)` is the same as `minidl.tensor(data)`.

    Attributes:
        array: the NumPy or CuPy array.
        node: Node or Leaf of the graph; None where no gradient is wanted.
        view_of: (base, op, attributes, node of the base) of a view, or None.
    """

    __slots__ = ("array", "node", "view_of", "__dict__", "__weakref__")
    __array_priority__ = 1000  # NumPy arrays leave `array * tensor` to Tensor.__rmul__
    xp: Any = None             # the backend over tensors; set by tensor_backend.py

    array: Any
    node: Any
    view_of: Any

    def __init__(self, data: Any = (), dtype: Any = None, device: Any = None, requires_grad: bool = False):
        self.array = to_array(data, dtype, device, copy=True)
        self.node = None
        self.view_of = None
        if requires_grad:
            self.requires_grad_()

    if TYPE_CHECKING:  # bound in methods.py
        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __iter__(self) -> Any: ...
        def __len__(self) -> int: ...
        def __neg__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __float__(self) -> float: ...
        def __eq__(self, other: Any) -> Any: ...
        def __ne__(self, other: Any) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __rmatmul__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...

    # The engine's protocol

    @staticmethod
    def like(array: Any, node: Any = None) -> Tensor:
        """A tensor around another array and node."""
        return make_tensor(array, node)

    @property
    def backend(self) -> Backend:
        """The backend that serves this tensor's array."""
        return backend_of(self.array)

    # What it is

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.array.ndim

    @property
    def dtype(self) -> Any:
        """Element type, a numpy.dtype such as minidl.float32."""
        return self.array.dtype

    @property
    def device(self) -> Device:
        """Where the memory lies."""
        return backend_of(self.array).device_of(self.array)

    @property
    def data(self) -> Tensor:
        """A tensor that shares this one's memory and has no history. As with detach(), backward sees edits through it."""
        return make_tensor(self.array[...], None)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Tensor.data expected a Tensor, got {type(value).__name__}")
        self.array = value.array[...]
        if type(self.node) is Leaf:
            leaf = self.node
            leaf.xp, leaf.shape, leaf.dtype = value.backend, self.array.shape, self.array.dtype
            buffer = leaf.buffer
            if buffer is not None and (buffer.shape, buffer.dtype, backend_of(buffer)) != (leaf.shape, leaf.dtype, leaf.xp):
                leaf.buffer = None  # the gradient no longer fits there

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The values as a NumPy array: a view on the CPU, also of a tensor that requires grad; a copy from a GPU.

        Args:
            force: accepted for PyTorch's sake; here nothing stands in the way.
        """
        return self.backend.to_numpy(self.array)

    # Its place in the graph

    @property
    def grad(self) -> Any:
        """The accumulated gradient, a tensor of this one's shape and dtype, or None. That of a half tensor may be float32, as
        after unscaling."""
        if type(self.node) is Leaf:
            return self.node.grad
        return self.__dict__.get("_retained_grad")

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"Tensor.grad expected a Tensor or None, got {type(value).__name__}")
            if value.shape != self.shape:
                raise RuntimeError(f"Tensor.grad expected shape {self.shape}, got {value.shape}")
            if value.dtype != self.dtype and not (self.dtype in dtypes.HALF and value.dtype == dtypes.float32):
                raise RuntimeError(f"Tensor.grad expected dtype {dtypes.dtype_name(self.dtype)}, got "
                                   f"{dtypes.dtype_name(value.dtype)}")
            if value.device != self.device:
                raise RuntimeError(f"Tensor.grad expected a tensor on {self.device}, got one on {value.device}")
        if type(self.node) is Leaf:
            self.node.grad = value
        elif value is not None or self.node is None:
            self.__dict__["_retained_grad"] = value
        else:
            self.__dict__.pop("_retained_grad", None)

    @property
    def _version(self) -> int:
        """How often the memory of this tensor has been edited in place."""
        return edits.edit_count(self.array)

    def detach(self) -> Tensor:
        """A tensor that shares this one's memory and has no history; in-place edits of it are seen by backward."""
        return make_tensor(self.array[...], None)


def make_tensor(array: Any, node: Any) -> Tensor:
    """A Tensor around an array as it is. One array object belongs to one node, so that closures tell inputs apart."""
    tensor = _new(Tensor)
    tensor.array = array
    tensor.node = node
    tensor.view_of = None
    return tensor
