"""Special cases of ops/extrema.py: ties, nans, overloads, empty and 0-d tensors."""

import numpy as np
import pytest

import minidl
from minidl import tensor

NAN = np.nan


def gradient(function, values):
    x = tensor(np.array(values, float), requires_grad=True)
    function(x).sum().backward()
    return x.grad.numpy()


@pytest.mark.parametrize(("function", "want"), [
    (minidl.max, [0, 0.5, 0.5, 0]), (lambda x: minidl.amax(x, 0), [0, 0.5, 0.5, 0]), (minidl.min, [0.5, 0, 0, 0.5]),
    (lambda x: minidl.max(x, 0).values, [0, 1, 0, 0]), (lambda x: minidl.min(x, 0).values, [1, 0, 0, 0])])
def test_equal_elements(function, want):
    np.testing.assert_array_equal(gradient(function, [1, 3, 3, 1]), want)


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "argmax", "argmin"])
def test_a_nan_is_the_extremum(name):
    values = tensor([[1.0, NAN, NAN], [3.0, 1.0, NAN]])
    found = getattr(minidl, name)(values, 1)
    if name.startswith("arg"):
        np.testing.assert_array_equal(found.numpy(), [1, 2])
        return
    assert np.isnan((found if name.startswith("am") else found.values).numpy()).all()
    np.testing.assert_array_equal(gradient(lambda x: minidl.max(x), [NAN, 1, NAN]), [0.5, 0, 0.5])


def test_forms_of_max():
    x, y = tensor([[1.0, 5.0], [4.0, 2.0]]), tensor([3.0, 3.0])
    assert minidl.max(x).item() == 5
    found = x.max(dim=1, keepdim=True)
    assert found._fields == ("values", "indices")
    assert found.indices.dtype == minidl.int64
    assert found.indices.shape == (2, 1)
    for largest in (minidl.max(x, y), minidl.max(x, other=y), x.max(y)):
        np.testing.assert_array_equal(largest.numpy(), [[3, 5], [4, 3]])
    assert minidl.aminmax(x)._fields == ("min", "max")


@pytest.mark.parametrize(("call", "error"), [
    (lambda: minidl.max(tensor(np.zeros(0))), RuntimeError),
    (lambda: minidl.max(tensor(np.zeros((0, 3))), 0), IndexError),
    (lambda: minidl.amax(tensor(np.zeros((0, 3)))), RuntimeError),
    (lambda: minidl.amin(tensor(np.zeros((0, 3))), 0), IndexError),
    (lambda: minidl.aminmax(tensor(np.zeros(0))), RuntimeError),
    (lambda: minidl.argmax(tensor(np.zeros(0))), IndexError),
    (lambda: minidl.argmin(tensor(np.zeros((0, 3))), 0), IndexError),
    (lambda: minidl.argmax(tensor([True])), RuntimeError),
    (lambda: minidl.max(tensor([1.0]), 1), IndexError)])
def test_errors(call, error):
    with pytest.raises(error, match="expected"):
        call()


def test_empty_and_0d():
    assert minidl.max(tensor(np.zeros((0, 3))), 1).values.shape == (0,)
    assert minidl.amax(tensor(np.zeros((0, 3))), 1, True).shape == (0, 1)
    found = minidl.min(tensor(4.0), 0)
    assert (found.values.item(), found.indices.item(), found.indices.shape) == (4, 0, ())
    assert minidl.argmax(tensor([[1.0, 3.0]]), keepdim=True).shape == (1, 1)
