"""Normalization layers: parameters, running statistics, modes, errors. The functions have tests of their own."""

import copy
import pickle

import numpy as np
import pytest

import minidl
from minidl.autograd import checkpoint
from minidl.nn import lazy_normalization
from minidl.nn.lazy_normalization import LazyBatchNorm1d, LazyBatchNorm2d, LazyInstanceNorm2d
from minidl.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
)

LENGTHS = {1: (5,), 2: (5, 3), 3: (2, 5, 3)}
BATCH = [(BatchNorm1d, 1), (BatchNorm2d, 2), (BatchNorm3d, 3)]
INSTANCE = [(InstanceNorm1d, 1), (InstanceNorm2d, 2), (InstanceNorm3d, 3)]


def values(*shape, dtype=minidl.float32, requires_grad=False, seed=0):
    rng = np.random.Generator(np.random.Philox(seed))
    return minidl.tensor(rng.standard_normal(shape) * 2 + 1, dtype=dtype, requires_grad=requires_grad)


def standardized(x, axes, eps=1e-5):
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def close(found, exact, tolerance=1e-5):
    np.testing.assert_allclose(found.numpy().astype(np.float64), exact, rtol=tolerance, atol=tolerance)


def channel_rows(x):
    return np.moveaxis(x.numpy(), 1, 0).reshape(x.shape[1], -1)


# BatchNorm

@pytest.mark.parametrize("kind, n", BATCH)
def test_batch_norm_in_training_uses_the_batch(kind, n):
    x = values(4, 3, *LENGTHS[n])
    close(kind(3)(x), standardized(x.numpy(), (0, *range(2, n + 2))))


@pytest.mark.parametrize("kind, n", BATCH)
def test_batch_norm_moves_running_statistics_and_evaluates_by_them(kind, n):
    x, norm = values(4, 3, *LENGTHS[n]), kind(3, momentum=0.25, eps=0.1)
    norm(x)
    mean, variance = 0.25 * channel_rows(x).mean(1), 0.75 + 0.25 * channel_rows(x).var(1, ddof=1)
    close(norm.running_mean, mean)
    close(norm.running_var, variance)
    shape = (3,) + (1,) * n
    close(norm.eval()(x), (x.numpy() - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 0.1))
    close(norm.running_mean, mean)
    assert norm.num_batches_tracked.item() == 1


def test_batch_norm_without_momentum_averages_all_batches():
    batches = [values(4, 3, seed=seed) for seed in range(3)]
    norm = BatchNorm1d(3, momentum=None)
    for x in batches:
        norm(x)
    close(norm.running_mean, np.mean([x.numpy().mean(0) for x in batches], 0))
    close(norm.running_var, np.mean([x.numpy().var(0, ddof=1) for x in batches], 0))


def test_batch_norm_without_running_statistics_always_uses_the_batch():
    x, norm = values(4, 3), BatchNorm1d(3, track_running_stats=False)
    assert list(norm.state_dict()) == ["weight", "bias"]
    close(norm.eval()(x), standardized(x.numpy(), (0,)))


def test_batch_norm_takes_two_or_three_axes():
    assert BatchNorm1d(3)(values(4, 3)).shape == (4, 3)
    assert BatchNorm1d(3)(minidl.ones(0, 3)).shape == (0, 3)


def test_batch_norm_learns_scale_and_shift():
    x, norm = values(4, 3), BatchNorm1d(3)
    g = values(4, 3, seed=1)
    norm(x).backward(g)
    close(norm.weight.grad, (g.numpy() * standardized(x.numpy(), (0,))).sum(0), 1e-4)
    close(norm.bias.grad, g.numpy().sum(0))


def test_state_dict_of_batch_norm():
    state = BatchNorm2d(3).state_dict()
    assert [(name, t.shape, t.dtype) for name, t in state.items()] == [
        ("weight", (3,), minidl.float32), ("bias", (3,), minidl.float32), ("running_mean", (3,), minidl.float32),
        ("running_var", (3,), minidl.float32), ("num_batches_tracked", (), minidl.int64)]
    del state["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="missing: num_batches_tracked"):
        BatchNorm2d(3).load_state_dict(state)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_recomputation_moves_no_statistics(momentum):
    x, norm = values(4, 3, requires_grad=True), BatchNorm1d(3, momentum=momentum)
    plain = copy.deepcopy(norm)
    plain(x)
    checkpoint(norm, x).sum().backward()
    for name, tensor in plain.state_dict().items():
        np.testing.assert_array_equal(norm.state_dict()[name].numpy(), tensor.numpy())


def test_a_refused_batch_is_not_counted():
    norm = BatchNorm1d(3)
    with pytest.raises(ValueError, match="more than one value per channel"):
        norm(values(1, 3))
    assert norm.num_batches_tracked.item() == 0


def test_one_value_per_channel_is_fine_in_evaluation():
    assert BatchNorm1d(3).eval()(values(1, 3)).shape == (1, 3)


@pytest.mark.parametrize("dtype, tolerance", [(minidl.float16, 4e-3), (minidl.bfloat16, 3e-2)], ids=str)
def test_half_inputs_with_float32_parameters(dtype, tolerance):
    x, norm = values(64, 3, dtype=dtype, requires_grad=True), BatchNorm1d(3)
    y = norm(x)
    y.sum().backward()
    wide = x.numpy().astype(np.float64)
    close(y, standardized(wide, (0,)), tolerance)
    close(norm.running_var, 0.9 + 0.1 * wide.var(0, ddof=1))
    assert (y.dtype, x.grad.dtype, norm.weight.grad.dtype) == (dtype, dtype, minidl.float32)


def test_statistics_of_halves_beyond_their_range():
    x = minidl.tensor([[6e4], [-6e4], [6e4], [-6e4]], dtype=minidl.float16)
    norm = BatchNorm1d(1)
    close(norm(x), [[1], [-1], [1], [-1]], 2e-3)
    assert np.isfinite(norm.running_var.numpy()).all() and norm.running_var.item() > 4e8


def test_reset_running_stats():
    norm = BatchNorm1d(3)
    norm(values(4, 3))
    norm.reset_running_stats()
    assert [t.tolist() for t in (norm.running_mean, norm.running_var, norm.num_batches_tracked)] == [[0] * 3, [1] * 3, 0]


def test_norms_stay_in_float32_in_mixed_precision():
    assert all(kind.keeps_float32 for kind in (BatchNorm2d, InstanceNorm1d, LayerNorm, GroupNorm, RMSNorm))


# InstanceNorm

@pytest.mark.parametrize("kind, n", INSTANCE)
@pytest.mark.parametrize("lead", [(2, 3), (3,)], ids=["batch", "unbatched"])
@pytest.mark.parametrize("affine", [True, False])
def test_instance_norm(kind, n, lead, affine):
    x = values(*lead, *LENGTHS[n])
    exact = standardized(x.numpy(), tuple(range(-n, 0)))
    norm = kind(3, affine=affine)
    assert list(norm.state_dict()) == (["weight", "bias"] if affine else [])
    close(norm(x), exact)
    close(norm.eval()(x), exact)


def test_instance_norm_tracks_the_mean_over_samples():
    x, norm = values(4, 3, 5), InstanceNorm1d(3, momentum=0.5, track_running_stats=True)
    norm(x)
    mean, variance = 0.5 * x.numpy().mean((0, 2)), 0.5 + 0.5 * x.numpy().var(2, ddof=1).mean(0)
    close(norm.running_mean, mean)
    close(norm.running_var, variance)
    close(norm.eval()(x[0]), (x.numpy()[0] - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5))


def test_instance_norm_warns_of_a_number_of_channels_that_it_does_not_use():
    with pytest.warns(UserWarning, match="expected 4 channels"):
        InstanceNorm1d(4)(values(2, 3, 5))


# Norms of samples

@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 5), (2, 6, 3, 2), (0, 6, 5)])
def test_group_norm(shape):
    x = values(*shape)
    exact = standardized(x.numpy().reshape(shape[0], 2, -1) if x.numel() else np.zeros((0, 2, 1)), (2,)).reshape(shape)
    close(GroupNorm(2, 6)(x), exact)
    assert list(GroupNorm(2, 6, affine=False).state_dict()) == []


@pytest.mark.parametrize("shape", [4, (4,), [3, 4]], ids=str)
def test_layer_norm(shape):
    x, norm = values(2, 3, 4), LayerNorm(shape)
    close(norm(x), standardized(x.numpy(), tuple(range(-len(norm.normalized_shape), 0))))
    assert norm.weight.shape == norm.bias.shape == norm.normalized_shape


@pytest.mark.parametrize("made, names", [
    (LayerNorm(4, bias=False), ["weight"]), (LayerNorm(4, elementwise_affine=False), []),
    (GroupNorm(2, 4, bias=False), ["weight"]), (BatchNorm1d(4, bias=False, track_running_stats=False), ["weight"]),
    (RMSNorm(4), ["weight"]), (RMSNorm(4, elementwise_affine=False), []),
    (InstanceNorm1d(4, affine=True, bias=False), ["weight"]),
], ids=repr)
def test_parameters_that_are_left_out(made, names):
    assert list(made.state_dict()) == names
    x = values(3, 4, 4)
    made(x).sum().backward() if names else made(x)


@pytest.mark.parametrize("eps", [None, 0.5])
def test_rms_norm(eps):
    x, norm = values(2, 4), RMSNorm(4, eps=eps)
    norm.load_state_dict({"weight": np.array([1.0, 2.0, 3.0, 4.0])})
    mean_square = (x.numpy().astype(np.float64) ** 2).mean(1, keepdims=True)
    close(norm(x), x.numpy() / np.sqrt(mean_square + (eps or 0)) * [1, 2, 3, 4])


def test_local_response_norm():
    x = minidl.tensor([[[1.0], [2.0], [3.0]]])
    sums = np.array([1 + 4, 1 + 4 + 9, 4 + 9]).reshape(1, 3, 1)
    close(LocalResponseNorm(3, alpha=0.3, beta=0.5, k=2.0)(x), x.numpy() / np.sqrt(2 + 0.1 * sums))


# Lazy

@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", ["BatchNorm", "InstanceNorm"])
def test_lazy_norms_become_plain_ones(name, n):
    lazy = getattr(lazy_normalization, f"Lazy{name}{n}d")()
    assert lazy.has_uninitialized_params() and list(lazy.state_dict()) == [
        "weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    weight = lazy.weight
    x = values(2, 3, *LENGTHS[n])
    y = lazy(x)
    assert repr(lazy) == f"{name}{n}d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"
    assert lazy.weight is weight and lazy.running_mean.shape == (3,)
    close(y, standardized(x.numpy(), ((0,) if name == "BatchNorm" else ()) + tuple(range(2, n + 2))))


def test_lazy_norms_take_the_channels_of_samples_without_a_batch():
    lazy = LazyInstanceNorm2d()
    lazy(values(3, 4, 5))
    assert lazy.num_features == 3


def test_lazy_norms_load_the_state_of_plain_ones():
    plain, lazy = BatchNorm1d(3), LazyBatchNorm1d()
    plain(values(4, 3))
    lazy.load_state_dict(plain.state_dict())
    close(lazy.eval()(values(2, 3)), plain.eval()(values(2, 3)).numpy())
    assert lazy.num_features == 3 and lazy.num_batches_tracked.item() == 1


def test_lazy_norms_wait_for_an_input_that_fits():
    lazy = LazyBatchNorm2d()
    with pytest.raises(ValueError, match="4 axes"):
        lazy(values(2, 3))
    assert lazy.has_uninitialized_params()


# All

@pytest.mark.parametrize("made, shown", [
    (BatchNorm1d(3), "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"),
    (InstanceNorm2d(3), "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)"),
    (GroupNorm(2, 4), "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"),
    (LayerNorm(3), "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)"),
    (RMSNorm(3), "RMSNorm((3,), eps=None, elementwise_affine=True)"),
    (LocalResponseNorm(2), "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)"),
], ids=lambda x: type(x).__name__)
def test_repr(made, shown):
    assert repr(made) == shown


@pytest.mark.parametrize("made", [BatchNorm1d(3), InstanceNorm1d(3, affine=True, track_running_stats=True), LayerNorm(3)],
                         ids=lambda x: type(x).__name__)
def test_copies_have_parts_of_their_own(made):
    for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        again.weight.data.fill_(5.0)
        assert made.weight.tolist() == [1, 1, 1] and list(again.state_dict()) == list(made.state_dict())


@pytest.mark.parametrize("error, call", [
    (ValueError, lambda: BatchNorm1d(3)(values(2, 3, 4, 5))),
    (ValueError, lambda: BatchNorm2d(3)(values(2, 3, 4))),
    (ValueError, lambda: BatchNorm3d(3)(values(2, 3, 4, 5))),
    (RuntimeError, lambda: BatchNorm1d(4)(values(2, 3))),
    (RuntimeError, lambda: BatchNorm1d(3)(values(2, 3, dtype=minidl.float64))),
    (ValueError, lambda: InstanceNorm1d(3)(values(3))),
    (ValueError, lambda: InstanceNorm2d(3)(values(2, 2, 3, 4, 5))),
    (ValueError, lambda: InstanceNorm1d(4, affine=True)(values(2, 3, 5))),
    (ValueError, lambda: InstanceNorm1d(3)(values(2, 3, 1))),
    (ValueError, lambda: GroupNorm(3, 4)),
    (ValueError, lambda: GroupNorm(0, 4)),
    (RuntimeError, lambda: GroupNorm(2, 4)(values(2, 6))),
    (RuntimeError, lambda: LayerNorm(4)(values(2, 3))),
    (RuntimeError, lambda: RMSNorm((3, 4))(values(4))),
])
def test_bad_arguments(error, call):
    with pytest.raises(error, match="expected"):
        call()
