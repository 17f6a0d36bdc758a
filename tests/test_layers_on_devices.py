"""Layers and optimizers on the fake GPU: parameters move, state lies beside them, and no array strays to the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import minidl
from minidl import nn, optim
from tests import fake_cuda


@pytest.fixture(autouse=True)
def cuda():
    with fake_cuda.installed() as module:
        yield module


def net():
    minidl.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.0),
                         nn.Linear(48, 4))


def train(model, optimizer, device, dtype=minidl.float32, steps=4):
    rng = np.random.RandomState(0)
    for _ in range(steps):
        x = minidl.tensor(rng.randn(5, 1, 4, 4), dtype=dtype, device=device)
        y = minidl.tensor(rng.randint(0, 4, 5), device=device)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    return [p.detach().cpu().float().numpy() for p in model.parameters()]


OPTIMIZERS = {
    "SGD": dict(lr=0.1, momentum=0.9, nesterov=True), "Adam": dict(lr=0.01, amsgrad=True), "AdamW": dict(lr=0.01),
    "NAdam": {}, "RAdam": {}, "Adamax": {}, "Adagrad": {}, "Adadelta": {}, "RMSprop": dict(centered=True, momentum=0.5),
    "Rprop": {}, "ASGD": {}, "LAMB": {}, "LARS": dict(lr=0.1),
}


@pytest.mark.parametrize("name, dtype", [(name, dtype) for name in OPTIMIZERS for dtype in (minidl.float32, minidl.float16)
                                         if (name, dtype) != ("Rprop", minidl.float16)])  # which follows the sign of noise
def test_training_on_a_gpu_equals_training_on_the_cpu(name, dtype):
    found = []
    for device in ("cpu", "cuda"):
        model = net().to(dtype).to(device)
        optimizer = getattr(optim, name)(model.parameters(), **OPTIMIZERS[name])
        found.append(train(model, optimizer, device, dtype))
        assert all(str(p.device).startswith(device) for p in model.parameters())
        for state in optimizer.state.values():
            assert all(str(t.device).startswith(device) for t in state.values() if isinstance(t, minidl.Tensor) and t.ndim)
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, atol=1e-6 if dtype == minidl.float32 else 2e-3)


def test_a_model_that_moves_after_the_optimizer_was_made_takes_its_state_along():
    model, other = net(), net()
    optimizer, same = optim.Adam(model.parameters()), optim.Adam(other.parameters())
    train(model, optimizer, "cpu", steps=2)
    train(other, same, "cpu", steps=2)
    model.to("cuda")
    for a, b in zip(train(model, optimizer, "cuda"), train(other, same, "cpu")):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("layer, shape", [
    (lambda: nn.LSTM(3, 4, 2, bidirectional=True), (5, 2, 3)), (lambda: nn.GRU(3, 4), (5, 2, 3)),
    (lambda: nn.MultiheadAttention(4, 2), None), (lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0), (5, 2, 4)),
    (lambda: nn.LayerNorm(3), (2, 3)), (lambda: nn.GroupNorm(2, 4), (2, 4, 3)), (lambda: nn.InstanceNorm1d(4), (2, 4, 3)),
    (lambda: nn.ConvTranspose2d(2, 3, 3), (2, 2, 4, 4)), (lambda: nn.MaxPool2d(2), (2, 2, 4, 4)),
    (lambda: nn.Upsample(scale_factor=2), (1, 2, 3, 3)), (lambda: nn.PReLU(), (2, 3)),
])
def test_layers_give_the_same_on_a_gpu(layer, shape):
    minidl.manual_seed(0)
    layer = layer()
    x = minidl.randn(shape or (5, 2, 4), requires_grad=True)
    arguments = (x,) if shape else (x, x, x)
    expected = layer(*arguments)
    found = layer.to("cuda")(*[a.detach().to("cuda").requires_grad_() for a in arguments])
    expected, found = (v[0] if isinstance(v, tuple) else v for v in (expected, found))
    np.testing.assert_allclose(found.detach().cpu().numpy(), expected.detach().numpy(), atol=1e-6)
    found.sum().backward()
    assert all(p.grad.device.type == "cuda" for p in layer.parameters())


def test_state_dicts_load_across_devices():
    model = net().to("cuda")
    state = net().state_dict()
    model.load_state_dict(state)
    assert model[0].weight.device.type == "cuda"
    np.testing.assert_array_equal(model[0].weight.detach().cpu().numpy(), state["0.weight"].numpy())
