"""A stand-in for CuPy on machines without a GPU: NumPy inside, CuPy's refusals outside.

Its arrays refuse to become NumPy arrays and to meet them in an operator or function, its reductions return 0-d arrays,
and it offers the functions, methods and keywords that CuPy has (tests/cupy_api.txt) and no others. It is stricter in
two points: NumPy scalars are refused as well as arrays, since both come from computing on the wrong device, and so are
NumPy's ufuncs. There are two devices; an array works on its own only while that is the current one.
"""

from __future__ import annotations

import importlib.machinery
import inspect
import sys
import types
import weakref
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from minidl.tensor import backend

ATOMIC = {"add": "int32 uint32 uint64 float16 float32 float64".split(),
          "max": "int32 uint32 uint64 float32 float64".split(), "min": "int32 uint32 uint64 float32 float64".split()}
PLAIN = {"isscalar", "ndim", "shape", "can_cast", "result_type", "promote_types", "min_scalar_type", "issubdtype", "isdtype",
         "iterable", "isfortran", "iscomplexobj", "isrealobj", "may_share_memory", "shares_memory", "broadcast_shapes"}
BINARY = "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split()
COMPARISONS = "lt le gt ge eq ne".split()

_arrays: weakref.WeakValueDictionary[int, ndarray] = weakref.WeakValueDictionary()  # id of the NumPy array inside
_hooks: list[MemoryHook] = []
_used = [0, 0]
_current = [0]


class ndarray:
    """An array on the fake device."""

    __slots__ = ("_values", "base", "_device", "__weakref__")
    __array_priority__ = 100
    __array_ufunc__ = None
    __hash__ = None

    def __init__(self, shape, dtype=float):
        _adopt(self, np.empty(shape, dtype))

    # What it refuses

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array "
                        "explicitly.")

    def __array_function__(self, func, *args):
        raise TypeError(f"numpy.{func.__name__} was called on a fake CUDA array; use xp")

    # What it is

    shape = property(lambda self: self._values.shape)
    dtype = property(lambda self: self._values.dtype)
    ndim = property(lambda self: self._values.ndim)
    size = property(lambda self: self._values.size)
    itemsize = property(lambda self: self._values.itemsize)
    nbytes = property(lambda self: self._values.nbytes)
    strides = property(lambda self: self._values.strides)
    T = property(lambda self: _wrap(self._values.T, [self]))
    mT = property(lambda self: _wrap(self._values.mT, [self]))
    device = property(lambda self: Device(self._device))
    data = property(lambda self: types.SimpleNamespace(ptr=self._values.ctypes.data, device=self.device))
    flags = property(lambda self: types.SimpleNamespace(
        c_contiguous=self._values.flags.c_contiguous, f_contiguous=self._values.flags.f_contiguous,
        owndata=self.base is None))

    def get(self, stream=None, order="C", out=None, blocking=True):
        return np.array(self._values, order=order)

    def item(self):
        return self._values.item()

    def tolist(self):
        return self._values.tolist()

    def tobytes(self, order="C"):
        return self._values.tobytes(order)

    def __len__(self):
        return len(self._values)

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        return bool(self._values)

    def __int__(self):
        return int(self._values)

    def __float__(self):
        return float(self._values)

    def __repr__(self):
        return f"fake_{self._values!r}"

    def __reduce__(self):
        return array, (self.get(),)

    def __deepcopy__(self, memo):
        return self.copy()

    # Arithmetic

    def __getitem__(self, key):
        return _wrap(self._values[_index(key)], [self])

    def __setitem__(self, key, value):
        self._values[_index(key)] = _values(value)

    def __neg__(self):
        return _wrap(-_values(self), [self])

    def __pos__(self):
        return self

    def __abs__(self):
        return _wrap(abs(_values(self)), [self])

    def __invert__(self):
        return _wrap(~_values(self), [self])


def _operator(name: str, in_place: bool = False):
    def operate(self, other):
        if not in_place and not isinstance(other, (ndarray, np.ndarray, np.generic)) and \
                getattr(other, "__array_priority__", 0) > self.__array_priority__:
            return NotImplemented
        function = getattr(np.ndarray, name)
        result = function(_values(self), _values(other))
        if in_place:
            assert result is self._values
            return self
        return _wrap(result, [self, other])

    operate.__name__ = name
    return operate


for _name in BINARY:
    for _form in ("__{}__", "__r{}__"):
        setattr(ndarray, _form.format(_name), _operator(_form.format(_name)))
    if _name != "matmul":
        setattr(ndarray, f"__i{_name}__", _operator(f"__i{_name}__", in_place=True))
for _name in COMPARISONS:
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))


def _adopt(array: ndarray, values: np.ndarray, owner: ndarray | None = None) -> ndarray:
    array._values = values
    array.base = owner
    array._device = _current[0] if owner is None else owner._device
    _arrays[id(values)] = array
    if owner is None:
        _allocate(array, values.nbytes)
    return array


def _allocate(array: ndarray, size: int) -> None:
    size = -(-size // 512) * 512
    event = {"device_id": array._device, "mem_size": size, "size": size, "mem_ptr": id(array), "pmem_id": id(array)}
    _used[array._device] += size
    for hook in list(_hooks):
        hook.malloc_postprocess(**event)

    def free():
        _used[event["device_id"]] -= size
        for hook in list(_hooks):
            hook.free_postprocess(**event)

    weakref.finalize(array, free)


def _wrap(result, inputs):
    """What NumPy returned, as CuPy returns it; `inputs` keeps the arrays alive of which it may be a view."""
    if isinstance(result, (tuple, list)):
        return type(result)(_wrap(part, inputs) for part in result) if type(result) in (tuple, list) else \
            tuple(_wrap(part, inputs) for part in result)
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if not isinstance(result, np.ndarray):
        return result
    known = _arrays.get(id(result))
    if known is not None and known._values is result:
        return known
    root = result
    while isinstance(root.base, np.ndarray):
        root = root.base
    owner = _arrays.get(id(root)) if root is not result else None
    if owner is not None and owner._values is root:
        return _adopt(object.__new__(ndarray), result, owner)
    return _adopt(object.__new__(ndarray), result)


def _values(value):
    """What NumPy shall compute with; refuses what CuPy refuses."""
    if isinstance(value, ndarray):
        if value._device != _current[0]:
            raise ValueError(f"Array device must be same as the current device: array device = {value._device} while "
                             f"current = {_current[0]}")
        return value._values
    if isinstance(value, (np.ndarray, np.generic)):
        raise TypeError(f"Unsupported type {type(value)}")
    if type(value) in (list, tuple):
        return type(value)(map(_values, value))
    if value is None or value is Ellipsis or isinstance(value, (bool, int, float, complex, str, slice, type, np.dtype)):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


def _index(key):
    if isinstance(key, tuple):
        return tuple(map(_index, key))
    return int(key) if isinstance(key, np.integer) else _values(key)


class _Function:
    """NumPy's function of a name under CuPy's parameters."""

    def __init__(self, name: str, real, parameters: list[str], method: bool = False):
        self.__name__ = name
        self.real = real
        self.method = method
        self.rest = any(p[0] == "*" for p in parameters)
        self.keywords = {p.strip("!*") for p in parameters}
        self.positional = [p for p in parameters if p[0] != "*" and p[-1] != "!"]
        try:
            self.numpy_names = [p.name for p in inspect.signature(real).parameters.values()][int(method):]
        except ValueError:
            self.numpy_names = self.positional

    def __call__(self, *args, **kwargs):
        name = self.__name__
        given = args[1:] if self.method else args
        if not self.rest and len(given) > len(self.positional):
            raise TypeError(f"{self.__name__}() takes {len(self.positional)} positional arguments but {len(given)} were given")
        for keyword in kwargs:
            if keyword not in self.keywords and not (self.rest and "kwargs" in self.keywords):
                raise TypeError(f"{self.__name__}() got an unexpected keyword argument '{keyword}'")
        if not self.rest:
            for ours, theirs in list(zip(self.positional, self.numpy_names))[1:len(given)]:
                if {ours, theirs} == {"dtype", "out"}:
                    raise TypeError(f"{self.__name__}: the positional argument {ours!r} is {theirs!r} in NumPy; name it")
        self.check(args, kwargs)
        result = self.real(*map(_values, args), **{name: _values(value) for name, value in kwargs.items()})
        out = kwargs.get("out")
        if out is not None:
            return out
        if name in PLAIN:
            return result
        if name in ("diagonal", ".diagonal"):
            result.flags.writeable = True  # NumPy's is a read-only view
        if isinstance(result, bool):
            result = np.asarray(result)
        return _wrap(result, args)

    def check(self, args, kwargs) -> None:
        name = self.__name__
        if name in ("repeat", ".repeat"):
            repeats = kwargs.get("repeats", args[1] if len(args) > 1 else None)
            if isinstance(repeats, ndarray):
                raise ValueError("cupy.ndarray cannot be specified as `repeats` argument.")
        if name in ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack") and \
                not all(isinstance(part, ndarray) for part in args[0]):
            raise TypeError(f"Only cupy arrays can be {name}d")
        if name == "lexsort" and not isinstance(args[0], ndarray):
            raise AttributeError("lexsort takes one array of keys")
        if "sort" in name and kwargs.get("kind") not in (None, "stable"):
            raise ValueError(f"{name} takes the kinds None and 'stable', got {kwargs['kind']!r}")
        if name == "searchsorted" and not (isinstance(args[0], ndarray) and isinstance(args[1], ndarray)):
            raise NotImplementedError("Only int or ndarray are supported for a")
        if name in ("sum", "amax", "amin", "max", "min", "prod", "argmax", "argmin", "sort", "argsort", "take", "clip", "all",
                    "any", "cumsum", "cumprod", "nonzero", "ravel", "reshape", "transpose", "squeeze", "moveaxis",
                    "flip", "roll", "mean", "count_nonzero") and not isinstance(args[0], ndarray):
            raise TypeError(f"{name} expected a cupy array, got {type(args[0])}")

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)


class ufunc(_Function):
    """A ufunc: out, casting and dtype are its only keywords; reduce and accumulate exist for add and multiply."""

    def __init__(self, name: str, nin: str, nout: str, scatter: str):
        super().__init__(name, getattr(np, name), ["*args", "out!", "casting!", "dtype!"])
        self.nin, self.nout, self.scatter = int(nin), int(nout), scatter

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        self._only("reduce", "add", "multiply")
        return _wrap(self.real.reduce(_values(array), axis=axis, dtype=dtype, out=_values(out), keepdims=keepdims), [array])

    def accumulate(self, array, axis=0, dtype=None, out=None):
        self._only("accumulate", "add", "multiply")
        return _wrap(self.real.accumulate(_values(array), axis=axis, dtype=dtype, out=_values(out)), [array])

    def reduceat(self, array, indices, axis=0, dtype=None, out=None):
        self._only("reduceat", "add")
        return _wrap(self.real.reduceat(_values(array), _values(indices), axis=axis, dtype=dtype), [array])

    def outer(self, a, b):
        return _wrap(self.real.outer(_values(a), _values(b)), [])

    def at(self, a, indices, b=None):
        if self.scatter == "-":
            raise NotImplementedError(f"`{self.__name__}.at` is not supported yet")
        if self.scatter in ATOMIC and str(a.dtype) not in ATOMIC[self.scatter]:
            raise TypeError(f"scatter_{self.scatter} supports {', '.join(ATOMIC[self.scatter])}, got {a.dtype}")
        values = _values(b)
        self.real.at(_values(a), _index(indices), values.astype(a.dtype) if isinstance(values, np.ndarray) else values)

    def _only(self, method: str, *names: str) -> None:
        if self.__name__ not in names:
            raise NotImplementedError(f"`{self.__name__}.{method}` is not supported yet")


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, *, blocking=False):
    """The one way from the host to the device, with asarray."""
    if isinstance(obj, ndarray):
        return _wrap(np.array(obj._values, dtype, copy=True, order=order, ndmin=ndmin), [])
    if isinstance(obj, (list, tuple)):
        obj = [part.get() if isinstance(part, ndarray) else part for part in obj]
    return _wrap(np.array(obj, dtype, copy=True, order=order, ndmin=ndmin), [])


def asarray(a, dtype=None, order=None, *, copy=None, blocking=False):
    if not isinstance(a, ndarray):
        return array(a, dtype)
    return _wrap(np.asarray(_values(a), dtype, order=order, copy=copy), [a])


def ascontiguousarray(a, dtype=None):
    return asarray(a, dtype, "C")


class Device:
    """One of two devices; a context manager that makes it the current one."""

    def __init__(self, device=None):
        self.id = _current[0] if device is None else int(device)
        self._stack = []

    def use(self):
        _current[0] = self.id

    def synchronize(self):
        pass

    def __enter__(self):
        self._stack.append(_current[0])
        self.use()
        return self

    def __exit__(self, *exc):
        _current[0] = self._stack.pop()

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id


class MemoryHook:
    """Called with each block that the pool hands out and takes back."""

    name = "MemoryHook"

    def __enter__(self):
        _hooks.append(self)
        return self

    def __exit__(self, *exc):
        _hooks.remove(self)

    def malloc_postprocess(self, **event):
        pass

    def free_postprocess(self, **event):
        pass


def make_module() -> types.ModuleType:
    """The module that stands in for `cupy`."""
    module = types.ModuleType("cupy")
    module.__spec__ = importlib.machinery.ModuleSpec("cupy", None)
    module.__version__ = "14.2.0 (fake)"
    module.linalg = types.SimpleNamespace()
    module.lib = types.SimpleNamespace(stride_tricks=types.SimpleNamespace())
    for name in "bool_ uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 float32 float64 inf nan pi newaxis".split():
        setattr(module, name, getattr(np, name))
    for line in (Path(__file__).parent / "cupy_api.txt").read_text().splitlines():
        if not line.startswith("#"):
            _add(module, *line.split())
    for function in (ndarray, array, asarray, ascontiguousarray):
        setattr(module, function.__name__, function)
    module.cuda = types.SimpleNamespace(
        Device=Device, MemoryHook=MemoryHook, is_available=lambda: True, get_device_id=lambda: _current[0],
        runtime=types.SimpleNamespace(getDeviceCount=lambda: 2, getDevice=lambda: _current[0]))
    module.get_default_memory_pool = lambda: types.SimpleNamespace(used_bytes=lambda: _used[_current[0]])
    return module


def _add(module: types.ModuleType, name: str, *parameters: str) -> None:
    if name.startswith("."):
        setattr(ndarray, name[1:], _Function(name, getattr(np.ndarray, name[1:]), list(parameters), method=True))
    elif parameters[:1] == ("ufunc",):
        setattr(module, name, ufunc(name, *parameters[1:]))
    else:
        place, real = module, np
        *path, last = name.split(".")
        for part in path:
            place, real = getattr(place, part), getattr(real, part)
        setattr(place, last, _Function(last, getattr(real, last), list(parameters)))


@contextmanager
def installed():
    """`import cupy` gives the fake, and device "cuda" runs on it, until the block's end."""
    before = sys.modules.get("cupy")
    backends = dict(backend._by_array_type)
    sys.modules["cupy"] = module = make_module()
    for kind, made in backends.items():
        if made.device_type == "cuda":
            del backend._by_array_type[kind]
    try:
        yield module
    finally:
        _current[0] = 0
        backend._by_array_type.clear()
        backend._by_array_type.update(backends)
        if before is None:
            sys.modules.pop("cupy", None)
        else:
            sys.modules["cupy"] = before
