"""nn.init: bounds and spreads by hand, structure of the matrices, in place and unrecorded, errors."""

import math
import warnings

import numpy as np
import pytest

import minidl
from minidl.nn import init
from minidl.nn.parameter import Parameter

DTYPES = [minidl.float32, minidl.float64, minidl.float16, minidl.bfloat16]
FILLERS = [
    (init.uniform_, ()), (init.normal_, ()), (init.trunc_normal_, ()), (init.trunc_normal_, (0.0, 1.0, 1.5, 3.0)),
    (init.constant_, (3,)), (init.ones_, ()), (init.zeros_, ()), (init.eye_, ()), (init.xavier_uniform_, ()),
    (init.xavier_normal_, ()), (init.kaiming_uniform_, ()), (init.kaiming_normal_, ()), (init.orthogonal_, ()),
    (init.sparse_, (0.3,)),
]
DRAWING = [row for row in FILLERS if row[0] not in (init.constant_, init.ones_, init.zeros_, init.eye_)]


def filled(fill, *args, shape=(200, 100), dtype=minidl.float32, seed=0, **kwargs):
    kwargs = {**kwargs, "generator": minidl.Generator().manual_seed(seed)}
    return fill(minidl.empty(shape, dtype=dtype), *args, **kwargs).numpy().astype(float)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("fill, args", FILLERS)
def test_fills_a_parameter_in_place_without_recording_it(fill, args, dtype):
    parameter = Parameter(minidl.full((6, 4), math.nan, dtype=dtype))
    assert fill(parameter, *args) is parameter
    assert parameter.dtype == dtype and parameter.requires_grad and parameter.is_leaf
    assert np.isfinite(parameter.detach().numpy().astype(float)).all()


@pytest.mark.parametrize("fill, args", DRAWING)
def test_draws_come_from_the_initialization_stream_or_the_generator(fill, args):
    minidl.manual_seed(5)
    first = fill(minidl.empty(6, 4), *args).numpy()
    minidl.manual_seed(5)
    minidl.rand(3)  # moves the run-time stream only
    np.testing.assert_array_equal(fill(minidl.empty(6, 4), *args).numpy(), first)
    np.testing.assert_array_equal(filled(fill, *args, seed=3), filled(fill, *args, seed=3))
    assert (filled(fill, *args, seed=3) != filled(fill, *args, seed=4)).any()


@pytest.mark.parametrize("fill, args", DRAWING)
def test_halves_are_float32_draws_rounded(fill, args):
    wide = filled(fill, *args, shape=(9, 7)).astype(np.float32)
    np.testing.assert_array_equal(filled(fill, *args, shape=(9, 7), dtype=minidl.float16), wide.astype(np.float16))


SHAPE = (200, 10, 2, 5)  # fan_in 100, fan_out 2000
SPREADS = [
    (init.xavier_uniform_, {}, math.sqrt(2 / 2100)), (init.xavier_normal_, {"gain": 3.0}, 3 * math.sqrt(2 / 2100)),
    (init.kaiming_uniform_, {}, math.sqrt(2 / 100)), (init.kaiming_normal_, {"a": 2.0}, math.sqrt(2 / 5 / 100)),
    (init.kaiming_normal_, {"mode": "fan_out", "nonlinearity": "relu"}, math.sqrt(2 / 2000)),
    (init.kaiming_uniform_, {"mode": "FAN_OUT", "nonlinearity": "tanh"}, 5 / 3 / math.sqrt(2000)),
    (init.uniform_, {"a": -1.0, "b": 5.0}, math.sqrt(3)), (init.normal_, {"std": 0.5}, 0.5),
]


@pytest.mark.parametrize("fill, how, std", SPREADS)
def test_spread(fill, how, std):
    values = filled(fill, shape=SHAPE, **how)
    assert abs(values.std() / std - 1) < 0.03
    if "uniform" in fill.__name__:
        assert abs(np.ptp(values) / (2 * math.sqrt(3) * std) - 1) < 0.01


def test_means():
    assert abs(filled(init.normal_, 2.0, 0.1).mean() - 2) < 0.01
    assert abs(filled(init.uniform_, 1.0, 2.0).mean() - 1.5) < 0.01


@pytest.mark.parametrize("mean, std, a, b", [(0, 1, -2, 2), (0, 1, 1, 2), (1, 2, 0, 0.5), (0.5, 0.1, 0, 1)])
def test_trunc_normal_has_the_truncated_distribution(mean, std, a, b):
    values = filled(init.trunc_normal_, mean, std, a, b)
    assert a <= values.min() and values.max() <= b
    grid = np.linspace(a, b, 20001)
    density = np.exp(-((grid - mean) / std) ** 2 / 2)
    expected = (grid * density).sum() / density.sum()
    spread = math.sqrt(((grid - expected) ** 2 * density).sum() / density.sum())
    assert abs(values.mean() - expected) < 5 * spread / math.sqrt(values.size)
    assert abs(values.std() / spread - 1) < 0.03


def test_trunc_normal_warns_of_a_mean_far_outside():
    with pytest.warns(UserWarning, match="more than 2 std"):
        values = filled(init.trunc_normal_, 0.0, 1.0, 3.0, 4.0, shape=(50, 4))
    assert values.min() >= 3 and values.max() <= 4


@pytest.mark.parametrize("shape", [(5, 20), (20, 5), (7, 7), (4, 3, 2, 2), (1, 6)])
def test_orthogonal(shape):
    q = filled(init.orthogonal_, 2.0, shape=shape, dtype=minidl.float64).reshape(shape[0], -1)
    gram = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-12)


def test_orthogonal_takes_both_signs():
    """QR alone gives a first column of one sign in LAPACK's convention."""
    firsts = [filled(init.orthogonal_, shape=(1, 1), seed=seed).item() for seed in range(40)]
    assert {round(f) for f in firsts} == {-1, 1}


@pytest.mark.parametrize("sparsity, zeros", [(0.0, 0), (0.31, 4), (1.0, 10)])
def test_sparse_has_so_many_zeros_in_each_column(sparsity, zeros):
    values = filled(init.sparse_, sparsity, 2.0, shape=(10, 300))
    np.testing.assert_array_equal((values == 0).sum(0), zeros)
    if zeros < 10:
        assert abs(values[values != 0].std() / 2 - 1) < 0.1


def test_eye():
    np.testing.assert_array_equal(init.eye_(minidl.empty(2, 3)).numpy(), [[1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_dirac_weight_keeps_the_input(axes, groups):
    w = init.dirac_(minidl.empty((4, 4 // groups) + (3,) * axes), groups)
    x = minidl.randn((2, 4) + (5,) * axes)
    y = getattr(minidl.nn.functional, f"conv{axes}d")(x, w, padding=1, groups=groups)
    np.testing.assert_array_equal(y.numpy(), x.numpy())


def test_dirac_with_more_outputs_than_inputs_leaves_the_others_zero():
    w = init.dirac_(minidl.empty(6, 2, 3), groups=2).numpy()
    np.testing.assert_array_equal(w[:, :, 1], [[1, 0], [0, 1], [0, 0]] * 2)
    assert not w[:, :, [0, 2]].any()


@pytest.mark.parametrize("name, param, gain", [
    ("linear", None, 1), ("conv_transpose3d", None, 1), ("sigmoid", None, 1), ("tanh", None, 5 / 3), ("selu", None, 0.75),
    ("relu", None, math.sqrt(2)), ("leaky_relu", None, math.sqrt(2 / 1.0001)), ("leaky_relu", 1, 1), ("relu", 7, math.sqrt(2)),
])
def test_gain(name, param, gain):
    assert init.calculate_gain(name, param) == pytest.approx(gain)


@pytest.mark.parametrize("fill", [init.kaiming_uniform_, init.kaiming_normal_])
def test_kaiming_warns_where_there_is_nothing_to_fill(fill):
    with pytest.warns(UserWarning, match="without elements"):
        assert fill(minidl.empty(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("fill", [init.xavier_uniform_, init.xavier_normal_, init.orthogonal_])
def test_others_leave_a_tensor_without_elements(fill):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fill(minidl.empty(0, 0)).shape == (0, 0)


V, M = minidl.empty(3), minidl.empty(3, 3)
ERRORS = [
    (ValueError, "'swish'", lambda: init.calculate_gain("swish")),
    (ValueError, "slope", lambda: init.calculate_gain("leaky_relu", True)),
    (ValueError, "slope", lambda: init.calculate_gain("leaky_relu", "1")),
    (ValueError, "2 axes", lambda: init.xavier_uniform_(V)), (ValueError, "2 axes", lambda: init.xavier_normal_(V)),
    (ValueError, "2 axes", lambda: init.kaiming_uniform_(V)), (ValueError, "2 axes", lambda: init.orthogonal_(V)),
    (ValueError, "'fan_avg'", lambda: init.kaiming_normal_(M, mode="fan_avg")),
    (ValueError, "'gelu'", lambda: init.kaiming_normal_(M, nonlinearity="gelu")),
    (ValueError, "matrix", lambda: init.eye_(V)), (ValueError, "matrix", lambda: init.sparse_(V, 0.5)),
    (ValueError, "from 0 to 1", lambda: init.sparse_(M, 1.5)),
    (ValueError, "3, 4 or 5", lambda: init.dirac_(M)), (ValueError, "divide", lambda: init.dirac_(minidl.empty(3, 2, 1), 2)),
    (ValueError, "divide", lambda: init.dirac_(minidl.empty(3, 2, 1), 0)),
    (ValueError, "lower one first", lambda: init.uniform_(M, 1, 0)), (ValueError, "negative", lambda: init.normal_(M, 0, -1)),
    (ValueError, "positive std", lambda: init.trunc_normal_(M, std=0)),
    (ValueError, "a < b", lambda: init.trunc_normal_(M, a=1, b=1)),
    (TypeError, "floating", lambda: init.normal_(minidl.empty(2, 2, dtype=minidl.int64))),
]


@pytest.mark.parametrize("kind, message, call", ERRORS)
def test_errors(kind, message, call):
    with pytest.raises(kind, match=message):
        call()
