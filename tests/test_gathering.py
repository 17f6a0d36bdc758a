"""gather, scatter and index_*: dtypes, empties, in-place forms, ties, errors; and the fast ways to add rows up."""

import numpy as np
import pytest

import minidl
from minidl.tensor.backend import Backend
from tests.fake_cuda import installed

I64 = minidl.int64


@pytest.mark.parametrize("reduce, include_self, expected", [
    ("sum", True, [8, 5, 2]), ("prod", True, [6, 6, 2]), ("mean", True, [8 / 3, 2.5, 2]), ("amax", True, [6, 3, 2]),
    ("amin", False, [1, 3, 2]), ("mean", False, [3.5, 3, 2]), ("prod", False, [6, 3, 2]),
])
@pytest.mark.parametrize("dtype", [I64, minidl.uint8, minidl.float16])
def test_scatter_reduce_of_other_dtypes(reduce, include_self, expected, dtype):
    x, src = minidl.tensor([1, 2, 2], dtype=dtype), minidl.tensor([6, 3, 1], dtype=dtype)
    out = minidl.scatter_reduce(x, 0, minidl.tensor([0, 1, 0]), src, reduce, include_self=include_self)
    assert out.dtype == dtype
    expected = expected if dtype == minidl.float16 else np.floor(expected)
    np.testing.assert_allclose(out.numpy().astype(float), expected, rtol=1e-3)


def test_ties_share_the_gradient():
    x, src = minidl.tensor([2.0, 1.0], requires_grad=True), minidl.tensor([2.0, 2.0, 0.0], requires_grad=True)
    minidl.scatter_reduce(x, 0, minidl.tensor([0, 0, 1]), src, "amax").sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 / 3, 1])
    np.testing.assert_allclose(src.grad.numpy(), [1 / 3, 1 / 3, 0])


def test_products_with_zeros():
    x = minidl.tensor([0.0, 3.0, 2.0], requires_grad=True)
    src = minidl.tensor([0.0, 5.0, 0.0, 7.0, 0.0, 0.0], requires_grad=True)
    index = minidl.tensor([1, 1, 0, 0, 2, 2])
    minidl.scatter_reduce(x, 0, index, src, "prod").sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, 0, 0])
    np.testing.assert_allclose(src.grad.numpy(), [15, 0, 0, 0, 0, 0])


def test_halves_add_up_in_float32():
    ones, where = minidl.ones(4096, dtype=minidl.float16), minidl.zeros(4096, dtype=I64)
    for out in (minidl.scatter_add(minidl.zeros(2, dtype=minidl.float16), 0, where, ones),
                minidl.index_add(minidl.zeros(2, dtype=minidl.float16), 0, where, ones),
                minidl.index_put(minidl.zeros(2, dtype=minidl.float16), (where,), ones, True)):
        assert out.dtype == minidl.float16 and out.tolist() == [4096, 0]
    mean = minidl.scatter_reduce(minidl.zeros(1, dtype=minidl.float16), 0, where, ones * 100, "mean", include_self=False)
    assert mean.tolist() == [100]


@pytest.mark.parametrize("name, args", [
    ("scatter", (0, minidl.tensor([0, 2]), minidl.tensor([5.0, 6.0]))), ("scatter", (0, minidl.tensor([0, 2]), 5.0)),
    ("scatter_add", (0, minidl.tensor([0, 0]), minidl.tensor([5.0, 6.0]))),
    ("scatter_reduce", (0, minidl.tensor([0, 0]), minidl.tensor([5.0, 6.0]), "amax")),
    ("index_add", (0, minidl.tensor([1]), minidl.tensor([5.0]))), ("index_copy", (0, minidl.tensor([1]), minidl.tensor([5.0]))),
    ("index_fill", (0, minidl.tensor([1]), 5.0)), ("index_put", ((minidl.tensor([1]),), minidl.tensor(5.0))),
    ("put", (minidl.tensor([1]), minidl.tensor([5.0]))),
])
def test_in_place_forms(name, args):
    x = minidl.tensor([1.0, 2.0, 3.0])
    expected = getattr(minidl, name)(x, *args)
    assert x.tolist() == [1, 2, 3]
    assert getattr(x, name + "_")(*args) is x
    np.testing.assert_array_equal(x.numpy(), expected.numpy())


def test_empty_indices():
    x, none = minidl.ones(2, 3, requires_grad=True), minidl.zeros(0, dtype=I64)
    assert minidl.gather(x, 0, none).shape == (0,)
    assert minidl.gather(x, 1, minidl.zeros(2, 0, dtype=I64)).shape == (2, 0)
    assert minidl.index_select(x, 1, none).shape == (2, 0)
    assert minidl.take(minidl.zeros(0), none).shape == (0,)
    for out in (minidl.scatter(x, 0, none, x), minidl.scatter_add(x, 0, none, x),
                minidl.index_add(x, 0, none, minidl.zeros(0, 3)), minidl.index_fill(x, 0, none, 5)):
        np.testing.assert_array_equal(out.detach().numpy(), x.detach().numpy())
    minidl.index_select(x, 1, none).sum().backward()
    assert not x.grad.numpy().any()


@pytest.mark.parametrize("dtype", [minidl.uint8, minidl.int8, minidl.int16, minidl.int32, I64])
def test_empty_indices_of_any_integers(dtype):
    x, none = minidl.ones(3), minidl.zeros(0, dtype=dtype)
    assert minidl.gather(x, 0, none).shape == (0,)
    assert minidl.scatter(x, 0, none, 5.0).tolist() == minidl.scatter_reduce(x, 0, none, x, "sum").tolist() == [1, 1, 1]


@pytest.mark.parametrize("call, error, words", [
    (lambda x, i: minidl.gather(x, 1, i + 5), RuntimeError, r"gather expected indices in \[0, 2\] for axis 1 of size 3, got 5"),
    (lambda x, i: minidl.gather(x, 1, i - 1), RuntimeError, "gather .*got -1"),
    (lambda x, i: minidl.gather(x, 1, i.float()), RuntimeError, "float32"),
    (lambda x, i: minidl.gather(x, 1, i[0]), RuntimeError, "as many axes"),
    (lambda x, i: minidl.gather(x, 1, minidl.zeros(3, 1, dtype=I64)), RuntimeError, r"\(3, 1\)"),
    (lambda x, i: minidl.gather(x, 2, i), IndexError, "dim"),
    (lambda x, i: minidl.scatter(x, 1, i, x.double()), RuntimeError, "float64"),
    (lambda x, i: minidl.scatter(x, 1, i, x, reduce="amax"), RuntimeError, "'amax'"),
    (lambda x, i: minidl.scatter(x, 1, i), TypeError, "src or value"),
    (lambda x, i: minidl.scatter(x, 1, i + 3, x), RuntimeError, "scatter expected .*got 3"),
    (lambda x, i: minidl.scatter_add(x, 1, i + 3, x), RuntimeError, "scatter_add .*got 3"),
    (lambda x, i: minidl.take_along_dim(x, i + 6), IndexError, "take_along_dim .*got 6"),
    (lambda x, i: minidl.index_select(x[:0], 0, i[0]), IndexError, "no indices for axis 0 of size 0, got 0"),
    (lambda x, i: minidl.scatter_add(x, 1, minidl.zeros(2, 2, dtype=I64), x[:1]), RuntimeError, "at least"),
    (lambda x, i: minidl.scatter_reduce(x, 1, i, x, "add"), RuntimeError, "'add'"),
    (lambda x, i: minidl.index_select(x, 0, i), IndexError, "vector"),
    (lambda x, i: minidl.index_select(x, 0, i[0] - 1), IndexError, "index_select .*got -1"),
    (lambda x, i: minidl.index_select(x, 0, i[0].to(minidl.int16)), RuntimeError, "int16"),
    (lambda x, i: minidl.index_add(x, 0, i[0], x), RuntimeError, r"\(1, 3\)"),
    (lambda x, i: minidl.index_add(x, 0, i[0] + 2, x[:1]), RuntimeError, "index_add .*got 2"),
    (lambda x, i: minidl.index_copy(x, 0, i[0] + 2, x[:1]), IndexError, "index_copy .*got 2"),
    (lambda x, i: minidl.index_copy(x, 0, i[0], x), IndexError, "1 slices"),
    (lambda x, i: minidl.index_copy(x, 0, i[0], x[:1, :2]), RuntimeError, r"\(3,\)"),
    (lambda x, i: minidl.index_fill(x, 0, i[0], x), RuntimeError, "0-d"),
    (lambda x, i: minidl.index_fill(x, 0, i[0].int(), 1.0), IndexError, "int64"),
    (lambda x, i: minidl.take(x, i + 6), IndexError, r"take expected indices in \[-6, 5\] .*got 6"),
    (lambda x, i: minidl.take(x, i.int()), RuntimeError, "int64"),
    (lambda x, i: x.put(i, x), IndexError, "1 elements"),
    (lambda x, i: minidl.take_along_dim(x, i + 3, 1), IndexError, "take_along_dim .*got 3"),
    (lambda x, i: minidl.take_along_dim(x, i[0], 1), RuntimeError, "as many axes"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(minidl.ones(2, 3), minidl.zeros(1, 1, dtype=I64))


# Each path of the kernel: element by element, as pairs, whole rows in rounds, in float32 for a few rows of halves
ROWS = [(5, 40, 1), (5, 40, 3), (5, 40, 6), (50, 200, 128), (3, 200, 128), (3, 200, 65), (500, 20, 64)]


@pytest.mark.parametrize("count, entries, length", ROWS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.bool_])
def test_rows_add_up(count, entries, length, dtype):
    rng = np.random.Generator(np.random.Philox(count * length))
    rows, g = rng.integers(0, count, entries), rng.integers(-4, 4, (entries, length)).astype(dtype)
    expected = np.zeros((count, length), dtype)
    np.add.at(expected, rows, g)
    np.testing.assert_array_equal(Backend(np).index_add((count, length), (rows,), g), expected)


@pytest.mark.parametrize("how", ["multiply", "maximum", "minimum"])
@pytest.mark.parametrize("count, entries, length", ROWS)
@pytest.mark.parametrize("fake", [False, True], ids=["numpy", "cupy's refusals"])
def test_rows_combine(how, count, entries, length, fake):
    rng = np.random.Generator(np.random.Philox(count * length))
    rows, x = rng.integers(0, count, entries), rng.uniform(0.5, 1.5, (count, length))
    values = rng.uniform(0.9, 1.1, (entries, length))
    expected = x.copy()
    getattr(np, how).at(expected, rows, values)
    if fake:
        with installed() as cupy:
            xp = minidl.zeros(1, device="cuda").backend
            found = xp.combined_at(cupy.asarray(x), (cupy.asarray(rows),), cupy.asarray(values), how).get()
    else:
        found = Backend(np).combined_at(x, (rows,), values, how)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
