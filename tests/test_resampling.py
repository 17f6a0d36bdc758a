"""Interpolation and grid sampling: dtypes, empties, ties, what is not finite, errors."""

import warnings

import numpy as np
import pytest

import minidl
from minidl.tensor.ops.resampling import affine_grid, grid_sample, interpolate, upsample_bilinear

IMAGE = np.arange(12.0).reshape(1, 1, 3, 4)


@pytest.mark.parametrize("mode, size, values", [
    ("nearest", 2, [0, 100]),
    ("nearest-exact", 2, [57, 205]),
    ("bilinear", 2, [29, 153]),
    ("bilinear", 1, [79]),
])
def test_bytes_are_resized_as_bytes(mode, size, values):
    """Halves are rounded up: 28.5, 152.5 and 78.5."""
    y = interpolate(minidl.tensor(np.array([[[[0, 57, 100, 205]]]], np.uint8)), (1, size), mode=mode)
    assert y.dtype == minidl.uint8 and y.numpy().ravel().tolist() == values


def test_bicubic_bytes_do_not_wrap_around():
    x = minidl.tensor(np.array([[[[0, 0, 255, 255]]]], np.uint8))
    y = interpolate(x, (1, 16), mode="bicubic").numpy().ravel().astype(int)
    assert (np.diff(y[2:14]) >= -12).all() and y[0] == 0 and y[-1] == 255


def test_a_value_that_is_not_finite_touches_only_its_neighbours():
    x = minidl.tensor(np.array([[[1.0, 2, np.nan, 4, 5, 6]]]))
    y = interpolate(x, 12, mode="linear").numpy().ravel()
    assert np.isnan(y).sum() == 4 and np.isnan(y[3:7]).all()
    z = interpolate(minidl.tensor([[[1.0, 2, np.inf, 4]]]), 2, mode="area").numpy().ravel()
    assert z.tolist() == [1.5, np.inf]


def test_infinite_gradients_stay_where_they_come_from():
    x = minidl.zeros(1, 1, 5, requires_grad=True)
    interpolate(x, 3, mode="nearest").backward(minidl.tensor([[[1.0, np.inf, 1]]]))
    assert x.grad.numpy().ravel().tolist() == [1, np.inf, 0, 1, 0]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "area"])
def test_halves_are_rounded_once(mode):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 1, 6, 6)).astype(np.float16)
    exact = interpolate(minidl.tensor(x.astype(np.float64)), (9, 4), mode=mode).numpy()
    half = interpolate(minidl.tensor(x), (9, 4), mode=mode).numpy()
    assert half.dtype == np.float16 and (np.abs(half - exact) <= np.spacing(np.abs(half)) * 0.51 + 1e-6).all()


def test_halves_near_the_largest_do_not_overflow():
    x = minidl.full((1, 1, 4, 4), 6e4, dtype=minidl.float16)
    assert np.isfinite(interpolate(x, 1, mode="area").numpy()).all()
    assert np.isfinite(grid_sample(x, minidl.zeros(1, 1, 1, 2, dtype=minidl.float16), align_corners=False).numpy()).all()


def test_a_size_that_stays_is_a_copy():
    x = minidl.tensor(IMAGE)
    for mode in ("nearest", "bilinear", "bicubic", "area"):
        y = interpolate(x, (3, 4), mode=mode)
        np.testing.assert_array_equal(y.numpy(), IMAGE)
        assert not np.shares_memory(y.numpy(), x.numpy())


def test_empty_batches():
    assert interpolate(minidl.zeros(0, 2, 3), 5).shape == (0, 2, 5)
    assert upsample_bilinear(minidl.zeros(0, 2, 3, 3), scale_factor=2).shape == (0, 2, 6, 6)
    assert interpolate(minidl.zeros(1, 2, 3), 0, mode="area").shape == (1, 2, 0)
    assert grid_sample(minidl.zeros(0, 2, 3, 3), minidl.zeros(0, 4, 5, 2), align_corners=False).shape == (0, 2, 4, 5)
    assert grid_sample(minidl.zeros(1, 2, 3, 3), minidl.zeros(1, 0, 5, 2), align_corners=False).shape == (1, 2, 0, 5)


@pytest.mark.parametrize("padding, expected", [("zeros", [0, 0, 0, 0]), ("border", [8, 4, 11, 4])])
def test_grid_points_far_away_or_not_finite(padding, expected):
    grid = minidl.tensor(np.array([[[[-1e20, 1e9], [np.nan, 0], [np.inf, 1], [-np.inf, 0]]]]))
    y = grid_sample(minidl.tensor(IMAGE), grid, "nearest", padding, align_corners=False)
    assert y.numpy().ravel().tolist() == expected


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_grid_points_that_are_not_finite_give_nan(mode):
    grid = minidl.tensor(np.array([[[[np.nan, 0], [np.inf, 0], [0, 0], [1e20, 0]]]]))
    y = grid_sample(minidl.tensor(IMAGE), grid, mode, align_corners=False)
    assert np.isnan(y.numpy().ravel()).tolist() == [True, True, False, False] and y.numpy().ravel()[3] == 0


def test_the_grid_has_no_gradient_at_a_border_that_holds_it():
    grid = minidl.tensor([[[[-1.0, 0.1], [1.0, 0.1], [2.0, 0.1]]]], requires_grad=True)
    grid_sample(minidl.tensor(IMAGE.astype(np.float32)), grid, padding_mode="border", align_corners=True).sum().backward()
    assert grid.grad.numpy()[..., 0].ravel().tolist() == [0, 0, 0] and (grid.grad.numpy()[..., 1] > 0).all()


def test_nearest_sampling_gives_the_grid_a_zero_gradient():
    grid = minidl.zeros(1, 1, 2, 2, requires_grad=True)
    grid_sample(minidl.ones(1, 1, 3, 3), grid, "nearest", align_corners=True).sum().backward()
    assert not grid.grad.numpy().any()


def test_nearest_sampling_takes_the_even_pixel_of_two():
    grid = minidl.tensor([[[[-0.5, 0.0], [0.5, 0.0]]]], dtype=minidl.float64)
    y = grid_sample(minidl.tensor(IMAGE[..., :3]), grid, "nearest", align_corners=True)
    assert y.numpy().ravel().tolist() == [4, 6]


def test_what_an_identity_samples_is_the_image():
    theta = minidl.tensor([[[1.0, 0, 0], [0, 1, 0]]], dtype=minidl.float64)
    for align in (False, True):
        y = grid_sample(minidl.tensor(IMAGE), affine_grid(theta, (1, 1, 3, 4), align), align_corners=align)
        np.testing.assert_allclose(y.numpy(), IMAGE, atol=1e-12)


def test_a_missing_align_corners_is_warned_about():
    with pytest.warns(UserWarning, match="align_corners"):
        grid_sample(minidl.ones(1, 1, 2, 2), minidl.zeros(1, 1, 1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        affine_grid(minidl.ones(1, 2, 3), (1, 1, 2, 2), False)


@pytest.mark.parametrize("call, error", [
    (lambda x: interpolate(x), ValueError),
    (lambda x: interpolate(x, 3, 2.0), ValueError),
    (lambda x: interpolate(x, (3,)), ValueError),
    (lambda x: interpolate(x, scale_factor=(1, 2, 3)), ValueError),
    (lambda x: interpolate(x, 3, recompute_scale_factor=True), ValueError),
    (lambda x: interpolate(x, 3, align_corners=False), ValueError),
    (lambda x: interpolate(x, 3, antialias=True), ValueError),
    (lambda x: interpolate(x, 0), RuntimeError),
    (lambda x: interpolate(x, scale_factor=0.1), RuntimeError),
    (lambda x: interpolate(x, -1, mode="area"), RuntimeError),
    (lambda x: interpolate(x, 2.5), TypeError),
    (lambda x: interpolate(x, scale_factor="2"), TypeError),
    (lambda x: interpolate(x, 3, mode="linear"), NotImplementedError),
    (lambda x: interpolate(x, 3, mode="lanczos"), NotImplementedError),
    (lambda x: interpolate(x[0], 3, mode="bilinear"), NotImplementedError),
    (lambda x: interpolate(x.long(), 3), NotImplementedError),
    (lambda x: interpolate(minidl.zeros(2, 3), 3), NotImplementedError),
    (lambda x: interpolate(minidl.zeros(1, 0, 3, 4), 3), RuntimeError),
    (lambda x: grid_sample(x, minidl.zeros(1, 2, 2, 3), align_corners=False), RuntimeError),
    (lambda x: grid_sample(x, minidl.zeros(2, 2, 2, 2), align_corners=False), RuntimeError),
    (lambda x: grid_sample(x, minidl.zeros(1, 2, 2), align_corners=False), RuntimeError),
    (lambda x: grid_sample(x, minidl.zeros(1, 2, 2, 2), "cubic", align_corners=False), ValueError),
    (lambda x: grid_sample(x, minidl.zeros(1, 2, 2, 2), "nearest", "wrap", align_corners=False), ValueError),
    (lambda x: grid_sample(minidl.zeros(1, 1, 0, 2), minidl.zeros(1, 2, 2, 2), align_corners=False), RuntimeError),
    (lambda x: grid_sample(minidl.zeros(1, 1, 2, 2, 2), minidl.zeros(1, 1, 1, 2, 3), "bicubic", align_corners=False),
     RuntimeError),
    (lambda x: affine_grid(minidl.zeros(1, 2, 2), (1, 1, 2, 2), False), ValueError),
    (lambda x: affine_grid(minidl.zeros(1, 2, 3), (1, 1, 2), False), NotImplementedError),
    (lambda x: affine_grid(minidl.zeros(1, 2, 3), (1, 1, 2, 0), False), ValueError),
    (lambda x: affine_grid(minidl.zeros(2, 2, 3), (1, 1, 2, 2), False), RuntimeError),
    (lambda x: affine_grid(minidl.zeros(1, 2, 3, dtype=minidl.int64), (1, 1, 2, 2), False), ValueError),
])
def test_errors(call, error):
    with pytest.raises(error):
        call(minidl.zeros(1, 2, 3, 4))


@pytest.mark.parametrize("align_corners", [None, True])
def test_an_unknown_mode_is_called_so(align_corners):
    with pytest.raises(NotImplementedError, match="'nearest', .*'trilinear', got the unknown mode 'bilinaer'"):
        interpolate(minidl.zeros(1, 2, 3, 4), (2, 2), mode="bilinaer", align_corners=align_corners)
