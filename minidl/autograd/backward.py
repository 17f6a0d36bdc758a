"""`backward` and `grad`: the two ways to ask for gradients."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from . import engine
from .protocol import is_tensor


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Any = None) -> None:
    """Accumulate the gradients of `tensors` into the `.grad` of the leaves that they were computed from.

    Args:
        tensors: a tensor or a sequence of them, each with requires_grad.
        grad_tensors: the gradient of each (a tensor of its shape); may be left out for tensors with one element.
        retain_graph: keep what backward needs for another backward. Default: the value of create_graph.
        create_graph: record backward itself, so that the gradients can be differentiated.
        inputs: accumulate into these tensors only; default all leaves.

    Raises:
        RuntimeError: if a tensor needs no gradient, has several elements and no gradient is given, or the graph has
            been freed by an earlier backward.
    """
    roots, grads = _roots("backward", _sequence(tensors), _sequence(grad_tensors))
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        engine.run(roots, grads, keep_graph=keep, create_graph=create_graph)
        return
    wanted = _sequence(inputs)
    if not wanted:
        raise RuntimeError("backward expected inputs to be None or to hold tensors, got an empty sequence")
    _check_inputs("backward", wanted)
    found = engine.run(roots, grads, keep_graph=keep, create_graph=create_graph, inputs=wanted)
    for tensor in wanted:
        if tensor.node in found:
            g = found[tensor.node]
            tensor.grad = g if tensor.grad is None else tensor.grad + g


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; no `.grad` is touched.

    Args:
        outputs: a tensor or a sequence of them.
        inputs: tensors that require grad, leaves or computed ones.
        grad_outputs: as backward's grad_tensors.
        retain_graph, create_graph: as in backward.
        allow_unused: None in place of the gradient of an input that the outputs do not depend on, instead of an error.
        is_grads_batched: grad_outputs carry a leading axis of vectors, and so do the results.
        materialize_grads: zeros in place of None; implies allow_unused.

    Raises:
        RuntimeError: as backward, and for an input that was not used unless allow_unused.
    """
    if allow_unused is False and materialize_grads:
        raise ValueError("grad expected allow_unused to be None or True with materialize_grads=True, got False")
    allow_unused = bool(allow_unused) or materialize_grads
    wanted = _sequence(inputs)
    _check_inputs("grad", wanted)
    if is_grads_batched:
        return _batched(outputs, wanted, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    roots, grads = _roots("grad", _sequence(outputs), _sequence(grad_outputs))
    keep = create_graph if retain_graph is None else retain_graph
    found = engine.run(roots, grads, keep_graph=keep, create_graph=create_graph, inputs=wanted)
    results = tuple(found.get(tensor.node) for tensor in wanted)
    for i, (tensor, result) in enumerate(zip(wanted, results)):
        if result is None and not allow_unused:
            raise RuntimeError(f"grad expected outputs that depend on every input, but input {i} of shape "
                               f"{tuple(tensor.shape)} was not used; pass allow_unused=True for None in its place")
    if materialize_grads:
        results = tuple(_zeros_like(t) if r is None else r for t, r in zip(wanted, results))
    return results


def _batched(outputs, wanted, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads):
    vectors = _sequence(grad_outputs)
    if not vectors or any(not is_tensor(v) for v in vectors):
        raise ValueError("grad expected grad_outputs tensors with a leading axis where is_grads_batched=True")
    count = vectors[0].shape[0]
    keep_last = create_graph if retain_graph is None else retain_graph
    rows = [grad(outputs, wanted, [v[i] for v in vectors], keep_last or i < count - 1, create_graph, allow_unused,
                 materialize_grads=materialize_grads) for i in range(count)]
    return tuple(None if column[0] is None else _stack(column) for column in zip(*rows))


def _stack(tensors: Sequence) -> Any:
    return tensors[0].xp.stack(tensors)


def _zeros_like(tensor: Any) -> Any:
    return tensor.like(tensor.backend.zeros(tensor.array.shape, tensor.array.dtype))


def _sequence(value: Any) -> list:
    if value is None:
        return []
    return list(value) if isinstance(value, (tuple, list, set, dict, Generator)) else [value]


def _check_inputs(who: str, tensors: list) -> None:
    if not tensors:
        raise ValueError(f"{who} expected at least one input")
    for i, tensor in enumerate(tensors):
        if not is_tensor(tensor):
            raise TypeError(f"{who} expected inputs to be tensors, got {type(tensor).__name__} at place {i}")
        if tensor.node is None:
            raise RuntimeError(f"{who} expected inputs that require grad, but input {i} of shape "
                               f"{tuple(tensor.shape)} does not; call .requires_grad_() before the forward")


def _roots(who: str, tensors: list, grads: list) -> tuple[list, list]:
    """Check the outputs and their gradients, and fill in ones for outputs with one element."""
    if not tensors:
        raise ValueError(f"{who} expected at least one output")
    if grads and len(grads) != len(tensors):
        raise RuntimeError(f"{who} expected one gradient per output, got {len(grads)} for {len(tensors)} outputs")
    checked = []
    for i, tensor in enumerate(tensors):
        if not is_tensor(tensor):
            raise TypeError(f"{who} expected outputs to be tensors, got {type(tensor).__name__} at place {i}")
        if tensor.node is None:
            raise RuntimeError(f"{who} expected an output that requires grad, but output {i} does not: none of what it "
                               f"was computed from requires grad, or it was computed under no_grad")
        g = grads[i] if grads else None
        checked.append(_ones_like(who, tensor) if g is None else _checked_gradient(who, tensor, g))
    return tensors, checked


def _ones_like(who: str, tensor: Any) -> Any:
    array = tensor.array
    if array.size != 1:
        raise RuntimeError(f"{who} expected a scalar output or an explicit gradient, got an output of shape "
                           f"{tuple(array.shape)}; reduce it (.sum(), .mean()) or pass the gradient")
    return tensor.like(tensor.backend.ones(array.shape, array.dtype))


def _checked_gradient(who: str, tensor: Any, g: Any) -> Any:
    if not is_tensor(g):
        raise TypeError(f"{who} expected gradients to be tensors or None, got {type(g).__name__}")
    if tuple(g.shape) != tuple(tensor.shape):
        raise RuntimeError(f"{who} expected a gradient of the output's shape {tuple(tensor.shape)}, "
                           f"got {tuple(g.shape)}")
    return g


