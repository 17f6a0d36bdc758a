"""Clipping of gradients, parameters as vectors, weight and spectral normalization."""

import copy
import math
import pickle

import numpy as np
import pytest

import minidl
from minidl.nn.container import Sequential
from minidl.nn.convolution import Conv2d, ConvTranspose2d
from minidl.nn.linear import Linear
from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from minidl.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from minidl.nn.utils.vectors import parameters_to_vector, vector_to_parameters
from minidl.nn.utils.weight_norm import remove_weight_norm, weight_norm
from minidl.optim.sgd import SGD

RNG = np.random.default_rng(2)
GRADIENTS = [RNG.normal(size=shape) for shape in ((3, 4), (5,), (), (0, 2))]
ALL = np.concatenate([g.ravel() for g in GRADIENTS])


def parameters(gradients=GRADIENTS, dtype=minidl.float64):
    made = [Parameter(minidl.zeros(np.shape(g), dtype=dtype)) for g in gradients]
    for p, g in zip(made, gradients):
        p.grad = minidl.tensor(g, dtype=dtype)
    return [*made, Parameter(minidl.ones(2))]  # the last has no gradient


def gradients(parameters):
    return np.concatenate([p.grad.numpy().ravel() for p in parameters if p.grad is not None])


# Clipping

@pytest.mark.parametrize("norm_type", [1, 2, 2.5, math.inf, "inf"])
@pytest.mark.parametrize("share", [0.25, 1.5])
def test_the_norm_is_that_of_one_vector(norm_type, share):
    norm = np.linalg.norm(ALL, float(norm_type)) if float(norm_type) != 2.5 else (abs(ALL) ** 2.5).sum() ** (1 / 2.5)
    made = parameters()
    total = clip_grad_norm_(iter(made), norm * share, norm_type)
    assert total.ndim == 0 and abs(total.item() - norm) < 1e-9
    np.testing.assert_allclose(gradients(made), ALL * min(share, 1), rtol=1e-5)


def test_small_gradients_are_left_bit_for_bit():
    made = parameters()
    clip_grad_norm_(made, 1e9)
    assert np.array_equal(gradients(made), ALL)


def test_one_parameter_and_none():
    p = parameters([[3.0, 4.0]])[0]
    assert clip_grad_norm_(p, 1.0).item() == 5
    np.testing.assert_allclose(p.grad.numpy(), [0.6, 0.8], rtol=1e-6)
    for nothing in ([], [Parameter(minidl.ones(2))]):
        total = clip_grad_norm_(nothing, 1.0)
        assert total.item() == 0 and total.shape == ()


def test_the_norm_of_halves_is_taken_in_float32():
    made = parameters([np.full((4,), 6e4), np.full((4096,), 100.0)], minidl.float16)
    expected = math.sqrt(4 * 59999 ** 2 + 4096 * 1e4)
    total = clip_grad_norm_(made, 1.0)
    assert total.dtype == minidl.float32 and abs(total.item() / expected - 1) < 1e-3
    assert made[0].grad.dtype == minidl.float16 and abs(made[0].grad.numpy()[0] / (6e4 / expected) - 1) < 1e-2


def test_gradients_are_scaled_where_they_lie():
    model = Sequential(Linear(4, 3), Linear(3, 2))
    optimizer = SGD(model.parameters(), 1.0)
    for _ in range(2):
        optimizer.zero_grad()
        (model(minidl.ones(2, 4)) * 100).sum().backward()
        before = [(p.grad, p.grad.array) for p in model.parameters()]
        clip_grad_norm_(model.parameters(), 0.5)
        assert all(p.grad is g and p.grad.array is a for p, (g, a) in zip(model.parameters(), before))
        assert abs(np.linalg.norm(gradients(model.parameters())) - 0.5) < 1e-5
        old = parameters_to_vector(model.parameters()).detach().clone()
        optimizer.step()
        step = old.numpy() - parameters_to_vector(model.parameters()).detach().numpy()
        np.testing.assert_allclose(step, gradients(model.parameters()), atol=1e-6)


def test_gradients_that_are_not_finite():
    made = parameters([[1.0, math.inf], [2.0]])
    with pytest.raises(RuntimeError, match="finite norm of order 2.0, got inf"):
        clip_grad_norm_(made, 1.0, error_if_nonfinite=True)
    assert gradients(made).tolist() == [1, math.inf, 2]
    assert clip_grad_norm_(made, 1.0).item() == math.inf
    assert math.isnan(made[0].grad[1].item())


def test_the_norm_and_the_clip_apart():
    made = parameters()
    total = get_total_norm([p.grad for p in made if p.grad is not None])
    assert abs(total.item() - np.linalg.norm(ALL)) < 1e-9
    clip_grads_with_norm_(made, 1.0, 2 * total)
    np.testing.assert_allclose(gradients(made), ALL / (2 * np.linalg.norm(ALL)), rtol=1e-5)
    assert get_total_norm([]).item() == 0


def test_clip_by_value():
    made = parameters()
    clip_grad_value_(iter(made), 0.5)
    assert np.array_equal(gradients(made), ALL.clip(-0.5, 0.5))


def test_clipping_given_a_scaler_unscales_first():
    class Scaler:
        def unscale_(self, optimizer):
            for p in optimizer:
                p.grad.mul_(1 / 1024)

    made = parameters([[3.0 * 1024, 4.0 * 1024]])[:1]
    assert clip_grad_norm_(made, 1.0, scaler=Scaler(), optimizer=made).item() == 5
    with pytest.raises(ValueError, match="optimizer="):
        clip_grad_norm_(made, 1.0, scaler=Scaler())


@pytest.mark.parametrize("clip", [lambda p: clip_grad_norm_(p, 1.0), lambda p: clip_grad_value_(p, 1.0)])
def test_scaled_gradients_are_refused(clip):
    made = parameters()
    made[1].grad.grad_scale = 1024.0
    with pytest.raises(RuntimeError, match=r"loss scale 1024.*unscale_"):
        clip(made)
    assert np.array_equal(gradients(made), ALL)


@pytest.mark.parametrize("clip", [clip_grad_norm_, clip_grad_value_])
def test_negative_limits_are_refused(clip):
    with pytest.raises(ValueError, match="got -1"):
        clip(parameters(), -1)


# Vectors

def test_parameters_to_vector_and_back():
    model = Linear(3, 2)
    vector = parameters_to_vector(model.parameters())
    assert vector.tolist() == [*model.weight.reshape(-1).tolist(), *model.bias.tolist()]
    (vector * minidl.arange(8.0)).sum().backward()
    assert model.weight.grad.tolist() == [[0, 1, 2], [3, 4, 5]] and model.bias.grad.tolist() == [6, 7]
    memory = model.weight.array
    values = minidl.arange(8.0, dtype=minidl.float64)
    vector_to_parameters(values, model.parameters())
    values.fill_(-1)
    assert model.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and model.bias.tolist() == [6, 7]
    assert model.weight.array is memory and model.weight.dtype == minidl.float32 and model.weight.is_leaf


@pytest.mark.parametrize("vector, error, words", [
    (minidl.zeros(7), RuntimeError, r"8 elements.*\(7,\)"),
    (minidl.zeros(9), RuntimeError, r"\(9,\)"),
    (minidl.zeros(8, 1), RuntimeError, r"\(8, 1\)"),
    ([0.0] * 8, TypeError, "got list"),
])
def test_vectors_that_do_not_fit_change_nothing(vector, error, words):
    model = Linear(3, 2)
    before = model.weight.tolist()
    with pytest.raises(error, match=words):
        vector_to_parameters(vector, model.parameters())
    assert model.weight.tolist() == before


# Both normalizations

LAYERS = [lambda: Linear(3, 4), lambda: Conv2d(2, 3, 2), lambda: ConvTranspose2d(2, 3, 2)]
INPUTS = [RNG.normal(size=(5, 3)), *[RNG.normal(size=(2, 2, 4, 4))] * 2]
NORMS = pytest.mark.parametrize("normalize, remove", [(weight_norm, remove_weight_norm), (spectral_norm, remove_spectral_norm)],
                                ids=["weight", "spectral"])
EVERY = pytest.mark.parametrize("make, x", list(zip(LAYERS, INPUTS)), ids=["Linear", "Conv2d", "ConvTranspose2d"])


@NORMS
@EVERY
def test_removing_leaves_the_module_as_it_computes(normalize, remove, make, x):
    layer = make().double()
    assert normalize(layer) is layer
    x = minidl.tensor(x)
    layer(x)
    expected = layer.eval()(x).detach().numpy()
    assert remove(layer) is layer
    assert list(layer.state_dict()) == ["bias", "weight"]
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-12)
    normalize(layer)
    assert "weight" not in dict(layer.named_parameters())


@NORMS
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_work_and_are_independent(normalize, remove, duplicate):
    layer, x = normalize(Linear(3, 4)), minidl.tensor(INPUTS[0]).float()
    layer(x).sum().backward()
    twin = duplicate(layer.eval())
    expected = layer(x).detach().numpy()
    assert np.array_equal(twin(x).detach().numpy(), expected)
    with minidl.no_grad():
        for p in twin.parameters():
            p.mul_(3)
    assert not np.allclose(twin(x).detach().numpy(), expected)
    assert np.array_equal(layer(x).detach().numpy(), expected)
    remove(twin)


@NORMS
def test_errors_name_what_is_wrong(normalize, remove):
    layer = normalize(Linear(3, 4))
    with pytest.raises(RuntimeError, match="'weight' of Linear, which has it already"):
        normalize(layer)
    with pytest.raises(ValueError, match="'kernel' to be a parameter of Linear, which has bias"):
        normalize(layer, "kernel")
    with pytest.raises(ValueError, match="'bias'.*got one without"):
        remove(layer, "bias")
    with pytest.raises(ValueError, match="'bias' to be a parameter"):
        normalize(Linear(3, 4, bias=False), "bias")


@NORMS
def test_training_moves_the_parts(normalize, remove):
    minidl.manual_seed(0)
    layer, x = normalize(Linear(3, 1)), minidl.tensor(INPUTS[0]).float()
    optimizer = SGD(layer.parameters(), 0.1)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = ((layer(x)[:, 0] - minidl.tensor(INPUTS[0][:, 1]).float()) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0] and layer.weight.grad is None


def test_both_on_one_module_and_one_on_two_parameters():
    class Two(Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = Parameter(minidl.ones(2, 2)), Parameter(minidl.ones(2, 2) * 3)

        def forward(self, x):
            return x @ self.a + x @ self.b

    module = spectral_norm(weight_norm(Two(), "a"), "b")
    weight_norm(remove_spectral_norm(module, "b"), "b")
    assert list(module.state_dict()) == ["a_g", "a_v", "b_g", "b_v"]
    remove_weight_norm(module, "a")
    assert list(module.state_dict()) == ["b_g", "b_v", "a"]


# Weight normalization

@EVERY
@pytest.mark.parametrize("dim", [0, 1, -2, None, -1])
def test_weight_norm_splits_length_from_direction(make, x, dim):
    layer = make().double()
    weight = layer.weight.detach().numpy().copy()
    weight_norm(layer, dim=dim)
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    axes = None if dim in (None, -1) else tuple(a for a in range(weight.ndim) if a != dim % weight.ndim)
    length = np.sqrt((weight ** 2).sum(axes, keepdims=axes is not None))
    np.testing.assert_allclose(layer.weight_g.detach().numpy(), length, rtol=1e-12)
    assert layer.weight_g.shape == length.shape
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight, rtol=1e-12)
    with minidl.no_grad():
        layer.weight_g.mul_(2)
        layer.weight_v.mul_(5)
    layer(minidl.tensor(x))
    np.testing.assert_allclose(layer.weight.detach().numpy(), 2 * weight, rtol=1e-12)


def test_weight_norm_gradients():
    layer, x = weight_norm(Linear(3, 4)).double(), minidl.tensor(INPUTS[0])
    with minidl.no_grad():
        layer.weight_g.mul_(minidl.tensor([[1.0], [2], [3], [4]]))
    layer(x).sum().backward()
    gw = np.tile(INPUTS[0].sum(0), (4, 1))
    v, g = layer.weight_v.detach().numpy(), layer.weight_g.detach().numpy()
    length = np.linalg.norm(v, axis=1, keepdims=True)
    along = (gw * v).sum(1, keepdims=True) / length
    np.testing.assert_allclose(layer.weight_g.grad.numpy(), along, rtol=1e-10)
    np.testing.assert_allclose(layer.weight_v.grad.numpy(), g / length * gw - g * along / length ** 2 * v, rtol=1e-10)


def test_weight_norm_of_halves_takes_lengths_in_float32():
    layer = Linear(4096, 2).half()
    with minidl.no_grad():
        layer.weight.fill_(1000)
    weight_norm(layer, dim=None)
    assert math.isinf(layer.weight_g.item())  # 90509 is no half
    weight_norm(remove_weight_norm(layer), dim=0)
    with minidl.no_grad():
        layer.weight_g.fill_(6e4)
        layer.weight_v.fill_(1000)
    layer(minidl.zeros(1, 4096, dtype=minidl.float16))
    assert layer.weight.dtype == minidl.float16 and layer.weight.detach().numpy()[0, 0] == 6e4 / 64


def test_weight_norm_refuses_an_axis_that_is_none():
    with pytest.raises(IndexError, match=r"\(4, 3\), got 2"):
        weight_norm(Linear(3, 4), dim=2)


# Spectral normalization

@EVERY
def test_spectral_norm_finds_the_largest_singular_value(make, x):
    layer = make().double()
    weight = layer.weight.detach().numpy().copy()
    spectral_norm(layer, n_power_iterations=100)
    layer(minidl.tensor(x))
    rows = np.swapaxes(weight, 0, 1) if isinstance(layer, ConvTranspose2d) else weight
    largest = np.linalg.svd(rows.reshape(len(rows), -1), compute_uv=False)[0]
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight / largest, rtol=1e-6)
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert layer.weight_u.shape == (len(rows),) and layer.weight_v.shape == (rows.size // len(rows),)


def test_only_training_iterates_and_checkpoints_do_it_once():
    layer, x = spectral_norm(Linear(3, 4)), minidl.ones(2, 3, requires_grad=True)
    before = layer.weight_u.numpy().copy()
    layer.eval()(x)
    assert np.array_equal(layer.weight_u.numpy(), before)
    y = minidl.autograd.checkpoint(layer.train(), x)
    moved = layer.weight_u.numpy().copy()
    assert not np.array_equal(moved, before)
    y.sum().backward()
    assert np.array_equal(layer.weight_u.numpy(), moved) and layer.weight_orig.grad is not None


def test_two_forwards_before_one_backward():
    layer = spectral_norm(Linear(3, 1))
    (layer(minidl.ones(2, 3)) - layer(minidl.zeros(2, 3))).sum().backward()
    assert np.isfinite(layer.weight_orig.grad.numpy()).all()


def test_spectral_norm_gradient_leaves_the_singular_vectors_alone():
    layer = spectral_norm(Linear(3, 4, bias=False)).double()
    x = INPUTS[0]
    layer(minidl.tensor(x)).sum().backward()
    w, u, v = (layer.state_dict()[name].numpy() for name in ("weight_orig", "weight_u", "weight_v"))
    sigma, gw = u @ w @ v, np.tile(x.sum(0), (4, 1))
    np.testing.assert_allclose(layer.weight_orig.grad.numpy(), gw / sigma - (gw * w).sum() / sigma ** 2 * np.outer(u, v),
                               rtol=1e-9, atol=1e-12)


def test_spectral_norm_refuses_no_iterations():
    with pytest.raises(ValueError, match="positive, got 0"):
        spectral_norm(Linear(3, 4), n_power_iterations=0)
