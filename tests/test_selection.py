"""masked_*, nonzero, isin and searchsorted: broadcasting, dtypes, numbers that do not fit, nan, errors."""

import math

import numpy as np
import pytest

import minidl

NAN = math.nan


@pytest.mark.parametrize("value, dtype, expected", [
    (-1e9, minidl.float16, -65504), (1e39, minidl.float32, np.finfo(np.float32).max), (-math.inf, minidl.float16, -math.inf),
    (2.7, minidl.int64, 2), (-1, minidl.uint8, 255), (2, minidl.bool, True),
])
def test_masked_fill_with_numbers_that_do_not_fit(value, dtype, expected):
    out = minidl.zeros(2, dtype=dtype).masked_fill(minidl.tensor([True, False]), value)
    assert out.dtype == dtype and out.tolist() == [expected, 0]


def test_masked_fill_gives_exact_zeros_to_what_is_filled():
    x = minidl.tensor([NAN, 1.0], requires_grad=True)
    x.masked_fill(x != x, 2.0).sum().backward()
    assert x.grad.tolist() == [0, 1]


def test_masks_broadcast_both_ways():
    x, mask = minidl.ones(3), minidl.tensor([[True], [False]])
    assert x.masked_fill(mask, 2).tolist() == [[2, 2, 2], [1, 1, 1]]
    assert x.masked_select(mask).shape == (3,)
    assert x.masked_scatter(mask, minidl.arange(9.0)).tolist() == [[0, 1, 2], [1, 1, 1]]
    with pytest.raises(RuntimeError, match="shape"):
        x.masked_fill_(mask, 2)


def test_0_d():
    one, true = minidl.tensor(3.0), minidl.tensor(True)
    assert one.masked_select(true).shape == (1,)
    assert one.masked_fill(true, 5).item() == 5
    assert one.masked_scatter(true, minidl.tensor([7.0])).item() == 7
    assert one.nonzero().shape == (1, 0) and minidl.tensor(0.0).nonzero().shape == (0, 0)
    assert [part.shape for part in minidl.nonzero(one, as_tuple=True)] == [(1,)]
    assert minidl.zeros(0, 3).nonzero().shape == (0, 2)


def test_isin():
    x = minidl.tensor([1.0, NAN, 2.5])
    assert minidl.isin(x, x).tolist() == [True, False, True]
    assert minidl.isin(x, minidl.zeros(0)).tolist() == [False] * 3
    assert minidl.isin(minidl.tensor([1, 2]), minidl.tensor([2.5, 2.0])).tolist() == [False, True]
    assert minidl.isin(1, x).item() is True


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_counts_nan_as_the_largest(right):
    sequence, x = minidl.tensor([0.0, 1.0, 1.0, NAN]), minidl.tensor([-1.0, 0.5, 1.0, NAN, math.inf])
    found = minidl.searchsorted(sequence, x, right=right).tolist()
    rows = minidl.searchsorted(sequence.unsqueeze(0), x.unsqueeze(0), right=right).tolist()
    want = np.searchsorted(sequence.numpy(), x.numpy(), "right" if right else "left").tolist()
    assert found == want and rows == [want]


def test_searchsorted_results():
    sequence = minidl.tensor([1, 3, 5])
    assert minidl.searchsorted(sequence, 4).item() == 2 and minidl.searchsorted(sequence, 4).shape == ()
    assert minidl.searchsorted(sequence, minidl.tensor([2.5])).tolist() == [1]
    assert minidl.searchsorted(sequence, 4, out_int32=True).dtype == minidl.int32
    assert minidl.searchsorted(minidl.zeros(2, 0), minidl.ones(2, 3)).tolist() == [[0] * 3] * 2
    assert minidl.bucketize(3, sequence, right=True).item() == 2


@pytest.mark.parametrize("call, error, words", [
    (lambda x, m: x.masked_fill(x, 1), RuntimeError, "bool mask"),
    (lambda x, m: x.masked_select(m.to(minidl.uint8)), RuntimeError, "uint8"),
    (lambda x, m: x.masked_fill(m, minidl.ones(1)), RuntimeError, "0-d"),
    (lambda x, m: x.int().masked_fill(m, math.inf), RuntimeError, "inf"),
    (lambda x, m: x.to(minidl.uint8).masked_fill(m, 300), RuntimeError, "300"),
    (lambda x, m: x.masked_scatter(m, minidl.ones(1)), RuntimeError, "at least 2"),
    (lambda x, m: x.masked_scatter(m, x.double()), RuntimeError, "float64"),
    (lambda x, m: minidl.isin(1, 2), TypeError, "int"), (lambda x, m: minidl.isin(m, m), RuntimeError, "bool"),
    (lambda x, m: minidl.searchsorted(x, x, right=True, side="left"), RuntimeError, "agrees"),
    (lambda x, m: minidl.searchsorted(minidl.ones(2, 3), 1), RuntimeError, "one sequence"),
    (lambda x, m: minidl.searchsorted(minidl.ones(2, 3), x), RuntimeError, r"\(2,\)"),
    (lambda x, m: minidl.searchsorted(x, x, sorter=minidl.tensor([0, 2])), RuntimeError, "below 2"),
    (lambda x, m: minidl.searchsorted(x[0], x), RuntimeError, "0-d"),
    (lambda x, m: minidl.searchsorted(m, m), NotImplementedError, "bools"),
    (lambda x, m: minidl.bucketize(x, [1.0]), TypeError, "list"),
    (lambda x, m: minidl.bucketize(x, minidl.ones(1, 1)), RuntimeError, "vector"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(minidl.ones(2), minidl.tensor([True, True]))
