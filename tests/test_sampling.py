"""Random tensors: dtypes, ranges, distributions (with fixed seeds), zero gradients, errors."""

import math

import numpy as np
import pytest

import minidl
from minidl.tensor.random import Generator, manual_seed

F16, BF16, F32, F64, I32, I64, U8 = (minidl.float16, minidl.bfloat16, minidl.float32, minidl.float64, minidl.int32,
                                     minidl.int64, minidl.uint8)
N = 20_000


def generator():
    return Generator().manual_seed(5)


def filled(name, *args, dtype=F64):
    return getattr(minidl.empty(N, dtype=dtype), name)(*args, generator=generator()).numpy().astype(np.float64)


# name, arguments, mean, variance, lowest and highest value there may be
DISTRIBUTIONS = [
    ("uniform_", (), 1 / 2, 1 / 12, 0, 1),
    ("uniform_", (-3, 5), 1, 64 / 12, -3, 5),
    ("normal_", (), 0, 1, -np.inf, np.inf),
    ("normal_", (2, 0.5), 2, 0.25, -np.inf, np.inf),
    ("log_normal_", (0, 0.25), math.exp(1 / 32), (math.exp(1 / 16) - 1) * math.exp(1 / 16), 0, np.inf),
    ("exponential_", (2,), 1 / 2, 1 / 4, 0, np.inf),
    ("geometric_", (0.25,), 4, 12, 1, np.inf),
    ("bernoulli_", (0.3,), 0.3, 0.21, 0, 1),
    ("random_", (10,), 4.5, 8.25, 0, 9),
    ("random_", (-2, 3), 0, 2, -2, 2),
]


@pytest.mark.parametrize("dtype", [F64, F32, F16, BF16], ids=str)
@pytest.mark.parametrize("name, args, mean, variance, low, high", DISTRIBUTIONS)
def test_distributions(name, args, mean, variance, low, high, dtype):
    values = filled(name, *args, dtype=dtype)
    rounding = 4e-3 * max(abs(mean), math.sqrt(variance)) if dtype == BF16 else 0
    assert abs(values.mean() - mean) < 4 * math.sqrt(variance / N) + rounding
    assert abs(values.var() / variance - 1) < 0.08
    assert low <= values.min() and values.max() <= high


def test_cauchy_has_its_median_and_quartiles():
    values = filled("cauchy_", 1, 2)
    np.testing.assert_allclose(np.quantile(values, [0.25, 0.5, 0.75]), [-1, 1, 3], atol=0.1)


@pytest.mark.parametrize("dtype", [F64, F32, F16, BF16], ids=str)
def test_uniform_numbers_stay_below_1(dtype):
    values = minidl.rand(N, dtype=dtype, generator=generator()).numpy()
    assert values.dtype == dtype and (values >= 0).all() and (values < 1).all()


def test_random_fills_the_range_of_the_dtype():
    for dtype, most in (I64, 2**63 - 1), (U8, 255), (minidl.bool, 1), (F32, 2**24), (F16, 2**11), (BF16, 2**8):
        values = minidl.empty(2000, dtype=dtype).random_(generator=generator()).numpy()
        assert values.min() >= 0 and int(values.max()) <= most
        assert int(values.max()) > most * 0.9


@pytest.mark.parametrize("make", [minidl.rand, minidl.randn])
def test_sizes_dtypes_and_like(make):
    for size in (2, 3), ((2, 3),), ([2, 3],):
        assert make(*size).shape == (2, 3)
    assert make(()).shape == () and make(0, 2).shape == (0, 2)
    assert make(2).dtype == F32 and make(2, dtype=F16).dtype == F16 and make(2, requires_grad=True).requires_grad
    like = getattr(minidl, make.__name__ + "_like")
    assert like(minidl.zeros(3, dtype=F16)).dtype == F16 and like(minidl.zeros(3, dtype=I32), dtype=F64).dtype == F64
    assert make(3, generator=generator()).numpy().tolist() == make(3, generator=generator()).numpy().tolist()


def test_randint():
    x = minidl.randint(3, (1000,), generator=generator())
    assert x.dtype == I64 and set(x.numpy().tolist()) == {0, 1, 2}
    assert set(minidl.randint(-1, 1, (1000,), generator=generator(), dtype=F16).numpy().tolist()) == {-1, 0}
    assert minidl.randint(high=5, size=(2,)).shape == minidl.randint(low=1, high=5, size=(2,)).shape == (2,)
    assert minidl.randint_like(x, 5).dtype == I64 and minidl.randint_like(minidl.ones(2), 2, 5).dtype == F32
    assert minidl.randint(0, 2, (3,), dtype=minidl.bool).dtype == minidl.bool


def test_randperm():
    x = minidl.randperm(100, generator=generator())
    assert x.dtype == I64 and sorted(x.numpy().tolist()) == list(range(100)) != x.numpy().tolist()
    assert minidl.randperm(0).shape == (0,) and minidl.randperm(3, dtype=F32).dtype == F32


def test_normal_takes_numbers_and_tensors():
    mean = minidl.tensor(np.array([[0.0], [100.0]])).cast_to(F32)
    std = minidl.tensor([1.0, 0.0, 2.0])
    x = minidl.normal(mean, std, generator=generator())
    assert x.shape == (2, 3) and x.numpy()[:, 1].tolist() == [0, 100]
    assert minidl.normal(0.0, std).shape == (3,) and minidl.normal(mean).shape == (2, 1)
    assert minidl.normal(2.0, 0.0, (2, 2)).numpy().tolist() == [[2, 2], [2, 2]]
    assert minidl.normal(mean.cast_to(F16), std).dtype == F16
    assert minidl.normal(0, 1, size=(2,), dtype=F64).dtype == F64


def test_bernoulli():
    p = minidl.tensor([0.0, 1.0, 0.5]).expand(500, 3)
    x = minidl.bernoulli(p, generator=generator()).numpy()
    assert x.dtype == F32 and not x[:, 0].any() and x[:, 1].all() and 200 < x[:, 2].sum() < 300
    assert minidl.bernoulli(minidl.zeros(4, dtype=I32), 1.0).numpy().tolist() == [1] * 4
    assert minidl.zeros(2, 3).bernoulli_(minidl.tensor([0.0, 1.0, 1.0])).numpy().tolist() == [[0, 1, 1]] * 2


def test_poisson():
    rates = minidl.tensor([0.0, 4.0], dtype=F16).expand(5000, 2)
    x = minidl.poisson(rates, generator=generator())
    counts = x.numpy().astype(np.float64)
    assert x.dtype == F16 and not counts[:, 0].any()
    assert abs(counts[:, 1].mean() - 4) < 0.12 and abs(counts[:, 1].var() - 4) < 0.3


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_follows_the_weights(replacement):
    weights = minidl.tensor([[1.0, 0.0, 3.0, 0.0], [0.0, 2.0, 0.0, 2.0]])
    rows = minidl.cat([weights] * 3000)
    x = minidl.multinomial(rows, 2, replacement, generator=generator())
    assert x.shape == (6000, 2) and x.dtype == I64
    found = x.numpy().reshape(3000, 2, 2)
    assert set(found[:, 0].ravel()) == {0, 2} and set(found[:, 1].ravel()) == {1, 3}
    assert abs((found[:, 0, 0] == 2).mean() - 0.75) < 0.03 and abs((found[:, 1, 0] == 1).mean() - 0.5) < 0.03
    if not replacement:
        assert (found[..., 0] != found[..., 1]).all()


def test_multinomial_of_a_vector_and_of_no_rows():
    assert minidl.multinomial(minidl.tensor([0.0, 0.0, 5.0], dtype=F16), 4, True).numpy().tolist() == [2] * 4
    assert sorted(minidl.multinomial(minidl.ones(3), 3).numpy().tolist()) == [0, 1, 2]
    assert minidl.multinomial(minidl.ones(0, 3), 1).shape == (0, 1)


def test_parameters_get_zero_gradients():
    p, std = minidl.full((3,), 0.5, requires_grad=True), minidl.full((2, 1), 1.0, requires_grad=True)
    (minidl.bernoulli(p) + minidl.poisson(p) + minidl.normal(p, std)).sum().backward()
    assert p.grad.numpy().tolist() == [0, 0, 0] and std.grad.numpy().tolist() == [[0], [0]]


def test_a_sample_in_place_cuts_the_history_off():
    start = minidl.ones(4, requires_grad=True)
    x = start * 3
    x.narrow(0, 1, 2).uniform_()
    (x * x).sum().backward()
    assert start.grad.numpy().tolist() == [18, 0, 0, 18]
    with pytest.raises(RuntimeError, match="leaf"):
        start.normal_()
    with minidl.no_grad():
        assert start.normal_() is start


@pytest.mark.parametrize("call, error", [
    (lambda x: minidl.rand(2, dtype=I64), NotImplementedError),
    (lambda x: minidl.rand(2, -1), RuntimeError),
    (lambda x: minidl.rand(2, generator=3), TypeError),
    (lambda x: minidl.randn_like(x.cast_to(I32)), NotImplementedError),
    (lambda x: minidl.randint(5, 2), TypeError),
    (lambda x: minidl.randint(5, 5, (2,)), RuntimeError),
    (lambda x: minidl.randint(2.5, (2,)), TypeError),
    (lambda x: minidl.randint(0, 300, (2,), dtype=U8), RuntimeError),
    (lambda x: minidl.randint(-1, 3, (2,), dtype=U8), RuntimeError),
    (lambda x: minidl.randperm(-1), RuntimeError),
    (lambda x: minidl.randperm(300, dtype=U8), RuntimeError),
    (lambda x: minidl.normal(0.0, -1.0, (2,)), RuntimeError),
    (lambda x: minidl.normal(x, -x), RuntimeError),
    (lambda x: minidl.normal(0.0, 1.0), TypeError),
    (lambda x: minidl.normal(x, minidl.ones(2)), RuntimeError),
    (lambda x: minidl.bernoulli(x * 2), RuntimeError),
    (lambda x: minidl.bernoulli(x, 1.5), RuntimeError),
    (lambda x: x.bernoulli_(minidl.ones(2)), RuntimeError),
    (lambda x: minidl.poisson(-x), RuntimeError),
    (lambda x: minidl.multinomial(x, 4), RuntimeError),
    (lambda x: minidl.multinomial(x, 0), RuntimeError),
    (lambda x: minidl.multinomial(-x, 1), RuntimeError),
    (lambda x: minidl.multinomial(x * 0, 1), RuntimeError),
    (lambda x: minidl.multinomial(x * float("nan"), 1), RuntimeError),
    (lambda x: minidl.multinomial(x.cast_to(I64), 1), RuntimeError),
    (lambda x: x.uniform_(2, 1), RuntimeError),
    (lambda x: x.normal_(0, -1), RuntimeError),
    (lambda x: x.cast_to(I32).normal_(), NotImplementedError),
    (lambda x: x.random_(3, 2), RuntimeError),
    (lambda x: x.cast_to(U8).random_(300), RuntimeError),
    (lambda x: x.exponential_(0), RuntimeError),
    (lambda x: x.log_normal_(0, 0), RuntimeError),
    (lambda x: x.geometric_(1), RuntimeError),
    (lambda x: x.cauchy_(0, 0), RuntimeError),
])
def test_errors(call, error):
    with pytest.raises(error):
        call(minidl.ones(3))


def test_the_default_is_the_run_time_stream():
    manual_seed(3)
    first = minidl.rand(3).numpy()
    manual_seed(3)
    assert minidl.rand(3).numpy().tolist() == first.tolist()
