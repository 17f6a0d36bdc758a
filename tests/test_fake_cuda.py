"""The op table on device "cuda": on the strict fake everywhere, on CuPy where there is a GPU."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import minidl
import minidl.cuda
from minidl.tensor.convert import to_array
from tests import fake_cuda
from tests.test_ops import ROWS, flat, run, tensors

rows = pytest.mark.parametrize("row", ROWS, ids=repr)


@pytest.fixture(scope="module")
def fake():
    with fake_cuda.installed() as module:
        yield module


@pytest.fixture(scope="module")
def gpu():
    if not minidl.cuda.is_available():
        pytest.skip("CuPy, or a GPU for it, is not there")


def moved(value, device):
    """The tensors of a structure as leaves on a device."""
    if isinstance(value, (list, tuple)):
        return type(value)(moved(part, device) for part in value)
    if not isinstance(value, minidl.Tensor):
        return value
    return value.detach().to(device).requires_grad_(value.requires_grad)


def raw(value, device):
    """A constant array among the attributes of a private op, as the op's public wrapper hands it on."""
    return to_array(value, device=device) if isinstance(value, np.ndarray) else value


def with_gradients(row, device):
    """Results and gradients of a row, computed in float32 on a device."""
    row = dataclasses.replace(row, attributes={name: raw(value, device) for name, value in row.attributes.items()})
    inputs = moved(tensors(row, minidl.float32, requires_grad=True), device)
    with minidl.device(device):
        results = run(row, inputs)
        roots = [r for r in results if r.requires_grad]
        leaves = [t for t in flat(inputs) if t.requires_grad]
        gradients = []
        if roots:
            cotangents = [minidl.tensor(np.cos(np.arange(r.numel())).reshape(r.shape), dtype=r.dtype) for r in roots]
            gradients = minidl.autograd.grad(roots, leaves, cotangents, allow_unused=True)
    return results, gradients


def compare(row):
    results, gradients = with_gradients(row, "cuda")
    expected, expected_gradients = with_gradients(row, "cpu")
    for found, want in zip((*results, *gradients), (*expected, *expected_gradients), strict=True):
        if want is None:
            assert found is None
            continue
        assert found.device.type == "cuda" and found.dtype == want.dtype and found.shape == want.shape
        np.testing.assert_allclose(found.numpy().astype(np.float64), want.numpy().astype(np.float64), rtol=1e-5, atol=1e-6)


@rows
def test_row_on_the_fake(fake, row):
    compare(row)


@pytest.mark.gpu
@rows
def test_row_on_a_gpu(gpu, row):
    compare(row)
