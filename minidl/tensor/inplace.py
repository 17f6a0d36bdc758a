"""In-place edits: what happens to a tensor's history, and to its views', when its memory is written.

Writing out-of-place and then copying gives every in-place method its gradient for free: `x.mul_(y)` is
`x <- mul(copy of x, y)`. A write through a view also changes the tensor that it is a view of, so that one gets a node
that puts the new values into the old.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..autograd import edits
from ..autograd.graph import Leaf, Node
from ..autograd.mode import state
from ..autograd.op import Cast, Op, Promote
from . import autocast, dtypes
from .backend import backend_of
from .tensor import Tensor, make_tensor

history_written = False  # some tensor's history has changed by a write, so that views of it may have to follow


def in_place(function: Callable) -> Callable:
    """The in-place form of a function whose value has the shape of its first argument: `exp` gives `exp_`. Autocast leaves it
    alone, as the tensor's dtype is given."""
    compute = autocast.unaffected(function)

    @functools.wraps(function)
    def method(self, *args, **kwargs):
        check_writable(self, method.__name__)
        if history_written:
            refresh_views((self, *args))
        recording = state.grad and (self.node is not None or _any_tracked(args, kwargs))
        old = make_tensor(self.array.copy(), self.node) if recording else self
        return overwrite(self, compute(old, *args, **kwargs), method.__name__)

    return _documented(method, function)


def in_place_arithmetic(function: Callable, ufunc: str) -> Callable:
    """As in_place, for `add`, `sub` and `mul`, which optimizers call once per parameter and step: where nothing is
    recorded and no dtype changes, the array module's own function writes straight into the tensor."""
    general = in_place(function)

    def method(self, other, **kwargs):
        array = self.array
        operand = other.array if other.__class__ is Tensor else other
        if (state.grad and (self.node is not None or self.view_of is not None or operand is not other)) or (
                operand.__class__ is not float and (operand.__class__ is not array.__class__
                                                    or operand.dtype is not array.dtype)) or array.dtype.kind != "f":
            return general(self, other, **kwargs)
        if kwargs:
            alpha = kwargs["alpha"] if len(kwargs) == 1 and "alpha" in kwargs else None
            if alpha.__class__ is not float or ufunc == "multiply":
                return general(self, other, **kwargs)
            operand = operand * alpha
        try:
            getattr(backend_of(array), ufunc)(array, operand, array)
        except ValueError:
            return general(self, other, **kwargs)  # says what is wrong with the shapes
        edits.record_edit(array)
        return self

    return _documented(method, function)


def _documented(method: Callable, function: Callable) -> Callable:
    method.__name__ = function.__name__.strip("_") + "_"
    method.__qualname__ = f"Tensor.{method.__name__}"
    method.__doc__ = f"In-place form of `minidl.{function.__name__}`: writes the result into this tensor and returns it."
    return method


def check_writable(tensor: Tensor, name: str) -> None:
    """Refuse to edit a leaf that requires grad, or a view of one, while the graph is recorded."""
    if not state.grad:
        return
    at: Any = tensor
    while at is not None:
        if type(at.node) is Leaf:
            what = "a leaf tensor that requires grad" if at is tensor else "a view of a leaf tensor that requires grad"
            raise RuntimeError(f"{name} expected a tensor whose history can change, got {what}; "
                               f"edit it inside `with minidl.no_grad():`, or edit a clone")
        at = at.view_of[0] if at.view_of is not None else None


def overwrite(tensor: Tensor, value: Tensor, name: str) -> Tensor:
    """Give `tensor` the values and the history of `value`, in its own memory."""
    array, new = tensor.array, value.array
    if new.shape != array.shape:
        raise RuntimeError(f"{name} expected a result of the tensor's own shape {array.shape}, got {new.shape}; "
                           f"use the out-of-place form")
    if dtypes.category(new.dtype) > dtypes.category(array.dtype):
        raise RuntimeError(f"{name} cannot store a result of dtype {dtypes.dtype_name(new.dtype)} in a tensor of dtype "
                        f"{dtypes.dtype_name(array.dtype)}; use the out-of-place form or cast the tensor first")
    if not getattr(array.flags, "writeable", True):
        raise RuntimeError(f"{name} expected memory that may be written, got an expanded tensor or a read-only array, of "
                           f"shape {array.shape}; clone it first")
    if history_written:
        refresh_views((tensor,))
    if new is not array:
        array[...] = new
    edits.record_edit(array)
    if state.grad and (value.node is not None or tensor.node is not None or tensor.view_of is not None):
        if value.node is None and tensor.node is not None:
            value = make_tensor(new, _erased(tensor))
        set_history(tensor, value if new.dtype == array.dtype else value.cast_to(array.dtype), name)
    return tensor


def set_history(tensor: Tensor, value: Tensor, name: str = "setitem") -> None:
    """After `tensor` was written in place with the values of `value`: its history, and that of what it is a view of."""
    global history_written
    history_written = True
    tensor.node = node = value.node
    while tensor.view_of is not None:
        base, view, attributes, _ = tensor.view_of
        if base.node is None and node is None:
            return
        if view.name == "windows" and attributes["step"] < attributes["size"]:
            raise RuntimeError(f"{name} expected a view whose elements lie apart, got a view of overlapping windows (unfold) "
                               f"of a tensor with a history; edit a clone of it")
        base.node = node = put_node(base, node, view, attributes)
        tensor.view_of = (base, view, attributes, node)
        tensor = base


def _erased(tensor: Tensor) -> Node:
    """The node of a tensor that was overwritten by something that needs no gradient: nothing flows to what was there."""
    xp = tensor.backend
    return Node(_ERASE, xp, (tensor.node,), (lambda g: xp.zeros_like(g),), tensor.array.shape, tensor.array.dtype)


def put_node(base: Tensor, source: Any, view: Op, attributes: dict) -> Node:
    """The node of `base` after a value, whose node is `source`, was put where `view(base)` shows it."""
    xp = base.backend
    mask = xp.ones(base.array.shape, dtypes.bool_)
    region = view.function
    region(xp, mask, **attributes)[0][...] = False

    def value_gradient(g):
        return region(xp, g, **attributes)[0]

    pullback = (lambda g: g * mask, value_gradient)
    edges = (base.node, source)
    return Node(_PUT, xp, edges, tuple(f if e is not None else None for f, e in zip(pullback, edges)),
                base.array.shape, base.array.dtype)


def refresh_views(inputs: Any) -> None:
    """Views whose base has got another history since they were made take theirs from it again."""
    for tensor in inputs:
        if not isinstance(tensor, Tensor) or tensor.view_of is None:
            continue
        chain = [tensor]
        while chain[-1].view_of is not None:
            chain.append(chain[-1].view_of[0])
        for shown in reversed(chain[:-1]):
            base, view, attributes, seen = shown.view_of
            if base.node is seen:
                continue
            shown.view_of = (base, view, attributes, base.node)
            if base.node is None:
                shown.node = None
            elif type(base.node) is not Leaf:  # a base that was made a leaf later leaves its views alone
                value, pullback = view.function(base.backend, base.array, **attributes)
                pullback = pullback if type(pullback) is tuple else (pullback,)
                shown.node = Node(view, base.backend, (base.node,), pullback, value.shape, value.dtype)


def _any_tracked(args: tuple, kwargs: dict) -> bool:
    return any(isinstance(a, Tensor) and a.node is not None for a in (*args, *kwargs.values()))


def _put(xp, base, value):
    raise AssertionError("put nodes are made by put_node")


def _erase(xp, x):
    raise AssertionError("erase nodes are made by overwrite")


_ERASE = Op("erase", _erase, Cast.KEEP, Promote.NONE, wide=False, replay=False, view=False)
_PUT = Op("put", _put, Cast.KEEP, Promote.NONE, wide=False, replay=False, view=False)
