"""Margin losses where the op table does not reach: gradients at the margin, halves, integers, errors."""

import numpy as np
import pytest

import minidl
from minidl.tensor.ops.margin_loss import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)


def t(values, dtype=None, requires_grad=False):
    return minidl.tensor(values, dtype=dtype, requires_grad=requires_grad)


def ones(*shape):
    return t(np.ones(shape, np.float32))


@pytest.mark.parametrize("loss, gradient", [
    (lambda x: margin_ranking_loss(x, t([1.0]), t([1.0])), [-1]),
    (lambda x: hinge_embedding_loss(x, t([-1])), [-1]),
    (lambda x: multi_margin_loss(x, t(0), margin=0.0), [0]),
], ids=["margin_ranking_loss", "hinge_embedding_loss", "multi_margin_loss"])
def test_gradients_at_the_margin(loss, gradient):
    x = t([1.0], requires_grad=True)
    loss(x).backward()
    assert x.grad.numpy().tolist() == gradient


def test_cosine_embedding_loss_of_a_zero_vector_has_a_finite_gradient():
    x = t(np.zeros((1, 3), np.float32), requires_grad=True)
    cosine_embedding_loss(x, ones(1, 3), t([1])).backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_soft_margin_loss_cannot_overflow():
    assert soft_margin_loss(t([1e4, -1e4]), t([-1.0, -1.0]), reduction="none").numpy().tolist() == [1e4, 0]


def test_triplets_of_halves_are_computed_in_float32():
    anchor, positive, negative = (t(np.full((1, 100), v), minidl.float16) for v in (0.0, 200.0, 201.0))
    loss = triplet_margin_loss(anchor, positive, negative, margin=20.0)
    assert loss.dtype == minidl.float16
    np.testing.assert_allclose(loss.numpy().astype(float), 10, rtol=1e-3)


def test_integers_are_computed_in_the_default_floating_dtype():
    assert margin_ranking_loss(t([1, 2]), t([2, 1]), t([1, 1])).dtype == minidl.float32


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16, minidl.float64])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_integer_targets_do_not_count_for_the_dtype(dtype, reduction):
    x, target = ones(2, 3).to(dtype), minidl.ones(2, 3, dtype=minidl.int64)
    for y in (margin_ranking_loss(x, x, target, reduction=reduction), soft_margin_loss(x, target, reduction=reduction),
              multilabel_soft_margin_loss(x, target, reduction=reduction)):
        assert y.dtype == dtype


@pytest.mark.parametrize("error, call", [
    (RuntimeError, lambda: cosine_embedding_loss(ones(2, 3), ones(3), t([1, 1]))),
    (RuntimeError, lambda: cosine_embedding_loss(ones(2, 3), ones(2, 3), ones(2, 2))),
    (ValueError, lambda: hinge_embedding_loss(ones(2), t([1, 1]), reduction="average")),
    (RuntimeError, lambda: margin_ranking_loss(ones(2), ones(2, 1), ones(2))),
    (ValueError, lambda: multi_margin_loss(ones(2, 3), t([0, 1]), p=3)),
    (RuntimeError, lambda: multi_margin_loss(ones(2, 3), t([0, 3]))),
    (RuntimeError, lambda: multi_margin_loss(ones(2, 3), t([0, 1, 2]))),
    (RuntimeError, lambda: multi_margin_loss(ones(2, 3), t([0.0, 1.0]))),
    (ValueError, lambda: multi_margin_loss(ones(2, 3), t([0, 1]), weight=ones(1, 3))),
    (RuntimeError, lambda: multi_margin_loss(ones(2, 3), t([0, 1]), weight=ones(2))),
    (RuntimeError, lambda: multilabel_margin_loss(ones(2, 3), t([0, 1]))),
    (RuntimeError, lambda: multilabel_margin_loss(ones(3), t([0, 3, 1]))),
    (ValueError, lambda: multilabel_soft_margin_loss(ones(3), ones(3), reduction="average")),
    (IndexError, lambda: multilabel_soft_margin_loss(ones(), ones())),
    (ValueError, lambda: triplet_margin_loss(ones(3), ones(3), ones(3), margin=-1.0)),
    (RuntimeError, lambda: triplet_margin_loss(ones(2, 3), ones(3), ones(3))),
    (ValueError, lambda: triplet_margin_with_distance_loss(ones(3), ones(3), ones(3), margin=0.0)),
])
def test_bad_arguments(error, call):
    with pytest.raises(error, match="expected"):
        call()
