"""Transforms of images: what they do to one image and to a batch, dtypes, reproducible draws, errors."""

import math

import numpy as np
import pytest

import minidl
import minidl.nn.functional as F
from minidl.data.erasing import Cutout, RandomErasing
from minidl.data.image_transforms import (
    CenterCrop,
    RandomCrop,
    RandomHorizontalFlip,
    RandomRotation,
    RandomShift,
    RandomVerticalFlip,
)
from minidl.data.mixing import cutmix, mixup
from minidl.data.transforms import Compose, ConvertImageDtype, ImageTransform, Lambda, Normalize, ToTensor
from minidl.data.whitening import PCAWhitening, ZCAWhitening
from minidl.tensor.random import Generator


def seeded(seed=0):
    return Generator().manual_seed(seed)


def images(n=6, c=3, h=8, w=7, dtype=np.uint8):
    """Images all of whose pixels differ, none of them zero."""
    return (np.arange(n * c * h * w).reshape(n, c, h, w) % 250 + 1).astype(dtype)


GEOMETRIC = {
    "crop": lambda g: RandomCrop((5, 4), padding=2, generator=g),
    "flip": lambda g: RandomHorizontalFlip(generator=g),
    "upside down": lambda g: RandomVerticalFlip(generator=g),
    "shift": lambda g: RandomShift(2, generator=g),
    "rotation": lambda g: RandomRotation(30, generator=g),
    "cutout": lambda g: Cutout(3, count=2, generator=g),
    "erasing": lambda g: RandomErasing(generator=g),
    "centre": lambda g: CenterCrop(4),
}


# What all have in common

@pytest.mark.parametrize("make", GEOMETRIC.values(), ids=GEOMETRIC)
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float32, np.float64])
def test_dtype_is_kept_and_the_input_is_left_alone(make, dtype):
    x = images(dtype=dtype)
    before = x.copy()
    y = make(seeded())(x)
    assert y.dtype == dtype
    assert not np.shares_memory(x, y)
    assert np.array_equal(x, before)


@pytest.mark.parametrize("make", GEOMETRIC.values(), ids=GEOMETRIC)
def test_the_generator_decides(make):
    x = images(n=20)
    assert np.array_equal(make(seeded(1))(x), make(seeded(1))(x))


@pytest.mark.parametrize("name", [name for name in GEOMETRIC if name != "centre"])
def test_another_seed_gives_another_result(name):
    x = images(n=20)
    assert not np.array_equal(GEOMETRIC[name](seeded(1))(x), GEOMETRIC[name](seeded(2))(x))


@pytest.mark.parametrize("name", [name for name in GEOMETRIC if name != "centre"])
def test_without_a_generator_manual_seed_decides(name):
    x, transform = images(n=20), GEOMETRIC[name](None)
    minidl.manual_seed(3)
    first, second = transform(x), transform(x)
    minidl.manual_seed(3)
    assert np.array_equal(first, transform(x))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("make", GEOMETRIC.values(), ids=GEOMETRIC)
def test_an_image_is_a_batch_of_one(make):
    x = images()
    assert np.array_equal(make(seeded(5))(x[0]), make(seeded(5))(x[:1])[0])


@pytest.mark.parametrize("make", GEOMETRIC.values(), ids=GEOMETRIC)
def test_tensors_give_tensors(make):
    x = images(dtype=np.float32)
    y = make(seeded(5))(minidl.tensor(x))
    assert isinstance(y, minidl.Tensor)
    assert np.array_equal(y.numpy(), make(seeded(5))(x))


@pytest.mark.parametrize("make", GEOMETRIC.values(), ids=GEOMETRIC)
def test_an_empty_batch_stays_empty(make):
    y = make(seeded())(images()[:0])
    assert y.shape[:2] == (0, 3) and y.dtype == np.uint8


@pytest.mark.parametrize("make", GEOMETRIC.values(), ids=GEOMETRIC)
@pytest.mark.parametrize("bad, error, message", [
    (np.zeros((4, 4)), ValueError, r"expected an image of shape \(C, H, W\) or a batch .* got shape \(4, 4\)"),
    (np.zeros((1, 1, 1, 4, 4)), ValueError, "got shape"),
    ([[1.0]], TypeError, "expected a NumPy array or a tensor, got list"),
    (minidl.ones(1, 8, 8, requires_grad=True), TypeError, r"detach\(\)"),
])
def test_other_inputs_are_refused(make, bad, error, message):
    with pytest.raises(error, match=message):
        make(seeded())(bad)


# Crops and shifts

def test_random_crop_gives_windows_of_the_image_and_each_image_its_own():
    x = images(n=200, c=2, h=5, w=6)
    y = RandomCrop((3, 2), generator=seeded())(x)
    places = set()
    for before, after in zip(x, y):
        found = [(top, left) for top in range(3) for left in range(5)
                 if np.array_equal(before[:, top:top + 3, left:left + 2], after)]
        assert len(found) == 1
        places.add(found[0])
    assert places == {(top, left) for top in range(3) for left in range(5)}


def test_random_crop_pads_with_left_top_right_bottom():
    x = np.ones((1, 2, 2), np.float32)
    y = RandomCrop((5, 6), padding=(1, 2, 3, 1), fill=(7,))(x)
    expected = np.pad(x, ((0, 0), (2, 1), (1, 3)), constant_values=7)
    assert np.array_equal(y, expected)


def test_random_crop_takes_two_paddings_as_left_right_and_top_bottom():
    x = np.ones((1, 2, 2))
    assert np.array_equal(RandomCrop((6, 4), padding=(1, 2))(x), np.pad(x, ((0, 0), (2, 2), (1, 1))))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric"])
def test_random_crop_pads_in_other_modes(mode):
    x = images(1, 2, 4, 5)[0]
    y = RandomCrop((8, 9), padding=2, padding_mode=mode)(x)
    assert np.array_equal(y, np.pad(x, ((0, 0), (2, 2), (2, 2)), mode))


def test_fill_is_given_channel_by_channel():
    y = RandomCrop(3, padding=1, fill=(1, 2), generator=seeded())(np.zeros((2, 1, 1), np.uint8))
    assert sorted(y[0].ravel()) == [0] + [1] * 8 and sorted(y[1].ravel()) == [0] + [2] * 8


def test_random_crop_pads_if_needed():
    assert RandomCrop(5, pad_if_needed=True)(np.ones((1, 3, 9))).shape == (1, 5, 5)


def test_random_crop_refuses_an_image_that_is_too_small():
    with pytest.raises(ValueError, match=r"RandomCrop expected images of at least \(5, 5\) pixels, got \(3, 9\)"):
        RandomCrop(5)(np.ones((1, 3, 9)))


@pytest.mark.parametrize("make, message", [
    (lambda: RandomCrop(0), "size as one or two integers of at least 1"),
    (lambda: RandomCrop((1, 2, 3)), "size"),
    (lambda: RandomCrop(2.5), "float|size"),
    (lambda: RandomCrop(2, padding=-1), "padding"),
    (lambda: RandomCrop(2, padding=(1, 2, 3)), "1, 2 or 4 integers"),
    (lambda: RandomCrop(2, padding_mode="wrap"), "padding_mode to be one of 'constant'"),
    (lambda: RandomCrop(9, padding=2, fill=-1)(images()), "fill value that uint8 holds, got -1"),
    (lambda: RandomCrop(9, padding=2, fill=(1, 2))(images()), "1 or 3 values for images of 3 channels, got 2"),
    (lambda: RandomShift(8, padding_mode="reflect")(images()), "less padding"),
    (lambda: RandomHorizontalFlip(1.5), r"probability p in \[0, 1\], got 1.5"),
    (lambda: RandomRotation(-3), "degrees"),
    (lambda: RandomRotation((4, math.inf)), "degrees"),
    (lambda: Cutout(0), "at least 1"),
    (lambda: RandomErasing(scale=(0.5, 0.1)), "scale"),
    (lambda: RandomErasing(ratio=(0, 1)), "ratio"),
    (lambda: RandomErasing(value="noise"), "'random'"),
])
def test_arguments_that_make_no_sense_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize("size, expected", [
    ((2, 3), lambda x: x[:, 2:4, 2:5]),  # 1.5 is rounded to 2, as in torchvision
    ((1, 2), lambda x: x[:, 2:3, 2:4]),  # and so is 2.5
    ((6, 9), lambda x: np.pad(x, ((0, 0), (0, 0), (1, 2)))),
])
def test_center_crop(size, expected):
    x = images(1, 2, 6, 6)[0]
    assert np.array_equal(CenterCrop(size)(x), expected(x))


def test_random_shift_moves_by_up_to_k():
    x = np.zeros((500, 1, 5, 5), np.uint8)
    x[:, 0, 2, 2] = 9
    y = RandomShift((2, 1), generator=seeded())(x)
    assert y.shape == x.shape
    at = {tuple(int(i) for i in np.argwhere(image[0])[0]) for image in y}
    assert at == {(row, column) for row in range(5) for column in (1, 2, 3)}


# Flips

@pytest.mark.parametrize("kind, axis", [(RandomHorizontalFlip, -1), (RandomVerticalFlip, -2)])
def test_flips_mirror_some_images_of_a_batch(kind, axis):
    x = images(n=400, c=1, h=3, w=3)
    y = kind(0.25, generator=seeded())(x)
    flipped = (y == np.flip(x, axis)).all((1, 2, 3))
    kept = (y == x).all((1, 2, 3))
    assert (flipped ^ kept).all()
    assert 70 <= flipped.sum() <= 130


@pytest.mark.parametrize("p", [0, 1])
def test_flips_with_certainty(p):
    x = images()
    assert np.array_equal(RandomHorizontalFlip(p)(x), x[..., ::-1] if p else x)


# Rotation

@pytest.mark.parametrize("degrees, turns", [(0, 0), (90, 1), (180, 2), (-90, 3)])
@pytest.mark.parametrize("side", [5, 6])
def test_rotation_by_right_angles_is_counter_clockwise(degrees, turns, side):
    x = images(2, 3, side, side)
    assert np.array_equal(RandomRotation((degrees, degrees))(x), np.rot90(x, turns, (2, 3)))


def test_rotation_interpolates_between_four_pixels():
    x = np.random.default_rng(0).random((1, 7, 6))
    y = RandomRotation((20, 20), fill=0.5)(x)[0]
    cos, sin = math.cos(math.radians(20)), math.sin(math.radians(20))
    padded = np.pad(x[0], 9, constant_values=0.5)
    for row in range(7):
        for column in range(6):
            down, right = row - 3, column - 2.5
            a, b = cos * down + sin * right + 3 + 9, cos * right - sin * down + 2.5 + 9
            i, j = int(a), int(b)
            expected = ((i + 1 - a) * ((j + 1 - b) * padded[i, j] + (b - j) * padded[i, j + 1])
                        + (a - i) * ((j + 1 - b) * padded[i + 1, j] + (b - j) * padded[i + 1, j + 1]))
            assert y[row, column] == pytest.approx(expected, abs=1e-12)


def test_rotation_rounds_integers():
    x = np.full((1, 9, 9), 255, np.uint8)
    y = RandomRotation((45, 45))(x)
    assert y[0, 4, 4] == 255 and y[0, 0, 0] == 0 and y.dtype == np.uint8


def test_rotation_draws_an_angle_for_each_image():
    x = np.broadcast_to(images(1), (5, 3, 8, 7))
    y = RandomRotation(90, generator=seeded())(x)
    assert len({image.tobytes() for image in y}) == 5


# Erasing

def test_cutout_paints_squares_cut_off_at_the_edge():
    y = Cutout(3, generator=seeded())(np.ones((300, 2, 6, 6), np.float32))
    sizes = set()
    for image in y:
        rows, columns = np.nonzero(image[0] == 0)
        assert np.array_equal(image[0], image[1])
        height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
        assert len(rows) == height * width
        sizes.add((int(height), int(width)))
    assert sizes == {(2, 2), (2, 3), (3, 2), (3, 3)}


def test_random_erasing_paints_one_box_of_the_area_and_ratio_asked_for():
    y = RandomErasing(1, (0.1, 0.3), (0.5, 2), value=(5, 6), generator=seeded())(np.zeros((200, 2, 40, 40), np.uint8))
    for image in y:
        rows, columns = np.nonzero(image[0])
        height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
        assert len(rows) == height * width
        assert 0.08 <= len(rows) / 1600 <= 0.33 and 0.45 <= height / width <= 2.2
        assert image[0].max() == 5 and image[1].max() == 6


def test_random_erasing_happens_with_its_probability():
    y = RandomErasing(0.25, generator=seeded())(np.ones((400, 1, 16, 16), np.float32))
    assert 70 <= (y == 0).any((1, 2, 3)).sum() <= 130


def test_random_erasing_does_nothing_where_no_box_fits():
    x = images(4)
    assert np.array_equal(RandomErasing(1, (1, 1), (1, 1))(x), x)


def test_random_erasing_paints_noise():
    y = RandomErasing(1, (0.2, 0.2), value="random", generator=seeded())(np.full((50, 1, 20, 20), 9, np.float16))
    noise = y[y != 9].astype(float)
    assert y.dtype == np.float16 and abs(noise.mean()) < 0.1 and 0.9 < noise.std() < 1.1


def test_random_erasing_refuses_noise_in_integers():
    with pytest.raises(TypeError, match="floating images"):
        RandomErasing(1, value="random")(images())


# Conversions, normalization, composition

@pytest.mark.parametrize("shape, expected", [((4, 5), (1, 4, 5)), ((4, 5, 3), (3, 4, 5)), ((2, 4, 5, 3), (2, 3, 4, 5))])
def test_to_tensor_puts_channels_first_and_scales_bytes(shape, expected):
    x = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    y = ToTensor()(x)
    assert isinstance(y, minidl.Tensor) and y.shape == expected and y.dtype == minidl.float32
    moved = x[None] if x.ndim == 2 else np.moveaxis(x, -1, -3)
    assert np.array_equal(y.numpy(), (moved / np.float32(255)).astype(np.float32))


def test_to_tensor_keeps_other_dtypes_and_copies():
    x = np.full((2, 2, 1), 300.0)
    y = ToTensor()(x)
    x[:] = 0
    assert y.dtype == minidl.float64 and (y.numpy() == 300).all()


@pytest.mark.parametrize("bad", [np.zeros(3), minidl.zeros(3, 3), "picture"])
def test_to_tensor_refuses_what_is_no_image(bad):
    with pytest.raises(TypeError, match="ToTensor expected"):
        ToTensor()(bad)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_convert_image_dtype_there_and_back(dtype):
    x = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    floats = ConvertImageDtype(dtype)(x)
    assert floats.dtype == dtype and floats.min() == 0 and floats.max() == 1
    assert np.array_equal(ConvertImageDtype(minidl.uint8)(floats), x)


@pytest.mark.parametrize("x, target, error", [
    (np.array([[[1.5]]]), minidl.uint8, ValueError), (np.array([[[np.nan]]]), minidl.uint8, ValueError),
    (np.zeros((1, 1, 1), np.uint8), minidl.int32, TypeError)])
def test_convert_image_dtype_refuses_what_would_lose_values(x, target, error):
    with pytest.raises(error, match="ConvertImageDtype"):
        ConvertImageDtype(target)(x)


@pytest.mark.parametrize("dtype, tolerance", [(np.float16, 2e-3), (np.float32, 1e-6), (np.float64, 1e-14)])
def test_normalize(dtype, tolerance):
    x = np.random.default_rng(0).random((4, 3, 5, 5)).astype(dtype)
    mean, std = np.array([0.1, 0.5, 0.9]), np.array([0.5, 1, 2])
    y = Normalize(mean.tolist(), std.tolist())(x)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, (x.astype(float) - mean[:, None, None]) / std[:, None, None], tolerance, tolerance)


def test_normalize_with_one_number_for_all_channels():
    assert np.array_equal(Normalize(1, 2)(np.full((3, 1, 1), 5.0)), np.full((3, 1, 1), 2.0))


def test_normalize_in_half_precision_does_not_overflow_on_the_way():
    assert Normalize(-60000, 4)(np.full((1, 1, 1), 60000, np.float16)).item() == 30000


@pytest.mark.parametrize("make, error, message", [
    (lambda: Normalize(0, 0), ValueError, "deviations other than zero"),
    (lambda: Normalize([0, math.nan], 1), ValueError, "finite"),
    (lambda: Normalize([[0]], 1), ValueError, "one for each channel"),
    (lambda: Normalize([0, 1], 1)(images(dtype=np.float32)), ValueError, "1 or 3 values"),
    (lambda: Normalize(0, 1)(images()), TypeError, "ConvertImageDtype first"),
    (lambda: Compose([3]), TypeError, "Compose expected callables"),
    (lambda: Lambda("x"), TypeError, "Lambda expected callables"),
    (lambda: ImageTransform()(images()), NotImplementedError, "lacks apply"),
])
def test_errors_of_normalize_and_composition(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_compose_goes_from_first_to_last():
    assert Compose([Lambda(lambda x: x + 1), lambda x: x * 10])(2) == 30
    assert Compose([])(5) == 5


# mixup and CutMix

def test_mixup_mixes_samples_and_targets_in_the_same_part():
    n = 8
    x = np.eye(n, dtype=np.float32)
    mixed, soft = mixup(x, np.arange(n), n, generator=seeded(1))
    np.testing.assert_allclose(mixed, soft, atol=1e-6)
    np.testing.assert_allclose(soft.sum(1), 1, atol=1e-6)
    assert soft.dtype == np.float32 and 1 < np.count_nonzero(soft, 1).max() <= 2


def test_mixup_in_tensors_feeds_cross_entropy():
    x, y = minidl.tensor(images(dtype=np.float16)), minidl.tensor([0, 1, 2, 0, 1, 2])
    mixed, soft = mixup(x, y, 3, alpha=0.4, generator=seeded())
    assert mixed.dtype == minidl.float16 and mixed.shape == x.shape and soft.dtype == minidl.float32
    logits = minidl.zeros(6, 3)
    assert F.cross_entropy(logits, soft).item() == pytest.approx(math.log(3), rel=1e-6)


def test_mixup_mixes_soft_targets_again():
    soft = np.full((4, 2), 0.5)
    assert np.allclose(mixup(np.zeros((4, 3)), soft, generator=seeded())[1], 0.5)


def test_mixup_is_reproducible():
    x = np.random.default_rng(0).random((5, 3))
    first, second = (mixup(x, np.arange(5), 5, generator=seeded(4)) for _ in range(2))
    assert np.array_equal(first[0], second[0]) and np.array_equal(first[1], second[1])


def test_cutmix_pastes_a_box_and_mixes_targets_by_its_area():
    n = 6
    x = np.broadcast_to(np.arange(n, dtype=np.uint8)[:, None, None, None], (n, 2, 10, 12))
    boxes = 0
    for seed in range(10):
        mixed, soft = cutmix(x, np.arange(n), n, generator=seeded(seed))
        assert mixed.dtype == np.uint8
        for image, target in zip(mixed, soft):
            shares = np.bincount(image[0].ravel(), minlength=n) / 120
            np.testing.assert_allclose(target, shares, atol=1e-6)
            boxes += np.count_nonzero(shares) == 2
    assert boxes > 20


@pytest.mark.parametrize("mix", [mixup, cutmix])
@pytest.mark.parametrize("y, classes, options, message", [
    ([0, 1], None, {}, "num_classes"), ([0, 3], 3, {}, r"classes in \[0, 3\), got some in \[0, 3\]"),
    ([0, -1], 3, {}, "classes in"),
    ([0, 1, 2], 3, {}, "got shapes"), ([0.0, 1.0], 3, {}, "integer classes"), ([[1.0, 0], [0, 1]], 3, {}, "soft targets"),
    ([0, 1], 2, {"alpha": 0}, "alpha above 0")])
def test_mixing_refuses_targets_that_do_not_fit(mix, y, classes, options, message):
    with pytest.raises(ValueError, match=message):
        mix(np.zeros((2, 1, 4, 4)), np.array(y), classes, **options)


def test_mixup_refuses_integers():
    with pytest.raises(TypeError, match="ConvertImageDtype first"):
        mixup(images(2), np.array([0, 1]), 2)


def test_cutmix_refuses_what_are_no_images():
    with pytest.raises(ValueError, match=r"\(N, C, H, W\)"):
        cutmix(np.zeros((2, 3)), np.array([0, 1]), 2)


# Whitening

def correlated(n=400, shape=(2, 3)):
    rng = np.random.default_rng(0)
    return (rng.standard_normal((n, 6)) @ rng.standard_normal((6, 6)) + 3).reshape(n, *shape)


@pytest.mark.parametrize("kind", [PCAWhitening, ZCAWhitening])
def test_whitened_features_are_uncorrelated_with_variance_one(kind):
    x = correlated()
    y = kind(epsilon=0).fit(x).transform(x).reshape(len(x), -1)
    np.testing.assert_allclose(np.cov(y.T), np.eye(6), atol=1e-9)
    np.testing.assert_allclose(y.mean(0), 0, atol=1e-9)


@pytest.mark.parametrize("kind", [PCAWhitening, ZCAWhitening])
def test_whitening_can_be_undone(kind):
    x = correlated()
    whitening = kind().fit(x)
    np.testing.assert_allclose(whitening.inverse_transform(whitening(x)), x, atol=1e-9)


def test_zca_is_the_symmetric_whitening():
    x = correlated()
    whitening = ZCAWhitening(epsilon=0.1).fit(x)
    flat = x.reshape(len(x), -1)
    values, vectors = np.linalg.eigh(np.cov(flat.T))
    expected = (flat - flat.mean(0)) @ (vectors / np.sqrt(values + 0.1)) @ vectors.T
    np.testing.assert_allclose(whitening(x), expected.reshape(x.shape), atol=1e-9)


def test_pca_keeps_the_components_of_the_largest_variance():
    x = correlated()
    whitening = PCAWhitening(2).fit(x)
    assert whitening(x).shape == (400, 2)
    np.testing.assert_allclose(whitening.variances, np.linalg.eigvalsh(np.cov(x.reshape(400, -1).T))[:-3:-1])


@pytest.mark.parametrize("kind", [PCAWhitening, ZCAWhitening])
def test_whitening_takes_one_sample_as_a_batch_of_one(kind):
    x = correlated()
    whitening = kind().fit(x)
    np.testing.assert_allclose(whitening(x[3]), whitening(x[3:4])[0])


def test_whitening_gives_the_kind_and_dtype_of_its_input():
    x = correlated().astype(np.float32)
    y = ZCAWhitening().fit(minidl.tensor(x))(minidl.tensor(x))
    assert isinstance(y, minidl.Tensor) and y.dtype == minidl.float32
    assert PCAWhitening().fit(images())(images()).dtype == np.float32


def test_a_constant_feature_does_not_divide_by_zero():
    x = np.concatenate([correlated().reshape(400, 6), np.ones((400, 1))], 1)
    assert np.isfinite(PCAWhitening(epsilon=0).fit(x)(x)).all()


@pytest.mark.parametrize("make, error, message", [
    (lambda: PCAWhitening()(np.zeros(3)), RuntimeError, "call fit"),
    (lambda: ZCAWhitening().inverse_transform(np.zeros(3)), RuntimeError, "call fit"),
    (lambda: PCAWhitening().fit(np.zeros((1, 3))), ValueError, "at least 2 samples"),
    (lambda: PCAWhitening().fit(np.full((3, 3), np.inf)), ValueError, "finite"),
    (lambda: PCAWhitening(9).fit(np.zeros((3, 4))), ValueError, "at most 4 components"),
    (lambda: PCAWhitening(0), ValueError, "at least 1"),
    (lambda: PCAWhitening(epsilon=-1), ValueError, "epsilon"),
    (lambda: PCAWhitening().fit(np.eye(3))(np.zeros((5, 4))), ValueError, r"shape \(3,\) or a batch of them, got"),
])
def test_errors_of_whitening(make, error, message):
    with pytest.raises(error, match=message):
        make()
