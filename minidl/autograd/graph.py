"""The recorded graph: a Node per operation, an Output per value of an operation with several, a Leaf per parameter.

Edges run from a node to what its inputs came from. Each target knows the shape and dtype of the value it stands for,
so a gradient is summed over broadcast axes and cast in one place: where the engine follows an edge.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from . import edits
from .closures import collect, holds, rebind
from .mode import state, watched
from .op import Cast, Op, Promote

tick = edits.tick


class Leaf:
    """Where a gradient ends: the graph's side of a tensor that requires grad and was not computed."""

    __slots__ = ("xp", "shape", "dtype", "grad", "hooks", "post_hooks", "buffer", "lent", "half",
                 "__weakref__")
    edges: tuple = ()

    def __init__(self, xp: Any, shape: tuple, dtype: Any):
        self.xp = xp
        self.shape = shape
        self.dtype = dtype
        self.grad: Any = None        # the accumulated gradient, a tensor
        self.hooks: Any = None       # called with each complete gradient before it is accumulated
        self.post_hooks: Any = None  # called with the owner's new .grad after accumulation
        self.buffer: Any = None      # an array in which .grad has to live, such as a piece of a flat bucket
        self.half: Any = None        # autocast's half copy of the value: (array, time of its last edit, copy)
        self.lent = False            # the buffer is an optimizer's: it is used only while nobody holds an older gradient

    def name(self) -> str:
        return "AccumulateGrad"

    def buffer_is_free(self) -> bool:
        """True where a new gradient may be written into the buffer: one that `.grad` held before and that somebody still
        holds, itself or through a view, must not change."""
        return not self.lent or sys.getrefcount(self.buffer) <= _REFERENCES_OF_IDLE


def _references_of_idle() -> int:
    leaf = Leaf(None, (), None)
    leaf.buffer = object()
    return sys.getrefcount(leaf.buffer)


_REFERENCES_OF_IDLE = _references_of_idle()


class Node:
    """One operation of the graph.

    Args:
        op: its record.
        xp: the backend that ran it.
        edges: for each input the Node or Leaf it came from, or None.
        pullback: see Op.
        shape, dtype: of the value; tuples of them where there are several values.
        keys: id() of each input array and of each value, by which the arrays in the pullback are recognised. They are
            valid because an array that the pullback holds cannot have died.
    """

    __slots__ = ("op", "xp", "edges", "pullback", "shape", "dtype", "keys", "stamp", "__dict__", "__weakref__")
    hooks: Any = None    # called with the complete gradient of the value
    saved: Any = None    # (arrays, attributes) of an op that is replayed
    saved_at = 0         # when the pullback was made, where that was after the node: edits before do not matter
    lazy: Any = None     # a function that restores the pullback, which a checkpoint has dropped
    packed = False       # the arrays in the closures are half and the pullback wants them wide
    site: Any = None     # where the op was called, under anomaly detection
    materialize = True   # of several values, those that nothing used get a gradient of zeros

    def __init__(self, op: Op, xp: Any, edges: tuple, pullback: Any, shape: tuple, dtype: Any, keys: Any = ()):
        self.op = op
        self.xp = xp
        self.edges = edges
        self.pullback = pullback
        self.shape = shape
        self.dtype = dtype
        self.keys = keys
        self.stamp = tick()
        if watched:
            if state.anomaly:
                self.site = _call_site()
            if state.made is not None:
                state.made.append(self)

    def name(self) -> str:
        return self.op.name

    @property
    def next_functions(self) -> tuple:
        """(node, 0) for each input, None where an input needs no gradient."""
        return tuple((edge, 0) for edge in self.edges)

    def __repr__(self) -> str:
        return f"<{self.op.name} backward>"

    def ready_pullback(self) -> Any:
        """The pullback over arrays, after the checks that what it holds is still there and still valid."""
        while self.lazy is not None:  # what restores it may be a checkpoint inside a checkpoint
            self.lazy()
        pullback = self.pullback
        if pullback is None:
            raise RuntimeError(
                f"backward reached {self.op.name} a second time, but its saved values were freed by the first one; "
                f"pass retain_graph=True to the first backward, or compute the forward again")
        if edits.latest > max(self.stamp, self.saved_at):
            self._check_unedited()
        if self.packed:
            return rebind(pullback, self._widen)
        return pullback

    def _check_unedited(self) -> None:
        held: list = []
        collect(self.pullback, self.xp.array_type, held)
        if self.saved is not None:
            collect(self.saved[0], self.xp.array_type, held)
        for array in held:
            if edits.last_edit(array) > max(self.stamp, self.saved_at):
                raise RuntimeError(
                    f"{self.op.name} needs for its backward a value of shape {tuple(array.shape)} that has been edited "
                    f"in place since; edit a clone of it, or use the out-of-place form of the operation"
                    f"{_at(self.site)}")

    def _widen(self, item: Any) -> Any:
        return self.xp.widen(item) if self.xp.is_array(item) and id(item) in self.keys else item

    def release(self) -> None:
        """Drop what backward needed. A node that holds no arrays stays usable, as in PyTorch."""
        if self.saved is None and not holds(self.pullback, self.xp.array_type):
            return
        self.pullback = None
        if self.saved is not None:
            self.saved = None
        self.edges = ()
        self.keys = ()

    def pull_tensors(self, g: Any, root: Any) -> Any:
        """The gradients of the inputs as tensors that carry a graph of their own; g is a tensor (or several)."""
        self.ready_pullback()
        if self.packed:
            g = [_wide(part, self.xp) for part in g] if isinstance(g, list) else _wide(g, self.xp)
        if self.op.replay:
            arrays, attributes = self.saved
            inputs = [self._tensor(i, array, root) for i, array in enumerate(arrays)]
            pullback = self.op.function(root.xp, *inputs, **attributes)[1]
        else:
            pullback = rebind(self.pullback, lambda item: self._swap(item, root))
        return call_pullback(pullback, g, self.edges)

    def _swap(self, item: Any, root: Any) -> Any:
        """What stands for an object of the closure when the pullback runs on tensors."""
        if item is self.xp:
            return root.xp
        if not self.xp.is_array(item):
            return item
        if id(item) in self.keys:
            return self._tensor(self.keys.index(id(item)), item, root)
        if self.xp.is_floating(item):
            raise RuntimeError(
                f"{self.op.name} keeps an intermediate array of shape {tuple(item.shape)} for its backward, so it has "
                f"no higher-order gradient; declare the op with replay=True")
        return item

    def _tensor(self, index: int, array: Any, root: Any) -> Any:
        """The tensor of input number `index`, or of a value where the inputs end."""
        if not self.xp.is_array(array):
            return array
        count = len(self.edges)
        if index >= count:
            node = self if not isinstance(self.shape, list) else Output(self, index - count)
            dtype = node.dtype
        else:
            node = self.edges[index]
            dtype = node.dtype if node is not None else None
        array = self.xp.asarray(array)
        if dtype is not None and array.dtype != dtype:
            node = Node(_CAST, self.xp, (node,), _identity, array.shape, array.dtype)
        tensor = root.like(array, node)
        return _wide(tensor, self.xp) if self.packed else tensor


class Output(Node):
    """One of several values of a node; passes its gradient to its place in the node's list."""

    __slots__ = ("index",)

    def __init__(self, parent: Node, index: int):
        super().__init__(parent.op, parent.xp, (parent,), _identity, parent.shape[index], parent.dtype[index])
        self.index = index

    def release(self) -> None:
        pass


def call_pullback(pullback: Any, g: Any, edges: tuple) -> Any:
    """Gradients of all inputs, one per edge, None where an input needs none."""
    if isinstance(pullback, tuple):
        return [f(g) if f is not None and edge is not None else None for f, edge in zip(pullback, edges)]
    if len(edges) == 1:
        return (pullback(g),)
    return pullback(g)


def _wide(tensor: Any, xp: Any) -> Any:
    if tensor is None or not xp.is_half(tensor.array):
        return tensor
    return tensor.cast_to(xp.wide_dtype)


def _identity(g: Any) -> Any:
    return g


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _call_site() -> str:
    frames = traceback.extract_stack()
    outside = [f for f in frames if not f.filename.startswith(_PACKAGE)]
    return "".join(traceback.format_list(outside[-3:]))


def _at(site: str | None) -> str:
    return f"; it was called at\n{site}" if site else ""


def _cast_function(xp, x):
    return x, _identity


_CAST = Op("cast", _cast_function, Cast.KEEP, Promote.NONE, wide=False, replay=False, view=False)
