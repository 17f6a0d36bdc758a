"""autocast: what a region does to in-place forms, gradients, layers, checkpoints, threads and the copies of parameters."""

from __future__ import annotations

import copy
import threading
import warnings

import numpy as np
import pytest

import minidl
from minidl import amp, autograd, nn
from minidl.nn import functional as F
from minidl.nn.utils import rnn


@pytest.fixture
def x():
    return minidl.tensor(np.cos(np.arange(12, dtype=np.float32) ** 2).reshape(3, 4))


@pytest.fixture
def w():
    return minidl.tensor(np.sin(np.arange(16, dtype=np.float32) ** 2).reshape(4, 4), requires_grad=True)


# In-place forms and out=

def test_in_place_forms_keep_the_dtype_and_its_precision():
    exact = 1 + 2.0 ** -12  # float16 rounds it to 1
    a = minidl.zeros(2, 2)
    with amp.autocast():
        a.addmm_(minidl.full((2, 2), exact), minidl.eye(2))
        assert a.dtype == minidl.float32 and a[0, 0].item() == exact
        half = minidl.ones(2, dtype=minidl.float16)
        assert half.exp_().dtype == half.add_(minidl.ones(2)).dtype == half.mul_(2.0).dtype == minidl.float16
        b = minidl.ones(2)
        b += half
        assert b.dtype == minidl.float32


def test_out_is_not_cast():
    exact = 1 + 2.0 ** -12
    out = minidl.empty(2, 2)
    with amp.autocast():
        minidl.mm(minidl.full((2, 2), exact), minidl.eye(2), out=out)
    assert out[0, 0].item() == exact


# Regions

def test_regions_nest_and_end(x, w):
    with amp.autocast():
        assert (x @ w).dtype == minidl.float16
        with amp.autocast(dtype=minidl.bfloat16):
            assert (x @ w).dtype == minidl.bfloat16
            with amp.autocast(enabled=False):
                assert (x @ w).dtype == minidl.float32
        assert (x @ w).dtype == minidl.float16
    assert (x @ w).dtype == minidl.float32


def test_an_exception_ends_the_region(x, w):
    with pytest.raises(KeyError), amp.autocast():
        raise KeyError
    assert (x @ w).dtype == minidl.float32


def test_an_instance_may_be_entered_again(x, w):
    region = amp.autocast()
    for _ in range(2):
        with region:
            with region:
                pass
            assert (x @ w).dtype == minidl.float16
        assert (x @ w).dtype == minidl.float32


def test_it_decorates_functions_and_generators(x, w):
    @amp.autocast()
    def function():
        """A docstring."""
        return (x @ w).dtype

    @amp.autocast()
    def generator():
        yield (x @ w).dtype
        yield (x @ w).dtype

    assert function() == minidl.float16 and function.__doc__ == "A docstring."
    steps = generator()
    assert next(steps) == minidl.float16
    assert (x @ w).dtype == minidl.float32  # not while the generator waits
    assert next(steps) == minidl.float16


def test_a_region_belongs_to_its_thread(x, w):
    found = []
    with amp.autocast():
        thread = threading.Thread(target=lambda: found.append((x @ w).dtype))
        thread.start()
        thread.join()
    assert found == [minidl.float32]


def test_a_device_type_that_the_tensors_do_not_have_changes_nothing(x, w):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        region = amp.autocast("cuda")
    with region:
        assert (x @ w).dtype == minidl.float32
    with amp.autocast("cpu"):
        assert (x @ w).dtype == minidl.float16


@pytest.mark.parametrize("arguments, error", [
    ({"dtype": minidl.float32}, ValueError), ({"dtype": minidl.int8}, ValueError), ({"enabled": 1}, TypeError),
    ({"device_type": "tpu"}, (ValueError, RuntimeError)),
])
def test_bad_arguments(arguments, error):
    with pytest.raises(error):
        amp.autocast(**arguments)


# Gradients

def network(x, w):
    y = F.layer_norm(F.gelu(F.linear(x, w)), (4,))
    return (F.softmax(y @ w, -1) ** 3).sum()


def test_gradients_agree_with_float32(x, w):
    want, = autograd.grad(network(x, w), [w])
    with amp.autocast():
        loss = network(x, w)
    found, = autograd.grad(loss, [w])
    assert found.dtype == minidl.float32
    np.testing.assert_allclose(found.numpy(), want.numpy(), atol=0.01 * want.abs().max().item())


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_gradients_of_gradients(x, w, inside):
    x.requires_grad_()
    first, = autograd.grad(network(x, w), [w], create_graph=True)
    wants = autograd.grad((first ** 2).sum(), [w, x])
    with amp.autocast():
        loss = network(x, w)
        if inside:
            first, = autograd.grad(loss, [w], create_graph=True)
            founds = autograd.grad((first ** 2).sum(), [w, x])
    if not inside:
        first, = autograd.grad(loss, [w], create_graph=True)
        founds = autograd.grad((first ** 2).sum(), [w, x])
    for found, want in zip(founds, wants):
        assert found.dtype == minidl.float32
        np.testing.assert_allclose(found.numpy(), want.numpy(), atol=0.02 * want.abs().max().item())


def test_backward_inside_a_region_does_not_cast_float32_ops_to_half():
    """The Euclidean distance's second-order gradient goes through a product that ran in float32."""
    a = minidl.tensor(np.linspace(0, 1, 60, dtype=np.float32).reshape(30, 2) ** 2, requires_grad=True)
    b = minidl.tensor(np.linspace(2, 3, 60, dtype=np.float32).reshape(30, 2))

    def second():
        g, = autograd.grad(minidl.cdist(a, b).sum(), [a], create_graph=True)
        return autograd.grad((g ** 2).sum(), [a])[0]

    want = second()
    with amp.autocast():
        found = second()
    np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


# Layers

LAYERS = [
    ("LSTM", lambda: nn.LSTM(4, 3, 2, bidirectional=True), minidl.float16), ("GRU", lambda: nn.GRU(4, 3), minidl.float16),
    ("RNN", lambda: nn.RNN(4, 3), minidl.float16), ("LSTMCell", lambda: nn.LSTMCell(4, 3), minidl.float16),
    ("GRUCell", lambda: nn.GRUCell(4, 3), minidl.float16), ("Linear", lambda: nn.Linear(4, 3), minidl.float16),
    ("PReLU", lambda: nn.PReLU(), minidl.float16), ("LayerNorm", lambda: nn.LayerNorm(4), minidl.float32),
    ("RMSNorm", lambda: nn.RMSNorm(4), minidl.float32), ("GroupNorm", lambda: nn.GroupNorm(2, 4), minidl.float32),
    ("BatchNorm1d", lambda: nn.BatchNorm1d(4), None),
    ("TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(4, 2, 8), minidl.float32),
]


@pytest.mark.parametrize("make, dtype", [pytest.param(make, dtype, id=name) for name, make, dtype in LAYERS])
@pytest.mark.parametrize("given", [minidl.float32, minidl.float16], ids=str)
def test_layers(make, dtype, given, x):
    layer = make()
    with amp.autocast():
        out = layer(x.to(given))
    out = out[0] if isinstance(out, tuple) else out
    assert out.dtype == (dtype or given)
    out.float().pow(2).sum().backward()
    assert all(p.grad.dtype == minidl.float32 for p in layer.parameters() if p.grad is not None)
    assert all(b.dtype != minidl.float16 for b in layer.buffers())


def test_packed_sequences_and_given_states(x):
    layer = nn.LSTM(4, 3)
    packed = rnn.pack_padded_sequence(minidl.stack([x, x], 1), minidl.tensor([3, 2]))
    state = (minidl.zeros(1, 2, 3), minidl.zeros(1, 2, 3))
    with amp.autocast():
        out, state = layer(packed, state)
        again, _ = layer(packed, state)
    assert {out.data.dtype, state[0].dtype, state[1].dtype, again.data.dtype} == {minidl.float16}


def test_multihead_attention(x):
    layer = nn.MultiheadAttention(4, 2)
    with amp.autocast():
        out, weights = layer(x, x, x)
    assert (out.dtype, weights.dtype) == (minidl.float16, minidl.float32)


def test_batch_norm_takes_its_statistics_in_float32():
    layer = nn.BatchNorm1d(1)
    large = minidl.tensor([[300.0], [-300.0], [500.0], [-500.0]])  # their squares are no float16
    with amp.autocast():
        out = layer(large.half())
    assert out.dtype == minidl.float16
    np.testing.assert_allclose(layer.running_var.numpy(), 0.9 + 0.1 * large.numpy().var(ddof=1), rtol=1e-3)


def test_embedding_bag_renormalizes_the_table_itself():
    table = minidl.full((3, 2), 4.0, dtype=minidl.float16)
    with amp.autocast():
        out = F.embedding_bag(minidl.tensor([[0, 1]]), table, mode="sum", per_sample_weights=minidl.ones(1, 2), max_norm=2.0)
    assert out.dtype == minidl.float32
    np.testing.assert_allclose(table.numpy()[:, 0], [2 ** 0.5, 2 ** 0.5, 4], rtol=1e-3)


# Checkpoints

@pytest.mark.parametrize("where", ["around", "inside"])
def test_a_checkpoint_casts_as_the_first_run_did(where):
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 4))
    x = minidl.tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))

    def grads(run):
        model.zero_grad()
        minidl.manual_seed(1)
        run().float().pow(2).sum().backward()
        return [p.grad.numpy().copy() for p in model.parameters()]

    def cast(x):
        with amp.autocast():
            return model(x)

    def around():
        with amp.autocast():
            return autograd.checkpoint(model, x)

    for found, want in zip(grads(around if where == "around" else lambda: autograd.checkpoint(cast, x)),
                           grads(lambda: cast(x))):
        np.testing.assert_array_equal(found, want)


def test_a_checkpoint_outside_a_region_stays_outside(x, w):
    y = autograd.checkpoint(lambda x: F.relu(x @ w), x)
    want, = autograd.grad(F.relu(x @ w).sum(), [w])
    with amp.autocast():
        found, = autograd.grad(y.sum(), [w])
    np.testing.assert_array_equal(found.numpy(), want.numpy())


# The half copies of parameters

@pytest.mark.parametrize("call", [lambda x, w: F.linear(x, w), lambda x, w: x.mm(w), lambda x, w: minidl.addmm(x, x, w)],
                         ids=["linear", "mm", "addmm"])
def test_a_parameter_is_cast_once(call, x, w):
    x.requires_grad_()
    with amp.autocast():
        call(x, w)
        first = w.node.half[2]
        with minidl.no_grad():
            call(x, w)
        call(x, w)
        assert w.node.half[2] is first
    assert w.node.half is None


def test_without_a_cache_nothing_is_kept(x, w):
    with amp.autocast(cache_enabled=False):
        F.linear(x, w)
        assert w.node.half is None


def test_nothing_is_kept_after_the_outermost_region(x, w):
    with amp.autocast():
        with amp.autocast():
            F.linear(x, w)
        assert w.node.half is not None
    assert w.node.half is None


def test_an_edit_inside_the_region_is_seen(x, w):
    with amp.autocast():
        before = F.linear(x, w)
        with minidl.no_grad():
            w.mul_(2)
        np.testing.assert_array_equal(F.linear(x, w).numpy(), 2 * before.numpy())
        w.data = minidl.zeros(4, 4)
        assert not F.linear(x, w).any()
        w.data.fill_(1.0)
        assert F.linear(x, w).any()


@pytest.mark.parametrize("make", [lambda p: minidl.optim.SGD(p, 0.5), lambda p: minidl.optim.SGD(p, 0.5, momentum=0.9),
                                  lambda p: minidl.optim.Adam(p, 0.5), lambda p: minidl.optim.AdamW(p, 0.5)],
                         ids=["SGD", "momentum", "Adam", "AdamW"])
def test_an_optimizer_step_inside_the_region_is_seen(make, x):
    model = nn.Linear(4, 4)
    optimizer = make(model.parameters())
    with amp.autocast():
        for _ in range(2):
            loss = model(x).float().pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found = model(x)
            with amp.autocast(enabled=False):
                want = model(x)
            np.testing.assert_allclose(found.numpy().astype(np.float32), want.numpy(), atol=0.01)


def test_no_grad_first_then_gradients_flow(x, w):
    with amp.autocast():
        with minidl.no_grad():
            F.linear(x, w)
        F.linear(x, w).float().sum().backward()
    assert w.grad.abs().sum().item() > 0


def test_a_model_is_copied_inside_a_region(x):
    model = nn.Linear(4, 4)
    with amp.autocast():
        want = model(x)
        twin = copy.deepcopy(model)
        np.testing.assert_array_equal(twin(x).numpy(), want.numpy())
        with minidl.no_grad():
            twin.weight.zero_()
            twin.bias.zero_()
        assert not twin(x).any() and model(x).any()


# lists

def test_lists_nest_and_end(x, w):
    with amp.autocast(), amp.lists(add_full=[F.linear]):
        with amp.lists(add_half=[F.softmax]):
            assert F.linear(x, w).dtype == minidl.float32 and F.softmax(x, -1).dtype == minidl.float16
            with amp.lists(add_half=[F.linear]):
                assert F.linear(x, w).dtype == minidl.float16
        assert F.linear(x, w).dtype == F.softmax(x, -1).dtype == minidl.float32
        with amp.autocast(dtype=minidl.bfloat16):
            assert F.linear(x, w).dtype == minidl.float32 and (x @ w).dtype == minidl.bfloat16
    with amp.autocast():
        assert F.linear(x, w).dtype == minidl.float16


def test_lists_take_methods_and_all_classes(x, w):
    with amp.autocast(), amp.lists(add_half=[minidl.Tensor.sum, minidl.exp], add_keep=[minidl.matmul, F.layer_norm],
                                   add_widest=[F.softmax]):
        assert x.sum().dtype == x.exp().dtype == minidl.float16
        assert (x @ w).dtype == minidl.float32 and F.layer_norm(x.half(), (4,)).dtype == minidl.float16
        assert F.softmax(x.half(), -1).dtype == minidl.float16 and F.softmax(x, -1).dtype == minidl.float32


def test_lists_move_operators_with_numbers(x):
    with amp.autocast(), amp.lists(add_half=[minidl.mul, minidl.pow]):
        assert (x * 2.5).dtype == (2.5 * x).dtype == (x ** 2.5).dtype == minidl.float16


def test_lists_belong_to_a_thread(x, w):
    found = []

    def work():
        with amp.autocast():
            found.append(F.linear(x, w).dtype)

    with amp.lists(add_full=[F.linear]):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [minidl.float16]


def test_lists_reach_a_checkpoints_second_run(x, w):
    with amp.autocast(), amp.lists(add_full=[minidl.matmul]):
        want, = autograd.grad((x @ w).exp().sum(), [w])
        y = autograd.checkpoint(lambda x: (x @ w).exp(), x)
    found, = autograd.grad(y.sum(), [w])
    np.testing.assert_array_equal(found.numpy(), want.numpy())


def test_lists_want_functions_with_a_class():
    with pytest.raises(TypeError, match="amp.lists expected functions"):
        amp.lists(add_half=[len])
