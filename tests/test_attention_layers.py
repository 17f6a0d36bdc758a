"""MultiheadAttention against a loop over batch and heads in NumPy: masks, appended keys, layouts, weights, memory, errors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import minidl
from minidl.nn.attention import MultiheadAttention
from minidl.nn.transformer import Transformer

rng = np.random.default_rng(0)
N, L, S, E, H = 3, 4, 5, 6, 2


def normal(*shape):
    return rng.standard_normal(shape)


def make(**options):
    """A module whose biases are not zero."""
    module = MultiheadAttention(E, H, **options, dtype=minidl.float64)
    with minidl.no_grad():
        for parameter in module.parameters():
            parameter.add_(minidl.tensor(normal(*parameter.shape) * 0.2))
    return module


def reference(module, query, key, value, hidden):
    """Result (N, L, E) and weights (N, H, L, S) of batches (N, L, *); `hidden` (N, H, L, S) is added to the scores."""
    p = {name: x.detach().numpy() for name, x in module.named_parameters()}
    if "in_proj_weight" in p:
        weights = np.split(p["in_proj_weight"], 3)
    else:
        weights = [p[f"{name}_proj_weight"] for name in "qkv"]
    biases = np.split(p["in_proj_bias"], 3) if "in_proj_bias" in p else [0, 0, 0]
    q, k, v = (x @ w.T + b for x, w, b in zip((query, key, value), weights, biases))
    if "bias_k" in p:
        k, v = (np.concatenate([x, np.broadcast_to(p[name], (len(x), 1, E))], 1) for x, name in ((k, "bias_k"), (v, "bias_v")))
    if module.add_zero_attn:
        k, v = (np.concatenate([x, np.zeros((len(x), 1, E))], 1) for x in (k, v))
    hidden = np.concatenate([hidden, np.zeros((*hidden.shape[:3], k.shape[1] - hidden.shape[3]))], 3)
    out, found = np.zeros((*q.shape[:2], E)), np.zeros(hidden.shape)
    for n in range(len(q)):
        for h in range(H):
            part = slice(h * E // H, (h + 1) * E // H)
            scores = q[n, :, part] @ k[n, :, part].T / np.sqrt(E // H) + hidden[n, h]
            top = scores.max(-1, keepdims=True)
            shares = np.exp(scores - np.where(np.isinf(top), 0, top))
            total = shares.sum(-1, keepdims=True)
            found[n, h] = shares / np.where(total == 0, 1, total)
            out[n, :, part] = found[n, h] @ v[n, :, part]
    return out @ p["out_proj.weight"].T + p.get("out_proj.bias", 0), found


def near(found, want):
    np.testing.assert_allclose(found.detach().numpy(), want, rtol=1e-9, atol=1e-11)


def turned(x, batch_first):
    return minidl.tensor(x if batch_first else np.swapaxes(x, 0, 1))


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("options", [
    {}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 3, "vdim": 7},
    {"kdim": 3, "add_bias_kv": True, "add_zero_attn": True, "bias": False},
], ids=lambda options: " ".join(options) or "plain")
def test_values(options, need_weights, batch_first):
    module = make(**options, batch_first=batch_first)
    q, k, v = normal(N, L, E), normal(N, S, module.kdim), normal(N, S, module.vdim)
    want, shares = reference(module, q, k, v, np.zeros((N, H, L, S)))
    out, weights = module(*[turned(x, batch_first) for x in (q, k, v)], need_weights=need_weights)
    near(out, want if batch_first else want.swapaxes(0, 1))
    if need_weights:
        near(weights, shares.mean(1))
    else:
        assert weights is None
    out, weights = module(*[minidl.tensor(x[0]) for x in (q, k, v)], need_weights=need_weights)
    near(out, want[0])
    assert weights is None or weights.shape == shares[0, 0].shape


def test_self_attention_and_weights_of_each_head():
    module = make(batch_first=True)
    x = normal(N, L, E)
    want, shares = reference(module, x, x, x, np.zeros((N, H, L, L)))
    t = minidl.tensor(x)
    out, weights = module(t, t, t, average_attn_weights=False)
    near(out, want)
    near(weights, shares)


def masks():
    """(name, attn_mask, key_padding_mask, what they add to the scores)"""
    hide = lambda x: np.where(x, -np.inf, 0.0)  # noqa: E731
    flat, heads, keys = (rng.random(shape) < 0.3 for shape in ((L, S), (N * H, L, S), (N, S)))
    flat[0], keys[1] = True, True  # a query and a sequence that see nothing
    flat_bias, heads_bias, keys_bias = normal(L, S), normal(N * H, L, S), normal(N, S)
    of_heads, of_keys = (lambda x: x.reshape(N, H, L, S)), (lambda x: x[:, None, None])
    return [
        ("bool", flat, None, hide(flat)), ("bool heads", heads, None, hide(of_heads(heads))),
        ("float", flat_bias, None, flat_bias), ("float heads", heads_bias, None, of_heads(heads_bias)),
        ("keys", None, keys, hide(of_keys(keys))), ("float keys", None, keys_bias, of_keys(keys_bias)),
        ("both bool", flat, keys, hide(flat | of_keys(keys))),
        ("heads and keys", heads, keys, hide(of_heads(heads) | of_keys(keys))),
        ("float and bool keys", flat_bias, keys, flat_bias + hide(of_keys(keys))),
        ("bool and float keys", heads, keys_bias, hide(of_heads(heads)) + of_keys(keys_bias)),
        ("both float", flat_bias, keys_bias, flat_bias + of_keys(keys_bias)),
    ]


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True, "add_zero_attn": True}], ids=["plain", "appended"])
@pytest.mark.parametrize("attn, keys, added", [pytest.param(*row[1:], id=row[0]) for row in masks()])
def test_masks(attn, keys, added, options, need_weights):
    module = make(**options)
    q, kv = normal(N, L, E), normal(N, S, E)
    want, shares = reference(module, q, kv, kv, np.broadcast_to(added, (N, H, L, S)))
    given = [None if mask is None else minidl.tensor(mask) for mask in (attn, keys)]
    query, key = turned(q, False).requires_grad_(), turned(kv, False)
    out, weights = module(query, key, key, given[1], need_weights, given[0])
    near(out, want.swapaxes(0, 1))
    if need_weights:
        near(weights, shares.mean(1))
    out.sum().backward()
    assert np.isfinite(query.grad.numpy()).all()
    assert all(np.isfinite(p.grad.numpy()).all() for p in module.parameters())


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.float32])
@pytest.mark.parametrize("need_weights", [True, False])
def test_sequences_that_see_nothing_get_zeros(need_weights, dtype):
    module = MultiheadAttention(E, H, dtype=dtype)
    x = minidl.tensor(normal(L, N, E), dtype=dtype).requires_grad_()
    out, _ = module(x, x, x, minidl.ones(N, L, dtype=minidl.bool), need_weights)
    (out * out).sum().backward()
    assert out.dtype == dtype and (out.numpy() == 0).all() and (x.grad.numpy() == 0).all()


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("more", [{}, {"key_padding_mask": minidl.tensor(np.arange(N * L).reshape(N, L) % 5 == 4)}])
@pytest.mark.parametrize("options", [{}, {"add_zero_attn": True}])
def test_the_hint_of_a_causal_mask_changes_nothing(options, more, need_weights):
    module = make(**options)
    x = turned(normal(N, L, E), False)
    for dtype in (minidl.bool, minidl.float64):
        mask = Transformer.generate_square_subsequent_mask(L, dtype=dtype)
        found, want = (module(x, x, x, attn_mask=mask, is_causal=hint, need_weights=need_weights, **more)[0]
                       for hint in (True, False))
        near(found, want.detach().numpy())


@pytest.mark.parametrize("need_weights", [True, False])
def test_gradients(need_weights):
    module = make(kdim=3, add_bias_kv=True)
    names = [name for name, _ in module.named_parameters() if "." not in name]
    inputs = [minidl.tensor(normal(*shape), requires_grad=True) for shape in ((2, 2, E), (3, 2, 3), (3, 2, E))]
    mask = minidl.tensor(normal(2, 3), requires_grad=True)

    def outputs(q, k, v, mask, *values):
        module.__dict__.update(zip(names, values))  # gradcheck moves copies
        out, weights = module(q, k, v, attn_mask=mask, need_weights=need_weights)
        return (out, weights) if need_weights else out

    values = [getattr(module, name) for name in names]
    assert minidl.autograd.gradcheck(outputs, [*inputs, mask, *values], fast_mode=True)


def test_one_tensor_thrice_is_projected_at_once_with_the_same_gradients():
    module = make()
    x = normal(L, N, E)
    gradients = []
    for copies in (1, 3):
        parts = [minidl.tensor(x, requires_grad=True) for _ in range(copies)]
        module.zero_grad()
        (module(*parts * (3 // copies))[0] ** 2).sum().backward()
        gradients.append([sum(p.grad.numpy() for p in parts), *[p.grad.numpy() for p in module.parameters()]])
    for a, b in zip(*gradients):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_dropout_in_training_only():
    module = make(dropout=0.5)
    x = turned(normal(N, L, E), False)
    for need_weights in (True, False):
        runs = []
        for seed in (1, 1, 2):
            minidl.manual_seed(seed)
            runs.append(module(x, x, x, need_weights=need_weights)[0].detach().numpy())
        np.testing.assert_array_equal(runs[0], runs[1])
        assert (runs[0] != runs[2]).any()
    plain = module.eval()(x, x, x)[0].detach().numpy()
    near(module(x, x, x, need_weights=False)[0], plain)


def test_half_precision_stays_near_and_takes_float32_masks():
    module = MultiheadAttention(E, H)
    x = minidl.tensor(normal(L, N, E).astype(np.float32))
    mask = Transformer.generate_square_subsequent_mask(L)
    want = module(x, x, x, attn_mask=mask)[0].detach().numpy()
    module.half()
    x = x.half()
    for need_weights in (True, False):
        out, _ = module(x, x, x, attn_mask=mask, need_weights=need_weights)
        assert out.dtype == minidl.float16
        np.testing.assert_allclose(out.detach().numpy().astype(np.float32), want, atol=4e-3)


def test_without_weights_no_scores_are_kept():
    """In a causal self-attention forward and backward stay far below the 32 MiB of the probabilities."""
    module = MultiheadAttention(16, 8)
    x, mask = minidl.ones(1024, 1, 16), Transformer.generate_square_subsequent_mask(1024, dtype=minidl.bool)
    tracemalloc.start()
    out = module(x, x, x, attn_mask=mask, need_weights=False, is_causal=True)[0]
    held, _ = tracemalloc.get_traced_memory()
    out.sum().backward()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 16 * out.numpy().nbytes and peak < 8 << 20


def test_state_dict_as_in_pytorch():
    assert list(MultiheadAttention(4, 2, add_bias_kv=True).state_dict()) == [
        "in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "out_proj.weight", "out_proj.bias"]
    assert list(MultiheadAttention(4, 2, kdim=3, bias=False).state_dict()) == [
        "q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"]
    other = MultiheadAttention(4, 2, kdim=3)
    assert other.in_proj_weight is None and other.k_proj_weight.shape == (4, 3) and other.head_dim == 2


def test_initial_parameters():
    module = MultiheadAttention(32, 4, add_bias_kv=True)
    bound = np.sqrt(6 / (32 + 96))
    values = module.in_proj_weight.detach().numpy()
    assert 0.95 * bound < np.abs(values).max() <= bound
    assert (module.in_proj_bias == 0).all() and (module.out_proj.bias == 0).all() and (module.bias_k != 0).any()


def test_empty_batches_and_sequences():
    module = MultiheadAttention(E, H)
    for shape in ((0, N, E), (L, 0, E)):
        x = minidl.zeros(shape)
        out, weights = module(x, x, x)
        assert out.shape == shape and weights.shape == (shape[1], shape[0], shape[0])


X = minidl.ones(L, N, E)


@pytest.mark.parametrize("call, error, message", [
    (lambda m: MultiheadAttention(6, 4), ValueError, "6 and 4"),
    (lambda m: MultiheadAttention(0, 1), ValueError, "positive"),
    (lambda m: m(X, X, X, is_causal=True), RuntimeError, "expected attn_mask"),
    (lambda m: m(X, X, X, attn_mask=minidl.ones(L, S)), RuntimeError, r"\(4, 4\) or \(6, 4, 4\), got \(4, 5\)"),
    (lambda m: m(X, X, X, attn_mask=minidl.ones(L, L).long()), RuntimeError, "bool or floating, got int64"),
    (lambda m: m(X, X, X, key_padding_mask=minidl.ones(L, N)), RuntimeError, r"key_padding_mask of shape \(3, 4\)"),
    (lambda m: m(X, X[:, :1], X[:, :1]), RuntimeError, "query, key and value"),
    (lambda m: m(X, X, X[:3]), RuntimeError, "query, key and value"),
    (lambda m: m(X, X[0], X[0]), RuntimeError, "query, key and value"),
    (lambda m: m(X[0, 0], X[0, 0], X[0, 0]), RuntimeError, "query, key and value"),
    (lambda m: m(X[..., :5], X, X), RuntimeError, "MultiheadAttention expected .* of 6, 6 and 6 features, got 5, 6 and 6"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(MultiheadAttention(E, H))
