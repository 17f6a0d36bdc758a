"""Transformer layers against compositions of tested parts; masks, hints, copies, names, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import minidl
from minidl.nn import functional as F
from minidl.nn.module import Module
from minidl.nn.normalization import LayerNorm
from minidl.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

rng = np.random.default_rng(0)
N, S, L, E = 2, 5, 4, 8
INF = float("inf")


def normal(*shape):
    return minidl.tensor(rng.standard_normal(shape))


def shaken(module):
    """The module with parameters that are neither zeros nor ones."""
    with minidl.no_grad():
        for parameter in module.parameters():
            parameter.add_(normal(*parameter.shape) * 0.1)
    return module


def options(**more):
    return {"dim_feedforward": 12, "dropout": 0.0, "dtype": minidl.float64, **more}


def near(found, want):
    np.testing.assert_allclose(found.detach().numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-11)


def normed(layer, number, x):
    norm = getattr(layer, f"norm{number}")
    return F.layer_norm(x, (E,), norm.weight, norm.bias, 1e-5)


def block(layer, number, x, part):
    """The residual connection of a part."""
    return x + part(normed(layer, number, x)) if layer.norm_first else normed(layer, number, x + part(x))


def feed_forward(layer, activation):
    return lambda x: F.linear(activation(F.linear(x, layer.linear1.weight, layer.linear1.bias)), layer.linear2.weight,
                              layer.linear2.bias)


@pytest.mark.parametrize("activation, function", [("relu", F.relu), ("gelu", F.gelu), (minidl.tanh, minidl.tanh)])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape, batch_first", [((S, N, E), False), ((N, S, E), True), ((S, E), False)])
def test_encoder_layer(activation, function, norm_first, bias, shape, batch_first):
    layer = shaken(TransformerEncoderLayer(E, 2, **options(
        activation=activation, norm_first=norm_first, bias=bias, batch_first=batch_first)))
    x, mask = normal(*shape), normal(S, S)
    want = block(layer, 1, x, lambda y: layer.self_attn(y, y, y, attn_mask=mask)[0])
    near(layer(x, mask), block(layer, 2, want, feed_forward(layer, function)))
    assert (layer.linear1.bias is not None) == (layer.norm1.bias is not None) == bias


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_decoder_layer(norm_first, batch_first):
    layer = shaken(TransformerDecoderLayer(E, 2, **options(norm_first=norm_first, batch_first=batch_first)))
    x, memory = (normal(N, n, E) if batch_first else normal(n, N, E) for n in (L, S))
    masks = normal(L, L), normal(L, S), normal(N, L), normal(N, S)
    want = block(layer, 1, x, lambda y: layer.self_attn(y, y, y, masks[2], attn_mask=masks[0])[0])
    want = block(layer, 2, want, lambda y: layer.multihead_attn(y, memory, memory, masks[3], attn_mask=masks[1])[0])
    near(layer(x, memory, *masks), block(layer, 3, want, feed_forward(layer, F.relu)))


def test_stacks_run_their_layers_and_the_norm():
    norm = shaken(LayerNorm(E, dtype=minidl.float64))
    encoder = shaken(TransformerEncoder(TransformerEncoderLayer(E, 2, **options()), 2, norm))
    decoder = shaken(TransformerDecoder(TransformerDecoderLayer(E, 2, **options()), 2))
    src, tgt, mask, keys = normal(S, N, E), normal(L, N, E), normal(S, S), normal(N, S)
    memory = encoder(src, mask, keys)
    near(memory, norm(encoder.layers[1](encoder.layers[0](src, mask, keys), mask, keys)))
    more = normal(L, L), normal(L, S), normal(N, L), keys
    near(decoder(tgt, memory, *more), decoder.layers[1](decoder.layers[0](tgt, memory, *more), memory, *more))


def test_transformer_is_encoder_and_decoder():
    model = shaken(Transformer(E, 2, 1, 2, **options(batch_first=True)))
    src, tgt = normal(N, S, E), normal(N, L, E)
    masks = dict(tgt_mask=normal(L, L), memory_mask=normal(L, S), tgt_key_padding_mask=normal(N, L),
                 memory_key_padding_mask=normal(N, S))
    src_mask, src_keys = normal(S, S), normal(N, S)
    found = model(src, tgt, src_mask, src_key_padding_mask=src_keys, **masks)
    near(found, model.decoder(tgt, model.encoder(src, src_mask, src_keys), **masks))
    unbatched = model(src[0], tgt[0], src_mask, masks["tgt_mask"], masks["memory_mask"], src_keys[0],
                      masks["tgt_key_padding_mask"][0], masks["memory_key_padding_mask"][0])
    near(unbatched, found[0])


class Recorder(Module):
    """Stands for a layer, and notes how it is called."""

    calls: list = []

    def forward(self, x, *args, **kwargs):
        self.calls.append(kwargs)
        return x


@pytest.mark.parametrize("dtype", [minidl.float64, minidl.bool])
def test_causal_masks_are_recognized(dtype):
    causal = Transformer.generate_square_subsequent_mask(L, dtype=dtype)
    other = causal.clone()
    other[0, 1] = 0
    x = normal(L, N, E)
    for mask, given, want in ((causal, None, True), (other, None, False), (None, None, False), (causal, False, False),
                              (other, True, True), (causal[:3], None, False)):
        Recorder.calls.clear()
        TransformerEncoder(Recorder(), 2)(x, mask, is_causal=given)
        TransformerDecoder(Recorder(), 1)(x, x, mask, tgt_is_causal=given)
        assert [call.get("is_causal", call.get("tgt_is_causal")) for call in Recorder.calls] == [want] * 3


@pytest.mark.parametrize("dtype", [minidl.float64, minidl.bool])
def test_later_places_do_not_matter_under_a_causal_mask(dtype):
    model = Transformer(E, 2, 1, 1, **options())
    src, tgt = normal(S, N, E), normal(L, N, E)
    mask = Transformer.generate_square_subsequent_mask(L, dtype=dtype)
    changed = tgt.clone()
    changed[-1] += 1
    near(model(src, changed, tgt_mask=mask)[:-1], model(src, tgt, tgt_mask=mask)[:-1])


def test_the_square_subsequent_mask():
    want = np.array([[0, -INF, -INF], [0, 0, -INF], [0, 0, 0]])
    found = Transformer.generate_square_subsequent_mask(3)
    assert found.dtype == minidl.float32
    np.testing.assert_array_equal(found.numpy(), want)
    np.testing.assert_array_equal(Transformer.generate_square_subsequent_mask(3, dtype=minidl.bool).numpy(), want < 0)


@pytest.mark.parametrize("norm_first", [False, True])
def test_padding_gets_no_gradient_and_gives_no_nan(norm_first):
    layer = TransformerEncoderLayer(E, 2, **options(norm_first=norm_first))
    x = normal(S, N, E).requires_grad_()
    hidden = minidl.tensor([[False] * 3 + [True] * 2, [True] * S])
    out = layer(x, src_key_padding_mask=hidden)
    out[:3, 0].sum().backward()
    assert np.isfinite(out.detach().numpy()).all() and np.isfinite(x.grad.numpy()).all()
    assert (x.grad.numpy()[3:] == 0).all() and (x.grad.numpy()[:, 1] == 0).all()


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_pickle(activation):
    layer = TransformerEncoderLayer(E, 2, **options(activation=activation))
    x = normal(S, N, E)
    near(pickle.loads(pickle.dumps(layer))(x), layer(x))


def test_layers_are_copies_that_start_alike():
    layer = TransformerEncoderLayer(E, 2)
    encoder = TransformerEncoder(layer, 2)
    a, b = encoder.layers
    assert (a.linear1.weight == b.linear1.weight).all() and (a.linear1.weight == layer.linear1.weight).all()
    assert len({id(p) for module in (layer, a, b) for p in module.parameters()}) == 3 * len(list(layer.parameters()))
    a.linear1.weight.data.zero_()
    assert (b.linear1.weight != 0).any()


def test_transformer_draws_each_layer_anew():
    a, b = Transformer(E, 2, 2, 1).encoder.layers
    assert (a.linear1.weight != b.linear1.weight).any()
    bound = np.sqrt(6 / (E + 2048))
    assert 0.95 * bound < np.abs(a.linear1.weight.detach().numpy()).max() <= bound


def test_names_as_in_pytorch():
    attention = ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
    pairs = [f"{name}.{kind}" for name in ("linear1", "linear2", "norm1", "norm2") for kind in ("weight", "bias")]
    encoder = [f"self_attn.{name}" for name in attention] + pairs
    decoder = encoder[:4] + [f"multihead_attn.{name}" for name in attention] + pairs + ["norm3.weight", "norm3.bias"]
    norm = ["norm.weight", "norm.bias"]
    assert list(Transformer(E, 2, 1, 1).state_dict()) == [
        *[f"encoder.layers.0.{name}" for name in encoder], *[f"encoder.{name}" for name in norm],
        *[f"decoder.layers.0.{name}" for name in decoder], *[f"decoder.{name}" for name in norm]]
    layer = TransformerDecoderLayer(E, 2, activation="gelu")
    assert [name for name, _ in layer.named_children()] == [
        "self_attn", "multihead_attn", "linear1", "dropout", "linear2", "norm1", "norm2", "norm3", "dropout1", "dropout2",
        "dropout3"]
    assert layer.activation is F.gelu and layer.dropout3.p == layer.self_attn.dropout == 0.1


def test_dropout_in_training_only():
    layer = TransformerEncoderLayer(E, 2, dim_feedforward=12, dropout=1.0, dtype=minidl.float64)
    x = normal(S, N, E)
    near(layer(x), F.layer_norm(F.layer_norm(x, (E,)), (E,)))
    layer.eval()
    assert (layer(x) != F.layer_norm(F.layer_norm(x, (E,)), (E,))).any()


def test_custom_parts():
    encoder, decoder = Recorder(), Recorder()
    model = Transformer(E, 2, custom_encoder=encoder, custom_decoder=decoder)
    assert model.encoder is encoder and model.decoder is decoder and not list(model.parameters())
    x = normal(L, N, E)
    assert model(x, x) is x


def test_half_precision_stays_near():
    model = Transformer(E, 2, 1, 1, 12, 0.0)
    src, tgt = (minidl.tensor(normal(n, N, E), dtype=minidl.float32) for n in (S, L))
    mask = Transformer.generate_square_subsequent_mask(L)
    want = model(src, tgt, tgt_mask=mask).detach().numpy()
    found = model.half()(src.half(), tgt.half(), tgt_mask=mask)
    assert found.dtype == minidl.float16
    np.testing.assert_allclose(found.detach().numpy().astype(np.float32), want, atol=2e-2)


@pytest.mark.parametrize("call, error, message", [
    (lambda: TransformerEncoderLayer(E, 2, activation="tanh"), RuntimeError, "relu, gelu or a function, got 'tanh'"),
    (lambda: TransformerEncoderLayer(E, 3), ValueError, "8 and 3"),
    (lambda: Transformer(E, 2, 1, 1)(minidl.ones(S, N, E), minidl.ones(L, 1, E)), RuntimeError, "same batch size"),
    (lambda: Transformer(E, 2, 1, 1)(minidl.ones(S, N, E), minidl.ones(L, N, 7)), RuntimeError, "8 features"),
    (lambda: Transformer(E, 2, 1, 1)(minidl.ones(S, E), minidl.ones(L, N, E)), RuntimeError, "src and tgt"),
    (lambda: Transformer(E, 2, 1, 1)(minidl.ones(S, E), minidl.ones(L, E), src_is_causal=True), RuntimeError, "attn_mask"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
