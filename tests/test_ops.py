"""Every row of the op table through every property that an op must have."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import sys

import ml_dtypes  # noqa: F401
import numpy as np
import pytest

import minidl
from minidl.autograd.gradcheck import gradcheck, gradgradcheck
from minidl.autograd.mode import no_grad
from minidl.tensor.backend import Backend, use_backend
from tests import table
from tests.tolerances import TOLERANCES


def module_rows(name):
    """The rows of tests/table/NAME.py."""
    return importlib.import_module(f"tests.table.{name}").ROWS


ROWS = [row for name in sorted(module.name for module in pkgutil.iter_modules(table.__path__)) for row in module_rows(name)]
HALVES = (minidl.float16, minidl.bfloat16)
rows = pytest.mark.parametrize("row", ROWS, ids=repr)


def is_float(value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64


def tensors(row, dtype=minidl.float64, requires_grad=False, arrange=lambda a: a):
    """The row's inputs as minidl takes them."""
    def convert(value):
        if is_float(value):
            return minidl.tensor(arrange(value.astype(dtype)), requires_grad=requires_grad and row.grad)
        if isinstance(value, np.ndarray):
            return minidl.tensor(arrange(value))
        if isinstance(value, (list, tuple)) and any(isinstance(part, np.ndarray) for part in value):
            return type(value)(convert(part) for part in value)
        return value
    return [convert(value) for value in row.inputs]


def outputs(result) -> list:
    return [part for part in (result if isinstance(result, (tuple, list)) else [result])]


def flat(values) -> list:
    """Tensors of a list of inputs, those inside sequences included."""
    return [t for v in values for t in (flat(v) if isinstance(v, (list, tuple)) else [v]) if isinstance(t, minidl.Tensor)]


def run(row, inputs):
    return outputs(row.function(*inputs, **row.attributes))


def expected(row):
    with np.errstate(all="ignore"):
        return outputs(row.reference(*row.inputs, **row.attributes))


def check(found, want, dtype, factor):
    assert isinstance(found, minidl.Tensor)
    want = np.asarray(want)
    assert found.shape == want.shape
    relative, absolute = TOLERANCES[dtype]
    np.testing.assert_allclose(found.numpy().astype(np.float64), want.astype(np.float64), rtol=relative * factor,
                               atol=absolute * factor)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@rows
def test_forward(row, dtype):
    if dtype in HALVES and not row.half:
        pytest.skip("the row asks for float32 and float64 only")
    results = run(row, tensors(row, dtype))
    wants = expected(row)
    assert len(results) == len(wants)
    takes_floats = any(is_float(v) for v in row.inputs)
    for found, want in zip(results, wants):
        if takes_floats and row.same_dtype and np.asarray(want).dtype.kind == "f":
            assert found.dtype == dtype
        check(found, want, dtype, row.tolerance)


@rows
def test_gradient(row):
    inputs = tensors(row, requires_grad=True)
    if not any(t.requires_grad for t in flat(inputs)):
        assert not row.grad or not any(is_float(v) for v in row.inputs)
        return
    every = flat(inputs)
    gradcheck(lambda *moved: run(row, _refill(inputs, moved)), every, fast_mode=True)


@rows
def test_gradient_of_gradient(row):
    inputs = tensors(row, requires_grad=True)
    every = flat(inputs)
    if not row.gradgrad or not any(t.requires_grad for t in every):
        return
    gradgradcheck(lambda *moved: run(row, _refill(inputs, moved)), every, fast_mode=True, atol=1e-4)


@rows
def test_reference_backend_agrees(row):
    """What the CPU's backend does faster, it does as the reference body does."""
    def compute():
        inputs = tensors(row, minidl.float32, requires_grad=True)
        results = run(row, inputs)
        roots = [r for r in results if r.requires_grad]
        wanted = [t for t in flat(inputs) if t.requires_grad]
        grads = minidl.autograd.grad(roots, wanted, [minidl.ones_like(r) for r in roots], allow_unused=True) if roots else []
        return [*results, *(g for g in grads if g is not None)]

    found = compute()
    with use_backend(Backend(np)):
        want = compute()
    for f, w in zip(found, want, strict=True):
        assert (f.dtype, f.shape) == (w.dtype, w.shape)
        np.testing.assert_allclose(f.numpy(), w.numpy(), rtol=2e-5 * row.tolerance, atol=2e-5 * row.tolerance)


ELEMENTWISE = ("activation", "arithmetic", "comparison", "pointwise")
elementwise_rows = pytest.mark.parametrize("row", [row for name in ELEMENTWISE for row in module_rows(name)], ids=repr)


@pytest.mark.parametrize("cut", [lambda a: a[..., :0], lambda a: a.reshape(-1)[:1].reshape(())], ids=["empty", "0-d"])
@elementwise_rows
def test_empty_and_0d_inputs(row, cut):
    """Wherever the reference takes them, so does the op, in forward and backward."""
    small = dataclasses.replace(row, inputs=tuple(cut(v) if isinstance(v, np.ndarray) and v.ndim else v for v in row.inputs))
    try:
        wants = expected(small)
    except (ValueError, IndexError):
        pytest.skip("the NumPy reference does not take such inputs")
    inputs = tensors(small, requires_grad=True)
    results = run(small, inputs)
    for found, want in zip(results, wants):
        check(found, want, minidl.float64, row.tolerance)
    for r in results:
        if r.requires_grad:
            r.backward(minidl.ones_like(r), retain_graph=True)
    for t in flat(inputs):
        assert t.grad is None or t.grad.shape == t.shape


# Their gradient is not that of their value, on purpose: test_sampling, test_softmax and test_segment test them.
WITHOUT_A_ROW = {"drawn", "one_hot_through", "gradient_divided_by", "without_gradient_where"}


def test_every_op_has_a_row(monkeypatch):
    """An op that no row reaches, in forward, backward or double backward, is not tested."""
    module = importlib.import_module("minidl.tensor.apply")
    reached = set()
    original = module.apply

    def apply(op, inputs, attributes):
        reached.add(op)
        return original(op, inputs, attributes)

    for name, user in list(sys.modules.items()):
        if name.startswith("minidl.tensor") and getattr(user, "apply", None) is original:
            monkeypatch.setattr(user, "apply", apply)
    for row in ROWS:
        run(row, tensors(row))
        inputs = tensors(row, requires_grad=True)
        roots = [r for r in run(row, inputs) if r.requires_grad]
        wanted = [t for t in flat(inputs) if t.requires_grad]
        if roots and row.gradgrad:
            ones = [minidl.ones_like(r).requires_grad_() for r in roots]
            grads = minidl.autograd.grad(roots, wanted, ones, create_graph=True, allow_unused=True)
            again = [g for g in grads if g is not None and g.requires_grad]
            if again:
                minidl.autograd.grad(again, [*wanted, *ones], [minidl.ones_like(g) for g in again], create_graph=True,
                                     allow_unused=True)
    missing = sorted(f"{op.function.__module__}.{op.name}" for op in module.OPS if op not in reached
                     and op.name not in WITHOUT_A_ROW)
    assert not missing, "ops without a row in tests/table: " + ", ".join(missing)


def _refill(structure, tensors):
    """The inputs' structure with its tensors replaced in order."""
    supply = iter(tensors)

    def fill(value):
        if isinstance(value, minidl.Tensor):
            return next(supply)
        return type(value)(fill(part) for part in value) if isinstance(value, (list, tuple)) else value

    return [fill(value) for value in structure]


@pytest.mark.parametrize("dtype", [minidl.float32, *HALVES], ids=str)
@rows
def test_gradients_have_the_inputs_dtype(row, dtype):
    """And in halves they agree with float64's within the dtype's tolerance."""
    if not row.grad or (dtype in HALVES and not row.half):
        return
    found, want = _gradients(row, dtype), _gradients(row, minidl.float64)
    for f, w in zip(found, want):
        assert (f is None) == (w is None)
        if f is None:
            continue
        assert f.dtype == dtype
        relative, absolute = TOLERANCES[dtype]
        scale = max(1.0, np.abs(w.numpy()).max(initial=0))
        np.testing.assert_allclose(f.numpy().astype(np.float64), w.numpy(), rtol=relative * 4 * row.tolerance,
                                   atol=absolute * 4 * row.tolerance * scale)


def _gradients(row, dtype):
    inputs = tensors(row, dtype, requires_grad=True)
    results = [r for r in run(row, inputs) if r.requires_grad]
    if not results:
        return []
    cotangents = [minidl.tensor(np.cos(np.arange(r.numel())).reshape(r.shape).astype(r.dtype)) for r in results]
    wanted = [t for t in flat(inputs) if t.requires_grad]
    return minidl.autograd.grad(results, wanted, cotangents, allow_unused=True)


@rows
def test_non_contiguous_inputs(row):
    def spread(a):
        if a.ndim == 0:
            return a
        wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
        wide[..., ::2] = a
        return np.asfortranarray(wide)[..., ::2]

    for found, want in zip(run(row, tensors(row, arrange=spread)), expected(row)):
        check(found, want, minidl.float64, row.tolerance)


@rows
def test_inputs_are_left_alone(row):
    inputs = tensors(row, requires_grad=True)
    before = [t.numpy().copy() for t in flat(inputs)]
    results = [r for r in run(row, inputs) if r.requires_grad]
    for r in results:
        r.backward(minidl.ones_like(r), retain_graph=True)
    for t, values in zip(flat(inputs), before):
        np.testing.assert_array_equal(t.numpy(), values)


@rows
def test_no_grad_records_nothing(row):
    with no_grad():
        assert not any(r.requires_grad for r in run(row, tensors(row, requires_grad=True)))
