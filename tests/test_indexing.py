"""x[index] and x[index] = value: views, history, in-place guards, and what is no index."""

import numpy as np
import pytest

import minidl

RNG = np.random.Generator(np.random.Philox(5))


def leaf(*shape):
    return minidl.tensor(np.arange(1.0, 1 + np.prod(shape)).reshape(shape), requires_grad=True)


@pytest.mark.parametrize("index", [1, -1, slice(1, None), (..., 0), (None, 1), (1, 2, 3), (), minidl.tensor(1), np.int64(1)])
def test_basic_indices_show_the_same_memory(index):
    x = minidl.zeros(2, 3, 4)
    assert np.shares_memory(x[index].numpy(), x.numpy())
    x[index].add_(1)
    assert x.numpy().sum() == x[index].numel()


@pytest.mark.parametrize("index", [[0], minidl.tensor([0]), True, minidl.ones(2, dtype=minidl.bool), np.array([1, 0])])
def test_advanced_indices_copy(index):
    x = minidl.zeros(2, 3)
    assert not np.shares_memory(x[index].numpy(), x.numpy())


def test_integers_are_applied_before_arrays_as_in_pytorch():
    x = minidl.zeros(2, 3, 4)
    assert x[0, :, [0, 1]].shape == (3, 2)
    assert x[[0, 1], :, [0, 1]].shape == (2, 3)
    assert x[[0, 1], None, :, [1]].shape == (2, 1, 3)


def test_random_indices_agree_with_numpy():
    x = np.arange(120.0).reshape(4, 5, 6)
    for _ in range(200):
        entries = []
        for length in x.shape[:RNG.integers(1, 4)]:
            kind = RNG.integers(0, 4)
            entries.append([slice(None), slice(*sorted(RNG.integers(0, length, 2)), int(RNG.integers(1, 3))),
                            RNG.integers(-length, length, 3), RNG.integers(-length, length, (2, 1))][kind])
        index = tuple(entries)
        np.testing.assert_array_equal(minidl.tensor(x)[index].numpy(), x[index])
        changed, expected = minidl.tensor(x), x.copy()
        changed[index] = -1.0
        expected[index] = -1
        np.testing.assert_array_equal(changed.numpy(), expected)


@pytest.mark.parametrize("index, error, words", [
    (3, IndexError, "axis 0 with size 3"), ((0, 4), IndexError, "axis 1 with size 4"), ((0, 0, 0), IndexError, "shape"),
    ([3], IndexError, r"indices in \[-3, 2\] for axis 0 of size 3, got 3"),
    ((slice(None), [0, -5]), IndexError, "axis 1 of size 4, got -5"),
    ([0.5], IndexError, "float32"), (1.0, IndexError, "float"), ("a", IndexError, "str"),
    (minidl.zeros(3, dtype=minidl.uint8), IndexError, "uint8.*bool"), (minidl.ones(4, dtype=minidl.bool), IndexError, "mask"),
    (([0, 1], [0, 1, 2]), IndexError, "broadcast"), ((..., ..., [0]), IndexError, "one ..."),
    (([0], 0, 0), IndexError, "at most 2"),
])
def test_what_is_no_index(index, error, words):
    x = minidl.zeros(3, 4)
    with pytest.raises(error, match=words):
        x[index]
    with pytest.raises(error, match=words):
        x[index] = 1


@pytest.mark.parametrize("index, value", [(0, minidl.ones(3)), ([0, 1], minidl.ones(3)), (slice(2), minidl.ones(3, 4))])
def test_values_must_broadcast(index, value):
    x = minidl.zeros(3, 4)
    with pytest.raises(RuntimeError, match="broadcast"):
        x[index] = value
    assert not x.numpy().any()


def test_values_are_cast():
    x = minidl.zeros(3, dtype=minidl.int64)
    x[0], x[1:] = 2.7, minidl.tensor([True, False])
    assert x.tolist() == [2, 1, 0]
    half = minidl.zeros(2, dtype=minidl.float16)
    half[0] = 1e9
    assert half.tolist() == [float("inf"), 0]
    half[:] = [1, 2]
    assert half.tolist() == [1, 2]


@pytest.mark.parametrize("index", [minidl.tensor([True, False]), [True, False], np.array([True, False]),
                                   (minidl.tensor([True, False]),)])
@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16, minidl.float32])
def test_fills_of_masks_saturate(index, dtype):
    largest = minidl.finfo(dtype).max
    for value, kept in [(-1e39, -largest), (1e39, largest), (np.float64(-1e39), -largest), (10 ** 400, largest),
                        (-np.inf, -np.inf), (0.5, 0.5)]:
        x = minidl.zeros(2, dtype=dtype)
        x[index] = value
        assert x.tolist() == [kept, 0]


@pytest.mark.parametrize("value", [300, -129, 1e10, 2 ** 70])
def test_integers_that_do_not_fit(value):
    x = minidl.zeros(2, dtype=minidl.int8)
    for index in (0, [0], slice(None)):
        with pytest.raises(RuntimeError, match=r"setitem expected a number that int8 can hold, in \[-128, 127\], got "):
            x[index] = value
    assert x.tolist() == [0, 0]
    byte = minidl.zeros(2, dtype=minidl.uint8)
    byte[0] = -1
    assert byte.tolist() == [255, 0]


def test_assignment_is_recorded():
    a, v = leaf(3), leaf(2)
    x = a * 1
    x[1:] = v * 10
    (x * x).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [2, 0, 0])
    np.testing.assert_array_equal(v.grad.numpy(), [200, 400])


def test_assignment_gives_a_plain_tensor_a_history():
    v = leaf(2)
    x = minidl.zeros(3, 2, dtype=minidl.float64)
    for row in range(3):
        x[row] = v * row
    (x * minidl.tensor([[1.0], [10.0], [100.0]], dtype=minidl.float64)).sum().backward()
    np.testing.assert_array_equal(v.grad.numpy(), [210, 210])


def test_of_a_repeated_position_the_last_value_stays_and_gets_the_gradient():
    a, v = leaf(3), leaf(4)
    x = a * 1
    x[[0, 1, 0, 0]] = v
    x.sum().backward()
    assert x.tolist() == [4, 2, 3]
    np.testing.assert_array_equal(v.grad.numpy(), [0, 1, 0, 1])
    np.testing.assert_array_equal(a.grad.numpy(), [0, 0, 1])


@pytest.mark.parametrize("write", [lambda view, v: view.__setitem__([1], v), lambda view, v: view.__setitem__(1, v)])
def test_assignment_through_a_view_changes_its_base(write):
    a, v = leaf(2, 3), leaf(1)
    x = a * 1
    row = x[1]
    write(row, v)
    (x * x).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [[2, 4, 6], [8, 0, 12]])
    np.testing.assert_array_equal(v.grad.numpy(), [2])


def test_a_view_read_after_its_base_was_written():
    a = leaf(3)
    x = a * 1
    view = x[:2]
    x[0] = 5.0
    (view * view).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [0, 4, 0])


def test_assignment_to_itself_overlapping():
    a = leaf(3)
    x = a * 1
    x[1:] = x[:-1]
    (x * minidl.tensor([1.0, 10.0, 100.0], dtype=minidl.float64)).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [11, 100, 0])


def test_in_place_arithmetic_on_a_part():
    a = leaf(2, 2)
    x = a * 1
    x[0] *= 3
    x[:, [1]] += x[:, [0]]
    x.sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [[6, 3], [2, 1]])


def test_guards():
    a = leaf(3)
    with pytest.raises(RuntimeError, match="leaf"):
        a[0] = 1.0
    with minidl.no_grad():
        a[0] = 7.0
    assert a.is_leaf and a.tolist()[0] == 7
    with pytest.raises(RuntimeError, match="written|read-only"):
        minidl.zeros(1).expand(3)[0] = 1.0
    x = a * 1
    y = x * x
    x[0] = 1.0
    with pytest.raises(RuntimeError, match="edited in place"):
        y.sum().backward()
    index = minidl.tensor([0, 1])
    z = a[index]
    index[0] = 2
    with pytest.raises(RuntimeError, match="edited in place"):
        z.sum().backward()


def test_second_derivatives_through_assignment():
    a, v = leaf(3), leaf(2)
    x = a * a
    x[[0, 2]] = v * v * v
    (g,) = minidl.autograd.grad((x * x).sum(), v, create_graph=True)
    (h,) = minidl.autograd.grad(g.sum(), v)
    np.testing.assert_allclose(h.numpy(), 30 * v.numpy() ** 4)


@pytest.mark.parametrize("call, error, words", [
    (lambda x, i: minidl.index_put(x, i, x), TypeError, "tuple"),
    (lambda x, i: minidl.index_put(x, (), x), TypeError, "one index"),
    (lambda x, i: minidl.index_put(x, (None, i), x), TypeError, "tensors only"),
    (lambda x, i: minidl.index_put(x, (i,), minidl.ones(5)), RuntimeError, "broadcast"),
    (lambda x, i: minidl.index_put(x, (i,), x.double()), RuntimeError, "float64"),
    (lambda x, i: minidl.index_put(x, (i, i, i), x), IndexError, "at most 2"),
    (lambda x, i: minidl.select_scatter(x, minidl.ones(2), 0, 1), RuntimeError, r"\(3,\)"),
    (lambda x, i: minidl.select_scatter(x, minidl.ones(3), 0, 2), IndexError, "axis 0"),
    (lambda x, i: minidl.slice_scatter(x, minidl.ones(2, 3), step=0), RuntimeError, "positive step"),
    (lambda x, i: minidl.slice_scatter(x, minidl.ones(2, 3), 0, 1), RuntimeError, r"\(1, 3\)"),
    (lambda x, i: minidl.diagonal_scatter(x, minidl.ones(3)), RuntimeError, r"\(2,\)"),
    (lambda x, i: minidl.diagonal_scatter(x, minidl.ones(3), 0, 1, 1), RuntimeError, "different"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(minidl.ones(2, 3), minidl.tensor([0]))
