"""Collating samples to batches."""

from __future__ import annotations

import sys
from collections import OrderedDict, namedtuple
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

import minidl
from minidl.data import default_collate, default_convert
from minidl.data.collate import pin

Pair = namedtuple("Pair", "x y")
HALF = np.float16


@pytest.mark.parametrize("batch, values, dtype", [
    ([1, 2], [1, 2], "int64"), ([1.5, 2], [1.5, 2], "float64"), ([True, False], [True, False], "bool"),
    ([np.float32(1), np.float32(2)], [1, 2], "float32"), ([HALF(65504)], [65504], "float16"),
    ([np.array([1, 2], np.uint8)] * 2, [[1, 2]] * 2, "uint8"), ([np.float64(1), 2.0], [1, 2], "float64"),
    ([np.array(3), np.array(4)], [3, 4], "int64"), ([minidl.tensor([1.0])] * 2, [[1.0]] * 2, "float32"),
    ([minidl.tensor(1.0), np.float32(2)], [1, 2], "float32"), ([np.zeros((0, 3), HALF)] * 2, [[], []], "float16")])
def test_numbers_arrays_and_tensors_are_stacked(batch, values, dtype):
    made = default_collate(batch)
    assert isinstance(made, minidl.Tensor) and made.tolist() == values and str(made.dtype) == dtype


def test_structures_are_kept():
    made = default_collate([{"a": Pair(1, "x"), "b": (2.0, [3])}, {"a": Pair(4, "y"), "b": (5.0, [6])}])
    assert made["a"].x.tolist() == [1, 4] and made["a"].y == ("x", "y") and type(made["a"]) is Pair
    assert type(made["b"]) is list and made["b"][0].tolist() == [2, 5] and made["b"][1][0].tolist() == [3, 6]


@pytest.mark.parametrize("kind", [OrderedDict, dict])
def test_mappings_keep_their_kind(kind):
    made = default_collate([kind(a=1), kind(a=2)])
    assert type(made) is kind and made["a"].tolist() == [1, 2]


def test_a_mapping_that_cannot_be_changed():
    assert dict(default_collate([MappingProxyType({"a": 1})]))["a"].tolist() == [1]


def test_bytes_and_strings_stay():
    assert default_collate(["a", "bc"]) == ["a", "bc"] and default_collate([b"a"]) == [b"a"]


def test_gradients_flow_through_a_batch():
    x = minidl.ones(2, requires_grad=True)
    (default_collate([x, x * 3]).sum()).backward()
    assert x.grad.tolist() == [4, 4]


@pytest.mark.parametrize("batch, kind, message", [
    ([], IndexError, "at least one"), ([None], TypeError, "NoneType"), ([object()], TypeError, "object"),
    ([np.array(["a"])], TypeError, "<U1"), ([np.array([None])], TypeError, "object"),
    ([[1, 2], [1]], RuntimeError, r"equal size.*\[2, 1\]"), ([(1,), (1, 2)], RuntimeError, "equal size"),
    ([{"a": 1}, {"b": 1}], KeyError, "a"),
    ([np.zeros((2, 3)), np.zeros((2, 4))], RuntimeError, r"\(2, 3\), \(2, 4\).*collate_fn"),
    ([minidl.zeros(3), minidl.zeros(())], RuntimeError, r"\(3,\), \(\)"),
    ([1.0, None], TypeError, "NoneType"), ([1, "2"], TypeError, "str")])
def test_what_cannot_be_collated(batch, kind, message):
    with pytest.raises(kind, match=message):
        default_collate(batch)


def test_convert_makes_tensors_of_arrays_only():
    array = np.ones(2)
    made = default_convert({"a": array, "b": (1, "x"), "c": Pair(np.float32(2), None), "d": np.array(["s"])})
    assert np.shares_memory(made["a"].numpy(), array)
    assert made["b"] == [1, "x"] and made["c"].x.item() == 2 and made["c"].y is None and isinstance(made["d"], np.ndarray)


def test_pinning_copies_tensors_and_keeps_the_structure(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(empty_pinned=np.empty))
    batch = {"x": minidl.tensor([1.5, 2.0]), "y": (minidl.tensor(3), "text"), "z": Pair(minidl.ones(0), None)}
    made = pin(batch)
    assert made["x"].tolist() == [1.5, 2.0] and not np.shares_memory(made["x"].numpy(), batch["x"].numpy())
    assert type(made["y"]) is tuple and made["y"][0].item() == 3 and made["y"][1] == "text" and type(made["z"]) is Pair
