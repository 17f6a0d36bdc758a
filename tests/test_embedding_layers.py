"""Embedding and EmbeddingBag: tables, padding rows, and what is done to rows."""

import numpy as np
import pytest

import minidl
from minidl.nn.embedding import Embedding, EmbeddingBag

TABLE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def table():
    return minidl.tensor(TABLE)


def places(*numbers):
    return minidl.tensor(list(numbers))


def test_rows_are_looked_up_for_any_shape_of_input():
    embedding = Embedding.from_pretrained(table())
    assert embedding(places(2, 0)).tolist() == [[5, 6], [1, 2]]
    assert embedding(minidl.tensor(1)).tolist() == [3, 4]
    assert embedding(minidl.zeros(2, 0, 3, dtype=minidl.int32)).shape == (2, 0, 3, 2)


def test_the_table_is_drawn_from_the_standard_normal_distribution_by_the_seed():
    minidl.manual_seed(3)
    first = Embedding(200, 50).weight.numpy()
    minidl.manual_seed(3)
    np.testing.assert_array_equal(first, Embedding(200, 50).weight.numpy())
    assert abs(first.mean()) < 0.05 and abs(first.std() - 1) < 0.05


@pytest.mark.parametrize("make", [lambda i: Embedding(3, 2, padding_idx=i), lambda i: EmbeddingBag(3, 2, padding_idx=i)])
def test_the_padding_row_starts_as_zero_and_may_count_from_the_end(make):
    made = make(-1)
    assert made.padding_idx == 2
    assert made.weight.numpy()[2].tolist() == [0, 0] and made.weight.numpy()[:2].all()


def test_the_padding_row_gets_no_gradient():
    embedding = Embedding(3, 2, padding_idx=1)
    embedding(places(0, 1, 1, 2)).sum().backward()
    assert embedding.weight.grad.tolist() == [[1, 1], [0, 0], [1, 1]]


def test_scale_grad_by_freq():
    embedding = Embedding(3, 1, scale_grad_by_freq=True)
    embedding(places(0, 2, 2)).backward(minidl.tensor([[1.0], [2.0], [6.0]]))
    assert embedding.weight.grad.tolist() == [[1], [0], [4]]


@pytest.mark.parametrize("make", [
    lambda: Embedding.from_pretrained(table(), max_norm=5.0, norm_type=1.0),
    lambda: EmbeddingBag.from_pretrained(table(), max_norm=5.0, norm_type=1.0)])
def test_rows_that_are_looked_up_are_renormalized_in_place(make):
    made = make()
    made(places(0, 2).reshape(1, 2))
    np.testing.assert_allclose(made.weight.numpy(), [[1, 2], [3, 4], [25 / 11, 30 / 11]], rtol=1e-5)


@pytest.mark.parametrize("kind", [Embedding, EmbeddingBag])
def test_a_pretrained_table_is_shared_and_frozen_unless_it_is_to_be_learned(kind):
    pretrained = table()
    made = kind.from_pretrained(pretrained)
    pretrained[0] = 9.0
    assert made.weight.numpy()[0].tolist() == [9, 9]
    assert not made.weight.requires_grad
    assert kind.from_pretrained(pretrained, freeze=False).weight.requires_grad
    assert list(made.state_dict()) == ["weight"]


def test_from_pretrained_keeps_the_padding_row():
    assert Embedding.from_pretrained(table(), padding_idx=0).weight.numpy()[0].tolist() == [1, 2]


@pytest.mark.parametrize("mode, bags", [("sum", [[8, 10], [0, 0], [1, 2]]), ("mean", [[4, 5], [0, 0], [1, 2]]),
                                        ("max", [[5, 6], [0, 0], [1, 2]])])
def test_bags(mode, bags):
    bag = EmbeddingBag.from_pretrained(table(), mode=mode)
    assert bag(places(1, 2, 0), places(0, 2, 2)).tolist() == bags
    assert bag(places(1, 2).reshape(1, 2)).tolist() == bags[:1]


def test_bags_are_means_by_default():
    assert EmbeddingBag.from_pretrained(table())(places(0, 1).reshape(1, 2)).tolist() == [[2, 3]]


def test_bags_with_weights_padding_and_a_last_offset():
    bag = EmbeddingBag.from_pretrained(table(), mode="sum", include_last_offset=True, padding_idx=1)
    found = bag(places(0, 1, 2, 2), places(0, 2, 3), minidl.tensor([2.0, 7.0, 3.0, 9.0]))
    assert found.tolist() == [[2, 4], [15, 18]]


def test_gradients_of_a_bag():
    bag = EmbeddingBag(3, 1, mode="mean")
    bag(places(0, 0, 1, 2), places(0, 3)).sum().backward()
    np.testing.assert_allclose(bag.weight.grad.numpy(), [[2 / 3], [1 / 3], [1]], rtol=1e-6)


def test_half_tables():
    embedding = Embedding(3, 2, padding_idx=0, dtype=minidl.float16)
    y = embedding(places(0, 1))
    y.sum().backward()
    assert y.dtype == embedding.weight.grad.dtype == minidl.float16


@pytest.mark.parametrize("made, shown", [
    (Embedding(3, 2), "Embedding(3, 2)"),
    (Embedding(3, 2, -1, 1.0, 1.0, True, True),
     "Embedding(3, 2, padding_idx=2, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, sparse=True)"),
    (EmbeddingBag(3, 2), "EmbeddingBag(3, 2, mode='mean')"),
    (EmbeddingBag(3, 2, 1.0, 1.0, True, "sum", padding_idx=1),
     "EmbeddingBag(3, 2, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, mode='sum', padding_idx=1)"),
], ids=["Embedding", "all of Embedding", "EmbeddingBag", "all of EmbeddingBag"])
def test_repr(made, shown):
    assert repr(made) == shown


@pytest.mark.parametrize("number", [3, -1])
def test_an_index_outside_of_the_table_names_itself_and_the_number_of_rows(number):
    with pytest.raises(IndexError, match=rf"\[0, 3\).*got {number}"):
        Embedding(3, 2)(places(0, number))


@pytest.mark.parametrize("error, call", [
    (ValueError, lambda: Embedding(3, 2, padding_idx=3)),
    (ValueError, lambda: Embedding(3, 2, padding_idx=-4)),
    (ValueError, lambda: EmbeddingBag(3, 2, padding_idx=3)),
    (ValueError, lambda: Embedding(2, 2, _weight=table())),
    (ValueError, lambda: Embedding.from_pretrained(minidl.ones(3))),
    (ValueError, lambda: EmbeddingBag(3, 2, mode="min")(places(0), places(0))),
    (ValueError, lambda: EmbeddingBag(3, 2)(places(0))),
    (ValueError, lambda: EmbeddingBag(3, 2)(places(0).reshape(1, 1), places(0))),
    (NotImplementedError, lambda: EmbeddingBag(3, 2)(places(0), places(0), minidl.ones(1))),
    (RuntimeError, lambda: EmbeddingBag(3, 2)(places(3), places(0))),
    (RuntimeError, lambda: Embedding(3, 2)(minidl.ones(2))),
])
def test_bad_arguments(error, call):
    with pytest.raises(error, match="expected"):
        call()
