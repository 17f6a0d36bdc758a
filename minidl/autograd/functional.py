"""Derivatives of functions: vector-Jacobian and Jacobian-vector products, Jacobians, Hessians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .backward import grad
from .mode import enable_grad, state
from .protocol import is_tensor


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), v^T J): the product of a vector and the Jacobian of `func`.

    Args:
        func: takes tensors, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple.
        v: the vector, of the output's shape; may be left out where the output has one element.
        create_graph: let the results be differentiated.
        strict: raise where an output does not depend on an input, instead of giving zeros.
    """
    inputs, single, outputs, one = _forward("vjp", func, inputs, create_graph)
    vectors = _vectors("vjp", v, outputs)
    found = _grad(outputs, inputs, vectors, create_graph, strict, "vjp")
    return _result(outputs, one, create_graph), _result(found, single, create_graph)


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), J v): the product of the Jacobian of `func` and a vector of the inputs' shape.

    It is computed by differentiating v^T J with respect to v ("double backward trick").
    Args as in vjp.
    """
    inputs, _, outputs, one = _forward("jvp", func, inputs, True)
    vectors = _vectors("jvp", v, inputs)
    dummies = [_like(out, out.backend.zeros(out.array.shape, out.array.dtype)) for out in outputs]
    for dummy in dummies:
        dummy.requires_grad_()
    with enable_grad():
        products = _grad(outputs, inputs, dummies, True, strict, "jvp")
    live = [(p, u) for p, u in zip(products, vectors) if p.node is not None]
    if live:
        found = _grad([p for p, _ in live], dummies, [u for _, u in live], create_graph, strict, "jvp")
    else:
        found = [_zeros(d) for d in dummies]
    return _result(outputs, one, create_graph), _result(found, one, create_graph)


def jacobian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:
    """The Jacobian of `func`: for each output and input a tensor of shape output.shape + input.shape.

    Args as in vjp; `vectorize` is accepted for PyTorch's sake and changes nothing, `strategy` is "reverse-mode".

    Returns:
        a tensor; a tuple over inputs if several; a tuple over outputs of those if several.

    Raises:
        ValueError: for another strategy.
    """
    _check_strategy("jacobian", "strategy", strategy)
    inputs, single, outputs, one = _forward("jacobian", func, inputs, create_graph)
    rows = []
    for out in outputs:
        columns: list[list] = [[] for _ in inputs]
        flat = out.reshape(-1)
        for k in range(flat.shape[0]):
            for column, g in zip(columns, _grad([flat[k]], inputs, None, create_graph, strict, "jacobian")):
                column.append(g)
        parts = [inp.xp.stack(column).reshape(*out.shape, *inp.shape) if column else
                 _like(inp, inp.backend.zeros((*out.shape, *inp.shape), inp.array.dtype))
                 for column, inp in zip(columns, inputs)]
        rows.append(_result(parts, single, create_graph))
    return rows[0] if one else tuple(rows)


def hessian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """The Hessian of a function with one element: for inputs i, j a tensor of shape i.shape + j.shape.

    Args as in jacobian, whose strategy is called outer_jacobian_strategy here.
    """
    _check_strategy("hessian", "outer_jacobian_strategy", outer_jacobian_strategy)

    def gradient(*arguments: Any) -> Any:
        out = func(*arguments)
        if not is_tensor(out) or out.array.size != 1:
            raise RuntimeError("hessian expected a function that returns one tensor with one element")
        found = _grad([out.reshape(())], list(arguments), None, True, strict, "hessian")
        return tuple(found)

    single = is_tensor(inputs)
    result = jacobian(gradient, inputs, create_graph, strict)
    return result[0] if single else result


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), v^T H): the product of a vector and the Hessian of a function with one element."""
    inputs, single, outputs, one = _forward("vhp", func, inputs, True)
    gradient = _grad(outputs, inputs, None, True, strict, "vhp")
    vectors = _vectors("vhp", v, inputs)
    live = [(g, u) for g, u in zip(gradient, vectors) if g.node is not None]
    found = (_grad([g for g, _ in live], inputs, [u for _, u in live], create_graph, strict, "vhp") if live
             else [_zeros(t) for t in inputs])
    return _result(outputs, one, create_graph), _result(found, single, create_graph)


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), H v): as vhp, since a Hessian is symmetric."""
    return vhp(func, inputs, v, create_graph, strict)


def _check_strategy(name: str, argument: str, strategy: str) -> None:
    if strategy == "forward-mode":
        raise ValueError(f"{name} expected {argument}='reverse-mode', got 'forward-mode', which is not available")
    if strategy != "reverse-mode":
        raise ValueError(f"{name} expected {argument}='reverse-mode', got {strategy!r}")


def _forward(name: str, func: Callable, inputs: Any, create_graph: bool) -> tuple:
    """Run func on copies of the inputs that require grad."""
    single = is_tensor(inputs)
    given = [inputs] if single else list(inputs)
    for i, tensor in enumerate(given):
        if not is_tensor(tensor):
            raise TypeError(f"{name} expected inputs to be tensors, got {type(tensor).__name__} at place {i}")
    keeps_history = create_graph and state.grad
    views = []
    for tensor in given:
        fresh = tensor.like(tensor.array[...], tensor.node if keeps_history else None)
        views.append(fresh if fresh.node is not None else fresh.requires_grad_())
    with enable_grad():
        outputs = func(*views)
    one = not isinstance(outputs, (tuple, list))
    outputs = [outputs] if one else list(outputs)
    for i, out in enumerate(outputs):
        if not is_tensor(out):
            raise TypeError(f"{name} expected the function to return tensors, got {type(out).__name__} at place {i}")
    return views, single, outputs, one


def _vectors(name: str, v: Any, like: list) -> Any:
    if v is None:
        if len(like) != 1 or like[0].array.size != 1:
            raise RuntimeError(f"{name} expected a vector v, unless there is a single tensor with one element")
        return [_like(like[0], like[0].backend.ones(like[0].array.shape, like[0].array.dtype))]
    vectors = [v] if is_tensor(v) else list(v)
    if len(vectors) != len(like) or any(tuple(a.shape) != tuple(b.shape) for a, b in zip(vectors, like)):
        raise RuntimeError(f"{name} expected v of shapes {[tuple(t.shape) for t in like]}, got "
                           f"{[tuple(t.shape) for t in vectors]}")
    return vectors


def _grad(outputs: list, inputs: list, vectors: Any, create_graph: bool, strict: bool, name: str) -> list:
    pairs = [(out, None if vectors is None else vectors[i]) for i, out in enumerate(outputs) if out.node is not None]
    if strict and len(pairs) < len(outputs):
        raise RuntimeError(f"{name} with strict=True: an output does not depend on the inputs")
    if not pairs:
        return [_zeros(t) for t in inputs]
    found = grad([out for out, _ in pairs], inputs, None if vectors is None else [u for _, u in pairs],
                 retain_graph=True, create_graph=create_graph, allow_unused=True)
    if strict and any(g is None for g in found):
        raise RuntimeError(f"{name} with strict=True: the outputs do not depend on every input")
    return [_zeros(t) if g is None else g for t, g in zip(inputs, found)]


def _like(tensor: Any, array: Any) -> Any:
    return tensor.like(array)


def _zeros(tensor: Any) -> Any:
    return tensor.like(tensor.backend.zeros(tensor.array.shape, tensor.array.dtype))


def _result(tensors: list, single: bool, create_graph: bool) -> Any:
    """The tensors, without history unless it is asked for."""
    kept = [t if create_graph else t.like(t.array[...]) for t in tensors]
    return kept[0] if single else tuple(kept)
