"""summary: counts by hand, what it says of shapes and memory, errors, and that the model is left as it was."""

from __future__ import annotations

import numpy as np
import pytest

import minidl
from minidl import nn
from minidl.models import BERT, GPT, MLP, LeNet, LSTMTagger, ResNet, resnet20
from minidl.models.resnet import BasicBlock
from minidl.nn import functional as F
from minidl.nn.summary import summary

LENET = 28 * 28 * 32 * 9 + 14 * 14 * 64 * 32 * 9 + 3136 * 128 + 128 * 10


class Functional(nn.Module):
    """A model whose products are functions, with a constant factor and a kernel that is a buffer."""

    def __init__(self, products):
        super().__init__()
        self.weight = nn.Parameter(minidl.ones(4, 6))
        self.register_buffer("kernel", minidl.ones(2, 6, 3))
        self.products = products

    def forward(self, x):
        return self.products(self, x)


def ones(*shape):
    return minidl.ones(shape)


@pytest.mark.parametrize("model, shape, count", [
    (LeNet(), (1, 1, 28, 28), LENET),
    (LeNet(), (3, 1, 28, 28), 3 * LENET),
    (MLP([5, 7, 3]), (2, 5), 2 * (5 * 7 + 7 * 3)),
    (resnet20(), (1, 3, 32, 32), 40_551_040),
    (ResNet(BasicBlock, (3, 3, 3), 16, 10, small_images=True), (1, 3, 32, 32), 40_813_184),
    (nn.Conv2d(4, 6, 3, 2, 1, groups=2), (2, 4, 7, 7), 2 * 6 * 4 * 4 * 2 * 9),
    (nn.ConvTranspose1d(4, 6, 3, groups=2), (2, 4, 5), 2 * 4 * 5 * 3 * 3),
    (nn.LSTM(3, 5, 2, bidirectional=True), (7, 2, 3), 7 * 2 * 2 * 4 * 5 * ((3 + 5) + (10 + 5))),
    (nn.LSTM(3, 5, proj_size=2), (7, 2, 3), 7 * 2 * (20 * (3 + 2) + 5 * 2)),
    (nn.GRU(3, 5, bias=False), (7, 2, 3), 7 * 2 * 15 * (3 + 5)),
    (nn.RNN(3, 5), (7, 2, 3), 7 * 2 * 5 * (3 + 5)),
    (nn.GRUCell(3, 5), (2, 3), 2 * 15 * (3 + 5)),
    (nn.BatchNorm1d(4), (2, 4), 0),
    (Functional(lambda m, x: F.linear(x, m.weight)), (5, 6), 5 * 6 * 4),
    (Functional(lambda m, x: x @ m.weight.T), (5, 6), 5 * 6 * 4),
    (Functional(lambda m, x: x @ ones(6, 3)), (2, 5, 6), 2 * 5 * 6 * 3),
    (Functional(lambda m, x: ones(3, 5) @ x), (5, 6), 3 * 5 * 6),
    (Functional(lambda m, x: x[0] @ x[1]), (2, 6), 6),
    (Functional(lambda m, x: m.weight @ x), (6,), 4 * 6),
    (Functional(lambda m, x: minidl.addmm(ones(5, 4), x, m.weight.T)), (5, 6), 5 * 6 * 4),
    (Functional(lambda m, x: minidl.einsum("bi,oi->bo", x, m.weight)), (5, 6), 5 * 6 * 4),
    (Functional(lambda m, x: F.conv1d(x, m.kernel)), (2, 6, 9), 2 * 2 * 7 * 6 * 3),
    (Functional(lambda m, x: F.scaled_dot_product_attention(x, x[:, :3], x[:, :3, :2])), (2, 5, 6), 2 * 5 * 3 * (6 + 2)),
    (Functional(lambda m, x: minidl.cdist(x, m.weight, compute_mode="use_mm_for_euclid_dist")), (5, 6), 5 * 4 * 6),
])
def test_multiply_adds_by_hand(model, shape, count):
    assert summary(model, shape).multiply_adds == count


def test_multiply_adds_of_gpt():
    vocabulary, context, layers, width = 11, 6, 2, 8
    found = summary(GPT(vocabulary, context, layers, 2, width), (3, context), input_dtype=minidl.int64)
    block = context * 12 * width * width + 2 * context * context * width
    assert found.multiply_adds == 3 * (layers * block + context * width * vocabulary)
    assert {row.name: row.multiply_adds for row in found.rows}["blocks.1.attention"] == 3 * 2 * context * context * width


def test_modules_inside_a_checkpoint_have_their_own_rows():
    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            return minidl.autograd.checkpoint(lambda x: self.second(self.first(x)), x)

    assert [row.multiply_adds for row in summary(Checkpointed(), (5, 3)).rows] == [60, 40]


def test_rows_of_a_small_model():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2, bias=False)))
    rows = summary(model, (5, 3)).rows
    assert [(r.name, r.type, r.output_shape, r.parameters, r.multiply_adds) for r in rows] == [
        ("0", "Linear", (5, 4), 16, 60), ("1", "ReLU", (5, 4), 0, 0), ("2.0", "Linear", (5, 2), 8, 40)]


def test_shared_parameters_count_once_and_repeated_calls_add_up():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(4, 4, bias=False)
            self.second = nn.Linear(4, 4, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(self.first(self.first(x)))

    found = summary(Tied(), (1, 4))
    assert found.parameters == 16
    assert [(row.parameters, row.multiply_adds) for row in found.rows] == [(16, 32), (0, 16)]


def test_a_module_that_is_not_called_has_no_shape():
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = nn.Linear(2, 2), nn.Linear(2, 3)

        def forward(self, x):
            return self.used(x)

    found = summary(Idle(), (1, 2))
    assert [(row.output_shape, row.parameters) for row in found.rows] == [((1, 2), 6), (None, 9)]
    assert str(found).splitlines()[3].split() == ["idle", "Linear", "-", "9", "0", "36", "18"]


def test_totals_of_parameters_and_buffers():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    model[0].bias.requires_grad_(False)
    found = summary(model, (5, 3))
    assert (found.parameters, found.trainable, found.buffers) == (24, 20, 9)


def test_kept_for_backward():
    found = summary(nn.Sequential(nn.Linear(3, 4), nn.Sigmoid()), (5, 3))
    assert found.activations == 5 * 3 + 5 * 4  # the input for the weight's gradient, and the sigmoid's value
    assert found.bytes() == 4 * (16 + 35)
    assert found.bytes(minidl.float16) == 2 * (16 + 35)


def test_views_of_one_array_are_kept_once():
    class Halves(nn.Module):
        def forward(self, x):
            y = x.exp()
            return y[:, :2] * y[:, 2:]

    assert summary(Halves(), (3, 4)).activations == 12


def test_several_inputs_and_dtypes():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(5, 3)

        def forward(self, tokens, x):
            return {"sum": self.embedding(tokens) + x, "tokens": tokens}

    found = summary(Two(), [(2, 4), (2, 4, 3)], input_dtype=[minidl.int64, minidl.float32])
    assert found.rows[0].output_shape == (2, 4, 3)


def test_inputs_instead_of_shapes():
    tagger = LSTMTagger(10, 3, 4, 5)
    found = summary(tagger, inputs=(minidl.ones(2, 6, dtype=minidl.int64), minidl.tensor([6, 4])))
    assert found.multiply_adds == 2 * 6 * (2 * 20 * (4 + 5) + 10 * 3)
    assert summary(nn.Linear(3, 2), inputs=minidl.ones(4, 3)).rows[0].output_shape == (4, 2)


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.float64])
def test_the_input_has_the_models_dtype(dtype):
    assert summary(nn.Linear(3, 2).to(dtype), (4, 3)).multiply_adds == 24


def test_an_empty_batch():
    assert summary(nn.Linear(3, 2), (0, 3)).multiply_adds == 0


def test_an_inplace_activation_may_come_first():
    assert summary(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2)), (1, 3)).multiply_adds == 6


def test_works_under_no_grad():
    with minidl.no_grad():
        assert summary(nn.Linear(3, 2), (1, 3)).multiply_adds == 6
        assert not minidl.is_grad_enabled()


def changeable():
    minidl.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 4), nn.ReLU())
    model[3].eval()
    model[0].weight.requires_grad_(False)
    model(minidl.randn(3, 4)).sum().backward()
    return model


def test_the_model_is_left_as_it_was():
    model = changeable()
    before = {name: (t, t.array, t.numpy().copy()) for name, t in model.state_dict(keep_vars=True).items()}
    modes = [module.training for module in model.modules()]
    grads = [None if p.grad is None else p.grad.numpy().copy() for p in model.parameters()]
    rng = minidl.get_rng_state()
    summary(model, (3, 4))
    for name, tensor in model.state_dict(keep_vars=True).items():
        same, array, values = before[name]
        assert tensor is same and tensor.array is array
        np.testing.assert_array_equal(tensor.numpy(), values)
    assert [module.training for module in model.modules()] == modes
    assert [p.requires_grad for p in model.parameters()] == [False] + [True] * 5
    for p, grad in zip(model.parameters(), grads):
        assert (p.grad is None) == (grad is None)
        if grad is not None:
            np.testing.assert_array_equal(p.grad.numpy(), grad)
    np.testing.assert_array_equal(minidl.get_rng_state().numpy(), rng.numpy())


def test_what_a_forward_changes_by_itself_is_put_back():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.embedding = nn.Embedding(3, 2, max_norm=0.1)
            self.register_buffer("seen", minidl.zeros(2))

        def forward(self, tokens):
            self.calls += 1
            self.seen += 1
            minidl.rand(3)
            return self.embedding(tokens)

    model = Counting()
    weight, rng = model.embedding.weight.numpy().copy(), minidl.get_rng_state().numpy()
    summary(model, (4,), input_dtype=minidl.int64)
    assert model.calls == 0 and model.seen.tolist() == [0, 0]
    np.testing.assert_array_equal(model.embedding.weight.numpy(), weight)
    np.testing.assert_array_equal(minidl.get_rng_state().numpy(), rng)


def test_a_failure_leaves_the_model_as_it_was_and_names_the_layer():
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(5, 2)))
    model[0].weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"run Sequential on an input of \(2, 3\) in 1\.0 \(Linear\): .*last axis of 5"):
        summary(model, (2, 3))
    assert model.training and not model[0].weight.requires_grad
    assert summary(nn.Linear(3, 2), (1, 3)).multiply_adds == 6  # no hook and no watch is left behind


def test_an_error_that_the_model_catches_does_not_confuse_the_rows():
    class Fallback(nn.Module):
        def __init__(self):
            super().__init__()
            self.wrong, self.right = nn.Linear(5, 2), nn.Linear(3, 2)

        def forward(self, x):
            try:
                return self.wrong(x)
            except RuntimeError:
                return self.right(x)

    assert [row.multiply_adds for row in summary(Fallback(), (1, 3)).rows] == [0, 6]


@pytest.mark.parametrize("arguments, options, error, message", [
    ((lambda x: x, (2, 3)), {}, TypeError, "expected a Module, got function"),
    ((nn.Linear(3, 2),), {}, TypeError, "either input_shape or inputs"),
    ((nn.Linear(3, 2), (1, 3)), {"inputs": minidl.ones(1, 3)}, TypeError, "either input_shape or inputs"),
    ((nn.Linear(3, 2),), {"inputs": minidl.ones(1, 3), "input_dtype": minidl.float32}, TypeError, "only together"),
    ((nn.Linear(3, 2), (1, "3")), {}, TypeError, "a shape or a list of shapes, got .1, '3'"),
    ((nn.Linear(3, 2), 3), {}, TypeError, "a shape or a list of shapes, got 3"),
    ((nn.Linear(3, 2), [(1, 3), 3]), {}, TypeError, "a shape or a list of shapes"),
    ((nn.Linear(3, 2), (1, 3)), {"input_dtype": [minidl.float32] * 2}, TypeError, "for each of 1 inputs, got 2"),
    ((nn.LazyLinear(2), (1, 3)), {}, ValueError, "weight uninitialized"),
    ((BERT(5, 4, 1, 1, 4), (1, 5)), {"input_dtype": minidl.int64}, RuntimeError, r"T <= 4, got \(1, 5\)"),
])
def test_errors(arguments, options, error, message):
    with pytest.raises(error, match=message):
        summary(*arguments, **options)


def test_the_table():
    text = str(summary(nn.Sequential(nn.Linear(300, 400), nn.ReLU()), (2, 300)))
    assert text == repr(summary(nn.Sequential(nn.Linear(300, 400), nn.ReLU()), (2, 300)))
    lines = text.splitlines()
    assert lines[0].split("  ")[0] == "layer"
    assert lines[2].split() == "0 Linear (2, 400) 120,400 240,000 484,800 242,400".split()
    assert "parameters     120,400 (120,400 trainable), buffers 0" in lines
    assert "multiply-adds  240,000" in lines
