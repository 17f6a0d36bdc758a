"""save and load: what comes back, what other readers see, what is refused, and what a crash or a damaged file does."""

from __future__ import annotations

import errno
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from collections import OrderedDict, defaultdict, namedtuple
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import minidl
from minidl.tensor import serialization
from minidl.tensor.serialization import load, save
from tests import fake_cuda

ROOT = Path(__file__).resolve().parent.parent
DTYPES = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool".split()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def round_trip(obj, path, **options):
    save(obj, path)
    return load(path, **options)


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# What comes back

@pytest.mark.parametrize("value", [
    None, True, False, 0, -5, 2**63 - 1, 2**63, -2**63, 10**5000, -10**5000, 0.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308,
    "", "é\n\"\\", "\ud800", "\x00", b"", b"\x00\xff", [], (), {}, [[]], ((),), {"": {}}, {"a": [1, (2, None)]},
    {0: "a", "0": "b", -1: "c", 2**70: "d"}, ["dict", 1], ["tensor", "x"], OrderedDict([("b", 1), ("a", 2)]),
    {"__metadata__": 1}, [True, 1, 1.0],
], ids=lambda value: repr(value)[:30] if not isinstance(value, int) else hex(value)[:20])
def test_plain_values(value, path):
    found = round_trip(value, path)
    assert found == value and type(found) is type(value)
    if isinstance(value, float):
        assert struct.pack("d", found) == struct.pack("d", value)


def test_types_inside_are_kept(path):
    found = round_trip({"a": [True, 1, 1.0, (1,), OrderedDict(x=[()])]}, path)["a"]
    assert [type(item) for item in found] == [bool, int, float, tuple, OrderedDict] and type(found[4]["x"][0]) is tuple


@pytest.mark.parametrize("bits", ["7ff0000000000000", "fff0000000000000", "7ff8000000000000", "fff8000000000123"])
def test_infinities_and_nan_keep_their_bits(bits, path):
    value = struct.unpack(">d", bytes.fromhex(bits))[0]
    assert struct.pack(">d", round_trip([value], path)[0]).hex() == bits


def test_order_of_keys(path):
    assert list(round_trip({"b": 1, "a": minidl.ones(1), "c": 2}, path)) == ["b", "a", "c"]
    assert list(round_trip({3: 1, 1: 2}, path)) == [3, 1]


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3), max_leaves=8)


@settings(max_examples=25, deadline=None)
@given(TREES)
def test_any_nesting(tree):
    with tempfile.TemporaryDirectory() as folder:
        found = round_trip(tree, Path(folder) / "x")
    assert found == tree and repr(found) == repr(tree)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3), (1, 1, 5)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors(dtype, shape, path):
    tensor = minidl.tensor(np.arange(np.prod(shape)).reshape(shape) % 3 - 1, dtype=dtype)
    found = round_trip(tensor, path)
    assert type(found) is minidl.Tensor and same_bits(found.array, tensor.array) and found.device == "cpu"
    assert found.array.flags.writeable and not found.requires_grad


@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_that_are_not_contiguous(dtype, path):
    base = minidl.tensor(np.arange(24).reshape(4, 6) % 5, dtype=dtype)
    views = {"t": base.t(), "slice": base[1:, ::2], "last": base[:, 5], "expanded": base[0].expand(3, 6),
             "flipped": minidl.from_numpy(base.numpy()[::-1, ::-1])}
    found = round_trip(views, path)
    assert all(same_bits(found[name].array, view.array) for name, view in views.items())


def test_halves_keep_every_bit_pattern(path):
    bits = np.arange(1 << 16, dtype=np.uint16)
    found = round_trip({"f": minidl.from_numpy(bits.view(np.float16)),
                        "b": minidl.from_numpy(bits.view(minidl.bfloat16))}, path)
    assert (found["f"].numpy().view(np.uint16) == bits).all() and (found["b"].numpy().view(np.uint16) == bits).all()


@pytest.mark.parametrize("array", [
    np.arange(6, dtype=dtype).reshape(2, 3) for dtype in "u2 u4 u8 c8 f2 i1".split()] + [
    np.array(True), np.array(2.5), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(12)[::-3], np.zeros((0, 2))],
    ids=lambda a: f"{a.dtype}{a.shape}")
def test_arrays(array, path):
    found = round_trip([array], path)[0]
    assert type(found) is np.ndarray and same_bits(found, array) and found.flags.writeable


def test_an_array_of_foreign_byte_order_keeps_its_values(path):
    found = round_trip(np.arange(5, dtype=">i4"), path)
    assert found.dtype == np.int32 and found.dtype.isnative and found.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("scalar", [np.float32(0.1), np.float64(0.1), np.int8(-3), np.bool_(True), np.uint64(2**64 - 1)])
def test_numpy_scalars(scalar, path):
    found = round_trip({"x": scalar}, path)["x"]
    assert type(found) is type(scalar) and same_bits(found, scalar)


def test_requires_grad_is_kept_and_history_is_not(path):
    leaf = minidl.ones(3, requires_grad=True)
    found = round_trip({"leaf": leaf, "computed": leaf * 2}, path)
    assert found["leaf"].requires_grad and found["computed"].requires_grad and found["computed"].is_leaf


def test_saving_leaves_the_object_alone(path):
    obj = {"x": minidl.ones(2, 3).t(), "y": [1, (2,)]}
    save(obj, path)
    assert obj["x"].shape == (3, 2) and obj["x"].stride() == (1, 3) and obj["y"] == [1, (2,)]


# Memory that is shared

def test_tied_weights_are_stored_once_and_loaded_as_one_tensor(path):
    weight = minidl.randn(100, 10)
    found = round_trip({"in": weight, "out": weight, "deep": [weight.detach()]}, path)
    assert found["in"] is found["out"] is found["deep"][0]
    assert list(safetensors.numpy.load_file(path)) == ["in"] and path.stat().st_size < 5000


def test_tied_weights_of_which_one_requires_grad_share_memory(path):
    weight = minidl.randn(3, requires_grad=True)
    found = round_trip([weight, weight.detach(), weight.numpy()], path)
    assert [found[0].requires_grad, found[1].requires_grad] == [True, False]
    assert np.shares_memory(found[0].array, found[1].array) and np.shares_memory(found[0].array, found[2])


def test_views_of_other_shape_get_memory_of_their_own(path):
    base = minidl.arange(6)
    found = round_trip({"whole": base, "part": base[:3], "same": base.view(2, 3)}, path)
    found["whole"].fill_(9)
    assert found["part"].tolist() == [0, 1, 2] and found["same"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_empty_tensors_are_not_taken_for_one(path):
    base = minidl.zeros(3)
    found = round_trip([base[:0], base[:0]], path)
    assert found[0] is not found[1]


# Devices

@pytest.fixture
def cuda():
    with fake_cuda.installed() as module:
        yield module


def test_gpu_tensors_go_back_to_their_device(cuda, path):
    tensor = minidl.tensor([[1.0, 2.0], [3.0, 4.0]], device="cuda:0").t()
    found = round_trip({"a": tensor, "b": minidl.ones(2), "c": minidl.ones(2, device="cuda:1"), "again": tensor}, path)
    assert [str(found[name].device) for name in "abc"] == ["cuda:0", "cpu", "cuda:1"]
    assert found["a"].tolist() == [[1, 3], [2, 4]] and found["again"] is found["a"]


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_the_device_can_be_chosen(cuda, path, device):
    found = round_trip({"a": minidl.ones(2, device="cuda:1"), "b": minidl.ones(2)}, path, device=device)
    assert [str(tensor.device) for tensor in found.values()] == [device, device]


def test_a_device_that_is_not_here(path, monkeypatch):
    with fake_cuda.installed():
        save({"w": minidl.ones(2, device="cuda:1")}, path)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(RuntimeError, match="'w'.*on cuda:1.*device=\"cpu\""):
        load(path)
    assert load(path, device="cpu")["w"].tolist() == [1, 1]


# Other readers and writers

def test_other_readers_find_tensors_under_their_paths(path):
    save({"model": {"layers": [{"weight": minidl.ones(2, 3).t()}]}, "step": 3, "rng": (np.arange(3, dtype=np.uint32),)}, path)
    found = safetensors.numpy.load_file(path)
    assert sorted(found) == ["model.layers.0.weight", "rng.0"] and found["model.layers.0.weight"].shape == (3, 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_readers_see_dtype_and_bytes(dtype, path):
    tensors = {"mask": minidl.tensor([True, False, True]), "x": minidl.tensor([[0, 1], [2, 3]], dtype=dtype)}
    save(tensors, path)
    found = dict(safetensors.deserialize(path.read_bytes()))
    assert bytes(found["x"]["data"]) == tensors["x"].numpy().tobytes() and found["x"]["shape"] == [2, 2]
    assert found["x"]["dtype"] == {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "int8": "I8",
                                   "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "bool": "BOOL"}[dtype]


def test_arrays_are_aligned_in_the_file(path):
    save({"a": minidl.ones(3, dtype="bool"), "b": minidl.ones(1, dtype="float16"), "c": minidl.ones(2, dtype="float64")}, path)
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + length])
    assert length % 8 == 0
    assert [header[name]["data_offsets"][0] for name in "abc"] == [18, 16, 0]


def test_metadata_names_the_layout_that_pytorch_users_expect(path):
    save({"w": minidl.ones(1)}, path)
    with safetensors.safe_open(path, framework="np") as file:
        assert file.metadata()["format"] == "pt"


def test_names_that_meet(path):
    obj = {"a": {"b": minidl.zeros(1)}, "a.b": minidl.ones(1), "__metadata__": minidl.full((1,), 2.0), "\ud800": minidl.ones(2)}
    found = round_trip(obj, path)
    assert [found["a"]["b"].item(), found["a.b"].item(), found["__metadata__"].item()] == [0, 1, 2]
    assert len(safetensors.numpy.load_file(path)) == 4


def test_files_of_other_writers_are_dicts_of_tensors(path):
    arrays = {"b.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.array([1, 2], np.int64),
              "e": np.zeros((0, 4), np.float16), "u": np.array([65535], np.uint16), "m": np.array([True])}
    safetensors.numpy.save_file(arrays, path, metadata={"format": "pt"})
    found = load(path)
    assert set(found) == set(arrays) and all(type(tensor) is minidl.Tensor for tensor in found.values())
    assert same_bits(found["b.weight"].array, arrays["b.weight"]) and found["e"].shape == (0, 4)
    assert found["u"].tolist() == [65535] and found["m"].dtype == minidl.bool


def write_raw(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_bfloat16_of_other_writers(path):
    write_raw(path, {"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, b"\x80\x3f\x00\xc0")
    assert load(path)["w"].dtype == minidl.bfloat16 and load(path)["w"].tolist() == [1.0, -2.0]


def test_a_file_of_no_tensors_by_another_writer(path):
    write_raw(path, {})
    assert load(path) == {}


@pytest.mark.parametrize("code", ["F8_E4M3", "C64"])
def test_dtypes_that_minidl_lacks(code, path):
    write_raw(path, {"w": {"dtype": code, "shape": [1], "data_offsets": [0, 1 if code[0] == "F" else 8]}}, b"\0" * (
        1 if code[0] == "F" else 8))
    with pytest.raises(RuntimeError, match="'w'"):
        load(path)


# What cannot be stored

class Lazy(minidl.Tensor):
    def materialize(self):
        pass


class Thing:
    def state_dict(self):
        return {}


@pytest.mark.parametrize("value, message", [
    ({1, 2}, "a set at 'a.0'; leave it out"), (1j, "a complex at"), (lambda: 0, "a function at"),
    (namedtuple("Pair", "x y")(1, 2), "Pair at"), (defaultdict(list), "a collections.defaultdict at"),
    (np.ma.array([1]), "MaskedArray at"), (np.array(["x"]), "an array of dtype <U1 at 'a.0'; turn it into one of float16"),
    (np.array([None]), "dtype object"), (np.zeros(1, np.complex128), "dtype complex128"), (np.str_("x"), "dtype <U1"),
    (np.zeros(2, [("x", "f4")]), "an array of dtype"), ({(1, 2): 3}, r"a dict with the key \(1, 2\) at 'a.0'; turn its keys"),
    ({True: 3}, "the key True"), (signal.SIGTERM, "Signals at"), (Thing(), r"Thing at 'a.0'; store its state_dict\(\)"),
    (bytearray(b"x"), "a bytearray at"), (Lazy(()), "a Lazy|an Lazy without a shape"),
], ids=lambda value: type(value).__name__)
def test_what_cannot_be_stored_is_named(value, message, path):
    with pytest.raises(TypeError, match=message):
        save({"a": [value]}, path)
    assert not path.exists() and not os.listdir(path.parent)


def test_an_object_that_contains_itself(path):
    loop: list = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        save(loop, path)


def test_a_header_that_other_readers_would_refuse(path, monkeypatch):
    monkeypatch.setattr(serialization, "_LONGEST_HEADER", 1000)
    with pytest.raises(ValueError, match="put long lists of numbers into arrays"):
        save(list(range(1000)), path)


# Where it is written

def test_the_file_is_as_readable_as_any_new_file(path):
    save(1, path)
    (path.parent / "other").touch()
    assert path.stat().st_mode == (path.parent / "other").stat().st_mode and len(os.listdir(path.parent)) == 2


def test_a_file_that_is_replaced_keeps_its_permissions(path):
    save(1, path)
    path.chmod(0o600)
    save(2, path)
    assert path.stat().st_mode & 0o777 == 0o600 and load(path) == 2


def test_what_killed_processes_left_is_removed_when_it_is_old(path):
    old, new, other = (path.parent / name for name in (".minidl-12-0123abcd.tmp", ".minidl-13-0123abcd.tmp", ".minidl.tmp"))
    for left in (old, new, other):
        left.touch()
    for left in (old, other):
        os.utime(left, (1e9, 1e9))
    save(1, path)
    assert not old.exists() and new.exists() and other.exists() and len(os.listdir(path.parent)) == 3


def test_a_name_in_bytes(path):
    save(1, os.fsencode(path))
    assert load(os.fsencode(path)) == 1


def test_a_link_is_followed(path):
    link = path.parent / "link"
    link.symlink_to(path)
    save(1, link)
    assert link.is_symlink() and load(path) == 1


@pytest.mark.parametrize("name, error, message", [
    ("no/such/x", FileNotFoundError, "needs the folder to exist"), (".", IsADirectoryError, "name of a file, got a folder"),
    (os.devnull, ValueError, "a device or pipe")])
def test_names_that_cannot_be_written(name, error, message, tmp_path):
    with pytest.raises(error, match=message):
        save(1, tmp_path / name)


def test_a_folder_that_does_not_exist_is_no_name(tmp_path):
    with pytest.raises(IsADirectoryError, match="name of a file, got a folder"):
        save(1, f"{tmp_path}/new/")
    assert not os.listdir(tmp_path)


def test_relative_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(5, "x")
    assert load("x") == 5


def test_a_full_disk_leaves_the_file_from_before(path, monkeypatch):
    save("before", path)

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"could not write .*model.safetensors: No space left.*intact, as it was") as caught:
        save("after", path)
    assert caught.value.errno == errno.ENOSPC and load(path) == "before" and os.listdir(path.parent) == [path.name]
    with pytest.raises(OSError, match="there is no file of that name"):
        save("after", path.parent / "new")


def test_an_interrupt_leaves_the_file_from_before(path, monkeypatch):
    save("before", path)

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save("after", path)
    assert load(path) == "before" and os.listdir(path.parent) == [path.name]


def run(code, path):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(path)], capture_output=True, text=True, cwd=ROOT)


@pytest.mark.skipif(os.name != "posix", reason="limits of processes are POSIX's")
def test_a_limit_in_the_middle_of_writing(path):
    save("before", path)
    done = run("""
        import resource, sys, minidl
        from minidl.tensor.serialization import save
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            save({"w": minidl.ones(100_000)}, sys.argv[1])
        except OSError as error:
            print(error)
    """, path)
    assert "File too large" in done.stdout and "intact" in done.stdout, done.stderr
    assert load(path) == "before" and os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX's")
def test_a_kill_in_the_middle_of_writing(path):
    save("before", path)
    done = run("""
        import os, signal, sys, minidl
        from minidl.tensor import serialization
        original = serialization._bytes_of
        def killed(array):
            if array.shape == (7,):
                os.kill(os.getpid(), signal.SIGKILL)
            return original(array)
        serialization._bytes_of = killed
        serialization.save({"a": minidl.ones(100_000), "b": minidl.ones(7)}, sys.argv[1])
    """, path)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert load(path) == "before"


# Damage

def test_a_missing_file_is_named(path):
    with pytest.raises(FileNotFoundError, match="model.safetensors"):
        load(path)


def test_any_byte_that_changes_is_noticed(path):
    save({"w": minidl.arange(5), "lr": 0.1, "m": minidl.tensor([True])}, path)
    raw = path.read_bytes()
    for place in range(len(raw)):
        for bit in (0x01, 0x20, 0x80):
            path.write_bytes(raw[:place] + bytes([raw[place] ^ bit]) + raw[place + 1:])
            with pytest.raises(RuntimeError, match="model.safetensors"):
                load(path)


def test_a_file_cut_anywhere_is_noticed(path):
    save({"w": minidl.arange(5), "lr": 0.1}, path)
    raw = path.read_bytes()
    for length in range(len(raw)):
        path.write_bytes(raw[:length])
        with pytest.raises(RuntimeError, match="expected an intact safetensors file.*model.safetensors.*copy it again"):
            load(path)


def test_a_file_with_more_at_its_end_is_noticed(path):
    save(minidl.ones(2), path)
    path.write_bytes(path.read_bytes() + b"\0\0")
    with pytest.raises(RuntimeError, match="goes on for 2 bytes"):
        load(path)


def test_what_is_wrong_is_said(path):
    save({"w": minidl.zeros(1000)}, path)
    raw = path.read_bytes()
    path.write_bytes(raw[:-100])
    with pytest.raises(RuntimeError, match="ends in the middle of 'w'"):
        load(path)
    path.write_bytes(raw[:-100] + b"x" * 100)
    with pytest.raises(RuntimeError, match="does not match its own checksum"):
        load(path)


ENTRY = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize("header", [
    b"{", b"{}}", b"{" + b"[" * 5000, b'{"a": \xff}', {"w": 1}, {"w": []}, {"w": {}}, {"__metadata__": 3},
    {"__metadata__": {"a": 1}}, {"w": {**ENTRY, "dtype": 3}}, {"w": {**ENTRY, "shape": 1}}, {"w": {**ENTRY, "shape": [-1]}},
    {"w": {**ENTRY, "shape": [True]}}, {"w": {**ENTRY, "shape": [1.0]}}, {"w": {**ENTRY, "shape": [2]}},
    {"w": {**ENTRY, "shape": [1] * 70}}, {"w": {**ENTRY, "data_offsets": [0]}}, {"w": {**ENTRY, "data_offsets": [-4, 0]}},
    {"w": {**ENTRY, "data_offsets": [1, 5]}},
    {"w": {**ENTRY, "data_offsets": [4, 0]}}, {"w": {**ENTRY, "shape": [1 << 60], "data_offsets": [0, 1 << 62]}},
    {"w": ENTRY, "v": ENTRY}, {},
], ids=lambda header: str(header)[:60])
def test_headers_that_make_no_sense(header, path):
    write_raw(path, header, b"\0" * 4)
    with pytest.raises(RuntimeError, match="expected an intact safetensors file"):
        load(path)


@pytest.mark.parametrize("places", [([0, 4], [8, 12]), ([0, 4], [0, 4]), ([0, 4], [2, 6]), ([4, 8], [8, 12])])
def test_gaps_and_overlaps(places, path):
    write_raw(path, {name: {**ENTRY, "data_offsets": place} for name, place in zip("vw", places)}, b"\0" * 12)
    with pytest.raises(RuntimeError, match="states a place for '[vw]' that does not fit"):
        load(path)


@pytest.mark.parametrize("content", [b"", b"x", b"not a model at all", b"\x93NUMPY\x01\x00v\x00{"])
def test_files_of_another_kind(content, path):
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match="does not begin as a safetensors file does|promises a header"):
        load(path)


class Bomb:
    def __reduce__(self):
        return os.mkdir, (str(Path(tempfile.gettempdir()) / "minidl-bomb"),)


@pytest.mark.parametrize("kind", ["zip", 2, 3, 4, 5])
def test_pickles_are_refused_and_not_run(kind, path):
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps(Bomb()))
    else:
        path.write_bytes(pickle.dumps(Bomb(), protocol=kind))
    with pytest.raises(RuntimeError) as caught:
        load(path)
    lines = str(caught.value).splitlines()
    assert "execute" in lines[0] and len(lines) == 4 and not os.path.exists(Path(tempfile.gettempdir()) / "minidl-bomb")
    compile("\n".join(line.strip() for line in lines[1:]), "advice", "exec")


def test_a_header_as_long_as_a_pickle_begins_is_no_pickle(path):
    entries = {"w": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}
    text = json.dumps(entries).encode().ljust(0x0280)
    write_raw(path, text)
    assert path.read_bytes()[:2] == b"\x80\x02" and load(path)["w"].shape == (0,)


def test_a_newer_format_is_named(path, monkeypatch):
    monkeypatch.setattr(serialization, "_VERSION", "2")
    save(1, path)
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="format 1, got .* of format 2"):
        load(path)
