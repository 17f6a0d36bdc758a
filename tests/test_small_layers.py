"""Padding, dropout, distances, and layers that move elements: arguments passed on, modes, reprs, errors."""

import numpy as np
import pytest

import minidl
from minidl.autograd import checkpoint
from minidl.nn import dropout, padding
from minidl.nn import functional as F
from minidl.nn.distance import CosineSimilarity, PairwiseDistance
from minidl.nn.dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout
from minidl.nn.padding import CircularPad1d, ConstantPad1d, ConstantPad2d, ReflectionPad1d, ReplicationPad1d, ZeroPad2d
from minidl.nn.shape import (
    ChannelShuffle,
    Flatten,
    Fold,
    PixelShuffle,
    PixelUnshuffle,
    Unflatten,
    Unfold,
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)

NUMPY_MODES = {"Zero": "constant", "Constant": "constant", "Reflection": "reflect", "Replication": "edge", "Circular": "wrap"}
EVERY_DROPOUT = {Dropout: (4, 50), Dropout1d: (4, 20, 3), Dropout2d: (4, 20, 3, 2), Dropout3d: (4, 20, 3, 2, 2),
                 AlphaDropout: (4, 50), FeatureAlphaDropout: (4, 20, 3)}  # and inputs that suit them


def values(*shape):
    rng = np.random.Generator(np.random.Philox(0))
    return minidl.tensor(rng.standard_normal(shape).astype(np.float32))


# Padding

@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", list(NUMPY_MODES))
@pytest.mark.parametrize("lead", [(2, 3), (3,)], ids=["batch", "unbatched"])
@pytest.mark.parametrize("widths", [1, "each"])
def test_pads(n, kind, lead, widths):
    x = values(*lead, *(4, 5, 3)[:n])
    widths = (1, 2, 2, 1, 0, 1)[:2 * n] if widths == "each" else widths
    made = getattr(padding, f"{kind}Pad{n}d")(widths, *([2.5] if kind == "Constant" else []))
    each = (widths,) * (2 * n) if widths == 1 else widths
    pairs = [(0, 0)] * len(lead) + [each[2 * i:2 * i + 2] for i in reversed(range(n))]
    options = {"constant_values": 2.5} if kind == "Constant" else {}
    np.testing.assert_array_equal(made(x).numpy(), np.pad(x.numpy(), pairs, NUMPY_MODES[kind], **options))


def test_negative_widths_cut_off():
    assert ConstantPad1d((-1, 1), 7)(minidl.tensor([1.0, 2.0, 3.0])).tolist() == [2, 3, 7]


@pytest.mark.parametrize("error, call", [
    (ValueError, lambda: ZeroPad2d((1, 2))),
    (ValueError, lambda: ReflectionPad1d((1, 1, 1, 1))),
    (ValueError, lambda: CircularPad1d(1)(values(3))),
    (RuntimeError, lambda: CircularPad1d(4)(values(1, 3))),
    (RuntimeError, lambda: ReflectionPad1d(3)(values(1, 3))),
    (NotImplementedError, lambda: ReplicationPad1d(1)(values(2, 2, 2, 3))),
])
def test_pads_that_do_not_fit(error, call):
    with pytest.raises(error, match="expected"):
        call()


# Dropout

@pytest.mark.parametrize("kind", list(EVERY_DROPOUT))
def test_dropout_in_evaluation_is_the_input(kind):
    x = values(*EVERY_DROPOUT[kind])
    assert kind(0.7).eval()(x) is x


def test_dropout_drops_the_rate_and_scales_the_rest():
    minidl.manual_seed(0)
    y = Dropout(0.25)(minidl.ones(100, 100)).numpy()
    assert set(np.unique(y)) == {0, np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02


@pytest.mark.parametrize("kind, shape", [(Dropout1d, (8, 4, 5)), (Dropout1d, (32, 5)), (Dropout2d, (8, 4, 5, 2)),
                                         (Dropout3d, (8, 4, 2, 3, 2)), (FeatureAlphaDropout, (8, 4, 5))])
def test_whole_channels_are_dropped(kind, shape):
    minidl.manual_seed(0)
    y = kind(0.5)(minidl.ones(*shape)).numpy().reshape(32, -1)
    assert (y == y[:, :1]).all() and len(np.unique(y)) == 2


def test_alpha_dropout_keeps_mean_and_variance():
    minidl.manual_seed(0)
    y = AlphaDropout(0.2)(minidl.randn(200, 200)).numpy()
    assert abs(y.mean()) < 0.02 and abs(y.var() - 1) < 0.02


@pytest.mark.parametrize("kind", list(EVERY_DROPOUT))
def test_dropout_in_place(kind):
    minidl.manual_seed(0)
    x = minidl.ones(*EVERY_DROPOUT[kind])
    before = x.numpy().copy()
    kind(0.5, inplace=True)(x)
    assert (x.numpy() != before).any()


def test_dropout_follows_the_seed_and_checkpoints_repeat_it():
    drop, x = Dropout(), minidl.ones(50).requires_grad_()
    minidl.manual_seed(1)
    first = drop(x).numpy()
    minidl.manual_seed(1)
    y = checkpoint(lambda t: drop(t), x)
    y.sum().backward()
    np.testing.assert_array_equal(first, y.numpy())
    np.testing.assert_array_equal(first, x.grad.numpy())


@pytest.mark.parametrize("kind", list(EVERY_DROPOUT))
@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_probabilities_lie_between_0_and_1(kind, p):
    with pytest.raises(ValueError, match=f"{kind.__name__} expected p.*got {p}"):
        kind(p)


@pytest.mark.parametrize("name", dropout.__all__)
def test_repr_of_dropout(name):
    assert repr(getattr(dropout, name)(0.1, True)) == f"{name}(p=0.1, inplace=True)"


# Moved elements

def test_flatten_and_unflatten():
    x = values(2, 3, 4, 5)
    assert Flatten()(x).shape == (2, 60)
    assert Flatten(0, -2)(x).shape == (24, 5)
    assert Unflatten(1, (3, -1))(Flatten()(x)).shape == (2, 3, 20)
    np.testing.assert_array_equal(Unflatten(-1, [3, 4, 5])(Flatten()(x)).numpy(), x.numpy())


@pytest.mark.parametrize("dim, size", [("C", (2, 2)), (True, (2, 2)), (1, 4), (1, (2.0, 2))])
def test_unflatten_expects_integers(dim, size):
    with pytest.raises(TypeError, match="Unflatten expected"):
        Unflatten(dim, size)


def test_pixel_shuffle_and_back():
    x = minidl.tensor(np.arange(4.0).reshape(1, 4, 1, 1))
    assert PixelShuffle(2)(x).tolist() == [[[[0, 1], [2, 3]]]]
    np.testing.assert_array_equal(PixelUnshuffle(2)(PixelShuffle(2)(x)).numpy(), x.numpy())


def test_channel_shuffle():
    assert ChannelShuffle(2)(minidl.tensor(np.arange(6.0).reshape(1, 6, 1))).reshape(-1).tolist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("arguments", [
    {"size": (3, 7)}, {"scale_factor": 2}, {"scale_factor": (2, 1.5), "mode": "bilinear", "align_corners": True},
    {"scale_factor": 1.3, "mode": "bicubic", "recompute_scale_factor": True}, {"size": 2, "mode": "area"},
], ids=str)
def test_upsample(arguments):
    x = values(2, 3, 4, 5)
    np.testing.assert_array_equal(Upsample(**arguments)(x).numpy(), F.interpolate(x, **arguments).numpy())


def test_upsampling_by_name():
    x = values(1, 1, 2, 3)
    np.testing.assert_array_equal(UpsamplingNearest2d(scale_factor=2)(x).numpy(), x.numpy().repeat(2, 2).repeat(2, 3))
    y = UpsamplingBilinear2d((3, 3))(x).numpy()
    np.testing.assert_allclose(y[0, 0, 1], x.numpy()[0, 0].mean(0), rtol=1e-6)


def test_fold_adds_up_what_unfold_takes_apart():
    x = values(2, 3, 4, 5)
    arguments = dict(kernel_size=(2, 3), dilation=(2, 1), padding=1, stride=2)
    columns = Unfold(**arguments)(x)
    assert columns.shape == (2, 3 * 6, 2 * 3)
    counts = Fold((4, 5), **arguments)(Unfold(**arguments)(minidl.ones(2, 3, 4, 5)))
    np.testing.assert_allclose(Fold((4, 5), **arguments)(columns).numpy(), (x * counts).numpy(), rtol=1e-5, atol=1e-6)
    assert Unfold(2)(x[0]).shape == (12, 12)


# Distances

def test_cosine_similarity():
    a, b = minidl.tensor([[3.0, 4.0], [0.0, 0.0]]), minidl.tensor([[4.0, 3.0], [1.0, 1.0]])
    np.testing.assert_allclose(CosineSimilarity()(a, b).numpy(), [0.96, 0], rtol=1e-6)
    np.testing.assert_allclose(CosineSimilarity(dim=0)(a, b).numpy(), [4 / 17 ** 0.5, 3 / 10 ** 0.5], rtol=1e-6)
    np.testing.assert_allclose(CosineSimilarity(eps=100.0)(a, b).numpy(), [24 / 100 ** 2, 0], rtol=1e-6)


def test_pairwise_distance():
    a, b = minidl.tensor([[3.0, 0.0]]), minidl.tensor([[0.0, 4.0]])
    np.testing.assert_allclose(PairwiseDistance()(a, b).numpy(), [5], rtol=1e-5)
    np.testing.assert_allclose(PairwiseDistance(1.0, eps=0.5, keepdim=True)(a, b).numpy(), [[7]], rtol=1e-6)


@pytest.mark.parametrize("made, shown", [
    (ConstantPad2d(1, 0.5), "ConstantPad2d(padding=(1, 1, 1, 1), value=0.5)"), (ZeroPad2d(1), "ZeroPad2d((1, 1, 1, 1))"),
    (ReflectionPad1d((1, 0)), "ReflectionPad1d((1, 0))"), (Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
    (Unflatten(1, (2, -1)), "Unflatten(dim=1, unflattened_size=(2, -1))"), (PixelShuffle(2), "PixelShuffle(upscale_factor=2)"),
    (PixelUnshuffle(2), "PixelUnshuffle(downscale_factor=2)"), (ChannelShuffle(2), "ChannelShuffle(groups=2)"),
    (Upsample(scale_factor=2), "Upsample(scale_factor=2.0, mode='nearest')"),
    (UpsamplingBilinear2d((2, 3)), "UpsamplingBilinear2d(size=(2, 3), mode='bilinear')"),
    (Fold((4, 5), 2), "Fold(output_size=(4, 5), kernel_size=2, dilation=1, padding=0, stride=1)"),
    (Unfold(2, padding=1), "Unfold(kernel_size=2, dilation=1, padding=1, stride=1)"),
    (CosineSimilarity(), "CosineSimilarity()"), (PairwiseDistance(), "PairwiseDistance()"),
], ids=lambda x: type(x).__name__)
def test_repr(made, shown):
    assert repr(made) == shown
