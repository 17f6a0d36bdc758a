"""Attention: blocks, queries that see nothing, dropout, half precision, what backward keeps, errors."""

import tracemalloc

import numpy as np
import pytest

import minidl
from minidl.tensor.kernels import attention as kernel
from minidl.tensor.ops import attention as op
from minidl.tensor.ops.attention import scaled_dot_product_attention as attend

rng = np.random.default_rng(0)


def normal(*shape, dtype=np.float64, grad=True):
    return minidl.tensor(rng.standard_normal(shape).astype(dtype), requires_grad=grad)


@pytest.mark.parametrize("scores", [1, 20, 60, 130])
@pytest.mark.parametrize("more", [
    {}, {"is_causal": True}, {"attn_mask": normal(3, 5, 7)}, {"attn_mask": minidl.tensor(rng.random((2, 1, 5, 7)) < 0.5)},
    {"attn_mask": normal(7)},
], ids=["plain", "causal", "bias", "mask", "bias of keys"])
def test_blocks_change_nothing(more, scores, monkeypatch):
    q, k, v = normal(2, 3, 5, 4), normal(2, 1, 7, 4), normal(1, 3, 7, 2)
    inputs = [q, k, v, *[x for x in more.values() if getattr(x, "requires_grad", False)]]

    def results():
        out = attend(q, k, v, **more)
        return [out, *minidl.autograd.grad(out, inputs, minidl.tensor(np.cos(np.arange(out.numel())).reshape(out.shape)))]

    want = results()
    monkeypatch.setattr(kernel, "_SCORES", scores)
    for found, expected in zip(results(), want):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.bfloat16, minidl.float32], ids=str)
@pytest.mark.parametrize("floating", [False, True])
def test_a_query_that_sees_nothing_gives_zero_with_gradient_zero(dtype, floating):
    q, k, v = (normal(2, 3, 4, dtype=dtype) for _ in range(3))
    seen = np.array([[True, False, True], [False] * 3, [True] * 3])
    mask = np.where(seen, 0, -np.inf).astype(dtype) if floating else seen
    out = attend(q, k, v, minidl.tensor(mask))
    gradients = minidl.autograd.grad(out, [q, k, v], minidl.ones_like(out))
    assert (out.numpy()[:, 1] == 0).all() and (gradients[0].numpy()[:, 1] == 0).all()
    assert all(np.isfinite(x.numpy().astype(float)).all() and x.dtype == dtype for x in (out, *gradients))


def test_a_large_negative_bias_in_float16_hides_a_key():
    q, k = (normal(3, 4, dtype=np.float16, grad=False) for _ in range(2))
    v = minidl.tensor(np.array([[1], [2], [60000]], np.float16))
    bias = minidl.tensor(np.array([0, 0, np.finfo(np.float16).min]))
    out = attend(q, k, v, bias.half())
    assert (out.numpy() <= 2).all()


def test_large_scores_in_float16_do_not_overflow():
    x = minidl.full((2, 4), 200.0, dtype=minidl.float16)
    assert (attend(x, x, x, scale=1.0).numpy() == 200).all()


def test_dropout_keeps_the_mean_and_comes_from_its_generator():
    q, k, v = normal(4, 64, 8), normal(4, 64, 8), minidl.ones(4, 64, 1, dtype=minidl.float64)
    draw = [attend(q, k, v, dropout_p=0.25, generator=minidl.Generator().manual_seed(1)).numpy() for _ in range(2)]
    np.testing.assert_array_equal(*draw)
    assert abs(draw[0].mean() - 1) < 0.05 and draw[0].std() > 0.01
    assert (attend(q, k, v, dropout_p=1.0).numpy() == 0).all()


def test_dropout_drawn_in_pieces_is_the_same(monkeypatch):
    q, k, v = normal(2, 3, 5, 4), normal(2, 3, 7, 4), normal(2, 3, 7, 2)
    draw = lambda: attend(q, k, v, dropout_p=0.5, generator=minidl.Generator().manual_seed(1)).numpy()  # noqa: E731
    whole = draw()
    monkeypatch.setattr(op, "_PIECE", 11)
    np.testing.assert_array_equal(draw(), whole)
    assert attend(q[:, :, :0], k, v, dropout_p=0.5).shape == (2, 3, 0, 2)


def test_dropout_keeps_one_byte_per_score():
    q, k, v = (normal(1, 8, 1024, 16, dtype=np.float32) for _ in range(3))
    tracemalloc.start()
    out = attend(q, k, v, dropout_p=0.1)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    mask = 8 * 1024 * 1024
    assert held < mask + 2 * out.numpy().nbytes and peak < 3 * mask


def test_neither_scores_nor_an_expanded_mask_are_kept():
    q, k, v = (normal(1, 8, 1024, 16, dtype=np.float32) for _ in range(3))
    bias = normal(1024, 1024, dtype=np.float32, grad=False)
    tracemalloc.start()
    out = attend(q, k, v, bias)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 2 * out.numpy().nbytes and peak < 8 * 1024 * 1024 * 4 / 3


@pytest.mark.parametrize("length, keys", [(0, 3), (3, 0)])
def test_empty_axes(length, keys):
    q, k, v = normal(2, length, 4), normal(2, keys, 4), normal(2, keys, 5)
    out = attend(q, k, v)
    assert out.shape == (2, length, 5) and (out.numpy() == 0).all()
    for g, x in zip(minidl.autograd.grad(out.sum(), [q, k, v]), (q, k, v)):
        assert g.shape == x.shape and (g.numpy() == 0).all()


@pytest.mark.parametrize("call", [
    lambda x: attend(x[0, 0], x, x),
    lambda x: attend(x, x[..., :2], x),
    lambda x: attend(x, x, x[:, :2]),
    lambda x: attend(x, x, x, minidl.ones(2, 2, dtype=minidl.bool)),
    lambda x: attend(x, x, x, minidl.ones(3, 3, dtype=minidl.int64)),
    lambda x: attend(x, x, x, minidl.ones(3, 3), is_causal=True),
    lambda x: attend(x, x.half(), x),
    lambda x: attend(x.long(), x.long(), x.long()),
    lambda x: attend(x, x, x, dropout_p=1.5),
    lambda x: attend(x[:1], x, x, enable_gqa=True),
    lambda x: attend(x, x[0], x[0], enable_gqa=True),
])
def test_errors(call):
    with pytest.raises(RuntimeError):
        call(minidl.ones(2, 3, 4))
