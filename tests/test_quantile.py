"""Special cases of ops/quantile.py: nans, ties, shapes of q, errors."""

import numpy as np
import pytest

import minidl
from minidl import tensor

NAN = np.nan
X = np.arange(12.0).reshape(3, 4)


def test_medians_and_nans():
    x = tensor([[1.0, NAN, 5.0, NAN, 3.0]])
    found = minidl.median(x, 1)
    assert np.isnan(found.values.item())
    assert found.indices.item() == 1
    assert minidl.nanmedian(x, 1).values.item() == 3
    assert minidl.nanmedian(x).item() == 3
    assert np.isnan(minidl.nanmedian(tensor([NAN, NAN])).item())
    assert np.isnan(minidl.median(tensor(np.zeros(0))).item())


def test_equal_medians_share_the_gradient():
    x = tensor([1.0, 2.0, 2.0, 3.0], requires_grad=True)
    minidl.median(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0.5, 0.5, 0])


def test_mode_is_the_smallest_of_the_most_frequent():
    found = minidl.mode(tensor([3, 1, 3, 1, 2]))
    assert (found.values.item(), found.indices.item()) == (1, 3)


@pytest.mark.parametrize(("q", "dim", "keepdim", "shape"), [
    (0.5, None, False, ()), (0.5, None, True, (1, 1)), (0.5, 0, False, (4,)), ([0.1, 0.2], None, False, (2,)),
    ([0.1, 0.2], None, True, (2, 1, 1)), ([0.1, 0.2], 1, True, (2, 3, 1)), ([], 1, False, (0, 3))])
def test_shapes(q, dim, keepdim, shape):
    q = q if isinstance(q, float) else tensor(np.array(q, float))
    assert minidl.quantile(tensor(X), q, dim, keepdim).shape == shape


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantile_of_nan_is_nan(interpolation):
    x = tensor([[1.0, NAN, 2.0], [1.0, 2.0, 3.0]])
    found = minidl.quantile(x, 0.5, 1, interpolation=interpolation).numpy()
    np.testing.assert_array_equal(np.isnan(found), [True, False])
    assert not np.isnan(minidl.nanquantile(x, 0.5, 1, interpolation=interpolation).numpy()).any()


@pytest.mark.parametrize("call", [
    lambda: minidl.quantile(tensor([1]), 0.5), lambda: minidl.quantile(tensor([1.0], dtype=minidl.float16), 0.5),
    lambda: minidl.quantile(tensor([1.0]), 1.5), lambda: minidl.quantile(tensor([1.0]), tensor([2.0])),
    lambda: minidl.quantile(tensor(np.ones(2)), tensor([0.5])), lambda: minidl.quantile(tensor([1.0]), tensor([[0.5]])),
    lambda: minidl.quantile(tensor(np.zeros(0)), 0.5), lambda: minidl.quantile(tensor([1.0]), 0.5, interpolation="cubic"),
    lambda: minidl.median(tensor([True]))])
def test_errors(call):
    with pytest.raises(RuntimeError, match="expected"):
        call()


@pytest.mark.parametrize(("function", "values", "want"), [
    (minidl.quantile, [0, 1, 3, 7], [3, 6, 0, 12]), (minidl.nanquantile, [0, 1, NAN, 7], [2, 0, 0, 12]),
    (minidl.quantile, [0, 1, NAN, 7], [0, 0, 0, 0])])
def test_q_has_a_gradient(function, values, want):
    q = tensor(np.array([0.1, 0.5, 1, 0.9]), requires_grad=True)
    function(tensor(np.array(values, float)), q).sum().backward()
    np.testing.assert_allclose(q.grad.numpy(), want)


def test_gradients_of_input_and_q():
    x, q = tensor(X[::-1].copy() ** 1.5, requires_grad=True), tensor(np.array([0.1, 0.7]), requires_grad=True)
    for keepdim in (False, True):
        assert minidl.autograd.gradcheck(lambda x, q, k=keepdim: minidl.quantile(x, q, 1, k), (x, q))
        assert minidl.autograd.gradgradcheck(lambda x, q, k=keepdim: minidl.quantile(x, q, 0, k), (x, q))
    zero_d = tensor(0.3, dtype=minidl.float64, requires_grad=True)
    assert minidl.autograd.gradcheck(lambda q: minidl.quantile(x.detach(), q), (zero_d,))


def test_an_axis_is_looked_for_before_the_dtype():
    for function in (minidl.median, minidl.nanmedian):
        with pytest.raises(IndexError, match="dim"):
            function(tensor([True]), 5)
