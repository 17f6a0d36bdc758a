"""Models: their sizes as in the papers, shapes, errors, learning, halves, masks, search, and state dicts."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

import minidl
from minidl import nn
from minidl.models import (
    BERT,
    GAT,
    GCN,
    GPT,
    MLP,
    AlexNet,
    DCGANDiscriminator,
    DCGANGenerator,
    DenseNet,
    GraphSAGE,
    LeNet,
    LeNet5,
    LSTMLanguageModel,
    LSTMTagger,
    MobileNet,
    ResNet,
    Seq2SeqTransformer,
    densenet_bc,
    mask_tokens,
    resnet18,
    resnet20,
    resnet50,
    resnet56,
    resnet110,
)
from minidl.models.resnet import BasicBlock, Subsample
from minidl.models.seq2seq import SinusoidalPositions
from minidl.nn import functional as F
from minidl.optim import Adam

RING = minidl.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])


def tokens(*shape, high=9, low=3, seed=0):
    return minidl.tensor(np.random.default_rng(seed).integers(low, high, shape))


def floats(*shape, dtype=minidl.float32, seed=0):
    return minidl.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=dtype)


def seeded(make):
    minidl.manual_seed(0)
    return make()


SMALL = {  # a model, and what it is called with; floating inputs come in the dtype asked for
    "MLP": (lambda: MLP([6, 5, 4]), lambda dtype: (floats(3, 6, dtype=dtype),), (3, 4)),
    "MLP of images": (lambda: MLP([6, 5, 4], nn.Tanh, 0.1), lambda dtype: (floats(3, 1, 2, 3, dtype=dtype),), (3, 4)),
    "LeNet": (LeNet, lambda dtype: (floats(2, 1, 28, 28, dtype=dtype),), (2, 10)),
    "LeNet5": (LeNet5, lambda dtype: (floats(2, 1, 28, 28, dtype=dtype),), (2, 10)),
    "AlexNet": (AlexNet, lambda dtype: (floats(1, 3, 32, 32, dtype=dtype),), (1, 10)),
    "ResNet of small images": (lambda: ResNet(BasicBlock, (1, 1), 4, 5, small_images=True, projection=False),
                               lambda dtype: (floats(2, 3, 8, 8, dtype=dtype),), (2, 5)),
    "ResNet of large images": (lambda: ResNet(BasicBlock, (1, 1), 4, 5), lambda dtype: (floats(2, 3, 33, 40, dtype=dtype),),
                               (2, 5)),
    "DenseNet": (lambda: DenseNet(10, 4, 5), lambda dtype: (floats(2, 3, 8, 8, dtype=dtype),), (2, 5)),
    "MobileNet": (lambda: MobileNet(1, 5, 0.25), lambda dtype: (floats(2, 1, 16, 16, dtype=dtype),), (2, 5)),
    "DCGANGenerator": (lambda: DCGANGenerator(5, 4, 16, 2), lambda dtype: (floats(2, 5, 1, 1, dtype=dtype),), (2, 2, 16, 16)),
    "DCGANDiscriminator": (lambda: DCGANDiscriminator(4, 16, 2), lambda dtype: (floats(3, 2, 16, 16, dtype=dtype),), (3,)),
    "LSTMTagger": (lambda: LSTMTagger(9, 4, 5, 6, 2), lambda dtype: (tokens(2, 5), minidl.tensor([3, 5])), (2, 5, 4)),
    "LSTMLanguageModel": (lambda: LSTMLanguageModel(9, 6, 6, 2, tied=True), lambda dtype: (tokens(2, 5),), (2, 5, 9)),
    "GPT": (lambda: GPT(9, 6, 2, 2, 8), lambda dtype: (tokens(2, 5),), (2, 5, 9)),
    "BERT": (lambda: BERT(9, 6, 2, 2, 8), lambda dtype: (tokens(2, 5),), (2, 5, 9)),
    "Seq2SeqTransformer": (lambda: Seq2SeqTransformer(9, 8, 2, 1, 16), lambda dtype: (tokens(2, 5), tokens(2, 4)), (2, 4, 9)),
    "GCN": (lambda: GCN(4, 5, 3), lambda dtype: (floats(6, 4, dtype=dtype), RING), (6, 3)),
    "GraphSAGE": (lambda: GraphSAGE(4, 5, 3, 3, aggr="max"), lambda dtype: (floats(6, 4, dtype=dtype), RING), (6, 3)),
    "GAT": (lambda: GAT(4, 5, 3, 2, out_heads=2), lambda dtype: (floats(6, 4, dtype=dtype), RING), (6, 3)),
}
large = functools.cache(lambda make: functools.cache(make))  # a model that takes long to make is made once
each_model = pytest.mark.parametrize("name", SMALL)


def output(model, arguments):
    found = model(*arguments)
    return found[0] if isinstance(found, tuple) else found


@pytest.mark.parametrize("model, count", [
    (resnet20, 269_722), (resnet56, 853_018), (resnet110, 1_727_962), (large(resnet18), 11_689_512),
    (large(resnet50), 25_557_032),
    (densenet_bc, 769_162), (LeNet, 421_642), (LeNet5, 61_706),
    (lambda: MLP([784, 128, 10]), 784 * 128 + 128 + 1290),
    (lambda: GPT(65, 64, 4, 4, 128), 4 * (12 * 128 * 128 + 2 * 128) + (65 + 64 + 1) * 128),
    (lambda: LSTMLanguageModel(9, 6, 6, tied=True), 9 * 6 + 9 + 4 * 6 * (12 + 2)),
    (lambda: GCN(1433, 16, 7), 1433 * 16 + 16 + 16 * 7 + 7),
    (lambda: GAT(1433, 8, 7), 1433 * 64 + 3 * 64 + 64 * 7 + 3 * 7),
])
def test_number_of_parameters(model, count):
    assert sum(p.numel() for p in model().parameters()) == count


@each_model
@pytest.mark.parametrize("dtype", [minidl.float32, minidl.float16])
def test_shape_dtype_and_values(name, dtype):
    make, inputs, shape = SMALL[name]
    found = output(seeded(make).to(dtype).eval(), inputs(dtype))
    assert (found.shape, found.dtype) == (shape, dtype)
    assert bool(found.isfinite().all())


@each_model
def test_halves_give_nearly_what_float32_gives(name):
    make, inputs, _ = SMALL[name]
    exact = output(seeded(make).eval(), inputs(minidl.float32)).detach().numpy()
    found = output(seeded(make).half().eval(), inputs(minidl.float16)).detach().numpy()
    np.testing.assert_allclose(found, exact, rtol=0.02, atol=0.02 * max(1, np.abs(exact).max()))


@each_model
def test_every_parameter_learns(name):
    """A few steps towards a fixed target lower the loss, and every parameter has a gradient."""
    make, inputs, shape = SMALL[name]
    model, arguments = seeded(make), inputs(minidl.float32)
    if not any(isinstance(module, nn.BatchNorm2d) for module in model.modules()):
        model.eval()  # no dropout, so that the losses compare
    target = minidl.tanh(floats(*shape, seed=1))
    optimizer, losses = Adam(model.parameters(), 5e-4), []
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.mse_loss(output(model, arguments), target)
        loss.backward()
        losses.append(loss.item())
        assert all(p.grad is not None for p in model.parameters())
        optimizer.step()
    assert losses[-1] < losses[0]


@each_model
def test_state_dict_makes_another_model_the_same(name, tmp_path):
    make, inputs, _ = SMALL[name]
    one, other, arguments = seeded(make).eval(), make().eval(), inputs(minidl.float32)
    minidl.save(one.state_dict(), tmp_path / "model.safetensors")
    other.load_state_dict(minidl.load(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(output(one, arguments).detach().numpy(), output(other, arguments).detach().numpy())


@pytest.mark.parametrize("call, error, message", [
    (lambda: MLP([3]), ValueError, "at least the sizes of input and output"),
    (lambda: MLP([3, 2])(floats(2, 4)), RuntimeError, "last axis of 3"),
    (lambda: LeNet()(floats(1, 1, 32, 32)), RuntimeError, "last axis of 3136"),
    (lambda: LeNet()(floats(1, 3, 28, 28)), RuntimeError, "channels"),
    (lambda: AlexNet()(floats(1, 3, 16, 16)), RuntimeError, "last axis of 4096"),
    (lambda: DenseNet(41), ValueError, r"6 n \+ 4"),
    (lambda: DCGANGenerator(size=28), ValueError, "8, 16, 32 or 64 pixels, got 28"),
    (lambda: DCGANDiscriminator(size=8)(floats(1, 1, 16, 16)), ValueError, r"\(N, channels, 8, 8\), got \(1, 1, 16, 16\)"),
    (lambda: GPT(9, 4, 1, 3, 8), ValueError, "multiple of its 3 heads, got 8"),
    (lambda: GPT(9, 4, 1, 1, 4)(tokens(1, 5)), ValueError, r"T <= 4, got \(1, 5\)"),
    (lambda: GPT(9, 4, 1, 1, 4)(tokens(4)), ValueError, r"\(N, T\)"),
    (lambda: GPT(3, 4, 1, 1, 4)(tokens(1, 4)), IndexError, "embedding"),
    (lambda: GPT(9, 4, 1, 1, 4).generate(tokens(1, 0), 2), ValueError, "T >= 1"),
    (lambda: GPT(9, 4, 1, 1, 4).generate(tokens(1, 2), 2, temperature=-1.0), ValueError, "temperature of at least 0"),
    (lambda: GPT(9, 4, 1, 1, 4).generate(tokens(1, 2), 2, top_k=0), ValueError, "top_k of at least 1"),
    (lambda: BERT(9, 4, 1, 1, 4)(tokens(1, 5)), ValueError, r"T <= 4, got \(1, 5\)"),
    (lambda: mask_tokens(tokens(1, 5), mask=1, vocabulary=9, probability=2.0), ValueError, r"in \[0, 1\], got 2"),
    (lambda: Seq2SeqTransformer(9, 8, 2, 1, 8)(tokens(5), tokens(1, 5)), ValueError, r"\(N, T\), got \(5,\)"),
    (lambda: Seq2SeqTransformer(9, 8, 2, 1, 8).translate(tokens(1, 5), 3, beams=0), ValueError, "at least 1, got 0 and 3"),
    (lambda: Seq2SeqTransformer(9, 8, 2, 1, 8).translate(tokens(1, 5), 3, length_penalty=-1), ValueError, "at least 0"),
    (lambda: LSTMLanguageModel(9, 4, 5, tied=True), ValueError, "embedding == hidden"),
    (lambda: GCN(3, 2, 2, 0), ValueError, "at least one layer, got 0"),
    (lambda: GCN(3, 2, 2)(floats(6, 4), RING), ValueError, r"\(N, 3\)"),
    (lambda: GAT(3, 2, 2)(floats(4, 3), RING), IndexError, r"\[0, 4\)"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


# Convolutional networks

def test_resnets_shortcut_without_parameters():
    x = floats(1, 2, 4, 5)
    found = Subsample(2, 2)(x).numpy()
    assert found.shape == (1, 4, 2, 3)
    np.testing.assert_array_equal(found[:, 1:3], x.numpy()[:, :, ::2, ::2])
    assert not found[:, [0, 3]].any()


@pytest.mark.parametrize("make, sizes", [
    (large(resnet18), {"layer1.0.conv1.weight": (64, 64, 3, 3), "layer2.0.downsample.0.weight": (128, 64, 1, 1),
                       "layer4.1.bn2.running_var": (512,), "fc.weight": (1000, 512)}),
    (large(resnet50), {"layer1.0.conv3.weight": (256, 64, 1, 1), "layer1.0.downsample.1.bias": (256,),
                       "layer3.5.conv2.weight": (256, 256, 3, 3), "fc.weight": (1000, 2048)}),
])
def test_names_and_shapes_are_torchvisions(make, sizes):
    state = make().state_dict()
    assert {name: state[name].shape for name in sizes} == sizes
    assert {name.split(".")[0] for name in state} == {"conv1", "bn1", "layer1", "layer2", "layer3", "layer4", "fc"}


def test_small_images_keep_their_size_in_the_first_stage():
    model = ResNet(BasicBlock, (1, 1, 1), 4, small_images=True).eval()
    shapes = []
    for stage in (model.layer1, model.layer2, model.layer3):
        stage.register_forward_hook(lambda module, args, output: shapes.append(output.shape[1:]))
    model(floats(1, 3, 32, 32))
    assert shapes == [(4, 32, 32), (8, 16, 16), (16, 8, 8)]


def test_a_dense_layer_keeps_its_input():
    model = DenseNet(10, 4).eval()
    x = floats(1, 8, 4, 4)
    np.testing.assert_array_equal(model.features[1](x).detach().numpy()[:, :8], x.numpy())


@pytest.mark.parametrize("size", [8, 16, 32, 64])
def test_dcgan_fits_its_own_images(size):
    images = DCGANGenerator(3, 2, size)(floats(2, 3, 1, 1))
    assert images.shape == (2, 1, size, size) and float(images.abs().max()) <= 1
    assert DCGANDiscriminator(2, size)(images).shape == (2,)


# Sequences

def test_a_tagger_does_not_see_padding():
    model = seeded(lambda: LSTMTagger(9, 4, 5, 6, 2)).eval()
    x = tokens(2, 6)
    x[0, 4:] = 0
    batch = model(x, minidl.tensor([4, 6])).detach().numpy()
    other = x.clone()
    other[0, 4:] = 7
    np.testing.assert_array_equal(model(other, minidl.tensor([4, 6])).detach().numpy()[0, :4], batch[0, :4])
    np.testing.assert_allclose(model(x[:1, :4], [4]).detach().numpy()[0], batch[0, :4], rtol=1e-5, atol=1e-6)


def test_a_language_models_state_goes_on():
    model = seeded(lambda: LSTMLanguageModel(9, 5, 6, 2)).eval()
    x = tokens(2, 7)
    whole, _ = model(x)
    first, state = model(x[:, :3])
    second, _ = model(x[:, 3:], state)
    np.testing.assert_allclose(minidl.cat([first, second], 1).detach().numpy(), whole.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_tied_weights_are_one_parameter():
    model = LSTMLanguageModel(9, 6, 6, tied=True)
    assert model.out.weight is model.embedding.weight
    assert "out.weight" not in dict(model.named_parameters())


@pytest.mark.parametrize("make", [lambda: GPT(9, 6, 2, 2, 8), lambda: LSTMLanguageModel(9, 6, 6)])
def test_a_later_token_changes_no_earlier_logits(make):
    model = seeded(make).eval()
    one = tokens(2, 6)
    other = one.clone()
    other[:, 3] = (other[:, 3] + 1) % 9
    before, after = (output(model, (x,)).detach().numpy() for x in (one, other))
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert (np.abs(before - after)[:, 3:].max((0, 2)) > 0).all()


def test_gpt_starts_with_nearly_even_predictions():
    loss = F.cross_entropy(seeded(lambda: GPT(50, 16))(tokens(4, 16, high=50)).flatten(0, 1), tokens(64, high=50, seed=1))
    assert abs(loss.item() - math.log(50)) < 0.1


def test_generate_without_temperature_takes_the_most_likely_token():
    model = seeded(lambda: GPT(9, 5, 1, 2, 8)).eval()
    found = model.generate(tokens(2, 3), 5, temperature=0)
    assert found.shape == (2, 8) and found[:, :3].tolist() == tokens(2, 3).tolist()
    for t in range(3, 8):
        assert found[:, t].tolist() == model(found[:, max(0, t - 5):t])[:, -1].argmax(-1).tolist()


def test_generate_samples_from_the_softmax():
    model = seeded(lambda: GPT(4, 5, 1, 2, 8)).eval()
    start = minidl.zeros(4000, 1, dtype=minidl.int64)
    model.tokens.weight.data *= 40  # far from even
    want = F.softmax(model(start[:1])[0, -1] / 2, -1).detach().numpy()
    drawn = model.generate(start, 1, temperature=2.0, generator=minidl.Generator().manual_seed(3))[:, 1].numpy()
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 4000, want, atol=0.03)


def test_top_k_leaves_out_the_others():
    model = seeded(lambda: GPT(9, 5, 1, 2, 8)).eval()
    start = minidl.zeros(300, 1, dtype=minidl.int64)
    best = model(start[:1])[0, -1].topk(2)[1].tolist()
    assert set(model.generate(start, 1, top_k=2)[:, 1].tolist()) == set(best)
    assert model.generate(start, 1, top_k=1)[:, 1].tolist() == [best[0]] * 300
    assert len(set(model.generate(start, 1, top_k=100)[:, 1].tolist())) == 9


def test_generate_is_the_generators():
    model = GPT(9, 5, 1, 2, 8)
    first, second = (model.generate(tokens(2, 2), 6, generator=minidl.Generator().manual_seed(1)).tolist() for _ in range(2))
    assert first == second


def test_bert_does_not_see_padding():
    model = seeded(lambda: BERT(9, 8, 2, 2, 8)).eval()
    x = tokens(2, 5)
    padded = minidl.cat([x, minidl.zeros(2, 3, dtype=minidl.int64)], 1)
    np.testing.assert_allclose(model(padded).detach().numpy()[:, :5], model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_bert_predicts_chosen_tokens_alone():
    model = seeded(lambda: BERT(9, 8, 2, 2, 8)).eval()
    x = tokens(3, 5)
    chosen = x % 2 == 0
    np.testing.assert_allclose(model.predict(model.encode(x)[chosen]).detach().numpy(), model(x)[chosen].detach().numpy(),
                               rtol=1e-5, atol=1e-6)


def test_bert_sees_both_sides():
    model = seeded(lambda: BERT(9, 6, 1, 2, 8)).eval()
    one, other = tokens(1, 6), tokens(1, 6)
    other[0, 3] = 1
    changed = np.abs((model(one) - model(other)).detach().numpy()).max((0, 2))
    assert (changed > 0).all()


def test_mask_tokens_statistics():
    x = tokens(400, 100, low=0, high=50)
    found, target = mask_tokens(x, mask=1, vocabulary=50, generator=minidl.Generator().manual_seed(0))
    x, found, target = x.numpy(), found.numpy(), target.numpy()
    chosen = target != -100
    assert not chosen[x < 2].any()
    np.testing.assert_array_equal(target[chosen], x[chosen])
    np.testing.assert_array_equal(found[~chosen], x[~chosen])
    assert abs(chosen[x >= 2].mean() - 0.15) < 0.01
    masked, same = found[chosen] == 1, found[chosen] == x[chosen]
    assert abs(masked.mean() - 0.8) < 0.02
    assert abs(same.mean() - (0.1 + 0.1 / 48)) < 0.02
    assert found[chosen][~masked].min() >= 2 and len(np.unique(found[chosen][~masked & ~same])) == 48


@pytest.mark.parametrize("probability, share", [(0.0, 0.0), (1.0, 1.0)])
def test_mask_tokens_extremes(probability, share):
    _, target = mask_tokens(tokens(10, 10), mask=1, vocabulary=9, probability=probability, ignore_index=-1)
    assert (target.numpy() != -1).mean() == share


def test_mask_tokens_keeps_the_dtype():
    x = tokens(3, 5).to(minidl.int32)
    assert [part.dtype for part in mask_tokens(x, mask=1, vocabulary=9)] == [minidl.int32] * 2


# Encoder and decoder

def translator(vocabulary=6, scale=3.0):
    model = seeded(lambda: Seq2SeqTransformer(vocabulary, 8, 2, 1, 16)).eval()
    model.embedding.weight.data *= scale  # far from even predictions, so that searches differ
    return model


def test_seq2seq_does_not_see_padding():
    model = translator(9)
    source, target = tokens(2, 4), tokens(2, 3, seed=1)
    zeros = minidl.zeros(2, 2, dtype=minidl.int64)
    want = model(source, target).detach().numpy()
    found = model(minidl.cat([source, zeros], 1), minidl.cat([target, zeros], 1)).detach().numpy()[:, :3]
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_seq2seqs_decoder_is_causal():
    model = translator(9)
    source, one = tokens(2, 4), tokens(2, 5, seed=1)
    other = one.clone()
    other[:, 2] = 1
    before, after = (model(source, target).detach().numpy() for target in (one, other))
    np.testing.assert_allclose(before[:, :2], after[:, :2], rtol=1e-5, atol=1e-6)
    assert np.abs(before - after)[:, 2:].max() > 1e-3


def test_positions_are_the_papers():
    width, t = 6, 4
    found = SinusoidalPositions(width)(minidl.zeros(1, t, width))[0].numpy()
    for place, i in itertools.product(range(t), range(width // 2)):
        angle = place / 10000 ** (2 * i / width)
        np.testing.assert_allclose(found[place, 2 * i:2 * i + 2], [math.sin(angle), math.cos(angle)], atol=1e-6)


def log_probability(model, source, words):
    """Of the words after `begin`, by the model's forward."""
    logits = model(source, minidl.tensor([[model.begin, *words[:-1]]]))
    return F.log_softmax(logits, -1)[0].detach().numpy()[range(len(words)), words].sum()


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_finds_what_trying_everything_finds(penalty, seed):
    model, source, longest = translator(), tokens(1, 4, high=6, seed=seed), 4
    scores = {}
    for length in range(longest):
        for words in itertools.product([3, 4, 5], repeat=length):
            scores[words] = log_probability(model, source, [*words, model.end]) / ((5 + length + 1) / 6) ** penalty
    found, = model.translate(source, longest, beams=200, length_penalty=penalty)
    assert tuple(found) == max(scores, key=scores.get)


@pytest.mark.parametrize("seed", range(3))
def test_one_beam_is_greedy_search(seed):
    model, source = translator(), tokens(1, 4, high=6, seed=seed)
    words: list[int] = []
    for _ in range(6):
        logits = model(source, minidl.tensor([[model.begin, *words]]))[0, -1].detach().numpy()
        logits[[model.padding, model.begin]] = -np.inf
        if logits.argmax() == model.end:
            break
        words.append(int(logits.argmax()))
    assert model.translate(source, 6) == [words]


def test_a_batch_is_translated_as_each_of_its_sources():
    model = translator(9)
    source = tokens(3, 5)
    source[1, 3:] = 0
    together = model.translate(source, 5, beams=2)
    assert together == [model.translate(source[i:i + 1], 5, beams=2)[0] for i in range(3)]
    assert together[1] == model.translate(source[1:2, :3], 5, beams=2)[0]


def test_translations_hold_no_special_tokens_and_are_not_too_long():
    for beams, length in [(1, 1), (3, 4), (50, 2)]:
        for words in translator(9).translate(tokens(4, 3), length, beams=beams):
            assert len(words) <= length and not {0, 1, 2} & set(words)


def test_a_vocabulary_of_special_tokens_only():
    model = Seq2SeqTransformer(3, 8, 2, 1, 16).eval()
    assert model.translate(minidl.tensor([[1, 2]]), 3, beams=2) == [[]]


# Graphs

@pytest.mark.parametrize("make", [lambda: GCN(4, 5, 3), lambda: GraphSAGE(4, 5, 3), lambda: GAT(4, 5, 3, 2)])
def test_a_node_sees_as_many_edges_far_as_there_are_layers(make):
    """On a ring with edges i -> i + 1, node 5 reaches nodes 5, 0 and 1 through two layers."""
    model, one = seeded(make).eval(), floats(6, 4)
    other = one.clone()
    other[5] += 1
    changed = np.abs((model(one, RING) - model(other, RING)).detach().numpy()).max(1) > 1e-6
    assert changed.tolist() == [True, True, False, False, False, True]


def test_gcn_is_the_papers_formula():
    model, x = seeded(lambda: GCN(4, 5, 3)).eval(), floats(6, 4)
    a = np.eye(6)
    a[RING[1].numpy(), RING[0].numpy()] = 1
    scale = a.sum(1) ** -0.5
    a = scale[:, None] * a * scale
    (w0, b0), (w1, b1) = ((layer.lin.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in model.layers)
    want = a @ np.maximum(a @ x.numpy() @ w0.T + b0, 0) @ w1.T + b1
    np.testing.assert_allclose(model(x, RING).detach().numpy(), want, rtol=1e-5, atol=1e-6)


def test_gcn_takes_edge_weights():
    model, x = seeded(lambda: GCN(4, 5, 3)).eval(), floats(6, 4)
    np.testing.assert_allclose(model(x, RING, minidl.ones(6)).detach().numpy(), model(x, RING).detach().numpy(), rtol=1e-6)
    assert np.abs((model(x, RING, minidl.ones(6) * 3) - model(x, RING)).detach().numpy()).max() > 1e-3


def test_graph_models_drop_in_training_only():
    model, x = seeded(lambda: GAT(4, 5, 3, 2)), floats(6, 4)
    assert model(x, RING).tolist() != model(x, RING).tolist()
    assert model.eval()(x, RING).tolist() == model(x, RING).tolist()
