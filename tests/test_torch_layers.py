"""Layers hold what PyTorch's hold, under the same names, and compute the same from it.

torch_layers.safetensors has been written by PyTorch through make_torch_layers.py; no test needs PyTorch.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import minidl
from minidl import nn
from tests.torch_layer_cases import CASES, FILE, run

STORED = {name: tensor.numpy() for name, tensor in minidl.load(FILE).items()}
TABLE = json.loads(STORED.pop("cases").tobytes())


def of(number, kind):
    """The arrays of a case and kind (state, in, out, grad, after) by their names."""
    prefix = f"{number}.{kind}."
    return {name.removeprefix(prefix): array for name, array in STORED.items() if name.startswith(prefix)}


def layer_of(number):
    return eval(CASES[number].layer, dict(vars(nn)))


def leaf(number):
    """From the name of an input to the tensor that PyTorch's layer was given."""
    def read(name, spec):
        value = minidl.tensor(STORED[f"{number}.{name}"])
        return value.requires_grad_() if value.is_floating_point() and isinstance(spec, tuple) else value
    return read


each_case = pytest.mark.parametrize("number", range(len(CASES)), ids=[
    f"{case.layer}{'' if case.training else ' eval'} {i}" for i, case in enumerate(CASES)])


def test_the_file_was_written_from_these_cases():
    assert [case for case, _ in TABLE] == [repr(case) for case in CASES], "run `python -m tests.make_torch_layers`"
    assert FILE.stat().st_size < 300_000


@each_case
def test_state_dict(number):
    """The same names in the same order, shapes and dtypes."""
    state = layer_of(number).state_dict()
    assert list(state) == TABLE[number][1]
    want = of(number, "state")
    assert {name: (t.shape, t.numpy().dtype) for name, t in state.items()} == {
        name: (want[name].shape, want[name].dtype) for name in state}


@each_case
def test_outputs_gradients_and_statistics(number):
    layer = layer_of(number)
    assert str(layer.load_state_dict(of(number, "state"))) == "<All keys matched successfully>"
    found = run(layer, CASES[number], leaf(number), minidl.tensor)
    want = {f"{kind}.{name}": array for kind in ("out", "grad", "after") for name, array in of(number, kind).items()}
    assert sorted(found) == sorted(want)
    for name, array in want.items():
        scale = max(1.0, np.abs(array).max(initial=0.0))
        np.testing.assert_allclose(found[name].detach().numpy(), array, rtol=1e-5, atol=1e-5 * scale, err_msg=name)


def test_a_flat_file_of_another_writer_loads_into_a_model(tmp_path):
    number = len(CASES) - 1
    flat = {name: np.ascontiguousarray(array) for name, array in of(number, "state").items()}
    pytest.importorskip("safetensors.numpy").save_file(flat, tmp_path / "model.safetensors", {"format": "pt"})
    model = layer_of(number)
    model.load_state_dict(minidl.load(tmp_path / "model.safetensors"))
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), flat[name])


def test_a_file_with_other_names_is_refused_with_all_of_them(tmp_path):
    save_file = pytest.importorskip("safetensors.numpy").save_file
    save_file({"weight": np.ones((2, 3), np.float32), "gain": np.ones(2, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(RuntimeError, match="missing: bias; unexpected: gain"):
        nn.Linear(3, 2).load_state_dict(minidl.load(tmp_path / "model.safetensors"))
