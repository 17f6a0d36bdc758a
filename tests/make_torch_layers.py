"""Writes torch_layers.safetensors, what PyTorch's layers hold and compute, for test_torch_layers.py.

For developers: needs PyTorch, which the tests do not. Run `python -m tests.make_torch_layers` after a change of
torch_layer_cases.py, and commit the file.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from tests.torch_layer_cases import CASES, FILE, Given, Whole, run


def draw(rng: Any, spec: Any) -> Any:
    if isinstance(spec, Given):
        return torch.tensor(spec.values)
    if isinstance(spec, Whole):
        return torch.from_numpy(rng.randint(0, spec.high, spec.shape))
    return torch.from_numpy(rng.standard_normal(spec).astype(np.float32)).requires_grad_()


def shake(layer: torch.nn.Module, rng: Any) -> None:
    """Move all floating state off its initial zeros and ones."""
    for name, value in layer.state_dict().items():
        if value.is_floating_point():
            change = torch.from_numpy(0.2 * rng.standard_normal(tuple(value.shape)).astype(np.float32))
            value += change.abs() if name.endswith("running_var") else change


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    tensors: dict[str, torch.Tensor] = {}
    table = []
    for number, case in enumerate(CASES):
        rng = np.random.RandomState(number)
        layer = eval(case.layer, dict(vars(torch.nn)))
        shake(layer, rng)
        found = {f"state.{name}": value.clone() for name, value in layer.state_dict().items()}

        def leaf(name: str, spec: Any, rng: Any = rng, found: Any = found) -> Any:
            value = draw(rng, spec)
            found[name] = value.detach().clone()
            return value

        found.update(run(layer, case, leaf, torch.from_numpy))
        tensors.update((f"{number}.{name}", value.detach().clone().contiguous()) for name, value in found.items())
        table.append([repr(case), list(layer.state_dict())])
    tensors["cases"] = torch.frombuffer(bytearray(json.dumps(table).encode()), dtype=torch.uint8)
    save_file(tensors, FILE)
    print(f"{FILE.name}: {len(CASES)} layers, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
