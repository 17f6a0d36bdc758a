"""Operations that users write themselves, with a forward and a backward of their own."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from . import edits
from .graph import Node, Output
from .mode import state
from .op import Cast, Op, Promote
from .protocol import is_tensor


class Function:
    """Base class of user-defined operations.

    Write two static methods and call the class's `apply`:

        class Cube(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x ** 3

            @staticmethod
            def backward(ctx, grad):
                x, = ctx.saved_tensors
                return grad * 3 * x ** 2

        y = Cube.apply(x)

    `forward` gets tensors and runs without recording; `backward` gets the gradient of each output and returns one
    gradient (or None) per argument of forward. Where `setup_context(ctx, inputs, output)` is defined, forward takes no
    ctx. Backward may be differentiated if it is written with minidl's functions.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; to be written by the subclass."""
        raise TypeError("Function expected its subclass to define a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Gradients of the arguments, from those of the outputs; to be written by the subclass."""
        raise TypeError("Function expected its subclass to define a static method backward(ctx, *gradients)")

    setup_context: Any = None

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward and record the operation."""
        tensors = [a for a in args if is_tensor(a)]
        edges = tuple(a.node if is_tensor(a) else None for a in args)
        recorded = state.grad and any(edge is not None for edge in edges)
        context = Context(tuple(edge is not None for edge in edges))
        before, state.grad = state.grad, False
        try:
            if cls.setup_context is not None:
                outputs = cls.forward(*args)
                cls.setup_context(context, args, outputs)
            else:
                outputs = cls.forward(context, *args)
        finally:
            state.grad = before
        several = isinstance(outputs, (tuple, list))
        values = list(outputs) if several else [outputs]
        _check_outputs(cls, values)
        return _record(cls, context, args, tensors, edges, values, several, recorded)


class Context:
    """What forward leaves for backward.

    Attributes:
        needs_input_grad: for each argument of forward, does backward have to return its gradient.
        saved_tensors: what save_for_backward was given.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]):
        self.needs_input_grad = needs_input_grad
        self._to_save: tuple = ()
        self._saved: Any = ()
        self._dirty: tuple = ()
        self._no_gradient: tuple = ()
        self._materialize = True
        self._node: Any = None
        self._name = ""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (arguments, outputs or others; None is allowed) for backward, guarded against in-place edits."""
        for i, tensor in enumerate(tensors):
            if tensor is not None and not is_tensor(tensor):
                raise TypeError(f"save_for_backward expected tensors or None, got {type(tensor).__name__} at place {i}; "
                                f"set other values as attributes of ctx")
        self._to_save = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which arguments forward has edited in place and returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which outputs have no gradient."""
        self._no_gradient = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """False: backward gets None rather than zeros for outputs that nothing used."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple:
        if self._saved is None:
            raise RuntimeError(f"backward reached {self._name} a second time, but its saved tensors were freed by the "
                               f"first backward; pass retain_graph=True to the first backward")
        return tuple(None if item is None else item.unpack(self._name) for item in self._saved)


class _Saved:
    """A tensor without a reference to the node of which it is an output: that would be a cycle."""

    def __init__(self, tensor: Any, node: Any, output: int | None):
        self.like, self.array = tensor.like, tensor.array
        self.node, self.output = node, output
        self.parent: Any = None
        self.stamp = edits.tick()

    def unpack(self, name: str) -> Any:
        if edits.last_edit(self.array) > self.stamp:
            raise RuntimeError(f"{name} saved a tensor of shape {tuple(self.array.shape)} for backward that has been "
                               f"edited in place since; save a clone of it")
        if self.output is None:
            return self.like(self.array, self.node)
        parent = self.parent()
        node = None if parent is None else _output_node(parent, self.output)
        return self.like(self.array, node)


class _FunctionNode(Node):
    """The node of a user-defined operation."""

    context: Any = None

    def release(self) -> None:
        self.pullback = None
        self.edges = ()
        self.context._saved = None

    def pull_tensors(self, g: Any, root: Any) -> Any:
        self.ready_pullback()
        return self.pullback.on_tensors(g)

    def _check_unedited(self) -> None:
        pass  # saved_tensors checks what it hands out


class _Pullback:
    """Calls the user's backward, with arrays or with tensors."""

    def __init__(self, cls: type[Function], context: Context, inputs: list, several: bool, wrap: Any):
        self.cls, self.context, self.inputs, self.several, self.wrap = cls, context, inputs, several, wrap

    def __call__(self, g: Any) -> list:
        grads = [None if part is None else self.wrap(part) for part in g] if self.several else self.wrap(g)
        return [None if r is None else r.array for r in self.on_tensors(grads)]

    def on_tensors(self, g: Any) -> list:
        results = self.cls.backward(self.context, *(g if self.several else (g,)))
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        count = len(self.inputs)
        if len(results) > count and all(r is None for r in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(f"{self.cls.__name__}.backward expected to return {count} gradients, one for each argument "
                               f"of forward, got {len(results)}")
        return [self._checked(i, r, shape) for i, (r, shape) in enumerate(zip(results, self.inputs))]

    def _checked(self, i: int, r: Any, shape: Any) -> Any:
        if shape is None or r is None:
            return None
        if not is_tensor(r):
            raise TypeError(f"{self.cls.__name__}.backward expected tensors or None, got {type(r).__name__} for argument {i}")
        if len(r.shape) < len(shape) or any(
                want not in (1, have) for have, want in zip(r.shape[len(r.shape) - len(shape):], shape)):
            raise RuntimeError(f"{self.cls.__name__}.backward expected a gradient of shape {tuple(shape)} for argument {i}, "
                               f"got {tuple(r.shape)}")
        return r


def _check_outputs(cls: type, values: list) -> None:
    for i, value in enumerate(values):
        if not is_tensor(value) and value is not None:
            raise TypeError(f"{cls.__name__}.forward expected to return tensors, got {type(value).__name__} at place {i}")


def _record(cls, context, args, tensors, edges, values, several, recorded) -> Any:
    fresh = []
    for value in values:
        returned_input = value is not None and any(value is t for t in tensors)
        dirty = any(value is t for t in context._dirty)
        fresh.append(value if value is None or dirty or not returned_input else value.like(value.array[...]))
    if recorded:
        _attach(cls, context, args, tensors, edges, values, fresh, several)
    if several:
        return tuple(fresh)
    return fresh[0]


def _attach(cls, context, args, tensors, edges, values, fresh, several) -> None:
    """Make the node and point the outputs that have a gradient to it."""
    some = next(t for t in tensors if t.node is not None)
    with_gradient = [v is not None and not any(v is t for t in context._no_gradient) and v.backend.is_floating(v.array)
                     for v in values]
    shapes = [None if v is None else tuple(v.array.shape) for v in values]
    kinds = [v.array.dtype if ok else None for v, ok in zip(values, with_gradient)]
    shapes_in = [tuple(a.shape) if is_tensor(a) and a.node is not None else None for a in args]
    pullback = _Pullback(cls, context, shapes_in, several, some.like)
    op = Op(cls.__name__, cls.forward, Cast.KEEP, Promote.NONE, wide=False, replay=False, view=False)
    node = _FunctionNode(op, some.backend, edges, pullback, shapes if several else shapes[0],  # type: ignore[arg-type]
                         kinds if several else values[0].array.dtype)
    node.context, context._name = context, cls.__name__
    node.materialize = context._materialize
    saved = []
    for tensor in context._to_save:
        place = next((i for i, v in enumerate(values) if v is tensor and tensor is not None), None)
        is_input = tensor is not None and any(tensor is t for t in tensors)
        item = None if tensor is None else _Saved(tensor, tensor.node, None if is_input or place is None else place)
        if item is not None and item.output is not None:
            item.parent = weakref.ref(node)
            item.output = place if with_gradient[place] else None  # type: ignore[index]
        saved.append(item)
    context._saved, context._to_save = saved, ()
    for i, (out, ok) in enumerate(zip(fresh, with_gradient)):
        if ok:
            out.node = _output_node(node, i) if several else node
            if any(values[i] is t for t in context._dirty):
                edits.record_edit(out.array)


def _output_node(parent: Node, index: int) -> Any:
    if not isinstance(parent.shape, list):
        return parent
    return Output(parent, index)


def once_differentiable(backward: Any) -> Any:
    """Decorator for a backward that cannot be differentiated: differentiating its results is an error."""
    @functools.wraps(backward)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        before, state.grad = state.grad, False
        try:
            results = backward(ctx, *grads)
        finally:
            state.grad = before
        if not before or not any(g is not None and g.node is not None for g in grads):
            return results
        parts = list(results) if isinstance(results, (tuple, list)) else [results]
        edges = tuple(g.node if g is not None else None for g in grads)
        return tuple(None if r is None else _refusing(r, edges, ctx) for r in parts)

    return wrapped


def _refusing(result: Any, edges: tuple, ctx: Any) -> Any:
    def refuse(g: Any) -> Any:
        raise RuntimeError(f"{ctx._name}.backward is marked once_differentiable, so it has no higher-order gradient")

    op = Op(ctx._name, refuse, Cast.KEEP, Promote.NONE, wide=False, replay=False, view=False)
    node = Node(op, result.backend, edges, (refuse,) * len(edges), tuple(result.shape), result.array.dtype)
    return result.like(result.array, node)
