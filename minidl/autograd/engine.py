"""Backward: walks the graph once, in an order in which every gradient is complete before it is used.

Kahn's order: count each node's consumers, start from the roots, and visit a node when its last consumer has delivered.
A leaf's gradient is thus delivered as soon as it is complete, while the rest of backward still runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from . import edits
from .edits import record_edit
from .graph import Leaf, Node, Output, _at, call_pullback
from .mode import state, watched
from .protocol import is_tensor

_accumulating = threading.Lock()  # two backwards in two threads may meet at a leaf


class _Run:
    """The state of one backward."""

    def __init__(self, root: Any, create_graph: bool, wanted: set | None):
        self.root = root                  # any tensor of the right kind: makes the tensors that hooks and .grad hold
        self.create_graph = create_graph  # gradients are tensors rather than arrays
        self.wanted = wanted              # nodes whose gradient is asked for; None: accumulate into the leaves
        self.found: dict[Any, Any] = {}
        self.grads: dict[Any, tuple] = {}  # node -> (gradient so far, is it an array that nobody else holds)

    def tensor(self, g: Any) -> Any:
        return g if self.create_graph else self.root.like(g)

    def sum(self, before: tuple, r: Any, target: Any) -> tuple:
        """What has arrived at a node and one more gradient; in place where nobody else holds the sum so far."""
        if before[1] and not self.create_graph:
            total = before[0]
            total += r
            return before
        total = before[0] + r
        return total if self.create_graph else target.xp.asarray(total), True  # 0-d arrays add up to a scalar

    def conform(self, r: Any, target: Any) -> Any:
        if self.create_graph:
            if tuple(r.shape) != target.shape:
                r = r.sum_to_size(*target.shape)
            return r if r.dtype == target.dtype else r.cast_to(target.dtype)
        if r.shape != target.shape:
            r = target.xp.sum_to(r, target.shape)
        return target.xp.asarray(r, target.dtype)

    def call_hooks(self, node: Any, g: Any, owned: bool) -> tuple:
        """The gradient after the node's hooks have seen, and perhaps replaced, it."""
        for hook in list(node.hooks.values()):
            result = hook(self.tensor(g))
            if result is None:
                continue
            if not is_tensor(result) or tuple(result.shape) != node.shape:
                what = tuple(result.shape) if is_tensor(result) else type(result).__name__
                raise RuntimeError(f"a hook on {node.name()} expected to return a gradient of shape {node.shape} or None, "
                                   f"got {what}")
            g = self.conform(result if self.create_graph else result.array, node)
        return g, False

    def deliver(self, leaf: Leaf, g: Any, owned: bool) -> None:
        """Accumulate into the leaf's .grad, in place where that cannot be seen from elsewhere."""
        with _accumulating:
            before, scale = leaf.grad, state.grad_scale
            if before is not None and scale is not None:
                leaf.grad = before = _rescaled(leaf, before, scale)
            if self.create_graph:
                if before is None and not owned:
                    g = self.root.like(g.array.copy(), g.node)
                leaf.grad = g if before is None else before + g
            elif before is None:
                if leaf.buffer is not None and (g is leaf.buffer or leaf.buffer_is_free()):
                    g = _into(leaf.buffer, g)
                elif not owned:
                    g = g.copy()
                leaf.grad = self.root.like(g)
            elif before.node is not None or before.array.dtype != g.dtype:
                leaf.grad = self.root.like(leaf.xp.asarray(before.array + g))
            else:
                leaf.xp.add(before.array, g, before.array)
                record_edit(before.array)
            if scale is not None:
                leaf.grad.__dict__["grad_scale"] = scale
        if leaf.post_hooks is not None:
            for hook in list(leaf.post_hooks.values()):
                hook()


def _rescaled(leaf: Leaf, before: Any, scale: float) -> Any:
    """A gradient, which another loss scale may have made, at this backward's."""
    made_with = before.__dict__.get("grad_scale")
    if made_with is None or before.__dict__.get("unscaled"):
        if bool(before.array.any()):
            raise RuntimeError(f"backward of a scaled loss reached a gradient of shape {leaf.shape} that "
                               f"{'was made without a scale' if made_with is None else 'has been unscaled already'}; step and "
                               f"zero_grad first, or scale every loss and accumulate before unscale_")
        before.__dict__.pop("unscaled", None)
        return before
    return before if made_with == scale else before * (scale / made_with)


def _into(buffer: Any, g: Any) -> Any:
    """The buffer, holding g; the pullback may have put it there already."""
    if g is not buffer:
        buffer[...] = g
    return buffer


def run(roots: Sequence[Any], grads: Sequence[Any], *, keep_graph: bool, create_graph: bool,
        inputs: Iterable[Any] | None = None) -> dict[Any, Any]:
    """Propagate gradients from root tensors.

    Args:
        roots: tensors with a node.
        grads: a tensor for each root, of its shape and dtype.
        keep_graph: leave what backward needs in place for another one.
        create_graph: record this backward, so that its results can be differentiated.
        inputs: tensors whose gradients are returned; None accumulates into the `.grad` of every leaf.

    Returns:
        node -> gradient tensor, for `inputs`.
    """
    wanted = None if inputs is None else {tensor.node for tensor in inputs}
    this = _Run(roots[0], create_graph, wanted)
    pending = _count_consumers([tensor.node for tensor in roots])
    needed = None if wanted is None else _leading_to(wanted, pending)
    for tensor, g in zip(roots, grads):
        node = tensor.node
        g = g if create_graph else g.array
        g = g if g.dtype == node.dtype else this.conform(g, node)
        this.grads[node] = this.sum(this.grads[node], g, node) if node in this.grads else (g, False)
    before, state.grad, state.grad_scale = (state.grad, state.grad_scale), create_graph, None
    try:
        _walk(this, pending, needed, keep_graph)
    finally:
        state.grad, state.grad_scale = before
    return this.found


def _walk(this: _Run, pending: dict, needed: set | None, keep_graph: bool) -> None:
    grads, wanted, arrays = this.grads, this.wanted, not this.create_graph
    ready = [node for node in grads if pending[node] == 0]
    while ready:
        node = ready.pop()
        entry = grads.pop(node, None)
        if entry is not None and (wanted is not None or node.hooks):
            entry = _seen(this, node, entry)
        if node.__class__ is Leaf:
            if entry is not None and wanted is None:
                this.deliver(node, *entry)
            continue
        edges = node.edges
        if entry is None or (needed is not None and node not in needed):
            g, results = None, (None,) * len(edges)
        elif node.__class__ is Output:
            g, results = None, _deposit(this, node, entry[0])
        else:
            g = entry[0]
            results = _pull(this, node, g, pending)
            if not keep_graph:
                node.release()
        for target, r in zip(edges, results):
            if target is None:
                continue
            left = pending[target] = pending[target] - 1
            if r is not None:
                if arrays and r.__class__ is not node.xp.array_type:
                    r = node.xp.asarray(r)  # NumPy's reductions over all axes return scalars
                if r.shape != target.shape or (r.dtype is not target.dtype and r.dtype != target.dtype):
                    r = this.conform(r, target)
                    owned = arrays
                else:
                    owned = arrays and r is not g and r.base is None
                if left == 0 and wanted is None and target.__class__ is Leaf and target not in grads:
                    if target.hooks:
                        r, owned = this.call_hooks(target, r, owned)
                    this.deliver(target, r, owned)
                    continue
                before = grads.get(target)
                if before is None:
                    grads[target] = (r, owned)
                else:
                    grads[target] = this.sum(before, r, target)
            if left == 0:
                ready.append(target)


def _seen(this: _Run, node: Any, entry: tuple) -> tuple:
    """Show a complete gradient to the node's hooks, and keep it if it is asked for."""
    if node.hooks:
        entry = this.call_hooks(node, *entry)
    if this.wanted is not None and node in this.wanted:
        this.found[node] = this.tensor(entry[0])
        entry = (entry[0], False)
    return entry


def _pull(this: _Run, node: Node, g: Any, pending: dict) -> Any:
    """The gradients of a node's inputs."""
    pullback = node.pullback
    if pullback is not None and g.__class__ is not list and edits.latest <= node.stamp and not (
            this.create_graph or node.packed or watched):  # the common case, without detours
        if pullback.__class__ is not tuple:
            return (pullback(g),) if len(node.edges) == 1 else pullback(g)
        return [None if f is None else f(g) if edge.__class__ is not Leaf or edge.buffer is None
                else _into_buffer(this, f, g, edge, pending) for f, edge in zip(pullback, node.edges)]
    return _pull_any(this, node, g)


def _pull_any(this: _Run, node: Node, g: Any) -> Any:
    """The gradients of a node's inputs, in all cases."""
    if g.__class__ is list:
        g = [_zeros(this, node, i) if part is None else part for i, part in enumerate(g)]
    if this.create_graph:
        results = node.pull_tensors(g, this.root)
    else:
        pullback = node.ready_pullback()
        if node.packed:
            widen = node.xp.widen
            g = [part if part is None else widen(part) for part in g] if g.__class__ is list else widen(g)
        results = call_pullback(pullback, g, node.edges)
    if watched and state.anomaly:
        _check_finite(this, node, results)
    return results


def _into_buffer(this: _Run, f: Any, g: Any, leaf: Leaf, pending: dict) -> Any:
    """Let a leaf's only contribution be written where the leaf's gradient belongs."""
    alone = pending[leaf] == 1 and leaf not in this.grads and leaf.grad is None and this.wanted is None
    if alone and leaf.buffer_is_free() and f.__code__.co_argcount == 2 and g.dtype == leaf.dtype:
        return f(g, leaf.buffer)
    return f(g)


def _deposit(this: _Run, output: Output, g: Any) -> tuple:
    """Put the gradient of one of several values into its place in the list that the parent's pullback takes."""
    parent = output.edges[0]
    parts, _ = this.grads.setdefault(parent, ([None] * len(parent.shape), False))
    parts[output.index] = g
    return (None,)


def _zeros(this: _Run, node: Node, index: int) -> Any:
    """The gradient of a value that nothing used; None where that value has no gradient (an integer one)."""
    if node.dtype[index] is None or not node.materialize:
        return None
    zeros = node.xp.zeros(node.shape[index], node.dtype[index])
    return this.root.like(zeros) if this.create_graph else zeros


def _check_finite(this: _Run, node: Node, results: Any) -> None:
    for i, r in enumerate(results):
        array = r.array if this.create_graph and r is not None else r
        if array is not None and not bool(node.xp.isfinite(array).all()):
            raise RuntimeError(
                f"anomaly: the backward of {node.op.name} returned a non-finite gradient for its input {i} of shape "
                f"{tuple(array.shape)}{_at(node.site) or '; enable detection before the forward to see its call site'}")


def _count_consumers(roots: list) -> dict[Any, int]:
    """How many edges lead to each node that can be reached from the roots."""
    pending: dict[Any, int] = dict.fromkeys(roots, 0)
    stack = list(pending)
    while stack:
        for target in stack.pop().edges:
            if target is None:
                continue
            seen = pending.get(target)
            if seen is None:
                pending[target] = 1
                if target.edges:
                    stack.append(target)
            else:
                pending[target] = seen + 1
    return pending


def _leading_to(wanted: set, pending: dict) -> set:
    """The nodes from which a wanted one can be reached. Inputs are older than outputs, so one pass by age will do."""
    needed: set = set()
    nodes = sorted((node for node in pending if type(node) is not Leaf), key=lambda node: node.stamp)
    for node in nodes:
        if any(target in wanted or target in needed for target in node.edges if target is not None):
            needed.add(node)
    return needed
