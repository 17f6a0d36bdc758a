"""`save` and `load`: one safetensors file, atomic and with a checksum, from which loading executes no code.

Arrays lie in the file under their path in the saved object ("model.0.weight"), so every reader of safetensors finds them.
The rest of the object is JSON in the header's metadata. The format is written here and not by the safetensors package,
whose writer takes raw pointers, hides a full disk's error code and leaves no room for fsync or a checksum.

Source: the format's description at https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import struct
import sys
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import numpy as np

from . import dtypes
from .backend import backend_of
from .convert import resolve, to_array
from .inspection import data_ptr
from .tensor import Tensor, make_tensor


def save(obj: Any, path: Any) -> None:
    """Write an object to one safetensors file, which replaces the file of that name only when it is complete.

    Tensors that show the same memory in the same way (tied weights) are stored once and are one tensor after loading.
    Of a tensor, values, dtype, device and requires_grad are kept; gradient, history, attributes and subclass are not, nor
    is the memory that views of different shapes share.

    Args:
        obj: a tensor, NumPy array, NumPy scalar, None, bool, int, float, str, bytes, or any nesting of them in dicts
            (with str or int keys), OrderedDicts, lists and tuples. Only a dict of tensors loads as it is in other
            readers of safetensors; they see the arrays of any other object under their paths in it.
        path: of the file; its folder must exist. A link is followed.

    Raises:
        TypeError: for a part that cannot be stored; it names the part.
        ValueError: if the object contains itself, or holds more than 100 MB beside its arrays.
        OSError: if the file cannot be written, or not all of it; the file of that name is then the one from before.
    """
    target = _target(path)
    encoder = _Encoder()
    try:
        tree = json.dumps(encoder.node(obj, ""), allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise ValueError("save expected an object of fewer than some hundred levels, got one that is deeper or contains "
                         "itself; flatten it") from None
    in_file_order = dict(sorted(encoder.blocks.items(), key=lambda item: -item[1].itemsize))  # so all are aligned
    head = _head(tree, encoder.blocks, in_file_order)
    with _replacing(target) as file:
        file.write(head)
        crc = zlib.crc32(head)
        for array in in_file_order.values():
            data = _bytes_of(array)
            file.write(data)
            crc = zlib.crc32(data, crc)
        file.seek(0)
        file.write(_with_digits(head, crc))


def load(path: Any, device: Any = None) -> Any:
    """The object that `save` wrote; of any other safetensors file, its tensors as a dict.

    Args:
        path: of the file.
        device: where to put all tensors; by default each goes where it was saved from, and those of other writers to the
            current device.

    Raises:
        FileNotFoundError: if there is no such file.
        RuntimeError: if the file is damaged, no safetensors file, or holds what minidl lacks. A pickle is refused, since
            loading one can execute anything; the error says how to convert it.
    """
    target = None if device is None else resolve(device)
    path = os.fsdecode(path)
    with open(path, "rb") as file:
        head, table = _read_head(file, path)
        metadata = table.pop("__metadata__", {})
        arrays, crc = _read_arrays(file, path, table, len(head), zlib.crc32(_with_digits(head, 0)))
    if not _has_digits(head) and "minidl" not in metadata:
        return {name: _foreign(path, name, arrays[name], target) for name in table}
    if not _has_digits(head) or _with_digits(head, crc) != head:
        raise _damaged(path, "does not match its own checksum, so some of its bytes have changed")
    if metadata.get("minidl") != _VERSION:
        raise RuntimeError(f"load expected a file of minidl's format {_VERSION}, got {path} of format "
                           f"{metadata.get('minidl')}; use a release of minidl that is as new as the one that wrote it")
    return _Decoder(path, arrays, target).value(json.loads(metadata["tree"]))


# The object as JSON: an object stands for a dict whose keys are strings, a list ["kind", ...] for what JSON lacks

class _Encoder:
    """Collects the arrays of an object under their names, while `node` turns the rest into JSON."""

    def __init__(self) -> None:
        self.blocks: dict[str, Any] = {}
        self.names: dict[Any, str] = {}  # of the memory that is stored already

    def node(self, value: Any, path: str) -> Any:
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if abs(value) < 1 << 63 else ["int", hex(value)]
        if kind is float:
            return value if math.isfinite(value) else ["float", struct.pack(">d", value).hex()]
        if kind in (list, tuple):
            return [kind.__name__, *(self.node(item, _join(path, i)) for i, item in enumerate(value))]
        if kind in (dict, OrderedDict):
            return self.mapping(value, path)
        if isinstance(value, Tensor):
            if hasattr(value, "materialize"):  # a lazy layer's
                raise _unsuitable(path, f"an {kind.__name__} without a shape", "call the model once first")
            return ["tensor", self.block(value, path), str(value.device), value.requires_grad]
        if kind in (np.ndarray, np.memmap):
            return ["array", self.block(make_tensor(value, None), path)]
        if isinstance(value, np.generic):
            return ["scalar", self.block(make_tensor(np.asarray(value), None), path)]
        if kind is bytes:
            return ["bytes", self.block(make_tensor(np.frombuffer(value, np.uint8), None), path)]
        advice = "store its state_dict()" if hasattr(value, "state_dict") else "leave it out or store what it is made from"
        raise _unsuitable(path, f"a {kind.__module__}.{kind.__qualname__}".replace("builtins.", ""), advice)

    def mapping(self, value: dict, path: str) -> Any:
        for key in value:
            if type(key) not in (str, int):
                raise _unsuitable(path, f"a dict with the key {key!r}", "turn its keys into str or int")
        if type(value) is dict and all(type(key) is str for key in value):
            return {key: self.node(item, _join(path, key)) for key, item in value.items()}
        return [type(value).__name__, *([self.node(key, path), self.node(item, _join(path, key))]
                                        for key, item in value.items())]

    def block(self, tensor: Tensor, path: str) -> str:
        """The name under which the array of a tensor is stored."""
        array = tensor.array
        if array.dtype.name not in _CODES:
            raise _unsuitable(path, f"an array of dtype {array.dtype}", f"turn it into one of {', '.join(_CODES)}")
        memory: Any = id(array)
        if array.size:
            memory = (str(tensor.device), data_ptr(tensor), array.shape, array.strides, array.dtype)
        if memory not in self.names:
            label = path.encode(errors="replace").decode() or "value"
            name, count = label, 1
            while name in self.blocks or name == "__metadata__":
                count += 1
                name = f"{label}#{count}"
            self.names[memory] = name
            self.blocks[name] = array
        return self.names[memory]


class _Decoder:
    """Makes the object from what an _Encoder made of it; what shared memory shares it again."""

    def __init__(self, path: str, arrays: dict[str, np.ndarray], device: Any):
        self.path, self.arrays, self.device = path, arrays, device
        self.tensors: dict[Any, Tensor] = {}

    def value(self, node: Any) -> Any:
        if isinstance(node, dict):
            return {key: self.value(item) for key, item in node.items()}
        if not isinstance(node, list):
            return node
        kind, *rest = node
        if kind in ("list", "tuple"):
            items = [self.value(item) for item in rest]
            return items if kind == "list" else tuple(items)
        if kind in ("dict", "OrderedDict"):
            pairs = [(self.value(key), self.value(item)) for key, item in rest]
            return dict(pairs) if kind == "dict" else OrderedDict(pairs)
        if kind == "int":
            return int(rest[0], 16)
        if kind == "float":
            return struct.unpack(">d", bytes.fromhex(rest[0]))[0]
        if kind == "tensor":
            return self.tensor(*rest)
        array = self.arrays[rest[0]]
        return array if kind == "array" else array[()] if kind == "scalar" else array.tobytes()

    def tensor(self, name: str, home: str, requires_grad: bool) -> Tensor:
        """The same tensor for the same name, so that tied weights stay tied."""
        found = self.tensors.get((name, home, requires_grad))
        if found is None:
            twin = self.tensors.get((name, home, not requires_grad))
            found = self.moved(name, home) if twin is None else make_tensor(twin.array[...], None)
            self.tensors[name, home, requires_grad] = found.requires_grad_() if requires_grad else found
        return found

    def moved(self, name: str, home: str) -> Tensor:
        try:
            return make_tensor(to_array(self.arrays[name], None, home if self.device is None else self.device), None)
        except RuntimeError as error:
            raise RuntimeError(f"load cannot put {name!r} of {self.path} on {self.device or home}: {error}; "
                               f"device=\"cpu\" loads it without") from error


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _unsuitable(path: str, what: str, advice: str) -> TypeError:
    return TypeError(f"save expected dicts, lists, tuples, None, numbers, strings, bytes, arrays and tensors, got {what} at "
                     f"{repr(path) if path else 'the top'}; {advice}")


def _foreign(path: str, name: str, array: np.ndarray, device: Any) -> Tensor:
    try:
        return make_tensor(to_array(array, None, device), None)
    except (TypeError, RuntimeError) as error:
        raise RuntimeError(f"load cannot make a tensor of {name!r} in {path}: {error}") from error


# The format: 8 bytes that give the header's length, the header in JSON, the arrays without gaps in little-endian order

_VERSION = "1"
_PREFIX = b'{"__metadata__":{"minidl_crc32":"'  # eight hexadecimal digits follow; the checksum takes them as zeros
_DIGITS = slice(8 + len(_PREFIX), 16 + len(_PREFIX))
_LONGEST_HEADER = 100_000_000  # bytes; other readers refuse more
_CODES = {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "int8": "I8", "int16": "I16",
          "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
          "bool": "BOOL", "complex64": "C64"}
_NAMES = {code: name for name, code in _CODES.items()}


def _head(tree: str, blocks: dict[str, Any], in_file_order: dict[str, Any]) -> bytes:
    """The file up to the arrays; readers see their names in the order of the object."""
    ends, end = {}, 0
    for name, array in in_file_order.items():
        ends[name] = end = end + array.nbytes
    header: dict[str, Any] = {"__metadata__": {"minidl_crc32": "0" * 8, "minidl": _VERSION, "format": "pt", "tree": tree}}
    for name, array in blocks.items():
        header[name] = {"dtype": _CODES[array.dtype.name], "shape": array.shape,
                        "data_offsets": [ends[name] - array.nbytes, ends[name]]}
    text = json.dumps(header, separators=(",", ":")).encode()
    if len(text) > _LONGEST_HEADER:
        raise ValueError(f"save expected at most {_LONGEST_HEADER} bytes of names and of values that are no arrays, got "
                         f"{len(text)}; put long lists of numbers into arrays")
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _bytes_of(array: Any) -> Any:
    """The elements in order as a NumPy array of bytes."""
    values = np.ascontiguousarray(backend_of(array).to_numpy(array))
    if values.dtype.kind in "iufc":
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return values.reshape(-1).view(np.uint8)


def _with_digits(head: bytes, crc: int) -> bytes:
    return head[:_DIGITS.start] + b"%08x" % crc + head[_DIGITS.stop:]


def _has_digits(head: bytes) -> bool:
    return head.startswith(_PREFIX, 8)


def _read_head(file: BinaryIO, path: str) -> tuple[bytes, dict[str, Any]]:
    """The file up to the arrays, and its header: entries by name."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if start[8:] != b"{" and (start.startswith(b"PK") or re.match(rb"\x80[\x02-\x05]", start)):
        raise RuntimeError(_PICKLE.format(path=path))
    if len(start) < 9 or start[8:] != b"{":
        raise _damaged(path, "does not begin as a safetensors file does")
    if length > size - 8:
        raise _damaged(path, f"promises a header of {length} bytes, but only {size - 8} follow")
    head = start + file.read(length - 1)
    try:
        header = json.loads(head[8:])
        for name, entry in header.items():
            _check_entry(name, entry)
        return head, header
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _damaged(path, f"has a header that cannot be read ({error})") from None


def _check_entry(name: str, entry: Any) -> None:
    if name == "__metadata__":
        if not all(isinstance(value, str) for value in entry.values()):
            raise ValueError("metadata that is no text")
        return
    begin, end = entry["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*entry["shape"], begin, end)):
        raise ValueError(f"{name!r} has a shape or place that is no natural number")
    if not isinstance(entry["dtype"], str):
        raise ValueError(f"{name!r} has a dtype that is no text")


def _read_arrays(file: BinaryIO, path: str, table: dict[str, Any], start: int, crc: int) -> tuple[dict[str, np.ndarray], int]:
    """The arrays by name, and the checksum of the file up to their end; `start` is where they begin in it."""
    size = os.fstat(file.fileno()).st_size - start
    arrays, place = {}, 0
    for name, entry in sorted(table.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        if entry["dtype"] not in _NAMES:
            raise RuntimeError(f"load expected arrays of {', '.join(_CODES)}, got dtype {entry['dtype']} for {name!r} in "
                               f"{path}; convert it with the program that wrote it")
        dtype = np.dtype(dtypes.as_dtype("bfloat16") if entry["dtype"] == "BF16" else _NAMES[entry["dtype"]])
        if begin != place or end - begin != math.prod(entry["shape"]) * dtype.itemsize:
            raise _damaged(path, f"states a place for {name!r} that does not fit its shape or its neighbours")
        if end > size:
            raise _damaged(path, f"ends in the middle of {name!r}, {size} bytes after its header")
        arrays[name], crc = _read_array(file, path, name, entry["shape"], dtype, crc)
        place = end
    if place != size:
        raise _damaged(path, f"goes on for {size - place} bytes after its last array")
    return arrays, crc


def _read_array(file: BinaryIO, path: str, name: str, shape: list[int], dtype: np.dtype, crc: int) -> tuple[np.ndarray, int]:
    try:
        array = np.empty(shape, dtype)
    except ValueError as error:  # more axes, or longer ones, than NumPy has
        raise _damaged(path, f"has a shape for {name!r} that no array has ({error})") from None
    data: Any = array.reshape(-1).view(np.uint8)
    if file.readinto(data) != data.nbytes:  # type: ignore[attr-defined]
        raise _damaged(path, f"ended in the middle of {name!r} while it was read")
    if sys.byteorder == "big" and dtype.kind in "iufc":
        array.byteswap(inplace=True)
    return array, zlib.crc32(data, crc)


def _damaged(path: str, what: str) -> RuntimeError:
    return RuntimeError(f"load expected an intact safetensors file, but {path} {what}; copy it again or load an older one")


_PICKLE = """load expected a safetensors file, got {path}, a pickle or zip archive such as torch.save writes. Loading one can \
execute any code, so minidl does not. If you trust it, convert it where PyTorch is installed:
    import torch, safetensors.torch
    tensors = torch.load({path!r}, map_location="cpu", weights_only=True)
    safetensors.torch.save_file({{k: v.contiguous().clone() for k, v in tensors.items()}}, {path!r} + ".safetensors")"""


# Files that are replaced at once or not at all

def _target(path: Any) -> str:
    """The file that is to be replaced: what a link points to."""
    path = os.fsdecode(path)
    target = os.path.realpath(path)
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(errno.ENOENT, "save needs the folder to exist; make it first", os.path.dirname(target))
    if os.path.isdir(target) or not os.path.basename(path):
        raise IsADirectoryError(errno.EISDIR, "save expected the name of a file, got a folder; add a name", target)
    if os.path.exists(target) and not os.path.isfile(target):
        raise ValueError(f"save expected the name of a plain file, got {target}, a device or pipe; choose another name")
    return target


_TEMPORARY = re.compile(r"\.minidl-\d+-[0-9a-f]{8}\.tmp")
_ABANDONED = 3600  # seconds without a change


@contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """A file to write, which takes the name `path` when all of it is on the disk; after an error nothing has changed."""
    temporary = os.path.join(os.path.dirname(path), f".minidl-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            with suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))
            _remove_abandoned(temporary)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        now = "the file of that name is intact, as it was before" if os.path.exists(path) else "there is no file of that name"
        raise OSError(error.errno, f"save could not write {path}: {error.strerror}; {now}. Make room or choose another "
                                   f"folder") from error
    _sync_folder(os.path.dirname(path))


def _remove_abandoned(temporary: str) -> None:
    """Remove what killed processes left in the folder: unlike a file that is being written, it does not change any more."""
    now = os.stat(temporary).st_mtime  # by the clock of the file system, which may be another machine's
    with suppress(OSError), os.scandir(os.path.dirname(temporary)) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):
                    if now - entry.stat(follow_symlinks=False).st_mtime > _ABANDONED:
                        os.unlink(entry.path)


def _sync_folder(folder: str) -> None:
    """Put the new name on the disk too."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems cannot
            raise
    finally:
        os.close(handle)
