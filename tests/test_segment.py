"""Segments and embedding tables: empties, ties, halves, padding, renormalised rows, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl.nn import functional as F
from minidl.nn.functional import segment_max, segment_mean, segment_min, segment_softmax, segment_sum

INDEX = minidl.tensor([2, 0, 2])
EVERY = (segment_sum, segment_mean, segment_max, segment_min)


@pytest.mark.parametrize("reduce", EVERY)
def test_empty_segments_give_zeros_and_take_no_gradient(reduce):
    x = minidl.tensor([[-1.0, -2.0], [-3.0, -4.0], [-5.0, -6.0]], requires_grad=True)
    out = reduce(x, INDEX, 4)
    assert out.shape == (4, 2) and not out.detach().numpy()[[1, 3]].any() and out.detach().numpy()[[0, 2]].all()
    out.sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    assert reduce(minidl.zeros(0, 3), minidl.zeros(0, dtype=minidl.int64), 2).tolist() == [[0] * 3] * 2
    assert reduce(x, INDEX).shape == (3, 2)


def test_ties_share_the_gradient():
    x = minidl.tensor([1.0, 1.0, 2.0, 0.0], requires_grad=True)
    segment_max(x, minidl.tensor([0, 0, 1, 1])).sum().backward()
    assert x.grad.tolist() == [0.5, 0.5, 1, 0]


def test_integers():
    x = minidl.tensor([-3, 7, -9])
    assert segment_sum(x, INDEX).tolist() == [7, 0, -12]
    assert segment_max(x, INDEX).tolist() == [7, 0, -3]
    assert segment_min(x.to(minidl.int8), INDEX).tolist() == [7, 0, -9]


def test_halves_are_accumulated_in_float32():
    x, one = minidl.full((4096,), 100.0, dtype=minidl.float16), minidl.zeros(4096, dtype=minidl.int64)
    assert segment_mean(x, one).tolist() == [100] and segment_mean(x, one).dtype == minidl.float16
    assert segment_sum(x / 100, one).tolist() == [4096]
    assert abs(segment_softmax(x, one).float().sum().item() - 1) < 1e-3


def test_softmax_of_nothing_but_minus_infinity_is_zero():
    x = minidl.tensor([-math.inf, -math.inf, 1.0, 2.0], requires_grad=True)
    y = segment_softmax(x, minidl.tensor([0, 0, 1, 1]))
    y.max().backward()
    assert y.tolist()[:2] == [0, 0] and np.isfinite(x.grad.numpy()).all() and not x.grad.numpy()[:2].any()


@pytest.mark.parametrize("call, error, words", [
    (lambda x: segment_sum(x, minidl.tensor([0, 1])), ValueError, r"\(3,\)"),
    (lambda x: segment_max(x, minidl.tensor([0, 1, 5]), 3), IndexError, "got 5"),
    (lambda x: segment_mean(x, minidl.tensor([0, -1, 0])), IndexError, "got -1"),
    (lambda x: segment_mean(x.long(), INDEX), RuntimeError, "floating"),
    (lambda x: segment_sum(x, x[:, 0]), TypeError, "float32"),
    (lambda x: F.embedding(INDEX + 1, x), IndexError, r"\[0, 3\).*got 3"),
    (lambda x: F.embedding(INDEX - 1, x), IndexError, "got -1"),
    (lambda x: F.embedding(x, x), RuntimeError, "float32"),
    (lambda x: F.embedding(INDEX, x[0]), RuntimeError, "num_embeddings"),
    (lambda x: F.embedding(INDEX, x, padding_idx=3), ValueError, "padding_idx"),
    (lambda x: F.embedding_bag(INDEX, x), ValueError, "offsets"),
    (lambda x: F.embedding_bag(INDEX.reshape(1, 3), x, minidl.tensor([0])), ValueError, "no offsets"),
    (lambda x: F.embedding_bag(INDEX, x, minidl.tensor([1])), RuntimeError, "start at 0"),
    (lambda x: F.embedding_bag(INDEX, x, minidl.tensor([0, 2, 1])), RuntimeError, "ascend"),
    (lambda x: F.embedding_bag(INDEX, x, minidl.tensor([0, 4])), RuntimeError, "3 places"),
    (lambda x: F.embedding_bag(INDEX + 1, x, minidl.tensor([0])), RuntimeError, "got 3"),
    (lambda x: F.embedding_bag(INDEX, x, minidl.tensor([0]), mode="min"), ValueError, "'min'"),
    (lambda x: F.embedding_bag(INDEX, x, minidl.tensor([0]), per_sample_weights=x[:, 0]), NotImplementedError, "sum"),
    (lambda x: F.embedding_bag(INDEX, x, minidl.tensor([0]), mode="max", scale_grad_by_freq=True), ValueError, "max"),
    (lambda x: F.one_hot(INDEX, 2), RuntimeError, "got 2"), (lambda x: F.one_hot(-INDEX), RuntimeError, "got -2"),
    (lambda x: F.one_hot(INDEX.int()), RuntimeError, "int64"), (lambda x: F.one_hot(INDEX[:0]), RuntimeError, "empty"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(minidl.ones(3, 2))


# Embedding

def table():
    return minidl.tensor(np.arange(1.0, 9.0).reshape(4, 2), requires_grad=True)


@pytest.mark.parametrize("options, expected", [
    ({}, [0, 3, 1, 0]), ({"padding_idx": 1}, [0, 0, 1, 0]), ({"padding_idx": -2}, [0, 3, 0, 0]),
    ({"scale_grad_by_freq": True}, [0, 1, 1, 0]), ({"scale_grad_by_freq": True, "padding_idx": 2}, [0, 1, 0, 0]),
])
def test_gradients_of_padding_and_by_frequency(options, expected):
    weight, places = table(), minidl.tensor([[1, 2], [1, 1]])
    out = F.embedding(places, weight, **options)
    np.testing.assert_array_equal(out.detach().numpy(), weight.detach().numpy()[places.numpy()])
    (g,) = minidl.autograd.grad((out * out / 2).sum(), weight, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), weight.detach().numpy() * np.array(expected)[:, None])
    (h,) = minidl.autograd.grad(g.sum(), weight)
    assert h.shape == weight.shape


@pytest.mark.parametrize("norm_type", [1.0, 2.0, math.inf])
def test_rows_that_are_too_long_are_scaled_down_in_place(norm_type):
    weight = table()
    before, version = weight.detach().numpy().copy(), weight._version
    F.embedding(minidl.tensor([0, 2, 2]), weight, max_norm=3.0, norm_type=norm_type)
    norms = np.linalg.norm(weight.detach().numpy(), norm_type, axis=1)
    np.testing.assert_array_equal(weight.detach().numpy()[[0, 1, 3]], before[[0, 1, 3]])
    assert abs(norms[2] - 3) < 1e-5 and weight._version == version + 1


def test_indices_of_any_shape():
    weight = table()
    assert F.embedding(minidl.tensor(1), weight).shape == (2,)
    assert F.embedding(minidl.zeros(0, 3, dtype=minidl.int32), weight).shape == (0, 3, 2)
    assert F.one_hot(minidl.tensor(2)).tolist() == [0, 0, 1]
    assert F.one_hot(minidl.zeros(0, dtype=minidl.int64), 3).shape == (0, 3)


def test_bags():
    weight = table()
    places, offsets = minidl.tensor([1, 2, 0]), minidl.tensor([0, 2, 2])
    assert F.embedding_bag(places, weight, offsets, mode="sum").tolist() == [[8, 10], [0, 0], [1, 2]]
    assert F.embedding_bag(places, weight, offsets, padding_idx=1).tolist() == [[5, 6], [0, 0], [1, 2]]
    assert F.embedding_bag(weight, places.reshape(1, 3), mode="max").tolist() == [[5, 6]]
    assert F.embedding_bag(places, weight, minidl.tensor([0, 1, 3]), include_last_offset=True).shape == (2, 2)
    assert F.embedding_bag(places[:0], weight, minidl.tensor([0, 0])).tolist() == [[0, 0], [0, 0]]


def test_places_behind_the_last_offset_are_in_no_bag():
    places, ends = minidl.tensor([1, 2, 0]), minidl.tensor([0, 1, 2])
    found = F.embedding_bag(places, table(), ends, mode="sum", include_last_offset=True)
    assert found.tolist() == [[3, 4], [5, 6]]
    factors = minidl.tensor([1.0, 2.0, 3.0], dtype=minidl.float64)
    found = F.embedding_bag(places, table(), ends, mode="sum", include_last_offset=True, per_sample_weights=factors)
    assert found.tolist() == [[3, 4], [10, 12]]
