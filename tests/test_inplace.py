"""In-place edits: guarded where backward needs the old value, recorded everywhere else, views included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minidl
from minidl.autograd import gradcheck
from minidl.tensor import inplace


def leaf(values):
    return minidl.tensor(np.array(values, np.float64), requires_grad=True)


def test_editing_what_backward_needs_is_an_error_that_names_the_op():
    a = leaf([1.0, 2.0])
    c = a * 2
    d = c * c
    c.add_(1)
    with pytest.raises(RuntimeError, match="mul needs.*shape \\(2,\\).*edited in place"):
        d.sum().backward()


def test_editing_through_a_view_or_a_detached_twin_is_seen():
    for edit in (lambda t: t.reshape(2, 1).zero_(), lambda t: t.detach().fill_(3)):
        a = leaf([1.0, 2.0])
        c = a * 2
        d = (c * c).sum()
        with minidl.no_grad():
            edit(c)
        with pytest.raises(RuntimeError, match="edited in place"):
            d.backward()


def test_editing_what_backward_does_not_need_is_fine():
    a = leaf([1.0, 2.0])
    c = a * 2
    d = c + 1
    c.add_(5)
    (d.sum() + c.sum()).backward()
    np.testing.assert_array_equal(a.grad.numpy(), [4.0, 4.0])


def test_in_place_arithmetic_has_the_gradient_of_its_form_out_of_place():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    c = a * 1
    c.mul_(b)
    c.mul_(b)
    c.sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [9.0, 25.0])
    np.testing.assert_array_equal(b.grad.numpy(), [6.0, 20.0])


def test_leaves_and_their_views_are_protected():
    a = leaf([1.0, 2.0])
    for edit in (lambda: a.add_(1), lambda: a.reshape(2, 1).add_(1), lambda: a.zero_()):
        with pytest.raises(RuntimeError, match="leaf tensor that requires grad.*no_grad"):
            edit()
    with minidl.no_grad():
        a.add_(1)
    np.testing.assert_array_equal(a.numpy(), [2.0, 3.0])
    assert a.requires_grad and a.is_leaf


def test_writing_through_a_view_changes_the_history_of_its_base():
    a = leaf([1.0, 2.0, 3.0])
    c = a * 1
    v = c.reshape(3, 1)
    v.mul_(5)
    np.testing.assert_array_equal(c.numpy(), [5.0, 10.0, 15.0])
    (c * c).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [50.0, 100.0, 150.0])


def test_writing_through_a_view_of_a_view_and_reading_a_sister():
    a = leaf(np.arange(6.0).reshape(2, 3))
    c = a * 1
    sister = c.reshape(6)
    row = c.t().t()[1]
    row.mul_(10)
    (sister * sister).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), 2 * a.numpy() * [[1], [100]])


def test_base_without_history_gets_one():
    w = leaf([2.0])
    out = minidl.zeros(3, dtype=minidl.float64)
    out[1:2].copy_(w)
    (out * 3).sum().backward()
    assert out.requires_grad and w.grad.item() == 3.0


@pytest.fixture
def nothing_written(monkeypatch):
    """As in a fresh process, where no history has been changed by a write yet."""
    monkeypatch.setattr(inplace, "history_written", False)


def scale_base(y, v):
    y.mul_(2)


def scale_base_then_view(y, v):
    y.mul_(2)
    v.mul_(3)


def assign_base(y, v):
    y[0] = 5


def assign_view_after_base(y, v):
    y.mul_(y.clone())
    v[0] = 7.0


def fill_base(y, v):
    y.fill_(5.0)


def erase_view(y, v):
    v.zero_()


def copy_into_base(y, v):
    y.copy_(y.clone() * v.clone().sum())


def write_view_of_view(y, v):
    v[1:].mul_(4)
    y.add_(v[0].clone())


WRITES = [scale_base, scale_base_then_view, assign_base, assign_view_after_base, fill_base, erase_view, copy_into_base,
          write_view_of_view]


@pytest.mark.parametrize("read", [lambda y, v: (v * v).sum(), lambda y, v: (y * y).sum(), lambda y, v: v[0] * y[2]],
                         ids=["view", "base", "both"])
@pytest.mark.parametrize("write", WRITES)
def test_views_and_bases_follow_each_other(nothing_written, write, read):
    def function(x):
        y = x * 1
        v = y[:2]
        write(y, v)
        return read(y, v)

    gradcheck(function, leaf([1.0, 2.0, 3.0]))


@given(st.lists(st.sampled_from(["base", "view", "row", "flat", "assign", "clamp"]), min_size=1, max_size=6))
def test_random_writes_have_the_gradient_of_what_they_do(steps):
    def function(x):
        y = x * 1
        view, row, flat = y[:, 1:], y[1], y.reshape(6)
        for i, step in enumerate(steps):
            if step == "base":
                y.mul_(1.5)
            elif step == "view":
                view.add_(y[:, :2])
            elif step == "row":
                row.mul_(view[0, 0].clone())
            elif step == "flat":
                flat.add_(row[0], alpha=0.5)
            elif step == "assign":
                y[0, i % 3] = flat[4] * 2
            else:
                view.clamp_(max=50.0)
        return (y * y).sum() + row.sum() + (flat * view.sum()).sum()

    gradcheck(function, leaf(np.arange(1.0, 7.0).reshape(2, 3) / 4), fast_mode=True, rtol=1e-4)


def test_erased_history_keeps_requires_grad(nothing_written):
    x = leaf([1.0, 2.0])
    y = x * 1
    y.zero_()
    assert y.requires_grad
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 0.0])


def test_a_view_learns_that_its_base_requires_grad(nothing_written):
    base = minidl.zeros(3)
    view = base[:2]
    base.add_(minidl.ones(3, requires_grad=True))
    assert view.requires_grad and not view.is_leaf and view.grad_fn is not None


def test_long_chains_of_views(nothing_written):
    w = minidl.ones(3, requires_grad=True)
    y = minidl.ones(3)
    for _ in range(3000):
        y = y.view(3)
    y.add_(w)
    y.sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [1.0, 1.0, 1.0])


def test_writing_into_overlapping_windows_is_refused(nothing_written):
    y = leaf(np.arange(4.0)) * 1
    with pytest.raises(RuntimeError, match="overlapping windows"):
        y.unfold(0, 2, 1)[0].mul_(2)
    y = leaf(np.arange(4.0)) * 1
    y.unfold(0, 2, 2)[0].mul_(2)
    np.testing.assert_array_equal(y.detach().numpy(), [0.0, 2.0, 2.0, 3.0])


def test_result_must_fit():
    t = minidl.tensor([1, 2])
    with pytest.raises(RuntimeError, match="float32.*int64"):
        t.mul_(1.5)
    with pytest.raises(RuntimeError, match="shape"):
        minidl.ones(2).add_(minidl.ones(3, 2))
    with pytest.raises(RuntimeError, match="shape"):
        minidl.ones(2).add_(minidl.ones(3))


def test_version_counts_edits():
    t = minidl.ones(3)
    before = t._version
    t.add_(1).mul_(2.0)
    t.reshape(3, 1).zero_()
    assert t._version == before + 3


@pytest.mark.parametrize("name, alpha", [
    ("add", {}), ("add", {"alpha": 0.5}), ("sub", {}), ("sub", {"alpha": 3.0}), ("mul", {})])
@pytest.mark.parametrize("dtype", [minidl.float16, minidl.float32], ids=str)
def test_fast_arithmetic_agrees_with_the_general_form(name, alpha, dtype):
    a, b = minidl.tensor([1.0, 2.0], dtype=dtype), minidl.tensor([0.5, 4.0], dtype=dtype)
    expected = getattr(minidl, name)(a, b, **alpha)
    with minidl.no_grad():
        found = getattr(a, name + "_")(b, **alpha)
    assert found is a and a.dtype == dtype
    np.testing.assert_array_equal(a.numpy(), expected.numpy())
