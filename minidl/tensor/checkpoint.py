"""Recomputation in backward: memory for time. Re-exported as minidl.autograd.checkpoint.

The forward records its nodes as usual; then what their pullbacks hold is dropped. When backward reaches one of them,
the function runs again and each node takes over the pullback of its counterpart. Edges never change, so gradients flow
to inputs and to parameters used inside exactly as without the checkpoint, in backward, grad and create_graph alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..autograd import edits
from ..autograd.closures import holds
from ..autograd.graph import Node
from ..autograd.mode import enable_grad, state, watch_nodes
from . import autocast, random
from .tensor import Tensor


def checkpoint(function: Callable, *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True,
               **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, which keeps only its inputs and is run again when backward needs what is inside.

    The second run sees the random state and the autocast region of the first and leaves the current ones alone, so dropout
    and dtypes agree and no default generator advances twice; running statistics move in the first run only.

    Args:
        function: any function of tensors and other values that does the same when it is called again.
        args, kwargs: passed to it.
        use_reentrant: accepted for PyTorch's sake; there is one way here.
        preserve_rng_state: False where the function draws no random numbers, to save the copy of the state.

    Raises:
        RuntimeError: in backward, if the second run records other operations, or an input was edited in place.

    Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost".
    """
    if not state.grad:
        return function(*args, **kwargs)
    rng = random.default_generator().get_state() if preserve_rng_state else None
    with _recorded() as nodes:
        outputs = function(*args, **kwargs)
    recompute = _Recompute(function, args, kwargs, rng, nodes)
    for node in nodes:
        if node.saved is not None or node.lazy is not None or holds(node.pullback, node.xp.array_type):
            node.pullback = node.saved = None
            node.lazy = recompute
    return outputs


@contextmanager
def _recorded() -> Iterator[list[Node]]:
    """Collect the nodes that this thread makes inside the block; they count for an outer block as well."""
    nodes: list[Node] = []
    outer = watch_nodes(nodes)
    try:
        yield nodes
    finally:
        watch_nodes(outer)
        if outer is not None:
            outer.extend(nodes)


class _Recompute:
    """Runs the function a second time and hands the pullbacks to the nodes of the first."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict, rng: Any, nodes: list[Node]):
        self.function, self.args, self.kwargs, self.rng, self.nodes = function, args, kwargs, rng, nodes
        self.autocast = autocast.snapshot()
        self.stamp = edits.tick()

    def __call__(self) -> None:
        for i, arg in enumerate((*self.args, *self.kwargs.values())):
            if isinstance(arg, Tensor) and edits.last_edit(arg.array) > self.stamp:
                raise RuntimeError(f"checkpoint needs its argument {i} of shape {arg.shape} again, but it has been edited "
                                   f"in place since; pass a clone")
        again = self._run()
        if [node.op for node in again] != [node.op for node in self.nodes]:
            raise RuntimeError(f"checkpoint expected its function to do the same again, but the second run recorded "
                               f"{len(again)} operations, the first {len(self.nodes)}, or others; a checkpointed function "
                               f"must not depend on what changes between forward and backward")
        for node, twin in zip(self.nodes, again):
            if node.lazy is self:
                _adopt(node, twin)

    def _run(self) -> list[Node]:
        generator = random.default_generator()
        now = generator.get_state() if self.rng is not None else None
        recomputing, state.recomputing = state.recomputing, True
        try:
            if self.rng is not None:
                generator.set_state(self.rng)
            with autocast.within(self.autocast), enable_grad(), _recorded() as again:
                self.function(*self.args, **self.kwargs)
        finally:
            state.recomputing = recomputing
            if now is not None:
                generator.set_state(now)
        return again


def _adopt(node: Node, twin: Node) -> None:
    """Let a node take over what its counterpart of the second run holds; later, where that is a checkpoint's own."""
    if twin.lazy is not None:
        node.lazy = lambda: _adopt_restored(node, twin)
        return
    node.lazy = None
    node.pullback, node.keys, node.saved_at = twin.pullback, twin.keys, twin.stamp
    if twin.saved is not None:
        node.saved = twin.saved
    if twin.packed:
        node.packed = True


def _adopt_restored(node: Node, twin: Node) -> None:
    if twin.lazy is not None:
        twin.lazy()
    _adopt(node, twin)
