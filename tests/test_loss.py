"""Losses where the op table does not reach: ignored targets, ranges, kinks, halves, broadcasting, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl.tensor.ops.cross_entropy import cross_entropy, nll_loss
from minidl.tensor.ops.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)

CLASSIFIED = pytest.mark.parametrize("loss", [cross_entropy, nll_loss], ids=["cross_entropy", "nll_loss"])


def logits(*shape, dtype=minidl.float32):
    values = np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
    return minidl.tensor(values, dtype=dtype, requires_grad=True)


def t(values, dtype=None):
    return minidl.tensor(values, dtype=dtype)


@CLASSIFIED
@pytest.mark.parametrize("reduction, value", [("sum", 0.0), ("mean", math.nan)])
@pytest.mark.parametrize("ignore_index", [-100, 1])
def test_all_targets_ignored(loss, reduction, value, ignore_index):
    x = logits(3, 4)
    out = loss(x, t([ignore_index] * 3), ignore_index=ignore_index, reduction=reduction)
    np.testing.assert_equal(out.item() if hasattr(out, "item") else float(out.numpy()), value)
    if reduction == "sum":
        out.backward()
        assert not x.grad.numpy().any()


@CLASSIFIED
def test_no_targets(loss):
    assert float(loss(logits(0, 4), t(np.zeros(0, np.int64)), reduction="sum").numpy()) == 0
    assert math.isnan(float(loss(logits(0, 4), t(np.zeros(0, np.int64))).numpy()))


@CLASSIFIED
@pytest.mark.parametrize("bad", [-1, 4, 99])
def test_a_class_out_of_range_is_named(loss, bad):
    with pytest.raises(IndexError, match=rf"4 classes, got {bad}\b"):
        loss(logits(3, 4), t([0, bad, 1]))


@CLASSIFIED
def test_ignored_targets_hide_infinite_logits(loss):
    x = minidl.tensor([[-math.inf, 0.0], [1.0, 2.0]], requires_grad=True)
    value = loss(x, t([-100, 1]))
    assert math.isfinite(float(value.numpy()))
    value.backward()
    assert not x.grad.numpy()[0].any()


def test_cross_entropy_of_large_logits_is_exact():
    value = cross_entropy(t([[1e4, -1e4, 0.0]]), t([1]))
    assert float(value.numpy()) == 2e4


@pytest.mark.parametrize("dtype", [minidl.uint8, minidl.int32, minidl.int64], ids=str)
def test_any_integer_dtype_holds_class_indices(dtype):
    x = logits(3, 4)
    for loss in (cross_entropy, nll_loss):
        assert loss(x, t([0, 3, 1], dtype)).numpy() == loss(x, t([0, 3, 1])).numpy()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_half_logits_are_reduced_in_float32(reduction):
    x = minidl.tensor(np.tile([30.0, 0.0], (2000, 1)), dtype=minidl.float16, requires_grad=True)
    value = cross_entropy(x, t(np.ones(2000, np.int64)), reduction=reduction)
    assert value.dtype == minidl.float16
    np.testing.assert_allclose(value.numpy().astype(float), 60000 if reduction == "sum" else 30, rtol=5e-4)


@pytest.mark.parametrize("loss", [mse_loss, huber_loss, l1_loss, smooth_l1_loss])
def test_half_errors_do_not_overflow_before_the_mean(loss):
    x, target = t([300.0] + [0.0] * 99, minidl.float16), t([0.0] * 100, minidl.float16)
    value = loss(x, target)
    assert value.dtype == minidl.float16 and math.isfinite(float(value.numpy()))


@pytest.mark.parametrize("loss, gradient", [
    (l1_loss, [0, 1, -1, 1]), (mse_loss, [0, 2, -2, 4]), (smooth_l1_loss, [0, 1, -1, 1]), (huber_loss, [0, 1, -1, 1]),
])
def test_gradients_at_kinks(loss, gradient):
    x = minidl.tensor([0.0, 1.0, -1.0, 2.0], requires_grad=True)
    loss(x, t([0.0] * 4), reduction="sum").backward()
    assert x.grad.numpy().tolist() == gradient


def test_binary_cross_entropy_clamps_its_logarithms():
    x = minidl.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    losses = binary_cross_entropy(x, t([1.0, 0.0, 0.0, 1.0]), reduction="none")
    assert losses.numpy().tolist() == [100, 100, 0, 0]
    losses.sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_binary_cross_entropy_with_logits_cannot_overflow():
    x = minidl.tensor([1e4, -1e4, 1e4, 0.0], requires_grad=True)
    losses = binary_cross_entropy_with_logits(x, t([0.0, 1.0, 1.0, 0.5]), reduction="none")
    np.testing.assert_allclose(losses.numpy(), [1e4, 1e4, 0, math.log(2)], rtol=1e-6)
    losses.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1, -1, 0, 0], atol=1e-6)


def test_kl_div_of_an_impossible_class_is_zero():
    x = minidl.tensor([[-1.0, -2.0]], requires_grad=True)
    kl_div(x, t([[0.0, 1.0]]), reduction="sum").backward()
    assert x.grad.numpy().tolist() == [[0, -1]]


def test_gaussian_nll_loss_clamps_the_variance_but_not_its_gradient():
    variance = minidl.tensor([0.0], requires_grad=True)
    value = gaussian_nll_loss(t([1.0]), t([1.0]), variance, eps=0.5)
    value.backward()
    np.testing.assert_allclose([float(value.numpy()), float(variance.grad.numpy()[0])], [0.5 * math.log(0.5), 1.0], rtol=1e-6)


def test_gaussian_nll_loss_takes_a_float_variance():
    np.testing.assert_allclose(gaussian_nll_loss(t([1.0, 3.0]), t([1.0, 1.0]), 2.0).numpy(), 0.5 * math.log(2) + 0.5)


def test_poisson_nll_loss_of_no_events():
    target = minidl.tensor([0.0, 1.0, 3.0], requires_grad=True)
    poisson_nll_loss(t([0.0, 0.0, 0.0]), target, full=True).backward()
    assert np.isfinite(target.grad.numpy()).all()


@pytest.mark.parametrize("loss", [mse_loss, l1_loss, smooth_l1_loss, huber_loss])
def test_broadcasting_warns(loss):
    with pytest.warns(UserWarning, match="broadcast"):
        assert loss(logits(3, 2), logits(2), reduction="none").shape == (3, 2)


@pytest.mark.parametrize("loss", [mse_loss, l1_loss, smooth_l1_loss, huber_loss])
def test_shapes_that_do_not_broadcast(loss):
    with pytest.raises(RuntimeError):
        loss(logits(3, 2), logits(3))


@pytest.mark.parametrize("error, call", [
    (IndexError, lambda: cross_entropy(t(1.0), t(0))),
    (ValueError, lambda: nll_loss(t(1.0), t(0))),
    (ValueError, lambda: cross_entropy(logits(3, 4), t([0, 1]))),
    (RuntimeError, lambda: cross_entropy(logits(3, 4), t([0.0, 1.0, 2.0]))),
    (RuntimeError, lambda: cross_entropy(logits(3, 4), minidl.full((3, 4), 0.25), ignore_index=1)),
    (RuntimeError, lambda: cross_entropy(logits(3, 4), t(np.zeros((3, 4), np.int64)))),
    (RuntimeError, lambda: cross_entropy(logits(3, 4, 2), t(np.zeros((3, 3), np.int64)))),
    (RuntimeError, lambda: cross_entropy(logits(3, 4), t([0, 1, 2]), t([1.0, 2.0]))),
    (RuntimeError, lambda: cross_entropy(logits(3, 4), t([0, 1, 2]), label_smoothing=1.5)),
    (ValueError, lambda: cross_entropy(logits(3, 4), t([0, 1, 2]), reduction="average")),
    (ValueError, lambda: nll_loss(logits(3, 4), t([0, 1]))),
    (RuntimeError, lambda: nll_loss(logits(3, 4), t([0, 1, 2]), t([1.0, 2.0]))),
    (ValueError, lambda: mse_loss(logits(3), logits(3), reduction="average")),
    (ValueError, lambda: mse_loss(logits(3), logits(3), weight=logits(2))),
    (RuntimeError, lambda: smooth_l1_loss(logits(3), logits(3), beta=-1.0)),
    (RuntimeError, lambda: huber_loss(logits(3), logits(3), delta=0.0)),
    (ValueError, lambda: kl_div(logits(3), logits(3), reduction="average")),
    (ValueError, lambda: binary_cross_entropy(t([0.5]), t([0.5, 1.0]))),
    (RuntimeError, lambda: binary_cross_entropy(t([1.5]), t([0.5]))),
    (ValueError, lambda: binary_cross_entropy_with_logits(t([0.5]), t([0.5, 1.0]))),
    (ValueError, lambda: gaussian_nll_loss(t([0.5, 1.0]), t([0.5, 1.0]), t([1.0, -1.0]))),
    (ValueError, lambda: gaussian_nll_loss(t([0.5, 1.0]), t([0.5, 1.0]), t([1.0, 1.0, 1.0]))),
    (ValueError, lambda: poisson_nll_loss(t([0.5]), t([0.5]), reduction="average")),
])
def test_bad_arguments(error, call):
    with pytest.raises(error, match="expected"):
        call()


@pytest.mark.filterwarnings("ignore:.*broadcast")
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("loss", [mse_loss, l1_loss, smooth_l1_loss, huber_loss])
def test_a_zero_d_operand_counts_for_the_dtype(loss, reduction):
    one, halves = minidl.tensor(1.0, requires_grad=True), minidl.full((2, 3), 0.5, dtype=minidl.float16)
    for y in (loss(one, halves, reduction=reduction), loss(halves, one, reduction=reduction)):
        assert y.dtype == minidl.float32
        y.sum().backward()
    assert one.grad.shape == ()
    assert one.grad.item() > 0
