"""The engine: order, accumulation, hooks, freeing, threads, anomalies."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import minidl
from minidl import autograd


def leaf(*values, dtype=minidl.float64):
    return minidl.tensor(np.array(values), dtype=dtype, requires_grad=True)


def test_gradients_of_shared_inputs_add_up():
    x = leaf(2.0, 3.0)
    y = x * x + x * 3 + x
    y.backward(minidl.tensor([1.0, 10.0], dtype=minidl.float64))
    np.testing.assert_array_equal(x.grad.numpy(), [8.0, 100.0])


def test_gradients_of_a_scalar_used_often_add_up():
    x = minidl.tensor(2.0, requires_grad=True)
    h = x * 1
    (h + h + h + h).backward()
    (h + h + h * h).backward(create_graph=True)
    assert x.grad.item() == 4 + 6 and isinstance(x.grad.numpy(), np.ndarray)


def test_gradients_accumulate_over_backwards():
    x = leaf(2.0)
    for expected in (3.0, 6.0):
        (x * 3).sum().backward()
        assert x.grad.item() == expected


def test_inputs_of_one_add_do_not_share_a_gradient_array():
    a, b = leaf(1.0), leaf(2.0)
    (a + b).sum().backward()
    a.grad.mul_(5)
    assert (a.grad.item(), b.grad.item()) == (5.0, 1.0)


def test_the_given_gradient_is_not_taken_over():
    a, g = leaf(1.0), minidl.tensor([1.0], dtype=minidl.float64)
    (a + 0).backward(g)
    a.grad.mul_(5)
    assert g.item() == 1.0


def test_ten_thousand_ops_do_not_overflow_the_stack():
    x = leaf(1.0)
    y = x
    for _ in range(10_000):
        y = y + x
    y.sum().backward()
    assert x.grad.item() == 10_001
    del y


def test_backward_twice_needs_retain_graph():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0
    with pytest.raises(RuntimeError, match="second time.*retain_graph=True"):
        y.backward()


def test_a_shared_node_that_saves_nothing_may_be_passed_twice():
    x = leaf(2.0)
    h = x + 1
    (h * h).sum().backward()
    (h * 2).sum().backward()
    assert x.grad.item() == 8.0


def test_scalar_or_gradient_is_required():
    with pytest.raises(RuntimeError, match="scalar output or an explicit gradient"):
        (leaf(1.0, 2.0) * 2).backward()
    with pytest.raises(RuntimeError, match="shape"):
        (leaf(1.0, 2.0) * 2).backward(minidl.tensor([1.0]))
    with pytest.raises(RuntimeError, match="requires grad"):
        minidl.tensor([1.0]).backward()


def test_backward_into_some_inputs_only():
    a, b = leaf(2.0), leaf(3.0)
    (a * b).sum().backward(inputs=[a])
    assert a.grad.item() == 3.0 and b.grad is None


def test_grad_of_intermediate_and_unused_inputs():
    x, unused = leaf(2.0), leaf(1.0)
    h = x * x
    y = (h * 3).sum()
    assert autograd.grad(y, [h, x], retain_graph=True)[1].item() == 12.0
    with pytest.raises(RuntimeError, match="allow_unused"):
        autograd.grad(y, [x, unused], retain_graph=True)
    assert autograd.grad(y, [x, unused], allow_unused=True, retain_graph=True)[1] is None
    assert autograd.grad(y, [unused], materialize_grads=True)[0].item() == 0.0
    assert x.grad is None


def test_grad_of_batched_vectors():
    x = leaf(1.0, 2.0)
    y = x * x
    rows, = autograd.grad(y, x, minidl.tensor(np.eye(2)), is_grads_batched=True)
    np.testing.assert_array_equal(rows.numpy(), np.diag([2.0, 4.0]))


def test_create_graph_gives_higher_derivatives():
    x = leaf(2.0)
    y = (x * x * x * x).sum()
    for expected in (32.0, 48.0, 48.0, 24.0):
        y, = autograd.grad(y, x, create_graph=True)
        assert y.item() == expected


def test_higher_gradients_tell_a_tensor_from_its_detached_twin():
    x = leaf(3.0)
    g, = autograd.grad((x * x.detach() * x).sum(), x, create_graph=True)
    assert autograd.grad(g.sum(), x)[0].item() == 2 * 3.0


def test_hooks_see_and_replace_gradients():
    x = leaf(1.0)
    h = x * 2
    seen = []
    first = h.register_hook(lambda g: seen.append(g.item()) or g * 10)
    (h * 3).sum().backward()
    assert seen == [3.0] and x.grad.item() == 60.0
    first.remove()
    x.grad = None
    x.register_hook(lambda g: g + 1)
    (x * 2 + x * 3).sum().backward()
    assert x.grad.item() == 6.0


def test_post_accumulate_hook_sees_the_leaf():
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert seen == [2.0, 4.0]


def test_retain_grad():
    x = leaf(1.0)
    h = x * 2
    h.retain_grad()
    (h * h).sum().backward()
    assert h.grad.item() == 4.0 and h.retains_grad


def test_a_leaf_is_delivered_before_backward_ends():
    """Overlapped reduction needs gradients as soon as they are complete."""
    order = []
    early, late = leaf(1.0), leaf(1.0)
    h = late * 2
    h.register_hook(lambda g: order.append("h"))
    early.register_hook(lambda g: order.append("early"))
    late.register_hook(lambda g: order.append("late"))
    (h * early).sum().backward()
    assert order.index("early") < order.index("late")


def test_gradient_goes_where_it_belongs():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    bucket = minidl.zeros(5, dtype=minidl.float64)
    w.grad_buffer = bucket[2:4]
    for expected in ([1.0, 2.0], [2.0, 4.0]):
        (x * w).sum().backward()
        np.testing.assert_array_equal(bucket.numpy()[2:4], expected)
    assert np.shares_memory(w.grad.numpy(), bucket.numpy())
    with pytest.raises(RuntimeError, match="shape"):
        w.grad_buffer = bucket
    w.grad = w.grad_buffer = None
    (x * w).sum().backward()
    assert not np.shares_memory(w.grad.numpy(), bucket.numpy())


def test_the_graph_frees_itself():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        h = x * x
        y = (h * h).sum()
        alive = weakref.ref(h.array)
        del h
        assert alive() is not None
        y.backward()
        assert alive() is None
        z = ((x * x) * x).sum()
        alive = weakref.ref(z.node)
        del z
        assert alive() is None
    finally:
        gc.enable()


def test_backward_in_threads_shares_leaves_safely():
    x = minidl.tensor(np.ones(20_000), requires_grad=True)

    def work():
        for _ in range(50):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(20_000, 400.0))


def test_grad_mode_is_per_thread():
    found = []
    with autograd.no_grad():
        t = threading.Thread(target=lambda: found.append(autograd.is_grad_enabled()))
        t.start()
        t.join()
        assert not autograd.is_grad_enabled()
    assert found == [True] and autograd.is_grad_enabled()


def test_modes_nest_decorate_and_survive_exceptions():
    @autograd.no_grad()
    def off():
        return autograd.is_grad_enabled()

    @autograd.no_grad
    def bare():
        with autograd.enable_grad():
            inside = autograd.is_grad_enabled()
        return inside, autograd.is_grad_enabled()

    assert off() is False and bare() == (True, False)
    with pytest.raises(KeyError), autograd.no_grad():
        raise KeyError
    assert autograd.is_grad_enabled()
    with autograd.set_grad_enabled(False):
        assert not autograd.is_grad_enabled()
    assert autograd.is_grad_enabled()
    autograd.set_grad_enabled(False)
    assert not autograd.is_grad_enabled()
    autograd.set_grad_enabled(True)
    with autograd.inference_mode():
        assert minidl.is_inference_mode_enabled() and not autograd.is_grad_enabled()
        with autograd.inference_mode(False):
            assert autograd.is_grad_enabled()


def test_no_grad_holds_while_a_generator_runs_and_not_between():
    @autograd.no_grad()
    def numbers():
        yield autograd.is_grad_enabled()
        yield autograd.is_grad_enabled()

    assert [(inside, autograd.is_grad_enabled()) for inside in numbers()] == [(False, True)] * 2


def test_anomaly_names_the_op_and_its_call_site():
    with autograd.detect_anomaly():
        x = leaf(0.0)
        y = minidl.sqrt(x).sum()
        with pytest.raises(RuntimeError, match="sqrt.*non-finite") as error:
            y.backward()
    assert "test_engine.py" in str(error.value)
    minidl.sqrt(leaf(0.0)).sum().backward()


def test_integer_tensors_cannot_require_grad():
    with pytest.raises(RuntimeError, match="floating"):
        minidl.tensor([1, 2], requires_grad=True)


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16], ids=str)
def test_halves_are_kept_half_for_backward(dtype):
    x = minidl.tensor([0.5, 1.0], dtype=dtype, requires_grad=True)
    y = minidl.exp(x)
    held = [cell.cell_contents for cell in y.node.pullback.__closure__]
    assert [a.dtype for a in held if isinstance(a, np.ndarray)] == [dtype]
    y.sum().backward()
    assert x.grad.dtype == dtype


def test_mixed_dtypes_give_each_input_its_own():
    a = minidl.tensor([1.0], dtype=minidl.float16, requires_grad=True)
    b = minidl.tensor([2.0], dtype=minidl.float64, requires_grad=True)
    y = a * b
    assert y.dtype == minidl.float64
    g, = autograd.grad((y * y).sum(), a, create_graph=True)
    assert g.dtype == minidl.float16
    assert autograd.grad(g.sum(), b)[0].dtype == minidl.float64


def test_inputs_may_be_given_by_name():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    assert minidl.exp(input=x).shape == (2,)
    y = minidl.nn.functional.linear(x, weight=w.reshape(1, 2), bias=None)
    assert y.item() == 11.0
    with pytest.raises(TypeError, match="weight"):
        minidl.nn.functional.linear(x, bias=None)


def test_wrong_gradients_outputs_and_hooks_are_named():
    x = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match="ndarray"):
        (x * 2).backward(np.ones(2))
    for wrong in ("a", 3):
        with pytest.raises(TypeError, match=f"outputs to be tensors, got {type(wrong).__name__}"):
            autograd.grad(wrong, x)
    with pytest.raises(TypeError, match="function, got int"):
        x.register_hook(3)
    for result, what in ((minidl.ones(2, 3), r"\(2, 3\)"), ("a", "str")):
        handle = x.register_hook(lambda g, result=result: result)
        with pytest.raises(RuntimeError, match=f"shape \\(2,\\) or None, got {what}"):
            (x * 2).sum().backward()
        handle.remove()
    with pytest.raises(RuntimeError, match="dtype float64, got float32"):
        x.grad = minidl.ones(2)
