"""amp.initialize and amp.scale_loss: what each level does to model and optimizer, and that training stays right."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import minidl
import minidl.nn.functional as F
from minidl import amp, nn, optim
from minidl.amp import losses
from tests import fake_cuda

F16, BF16, F32 = minidl.float16, minidl.bfloat16, minidl.float32


def network(seed=0):
    minidl.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 8))


def images():
    return minidl.tensor(np.random.default_rng(1).standard_normal((8, 1, 4, 4)).astype(np.float32)), minidl.arange(8)


def one_weight(value=1.0, **options):
    """A model y = w * x with SGD of step size 1."""
    model = nn.Linear(1, 1, bias=False)
    with minidl.no_grad():
        model.weight.fill_(value)
    return amp.initialize(model, optim.SGD(model.parameters(), lr=1.0), **options)


def loss_of(model, gradient):
    """A loss in which d loss / d w is `gradient`; times the scale it has to fit into half."""
    return (model(minidl.ones(1, 1)).float() * gradient).sum()


def backward(model, optimizer, gradient, **options):
    with amp.scale_loss(loss_of(model, gradient), optimizer, **options) as scaled:
        scaled.backward()


def train(level, steps=12, make=network, **options):
    model = make()
    model, optimizer = amp.initialize(model, optim.Adam(model.parameters(), lr=1e-2), level, **options)
    x, y = images()
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, optimizer, losses


# What a level is

@pytest.mark.parametrize("level, options, weight, norm, inner, out, master, scale", [
    ("O0", {}, F32, F32, F32, F32, F32, 1.0),
    ("O1", {}, F32, F32, F16, F16, F32, 65536.0),
    ("O2", {}, F16, F32, F16, F32, F32, 65536.0),
    ("O3", {}, F16, F16, F16, F32, F16, 1.0),
    ("O1", {"dtype": BF16}, F32, F32, BF16, BF16, F32, 1.0),
    ("O2", {"dtype": BF16}, BF16, F32, BF16, F32, F32, 1.0),
    ("O3", {"dtype": BF16}, BF16, BF16, BF16, F32, BF16, 1.0),
    ("O2", {"dtype": BF16, "loss_scale": "dynamic"}, BF16, F32, BF16, F32, F32, 65536.0),
    ("O1", {"loss_scale": 128.0, "cast_model_outputs": F32}, F32, F32, F16, F32, F32, 128.0),
    ("O2", {"loss_scale": "64.0"}, F16, F32, F16, F32, F32, 64.0),
    ("O2", {"keep_batchnorm_fp32": False}, F16, F16, F16, F32, F32, 65536.0),
    ("O2", {"keep_batchnorm_fp32": "False", "master_weights": False}, F16, F16, F16, F32, F16, 65536.0),
    ("O3", {"keep_batchnorm_fp32": "True", "loss_scale": "dynamic"}, F16, F32, F16, F32, F16, 65536.0),
    ("O3", {"master_weights": True, "cast_model_outputs": F16}, F16, F16, F16, F16, F32, 1.0),
    ("O2", {"max_loss_scale": 1024.0}, F16, F32, F16, F32, F32, 1024.0),
    ("O2", {"enabled": False}, F32, F32, F32, F32, F32, 1.0),
])
def test_levels(level, options, weight, norm, inner, out, master, scale):
    model = network()
    model, optimizer = amp.initialize(model, optim.SGD(model.parameters(), lr=0.1), opt_level=level, **options)
    seen = []
    model[0].register_forward_hook(lambda module, args, output: seen.append(output.dtype))
    x, _ = images()
    assert model(x).dtype == out and seen == [inner]
    assert model[0].weight.dtype == model[4].bias.dtype == weight
    assert model[1].weight.dtype == model[1].running_mean.dtype == norm
    assert model[1].num_batches_tracked.dtype == minidl.int64
    masters = list(amp.master_params(optimizer))
    assert masters[0].dtype == masters[-1].dtype == master and len(masters) == 6
    assert amp.state_dict()["loss_scaler0"]["scale"] == scale


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("dtype", [F16, BF16])
def test_training_stays_close_to_float32(level, dtype):
    _, _, expected = train("O0")
    _, optimizer, found = train(level, dtype=dtype)
    assert expected[-1] < expected[0] / 3
    np.testing.assert_allclose(found, expected, rtol=0.02 if dtype == F16 else 0.1, atol=0.01)
    assert optimizer.taken_steps == 12 and optimizer.skipped_steps == 0


def test_structure_of_models_and_optimizers_is_returned():
    model, optimizer = network(), None
    assert amp.initialize(model, opt_level="O2") is model
    models = [network(), network()]
    optimizers = [optim.SGD(m.parameters(), lr=0.1) for m in models]
    assert amp.initialize(models, optimizers, "O2") == (models, optimizers)
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    assert amp.initialize([model], optimizer, "O2") == ([model], optimizer)


def test_nested_inputs_and_outputs_are_cast():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, pair, *, more):
            assert pair[0].dtype == pair[1]["a"].dtype == more[0].dtype == F16 and pair[1]["i"].dtype == minidl.int64
            return {"y": [self.linear(pair[0])], "i": pair[1]["i"], "word": "w"}

    model = amp.initialize(Both(), opt_level="O2")
    ones = minidl.ones(1, 2)
    out = model((ones, {"a": ones.double(), "i": minidl.arange(2)}), more=[ones])
    assert out["y"][0].dtype == F32 and out["i"].dtype == minidl.int64 and out["word"] == "w"


def test_a_module_with_a_float32_policy_stays_float32_under_o2():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].policy = amp.Policy("float32")
    amp.initialize(model, opt_level="O2")
    assert model[0].weight.dtype == F16 and model[1].weight.dtype == F32
    assert model(minidl.ones(2, 3)).dtype == F32


def test_gradients_and_state_that_are_there_already_are_kept():
    model = nn.Linear(2, 1, bias=False)
    optimizer = optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
    model(minidl.ones(1, 2)).sum().backward()
    optimizer.step()
    before = model.weight.detach().clone()
    amp.initialize(model, optimizer, "O2")
    backward_grad = model.weight.grad
    assert backward_grad.dtype == F16 and backward_grad.tolist() == [[1.0, 1.0]]
    optimizer.step()  # momentum: 0.5 * 1 + 1
    np.testing.assert_array_equal(next(amp.master_params(optimizer)).detach().numpy(), before.numpy() - np.float32(1.5))


# Masters

@pytest.mark.parametrize("dtype", [F16, BF16])
def test_a_change_below_half_resolution_is_in_the_master(dtype):
    model, optimizer = one_weight(opt_level="O2", dtype=dtype)
    backward(model, optimizer, 2.0 ** -14)
    optimizer.step()
    (master,) = amp.master_params(optimizer)
    assert master.item() == 1 - 2.0 ** -14 and model.weight.item() == 1.0


def test_o3_loses_such_a_change():
    model, optimizer = one_weight(opt_level="O3")
    backward(model, optimizer, 2.0 ** -14)
    optimizer.step()
    assert next(amp.master_params(optimizer)).item() == 1.0


def test_masters_start_from_the_float32_values():
    model, optimizer = one_weight(1 + 2.0 ** -20, opt_level="O2")
    assert [m.item() for m in amp.master_params(optimizer)] == [1 + 2.0 ** -20]
    backward(model, optimizer, 2.0 ** -20)
    optimizer.step()
    assert [m.item() for m in amp.master_params(optimizer)] == [1.0]


def test_clipping_the_masters_clips_the_step():
    model, optimizer = one_weight(opt_level="O2", loss_scale=1024.0)
    backward(model, optimizer, 4.0)
    norm = nn.utils.clip_grad_norm_(amp.master_params(optimizer), 0.5)
    optimizer.step()
    assert norm.item() == 4.0
    np.testing.assert_allclose(next(amp.master_params(optimizer)).item(), 0.5, rtol=1e-5)


def test_a_half_parameter_that_is_given_new_data_takes_its_master_along():
    model, optimizer = one_weight(opt_level="O2")
    backward(model, optimizer, 0.0)
    optimizer.step()
    model.weight.data = minidl.full((1, 1), 3.0, dtype=F16)
    optimizer.zero_grad()
    backward(model, optimizer, 0.5)
    optimizer.step()
    assert next(amp.master_params(optimizer)).item() == 2.5


# scale_loss

@pytest.mark.parametrize("level", ["O1", "O2"])
def test_gradients_are_true_after_the_block_and_scaled_inside(level):
    model, optimizer = one_weight(opt_level=level, loss_scale=1024.0)
    with amp.scale_loss(loss_of(model, 3.0), optimizer) as scaled:
        scaled.backward()
        assert model.weight.grad.item() == 3072.0
    assert model.weight.grad.item() == 3.0 and model.weight.grad.dtype == F32


def test_a_gradient_that_half_cannot_hold_survives():
    model, optimizer = one_weight(opt_level="O2")
    backward(model, optimizer, 2.0 ** -24)
    assert model.weight.grad.item() == 2.0 ** -24


def test_overflow_skips_the_next_step_and_backs_off():
    model, optimizer = one_weight(opt_level="O2")
    backward(model, optimizer, 60000.0)
    optimizer.step()
    assert model.weight.item() == 1.0 and model.weight.grad is None
    assert (optimizer.taken_steps, optimizer.skipped_steps) == (0, 1)
    assert amp.state_dict()["loss_scaler0"]["scale"] == 32768.0
    backward(model, optimizer, 0.5)
    optimizer.step()
    assert model.weight.item() == 0.5 and (optimizer.taken_steps, optimizer.skipped_steps) == (1, 1)


def test_a_fixed_scale_skips_too_and_stays():
    model, optimizer = one_weight(opt_level="O2", loss_scale=1024.0)
    backward(model, optimizer, 60000.0)
    optimizer.step()
    assert optimizer.skipped_steps == 1 and amp.state_dict()["loss_scaler0"]["scale"] == 1024.0


def test_a_skipped_step_moves_neither_statistics_nor_optimizer_state():
    model, optimizer, _ = train("O2", steps=2)
    before = copy.deepcopy([*model.state_dict().values()])
    state = copy.deepcopy(optimizer.state_dict())
    x, y = images()
    with amp.scale_loss(F.cross_entropy(model(x + 1), y) * float("inf"), optimizer) as scaled:
        scaled.backward()
    optimizer.step()
    for now, then in zip(model.state_dict().values(), before):
        np.testing.assert_array_equal(now.numpy(), then.numpy())
    assert optimizer.state_dict()["state"][0]["step"] == state["state"][0]["step"] == 2


def test_too_many_skips_in_a_row_are_an_error():
    model, optimizer = one_weight(opt_level="O2")
    with pytest.raises(RuntimeError, match="skipped 50 steps in a row; the gradient of parameter 0"):
        for _ in range(60):
            backward(model, optimizer, float("inf"))
            optimizer.step()


def test_the_scale_grows_after_2000_clean_losses():
    model, optimizer = one_weight(opt_level="O2", loss_scale="dynamic")
    state = amp.state_dict()
    state["loss_scaler0"]["_growth_tracker"] = 1999
    amp.load_state_dict(state)
    backward(model, optimizer, 0.5)
    assert amp.state_dict()["loss_scaler0"]["scale"] == 131072.0


def test_a_float16_loss_lowers_a_scale_that_its_gradient_cannot_hold():
    model, optimizer = one_weight(opt_level="O1")
    loss = model(minidl.ones(1, 1))[0, 0]
    assert loss.dtype == F16
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    assert model.weight.grad.item() == 1.0 and not optimizer.skip_next_step
    assert amp.state_dict()["loss_scaler0"]["scale"] == 32768.0


def test_losses_with_scales_of_their_own_accumulate_true_gradients():
    model, optimizer = one_weight(opt_level="O2", num_losses=2)
    backward(model, optimizer, 60000.0, loss_id=1)
    optimizer.step()
    assert [amp.state_dict()[f"loss_scaler{i}"]["scale"] for i in range(2)] == [65536.0, 32768.0]
    backward(model, optimizer, 0.25, loss_id=0)
    backward(model, optimizer, 0.5, loss_id=1)
    backward(model, optimizer, 0.125, loss_id=0)
    assert model.weight.grad.item() == 0.875
    optimizer.step()
    assert model.weight.item() == 0.125


def test_an_overflow_of_one_loss_is_not_blamed_on_the_other():
    model, optimizer = one_weight(opt_level="O2", num_losses=2)
    backward(model, optimizer, 60000.0, loss_id=0)
    backward(model, optimizer, 0.5, loss_id=1)
    optimizer.step()
    assert optimizer.skipped_steps == 1 and model.weight.item() == 1.0
    assert [amp.state_dict()[f"loss_scaler{i}"]["scale"] for i in range(2)] == [32768.0, 65536.0]


def test_true_gradients_of_a_plain_backward_are_added_as_they_are():
    model, optimizer = one_weight(opt_level="O2")
    loss_of(model, 0.25).backward()
    backward(model, optimizer, 0.5)
    assert model.weight.grad.item() == 0.75


def test_delayed_unscaling_accumulates_also_across_a_change_of_scale():
    model, optimizer = one_weight(opt_level="O2")
    backward(model, optimizer, 0.25, delay_unscale=True)
    assert model.weight.grad.item() == 0.25 * 65536
    state = amp.state_dict()
    state["loss_scaler0"]["scale"] = 1024.0
    amp.load_state_dict(state)
    backward(model, optimizer, 0.25, delay_unscale=True)
    backward(model, optimizer, 0.25)
    assert model.weight.grad.item() == 0.75


def test_a_delayed_loss_adds_to_true_gradients():
    model, optimizer = one_weight(opt_level="O2")
    backward(model, optimizer, 0.5)
    backward(model, optimizer, 0.25, delay_unscale=True)
    backward(model, optimizer, 0.125)
    assert model.weight.grad.item() == 0.875


def test_a_step_on_scaled_gradients_is_refused():
    model, optimizer = one_weight(opt_level="O2")
    backward(model, optimizer, 0.25, delay_unscale=True)
    with pytest.raises(RuntimeError, match="expected true gradients.*carries the loss scale 65536"):
        optimizer.step()


def test_the_pattern_of_a_gan():
    """The discriminator's gradients are true where the generator's loss flows through it with another scale."""
    def weights(level):
        disc, gen = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        with minidl.no_grad():
            disc.weight.fill_(0.5)
            gen.weight.fill_(2.0)
        (disc, gen), (opt_d, opt_g) = amp.initialize(
            [disc, gen], [optim.SGD(m.parameters(), lr=0.125) for m in (disc, gen)], level, num_losses=3,
            loss_scale=1.0 if level == "O0" else 1024.0)
        real, noise = minidl.full((1, 1), 0.75), minidl.ones(1, 1)
        for _ in range(3):
            opt_d.zero_grad()
            fake = gen(noise)
            for i, loss in enumerate((disc(real).sum(), -disc(fake.detach()).sum())):
                with amp.scale_loss(loss, opt_d, loss_id=i) as scaled:
                    scaled.backward()
            opt_d.step()
            opt_g.zero_grad()
            with amp.scale_loss(disc(fake).sum(), opt_g, loss_id=2) as scaled:
                scaled.backward()
            opt_g.step()
        return [next(amp.master_params(o)).item() for o in (opt_d, opt_g)]

    expected = weights("O0")
    assert expected != [0.5, 2.0]
    np.testing.assert_allclose(weights("O1"), expected, rtol=1e-3)
    np.testing.assert_allclose(weights("O2"), expected, rtol=1e-3)


def test_one_loss_for_two_optimizers_skips_both():
    models = [nn.Linear(1, 1), nn.Linear(1, 1)]
    models, optimizers = amp.initialize(models, [optim.SGD(m.parameters(), lr=1.0) for m in models], "O2")
    loss = models[1](models[0](minidl.ones(1, 1))).sum() * float("inf")
    with amp.scale_loss(loss, optimizers) as scaled:
        scaled.backward()
    for optimizer in optimizers:
        optimizer.step()
        assert optimizer.skipped_steps == 1


def test_losses_may_be_nested():
    model, optimizer = one_weight(opt_level="O2")
    with amp.scale_loss([loss_of(model, v) for v in (0.25, 0.5)], optimizer) as scaled:
        for part in scaled:
            part.backward()
    assert model.weight.grad.item() == 0.75


def test_an_error_inside_the_block_leaves_the_gradients_as_they_were():
    model, optimizer = one_weight(opt_level="O2")
    backward(model, optimizer, 0.5)
    with pytest.raises(KeyError), amp.scale_loss(loss_of(model, 0.25), optimizer) as scaled:
        scaled.backward()
        raise KeyError
    assert model.weight.grad.item() == 0.5 and amp.state_dict()["loss_scaler0"]["scale"] == 65536.0


def test_without_scaling_the_loss_passes_and_closures_work():
    model, optimizer = one_weight(opt_level="O0")
    loss = model(minidl.ones(1, 1)).sum()
    with amp.scale_loss(loss, optimizer) as scaled:
        assert scaled is loss

    def closure():
        optimizer.zero_grad()
        loss = model(minidl.full((1, 1), 0.5)).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert model.weight.item() == 0.5


@pytest.mark.parametrize("zero", ["optimizer", "model"])
def test_true_gradients_of_half_parameters_can_be_moved_and_set_to_zero(zero):
    model, optimizer = one_weight(opt_level="O2")
    backward(model, optimizer, 0.25)
    model.to("cpu")
    assert model.weight.grad.dtype == F32 and model.weight.grad.item() == 0.25
    (optimizer if zero == "optimizer" else model).zero_grad(set_to_none=False)
    backward(model, optimizer, 0.5)
    optimizer.step()
    assert model.weight.item() == 0.5


# Checkpoints

def exact(model):
    return {name: t.numpy().copy() for name, t in model.state_dict().items()}


@pytest.mark.parametrize("saved", ["O0", "O1", "O2"])
@pytest.mark.parametrize("loaded", ["O0", "O1", "O2"])
@pytest.mark.parametrize("optimizer_first", [False, True])
def test_checkpoints_go_from_level_to_level_without_loss(saved, loaded, optimizer_first, tmp_path):
    model, optimizer, _ = train(saved, steps=3)
    expected = exact(model)
    assert {t.dtype.name for t in expected.values()} == {"float32", "int64"}
    minidl.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "amp": amp.state_dict()},
                tmp_path / "checkpoint")
    checkpoint = minidl.load(tmp_path / "checkpoint")
    other = network(seed=1)
    other, second = amp.initialize(other, optim.Adam(other.parameters(), lr=1e-2), loaded)
    for part, name in sorted([(other, "model"), (second, "optimizer")], key=lambda pair: pair[1], reverse=optimizer_first):
        part.load_state_dict(checkpoint[name])
    amp.load_state_dict(checkpoint["amp"])
    for name, value in exact(other).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
    masters = [m.detach().numpy() for m in amp.master_params(second)]
    for (name, _), master in zip(other.named_parameters(), masters):
        np.testing.assert_array_equal(master, expected[name])
    assert second.state_dict()["state"][0]["step"] == 3
    assert ("master" in second.state_dict()["state"][0]) == (loaded == "O2")


def test_training_goes_on_from_a_checkpoint_as_if_nothing_had_been():
    model, optimizer, _ = train("O2", steps=3)
    other, second, _ = train("O2", steps=1, make=lambda: network(seed=1))
    other.load_state_dict(model.state_dict())
    second.load_state_dict(optimizer.state_dict())
    x, y = images()
    for m, o in ((model, optimizer), (other, second)):
        for _ in range(2):
            o.zero_grad()
            with amp.scale_loss(F.cross_entropy(m(x), y), o) as scaled:
                scaled.backward()
            o.step()
    for a, b in zip(exact(model).values(), exact(other).values()):
        np.testing.assert_array_equal(a, b)


def test_a_state_dict_of_a_part_is_float32_too_and_keep_vars_gives_the_parameters():
    model, optimizer, _ = train("O2", steps=2)
    np.testing.assert_array_equal(model[0].state_dict()["weight"].numpy(), exact(model)["0.weight"])
    assert model.state_dict(keep_vars=True)["0.weight"] is model[0].weight
    np.testing.assert_array_equal(nn.Sequential(model).state_dict()["0.0.weight"].numpy(), exact(model)["0.weight"])


def test_the_masters_survive_a_checkpoint_that_does_not_fit():
    model, _ = one_weight(1 + 2.0 ** -20, opt_level="O2")
    with pytest.raises(RuntimeError, match="expected exactly the names"):
        model.load_state_dict({"weight": np.zeros((1, 1), np.float32), "more": np.zeros(1)})
    assert model.state_dict()["weight"].item() == 1 + 2.0 ** -20


def test_an_edit_by_hand_is_in_the_state_dict():
    model, _ = one_weight(1 + 2.0 ** -20, opt_level="O2")
    with minidl.no_grad():
        model.weight.fill_(5.0)
    assert model.state_dict()["weight"].item() == 5.0


def test_a_bare_half_model_keeps_float16():
    assert network().half().state_dict()["0.weight"].dtype == F16


def test_scalers_of_another_kind_stay_as_they_are():
    first = one_weight(opt_level="O2", num_losses=2)
    saved = amp.state_dict()
    assert sorted(saved) == ["loss_scaler0", "loss_scaler1"]
    saved["loss_scaler0"]["scale"] = 512.0
    amp.load_state_dict(saved)
    assert amp.state_dict()["loss_scaler0"]["scale"] == 512.0
    second = one_weight(opt_level="O2", loss_scale=128.0, num_losses=2)
    amp.load_state_dict(saved)
    assert amp.state_dict()["loss_scaler0"]["scale"] == 128.0
    with pytest.raises(RuntimeError, match="expected loss_scaler0, loss_scaler1, got loss_scaler0"):
        amp.load_state_dict({"loss_scaler0": {}})
    del first, second
    gc.collect()
    with pytest.raises(RuntimeError, match="amp.state_dict expected that amp.initialize was called"):
        amp.state_dict()


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_models_are_copied_and_pickled(level):
    model, _, _ = train(level, steps=1)
    x, _ = images()
    model.eval()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other(x).numpy(), model(x).numpy())
        assert other.state_dict()["0.weight"].dtype == F32


def test_models_and_optimizers_are_not_kept_alive():
    model, optimizer, _ = train("O2", steps=1)
    statistics = model[1].running_mean.array
    (scaler,) = losses._trainings[optimizer].scalers
    dead = [weakref.ref(thing) for thing in (model, optimizer, statistics, scaler)]
    del model, optimizer, statistics, scaler
    gc.collect()
    assert [ref() for ref in dead] == [None] * 4


# Errors

@pytest.mark.parametrize("options, message", [
    ({"opt_level": "O4"}, "opt_level as one of O0, O1, O2, O3 .*'O4'"), ({"opt_level": "02"}, "the letter O"),
    ({"opt_level": 2}, "opt_level"), ({"loss_scale": "static"}, "loss_scale as \"dynamic\" or a number, got 'static'"),
    ({"loss_scale": -1.0}, "positive"), ({"loss_scale": 0}, "positive"), ({"num_losses": 0}, "num_losses"),
    ({"opt_level": "O1", "keep_batchnorm_fp32": True}, "no keep_batchnorm_fp32 with O1"),
    ({"opt_level": "O1", "master_weights": True}, "no master_weights with O1"),
    ({"opt_level": "O2", "keep_batchnorm_fp32": "yes"}, "keep_batchnorm_fp32 as True, False or None, got 'yes'"),
    ({"opt_level": "O2", "master_weights": 1}, "master_weights as True"),
    ({"opt_level": "O2", "dtype": F32}, "float16 or bfloat16, got float32")])
def test_impossible_options_change_nothing(options, message):
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match=message):
        amp.initialize(model, optimizer, **options)
    assert model[0].weight.dtype == F32 and not hasattr(model, "policy")
    amp.initialize(model, optimizer, "O2")


@pytest.mark.parametrize("cast", ["half", "bfloat16", "double"])
def test_a_model_that_is_not_float32_is_refused(cast):
    with pytest.raises(RuntimeError, match="expected a float32 model, got 0.weight in"):
        amp.initialize(getattr(network(), cast)(), opt_level="O2")


def test_a_lazy_model_is_refused():
    with pytest.raises(RuntimeError, match="lazy weight; run the model once first"):
        amp.initialize(nn.LazyLinear(3), opt_level="O2")


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_a_second_time_is_refused(level):
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    amp.initialize(model, optimizer, level)
    with pytest.raises(RuntimeError, match="got the Sequential a second time"):
        amp.initialize(model, optimizer, level)
    with pytest.raises(RuntimeError, match="got the SGD a second time"):
        amp.initialize(network(), optimizer, level)


@pytest.mark.parametrize("model, optimizer, message", [
    (3, None, "as model an nn.Module or a list of them, got int"), (nn.Linear, None, "got Linear"),
    ([nn.Linear(1, 1), None], None, "got NoneType"),
    (nn.Linear(1, 1), nn.Linear(1, 1), "as optimizer an optim.Optimizer.*Linear"),
    (nn.Linear(1, 1), [3], "got int")])
def test_wrong_types_are_refused(model, optimizer, message):
    with pytest.raises(TypeError, match=message):
        amp.initialize(model, optimizer)


def test_what_scale_loss_refuses():
    model, optimizer = one_weight(opt_level="O2")
    loss = model(minidl.ones(1, 1)).sum()
    stranger = optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    with pytest.raises(RuntimeError, match="one that has not been through it"), amp.scale_loss(loss, stranger):
        pass
    with pytest.raises(RuntimeError, match="got none"), amp.scale_loss(loss, []):
        pass
    with pytest.raises(IndexError, match="loss_id below 1, got 1; pass num_losses"), amp.scale_loss(loss, optimizer, 1):
        pass
    with pytest.raises(RuntimeError, match="takes no closure under loss scaling"):
        optimizer.step(lambda: loss)


# On the fake GPU

@pytest.mark.parametrize("level", ["O1", "O2"])
def test_a_model_on_a_gpu_trains_saves_and_loads_there(level):
    with fake_cuda.installed():
        model = network().to("cuda")
        model, optimizer = amp.initialize(model, optim.Adam(model.parameters(), lr=1e-2), level, num_losses=2)
        x, y = (t.to("cuda") for t in images())
        for loss_id in (0, 1, 0):
            with amp.scale_loss(F.cross_entropy(model(x).float(), y), optimizer, loss_id) as scaled:
                scaled.backward()
        optimizer.step()
        assert optimizer.taken_steps == 1 and all(m.is_cuda for m in amp.master_params(optimizer))
        saved = {name: t.cpu() for name, t in model.state_dict().items()}
        model.load_state_dict(saved)
        for name, t in model.state_dict().items():
            np.testing.assert_array_equal(t.cpu().numpy(), saved[name].numpy())
