"""Compares gradients with finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .backward import grad
from .protocol import is_tensor


class GradcheckError(RuntimeError):
    """A gradient that does not agree with finite differences."""


def gradcheck(func: Callable, inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True, nondet_tol: float = 0.0, fast_mode: bool = False) -> bool:
    """Compare the gradients of `func` with central finite differences.

    Args:
        func: takes the inputs, returns a tensor or several.
        inputs: a tensor or a tuple; those that require grad are checked and should be float64.
        eps: half the step of the difference quotient.
        atol, rtol: |analytical - numerical| <= atol + rtol * |numerical| must hold for each entry.
        raise_exception: raise instead of returning False.
        nondet_tol: how much two backward passes may differ.
        fast_mode: compare one random combination of the outputs instead of every entry of the Jacobian.

    Raises:
        GradcheckError: naming output, input and the worst entry.
        ValueError: if no input requires grad.
    """
    inputs = (inputs,) if is_tensor(inputs) else tuple(inputs)
    try:
        _check(func, inputs, eps, atol, rtol, nondet_tol, fast_mode)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func: Callable, inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
                  rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
                  fast_mode: bool = False) -> bool:
    """Compare the gradients of the gradients of `func` with finite differences of its gradients.

    Args:
        grad_outputs: the cotangents at which gradients are taken; random ones by default.
        The others are as in gradcheck.
    """
    inputs = (inputs,) if is_tensor(inputs) else tuple(inputs)
    outputs = _floating(func(*inputs))
    rng = np.random.Generator(np.random.Philox(7))
    if grad_outputs is None:
        cotangents = [_tensor_like(out, rng.standard_normal(out.shape)) for out in outputs]
    else:
        cotangents = [grad_outputs] if is_tensor(grad_outputs) else list(grad_outputs)
    for cotangent in cotangents:
        cotangent.requires_grad_()
    count = len(inputs)

    def gradients(*arguments):
        outs = _floating(func(*arguments[:count]))
        wanted = [t for t in arguments[:count] if is_tensor(t) and t.node is not None]
        live = [(out, c) for out, c in zip(outs, arguments[count:]) if out.node is not None]
        found = grad([out for out, _ in live], wanted, [c for _, c in live], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None and g.node is not None)

    return gradcheck(gradients, (*inputs, *cotangents), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, fast_mode=fast_mode)


def _check(func, inputs, eps, atol, rtol, nondet_tol, fast_mode) -> None:
    checked = [i for i, t in enumerate(inputs) if is_tensor(t) and t.node is not None]
    if not checked:
        raise ValueError("gradcheck expected at least one input that requires grad")
    outputs = _floating(func(*inputs))
    rng = np.random.Generator(np.random.Philox(11))
    for o, out in enumerate(outputs):
        if out.node is None:
            continue
        for cotangent in _cotangents(out, rng, fast_mode):
            wanted = [inputs[i] for i in checked]
            analytical = _gradients(out, wanted, cotangent)
            if any(np.abs(a - b).max(initial=0) > nondet_tol
                   for a, b in zip(analytical, _gradients(out, wanted, cotangent))):
                raise GradcheckError(f"gradcheck: two backward passes for output {o} differ by more than {nondet_tol}")
            for i, found in zip(checked, analytical):
                expected = _numerical(func, inputs, i, o, cotangent, eps)
                _compare(found, expected, o, i, atol, rtol)


def _cotangents(out, rng, fast_mode):
    if fast_mode:
        yield rng.standard_normal(out.shape)
        return
    for index in np.ndindex(*out.shape):
        one = np.zeros(out.shape)
        one[index] = 1
        yield one


def _gradients(out, wanted, cotangent) -> list[np.ndarray]:
    found = grad(out, wanted, _tensor_like(out, cotangent), retain_graph=True, allow_unused=True)
    return [np.zeros(t.shape) if g is None else _values(g) for t, g in zip(wanted, found)]


def _numerical(func, inputs, i, o, cotangent, eps) -> np.ndarray:
    """Finite differences of sum(cotangent * output o) with respect to input i."""
    values = _values(inputs[i])
    result = np.zeros(values.shape)

    def at(x: np.ndarray) -> np.ndarray:
        moved = inputs[i].like(inputs[i].backend.asarray(x, inputs[i].array.dtype))
        moved.requires_grad_()
        return _values(_floating(func(*inputs[:i], moved, *inputs[i + 1:]))[o])

    for index in np.ndindex(*values.shape):
        up, down = values.copy(), values.copy()
        up[index] += eps
        down[index] -= eps
        result[index] = ((at(up) - at(down)) * cotangent).sum() / (2 * eps)
    return result


def _compare(found, expected, o, i, atol, rtol) -> None:
    excess = np.abs(found - expected) - (atol + rtol * np.abs(expected))
    bad = ~(excess <= 0)
    if bad.any():
        worst = np.unravel_index(np.where(np.isnan(excess), np.inf, excess).argmax(), excess.shape)
        raise GradcheckError(
            f"gradcheck: the gradient of output {o} with respect to input {i} differs at {tuple(map(int, worst))}: "
            f"analytical {found[worst]:.9g}, numerical {expected[worst]:.9g} ({int(bad.sum())} of {bad.size} entries differ)")


def _floating(outputs: Any) -> list:
    outputs = [outputs] if is_tensor(outputs) else list(outputs)
    return [out for out in outputs if is_tensor(out) and out.backend.is_floating(out.array)]


def _tensor_like(tensor: Any, values: np.ndarray) -> Any:
    return tensor.like(tensor.backend.asarray(values, tensor.array.dtype))


def _values(tensor: Any) -> np.ndarray:
    return np.array(tensor.backend.to_numpy(tensor.array), dtype=np.float64)
