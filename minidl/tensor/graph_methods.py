"""The methods of Tensor that deal with the graph: backward, hooks, retained gradients."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..autograd.backward import backward as _backward
from ..autograd.graph import Leaf, Node, Output
from ..autograd.hooks import RemovableHandle
from . import dtypes, inplace
from .tensor import Tensor, make_tensor


def backward(self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Any = None) -> None:
    """Accumulate the gradients of this tensor into the `.grad` of the leaves it was computed from.

    Args:
        gradient: gradient of this tensor, of its shape; may be left out if it has one element.
        retain_graph: keep what backward needs for another backward. Default: the value of create_graph.
        create_graph: record backward itself, so that the gradients can be differentiated.
        inputs: accumulate into these tensors only.
    """
    refreshed_node(self)
    _backward(self, gradient, retain_graph, create_graph, inputs)


def refreshed_node(tensor: Tensor) -> Any:
    """The tensor's node, taken from its base again if that was written after the view was made."""
    if inplace.history_written:
        inplace.refresh_views((tensor,))
    return tensor.node


def requires_grad(self: Tensor) -> bool:
    """True where backward computes a gradient for this tensor."""
    return refreshed_node(self) is not None


def set_requires_grad(self: Tensor, value: bool) -> None:
    """The setter of requires_grad."""
    requires_grad_(self, value)


def is_leaf(self: Tensor) -> bool:
    """True for tensors that were not computed from others that require grad."""
    node = refreshed_node(self)
    return node is None or type(node) is Leaf


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Say whether backward shall compute this leaf's gradient; returns the tensor itself."""
    if not is_leaf(self):
        if not requires_grad:
            raise RuntimeError("requires_grad_(False) expected a leaf, got a computed tensor; use .detach()")
        return self
    if requires_grad and self.node is None:
        if self.array.dtype not in dtypes.FLOATING:
            raise RuntimeError(f"requires_grad expected a floating dtype, got {dtypes.dtype_name(self.array.dtype)}; "
                               f"cast the tensor first")
        self.node = Leaf(self.backend, self.array.shape, self.array.dtype)
    elif not requires_grad:
        self.node = None
    return self


def grad_fn(self: Tensor) -> Any:
    """The node that computed this tensor; None for leaves."""
    node = refreshed_node(self)
    if type(node) is Output:
        return node.edges[0]
    return node if isinstance(node, Node) else None


def register_hook(self: Tensor, hook: Callable) -> RemovableHandle:
    """Call `hook(grad)` with this tensor's gradient whenever backward computes it; what it returns replaces it.

    Returns:
        A handle with remove().
    """
    if not callable(hook):
        raise TypeError(f"register_hook expected a function, got {type(hook).__name__}")
    node = refreshed_node(self)
    if node is None:
        raise RuntimeError("register_hook expected a tensor that requires grad, got one that does not")
    if node.hooks is None:
        node.hooks = {}
    return RemovableHandle(node.hooks, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable) -> RemovableHandle:
    """Call `hook(tensor)` after backward has accumulated into this leaf's `.grad`."""
    leaf = self.node
    if type(leaf) is not Leaf:
        raise RuntimeError("register_post_accumulate_grad_hook expected a leaf that requires grad")
    if leaf.post_hooks is None:
        leaf.post_hooks = {}
    owner = weakref.ref(self)  # a strong one would make a cycle

    def call():
        tensor = owner()
        if tensor is not None:
            hook(tensor)

    return RemovableHandle(leaf.post_hooks, call)


def grad_buffer(self: Tensor) -> Tensor | None:
    """Where backward puts this leaf's gradient: a tensor of its shape, dtype and device, such as a piece of a flat one.

    Backward writes there instead of allocating, where it can straight from the kernel, and `.grad` is then a view of it.
    A gradient that is already in `.grad` is added to, as always. Assign None to go back to fresh gradients.
    """
    leaf = self.node
    return None if type(leaf) is not Leaf or leaf.buffer is None else make_tensor(leaf.buffer[...], None)


def set_grad_buffer(self: Tensor, buffer: Tensor | None) -> None:
    """The setter of grad_buffer."""
    leaf = self.node
    if type(leaf) is not Leaf:
        raise RuntimeError("grad_buffer expected a leaf that requires grad")
    if buffer is not None and (buffer.shape, buffer.dtype, buffer.device) != (self.shape, self.dtype, self.device):
        raise RuntimeError(f"grad_buffer expected a tensor of shape {self.shape}, dtype {self.dtype}, on {self.device}, got "
                           f"shape {buffer.shape}, dtype {buffer.dtype}, on {buffer.device}")
    leaf.buffer = None if buffer is None else buffer.array
    leaf.lent = False


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this computed tensor in its `.grad` when backward comes by."""
    if refreshed_node(self) is None:
        raise RuntimeError("retain_grad expected a tensor that requires grad, got one that does not")
    if self.is_leaf or self.__dict__.get("_retains_grad"):
        return
    self.__dict__["_retains_grad"] = True
    owner = weakref.ref(self)

    def keep(g):
        tensor = owner()
        if tensor is not None:
            before = tensor.__dict__.get("_retained_grad")
            tensor.__dict__["_retained_grad"] = g if before is None else before + g

    register_hook(self, keep)


def retains_grad(self: Tensor) -> bool:
    """True for a computed tensor whose gradient is kept."""
    return bool(self.__dict__.get("_retains_grad"))
