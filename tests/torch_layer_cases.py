"""The layers that are compared with PyTorch's, and how: shared by make_torch_layers.py, where PyTorch runs, and the test.

Both frameworks have the same names, so one expression makes either layer, and one function runs it and reads its gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("torch_layers.safetensors")


@dataclass(frozen=True)
class Whole:
    """An input of integers in [0, high)."""

    high: int
    shape: tuple


@dataclass(frozen=True)
class Given:
    """An input whose values matter: offsets, masks."""

    values: list


@dataclass(frozen=True)
class Case:
    """A layer as an expression over nn, what it is called with, and its mode.

    Of inputs and options, a tuple of integers stands for normal numbers of that shape, a list for a tuple of inputs.
    """

    layer: str
    inputs: tuple
    options: dict = field(default_factory=dict)
    training: bool = True


PADDED = Given([[False, False, False, True], [False, False, False, False]])
CAUSAL = Given([[False, True, True, True], [False, False, True, True], [False, False, False, True], [False] * 4])
ENCODER, DECODER = "TransformerEncoderLayer(8, 2, 10, 0.0", "TransformerDecoderLayer(8, 2, 10, 0.0"

CASES = [
    Case("Linear(5, 4)", ((3, 5),)),
    Case("Linear(5, 4, bias=False)", ((2, 3, 5),)),
    Case("Linear(5, 4)", ((5,),)),
    Case("Bilinear(3, 4, 2)", ((5, 3), (5, 4))),
    Case("Bilinear(3, 4, 2, bias=False)", ((2, 5, 3), (2, 5, 4))),
    Case("Conv1d(2, 4, 3)", ((2, 2, 7),)),
    Case("Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2, bias=False)", ((2, 4, 9),)),
    Case("Conv1d(2, 4, 3, padding='same', padding_mode='circular')", ((2, 2, 7),)),
    Case("Conv2d(2, 4, 3)", ((2, 2, 5, 6),)),
    Case("Conv2d(4, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=4)", ((2, 4, 6, 5),)),
    Case("Conv2d(2, 3, 3, padding=1, padding_mode='reflect')", ((2, 4, 5),)),
    Case("Conv3d(2, 3, 2, padding=1)", ((1, 2, 3, 2, 3),)),
    Case("ConvTranspose1d(2, 4, 3, stride=2, padding=1, output_padding=1)", ((2, 2, 4),)),
    Case("ConvTranspose2d(4, 4, 3, groups=2, dilation=2, bias=False)", ((2, 4, 3, 2),)),
    Case("ConvTranspose2d(2, 3, 3, stride=2)", ((1, 2, 3, 3),), {"output_size": [8, 7]}),
    Case("ConvTranspose3d(2, 2, 2, stride=2)", ((1, 2, 2, 2, 3),)),
    Case("BatchNorm1d(4)", ((5, 4),)),
    Case("BatchNorm1d(4)", ((5, 4, 3),), training=False),
    Case("BatchNorm2d(3, eps=0.01, momentum=0.3)", ((2, 3, 3, 2),)),
    Case("BatchNorm2d(3, momentum=None)", ((2, 3, 3, 2),)),
    Case("BatchNorm2d(3, affine=False)", ((2, 3, 3, 2),)),
    Case("BatchNorm2d(3, track_running_stats=False)", ((2, 3, 3, 2),), training=False),
    Case("BatchNorm3d(2)", ((2, 2, 2, 2, 3),)),
    Case("InstanceNorm1d(3, affine=True)", ((2, 3, 5),)),
    Case("InstanceNorm2d(3, affine=True, track_running_stats=True)", ((2, 3, 3, 2),)),
    Case("InstanceNorm2d(3, affine=True, track_running_stats=True)", ((2, 3, 3, 2),), training=False),
    Case("InstanceNorm3d(2)", ((2, 2, 2, 2, 3),)),
    Case("GroupNorm(2, 4)", ((2, 4, 3),)),
    Case("LayerNorm((3, 4))", ((2, 3, 4),)),
    Case("LayerNorm(4, eps=0.01, bias=False)", ((2, 3, 4),)),
    Case("RMSNorm(4)", ((2, 3, 4),)),
    Case("RMSNorm((3, 4), eps=0.01)", ((2, 3, 4),)),
    Case("PReLU()", ((2, 3, 4),)),
    Case("PReLU(3)", ((2, 3, 4),)),
    Case("Embedding(7, 4)", (Whole(7, (2, 5)),)),
    Case("Embedding(7, 4, padding_idx=1, scale_grad_by_freq=True)", (Given([[1, 2, 2], [0, 1, 6]]),)),
    Case("Embedding(7, 4, max_norm=1.0)", (Whole(7, (4,)),)),
    Case("EmbeddingBag(7, 4)", (Whole(7, (6,)), Given([0, 2, 2]))),
    Case("EmbeddingBag(7, 4, mode='sum')", (Whole(7, (2, 3)),), {"per_sample_weights": (2, 3)}),
    Case("EmbeddingBag(7, 4, mode='max', padding_idx=2)", (Whole(7, (2, 5)),)),
    Case("EmbeddingBag(7, 4, include_last_offset=True)", (Whole(7, (6,)), Given([0, 4, 6]))),
    Case("RNN(3, 4)", ((5, 2, 3),)),
    Case("RNN(3, 4, 2, nonlinearity='relu', batch_first=True, bidirectional=True)", ((2, 5, 3),)),
    Case("LSTM(3, 4, 2, bidirectional=True)", ((5, 2, 3),)),
    Case("LSTM(3, 4, 2, proj_size=2, bidirectional=True)", ((5, 2, 3), [(4, 2, 2), (4, 2, 4)])),
    Case("LSTM(3, 4, bias=False)", ((5, 3),)),
    Case("GRU(3, 4, 2, bidirectional=True)", ((5, 2, 3),)),
    Case("GRU(3, 4, batch_first=True)", ((2, 5, 3), (1, 2, 4))),
    Case("RNNCell(3, 4)", ((2, 3), (2, 4))),
    Case("RNNCell(3, 4, nonlinearity='relu')", ((3,),)),
    Case("LSTMCell(3, 4)", ((2, 3), [(2, 4), (2, 4)])),
    Case("GRUCell(3, 4, bias=False)", ((2, 3),)),
    Case("MultiheadAttention(8, 2)", ((4, 2, 8), (3, 2, 8), (3, 2, 8))),
    Case("MultiheadAttention(8, 2, bias=False, batch_first=True)", ((2, 4, 8), (2, 4, 8), (2, 4, 8)),
         {"key_padding_mask": PADDED, "average_attn_weights": False}),
    Case("MultiheadAttention(8, 2, kdim=3, vdim=5)", ((4, 2, 8), (3, 2, 3), (3, 2, 5)), {"attn_mask": (4, 3)}),
    Case("MultiheadAttention(8, 4, add_bias_kv=True, add_zero_attn=True)", ((4, 2, 8), (4, 2, 8), (4, 2, 8)),
         {"attn_mask": CAUSAL, "need_weights": False}),
    Case(f"{ENCODER})", ((4, 2, 8),)),
    Case(f"{ENCODER}, 'gelu', batch_first=True, norm_first=True)", ((2, 4, 8),), {"src_key_padding_mask": PADDED}),
    Case(f"{ENCODER}, bias=False)", ((4, 2, 8),), {"src_mask": CAUSAL}),
    Case(f"{DECODER})", ((4, 2, 8), (3, 2, 8)), {"tgt_mask": CAUSAL}),
    Case(f"{DECODER}, batch_first=True, norm_first=True)", ((2, 3, 8), (2, 4, 8)), {"memory_key_padding_mask": PADDED}),
    Case(f"TransformerEncoder({ENCODER}), 2, LayerNorm(8))", ((4, 2, 8),), {"mask": CAUSAL}),
    Case(f"TransformerDecoder({DECODER}), 2)", ((4, 2, 8), (3, 2, 8))),
    Case("Transformer(8, 2, 1, 1, 10, 0.0)", ((4, 2, 8), (3, 2, 8))),
    Case("AdaptiveLogSoftmaxWithLoss(6, 10, [3, 6], 2.0, head_bias=True)", ((5, 6), Given([0, 4, 9, 2, 7]))),
    Case("Sequential(Conv2d(1, 2, 3), BatchNorm2d(2), ReLU(), MaxPool2d(2), Flatten(), Linear(8, 3))", ((3, 1, 6, 6),)),
]


def arrange(spec: Any, name: str, leaf: Any) -> Any:
    """What an input's or option's spec stands for, with `leaf(name, spec)` in the place of each tensor."""
    if isinstance(spec, list) and any(isinstance(part, tuple) for part in spec):
        return tuple(arrange(part, f"{name}.{i}", leaf) for i, part in enumerate(spec))
    return leaf(name, spec) if isinstance(spec, (tuple, Whole, Given)) else spec


def run(layer: Any, case: Case, leaf: Any, tensor: Any) -> dict[str, Any]:
    """Call a layer and go back from a fixed cotangent; the outputs, all gradients, and the state afterwards, by name.

    Args:
        leaf: see arrange; floating ones require grad.
        tensor: from an array to a tensor.
    """
    leaves: dict[str, Any] = {}

    def noted(name: str, spec: Any) -> Any:
        leaves[name] = leaf(name, spec)
        return leaves[name]

    layer.train(case.training)
    inputs = [arrange(spec, f"in.{i}", noted) for i, spec in enumerate(case.inputs)]
    options = {name: arrange(spec, f"in.{name}", noted) for name, spec in case.options.items()}
    found = {f"out.{i}": out for i, out in enumerate(_flat(layer(*inputs, **options)))}
    losses = [(out * tensor(_cotangent(tuple(out.shape)))).sum() for out in found.values() if out.requires_grad]
    sum(losses[1:], losses[0]).backward()
    found.update((f"grad.{name}", x.grad) for name, x in (*leaves.items(), *layer.named_parameters()) if x.grad is not None)
    found.update((f"after.{name}", value) for name, value in layer.state_dict().items() if _changes(case, name))
    return found


def _flat(output: Any) -> list:
    if isinstance(output, (tuple, list)):
        return [tensor for part in output for tensor in _flat(part)]
    return [] if output is None else [output]


def _cotangent(shape: tuple) -> np.ndarray:
    return np.cos(np.arange(np.prod(shape)) * 0.7 + 0.3).reshape(shape).astype(np.float32)


def _changes(case: Case, name: str) -> bool:
    """Whether a forward may change this part of the state."""
    return "running" in name or "num_batches" in name or "max_norm" in case.layer
