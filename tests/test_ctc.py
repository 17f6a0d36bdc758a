"""ctc_loss where the op table does not reach: targets that do not fit, lengths, forms of its arguments, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl.tensor.ops.ctc import ctc_loss

PADDED = np.array([[1, 1, 2], [3, 2, 0], [2, 0, 0]])
TARGET_LENGTHS = (3, 2, 1)


def log_probs(frames=6, batch=3, classes=5, seed=0):
    x = np.random.Generator(np.random.Philox(seed)).standard_normal((frames, batch, classes))
    return minidl.tensor(x - np.log(np.exp(x).sum(-1, keepdims=True)), requires_grad=True)


def t(values):
    return minidl.tensor(values)


def test_forms_of_the_arguments_agree():
    x = log_probs()
    want = ctc_loss(x, t(PADDED), t([6, 5, 4]), t(TARGET_LENGTHS), reduction="none").numpy()
    one_by_one = t([1, 1, 2, 3, 2, 2])
    np.testing.assert_array_equal(ctc_loss(x, one_by_one, (6, 5, 4), TARGET_LENGTHS, reduction="none").numpy(), want)
    for n, frames in enumerate((6, 5, 4)):
        alone = ctc_loss(t(x.numpy()[:frames, n]), t(PADDED[n, :TARGET_LENGTHS[n]]), frames, TARGET_LENGTHS[n],
                         reduction="none")
        assert alone.shape == ()
        np.testing.assert_allclose(alone.numpy(), want[n])


@pytest.mark.parametrize("zero_infinity, loss, gradient", [(False, math.inf, math.nan), (True, 0.0, 0.0)])
def test_a_target_that_does_not_fit(zero_infinity, loss, gradient):
    x = log_probs()
    losses = ctc_loss(x, t(PADDED), (3, 5, 6), TARGET_LENGTHS, reduction="none", zero_infinity=zero_infinity)
    assert losses.numpy()[0] == loss and np.isfinite(losses.numpy()[1:]).all()
    losses.sum().backward()
    np.testing.assert_equal(x.grad.numpy()[0, 0, 1], gradient)
    assert not x.grad.numpy()[3:, 0].any()
    assert np.isfinite(x.grad.numpy()[:, 1:]).all()


def test_no_frames_and_no_classes():
    losses = ctc_loss(log_probs(), t(PADDED), (0, 0, 6), (0, 1, 0), reduction="none").numpy()
    assert losses[0] == 0 and losses[1] == math.inf
    np.testing.assert_allclose(losses[2], -log_probs().numpy()[:, 2, 0].sum())


def test_the_probabilities_of_the_classes_add_up_in_each_frame():
    x = log_probs()
    ctc_loss(x, t(PADDED), (6, 5, 4), TARGET_LENGTHS, reduction="sum").backward()
    np.testing.assert_allclose(-x.grad.numpy().sum(-1), np.arange(6)[:, None] < np.array([6, 5, 4]))


def test_long_sequences_stay_finite_in_float32():
    x = minidl.tensor(np.full((2000, 1, 4), -math.log(4)), dtype=minidl.float32, requires_grad=True)
    loss = ctc_loss(x, t(np.tile([[1, 2, 3]], (1, 200))), (2000,), (600,))
    loss.backward()
    assert np.isfinite(loss.numpy()) and np.isfinite(x.grad.numpy()).all()


def test_impossible_classes_may_have_log_probability_minus_infinity():
    x = np.full((4, 1, 3), math.log(0.5))
    x[:, :, 2] = -math.inf
    x = minidl.tensor(x, requires_grad=True)
    loss = ctc_loss(x, t([[1]]), (4,), (1,), reduction="sum")
    loss.backward()
    np.testing.assert_allclose(loss.numpy(), -math.log(10 / 16))
    assert np.isfinite(x.grad.numpy()).all()


@pytest.mark.parametrize("error, call", [
    (RuntimeError, lambda: ctc_loss(t(np.zeros(4)), t([1]), 1, 1)),
    (RuntimeError, lambda: ctc_loss(log_probs(), t(PADDED), (6, 5, 7), TARGET_LENGTHS)),
    (RuntimeError, lambda: ctc_loss(log_probs(), t(PADDED), (6, 5), TARGET_LENGTHS)),
    (RuntimeError, lambda: ctc_loss(log_probs(), t(PADDED), (6, 5, 4), (3, 2))),
    (RuntimeError, lambda: ctc_loss(log_probs(), t(PADDED), (6, 5, 4), (3, 2, -1))),
    (RuntimeError, lambda: ctc_loss(log_probs(), t(PADDED[:, :2]), (6, 5, 4), TARGET_LENGTHS)),
    (RuntimeError, lambda: ctc_loss(log_probs(), t(PADDED[:2]), (6, 5, 4), TARGET_LENGTHS)),
    (RuntimeError, lambda: ctc_loss(log_probs(), t([1, 1, 2, 3, 2]), (6, 5, 4), TARGET_LENGTHS)),
    (RuntimeError, lambda: ctc_loss(log_probs(), t(PADDED), (6, 5, 4), TARGET_LENGTHS, blank=5)),
    (RuntimeError, lambda: ctc_loss(log_probs(), t(PADDED), (6.0, 5.0, 4.0), TARGET_LENGTHS)),
    (RuntimeError, lambda: ctc_loss(log_probs(), t(PADDED * 1.0), (6, 5, 4), TARGET_LENGTHS)),
    (IndexError, lambda: ctc_loss(log_probs(), t(PADDED + 2), (6, 5, 4), TARGET_LENGTHS)),
    (ValueError, lambda: ctc_loss(log_probs(), t(PADDED), (6, 5, 4), TARGET_LENGTHS, reduction="average")),
])
def test_bad_arguments(error, call):
    with pytest.raises(error, match="expected"):
        call()
