"""autocast: inside its region each op runs in the dtype that suits its class, whatever dtype its inputs have.

`apply` asks `cast_inputs` for the arrays that an op is to run on. What is recorded points to the original tensors, so
backward undoes the casts where it follows an edge, as it does for type promotion.
"""

from __future__ import annotations

import functools
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..autograd import edits
from ..autograd.graph import Leaf
from ..autograd.mode import _Switch
from ..autograd.op import Cast
from . import dtypes
from .backend import backend_for, backend_of
from .device import Device


class Region:
    """What an active region says: the half dtype, the device type it concerns (None: all), whether half copies of leaves are
    kept, and the functions that are in another class than their own."""

    __slots__ = ("dtype", "device_type", "cached", "moved", "__weakref__")

    def __init__(self, dtype: Any, device_type: str | None, cached: bool, moved: dict[Any, Cast]):
        self.dtype, self.device_type, self.cached, self.moved = dtype, device_type, cached, moved


class _State(threading.local):
    """A thread's region (None outside), and the leaves that hold a half copy until the outermost region ends."""

    region: Region | None = None
    inherited = True  # no region was entered in this thread: the process-wide one counts

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self.depth = 0
        self.moved: dict[Any, Cast] = {}


_state = _State()
_everywhere: list[Region | None] = [None]  # the process-wide region, of a global policy
_kept: weakref.WeakSet[Leaf] = weakref.WeakSet()  # the leaves that hold a half copy for it
in_use: set[str] = set()                   # empty until a region is first entered: spares the hot path a look at its thread


def region() -> Region | None:
    """The region in which this thread is, or None."""
    return _everywhere[0] if _state.inherited else _state.region


def set_everywhere(dtype: Any) -> None:
    """Let all threads outside any region run as inside one of a half dtype; None ends that."""
    in_use.add("everywhere")
    _everywhere[0] = None if dtype is None else Region(dtypes.as_dtype(dtype), None, True, {})
    for leaf in list(_kept):
        leaf.half = None
    _kept.clear()


def cast_inputs(function: Callable, cast: Cast, arrays: list, edges: list) -> list:
    """The arrays on which an op of a class, with the body `function`, runs here: float32 and half ones in the class's dtype.

    Args:
        edges: node of each array's tensor; a leaf's half copy is kept until it is edited or the region ends.
    """
    here = region()
    if here is None:
        return arrays
    if here.moved:
        cast = here.moved.get(function, cast)
    if cast is Cast.HALF:
        return [_half(a, edge, here) if _concerns(a, here) else a for a, edge in zip(arrays, edges)]
    if cast is Cast.FULL:
        return [backend_of(a).widen(a) if _concerns(a, here) else a for a in arrays]
    if cast is Cast.WIDEST:
        return _widest(arrays, here)
    return arrays


def dtype_for(function: Callable, cast: Cast, arrays: list) -> Any:
    """The dtype in which a composed function of a class takes float32 and half arrays here; None for as they are."""
    here = region()
    if here is None:
        return None
    cast = here.moved.get(function, cast)
    if cast is Cast.WIDEST:
        return dtypes.float32 if len({a.dtype for a in arrays if _concerns(a, here)}) > 1 else None
    return {Cast.HALF: here.dtype, Cast.FULL: dtypes.float32}.get(cast)


def touches(a: Any) -> bool:
    """Is this an array that autocast casts here?"""
    here = region()
    return here is not None and _concerns(a, here)


def _concerns(a: Any, here: Region) -> bool:
    dtype = getattr(a, "dtype", None)
    if dtype is None or (dtype != dtypes.float32 and dtype not in dtypes.HALF):
        return False  # float64 is kept
    return here.device_type is None or here.device_type == backend_of(a).device_type


def _half(a: Any, edge: Any, here: Region) -> Any:
    if a.dtype == here.dtype:
        return a
    xp = backend_of(a)
    if type(edge) is not Leaf or not here.cached:
        return xp.asarray(a, here.dtype)
    stamp = edits.last_edit(a)
    held = edge.half
    if held is not None and held[0] is a and held[1] == stamp and held[2].dtype == here.dtype:
        return held[2]
    half = xp.asarray(a, here.dtype)
    if held is None and _state.depth:
        _state.leaves.append(edge)
    elif held is None:
        _kept.add(edge)  # no region whose end would free the copy: it goes with the leaf
    edge.half = (a, stamp, half)
    return half


def _widest(arrays: list, here: Region) -> list:
    """Half and float32 arrays together become float32, also where one is 0-d."""
    found = {a.dtype for a in arrays if _concerns(a, here) and a.ndim}
    if len(found) < 2:
        return arrays
    return [backend_of(a).widen(a) if _concerns(a, here) and a.ndim else a for a in arrays]


def _forget_halves() -> None:
    for leaf in _state.leaves:
        leaf.half = None
    _state.leaves.clear()


def _has_cuda() -> bool:
    try:
        return backend_for(Device("cuda")).device_count > 0  # type: ignore[attr-defined]
    except RuntimeError:
        return False


class autocast(_Switch):
    """Run ops in half precision where that is safe, inside a `with` block or a decorated function.

    Matrix products, convolutions, recurrent cells and attention run in `dtype`; exponentials, sums, norms and losses in
    float32; ops with several inputs in the widest of their dtypes; all others in the dtype that comes. float64 and integers
    are left alone, gradients have the dtype of their tensors. Regions nest and belong to a thread; an instance may be entered
    again while it is active. The half copy of a parameter is made once and kept until the parameter is edited or the
    outermost region ends.

    Args:
        device_type: "cpu" or "cuda": concern tensors on such devices only; default all.
        dtype: float16 or bfloat16.
        enabled: False switches autocast off inside the block.
        cache_enabled: keep the half copies of parameters.

    Raises:
        ValueError: for another dtype or device type.

    Source: the classes follow PyTorch's lists for CUDA.
    """

    def __init__(self, device_type: str | None = None, dtype: Any = None, enabled: bool = True,
                 cache_enabled: bool | None = None):
        kind = None if device_type is None else Device(device_type).type
        self.device_type = kind
        self.dtype = dtypes.float16 if dtype is None else dtypes.as_dtype(dtype)
        if self.dtype not in dtypes.HALF:
            raise ValueError(f"autocast expected the dtype float16 or bfloat16, got {dtypes.dtype_name(self.dtype)}")
        if not isinstance(enabled, bool):
            raise TypeError(f"autocast expected enabled as True or False, got {enabled!r}")
        if kind == "cuda" and enabled and not _has_cuda():
            warnings.warn("autocast('cuda') does nothing on a machine without a CUDA device; leave the device type out to "
                          "concern all devices", stacklevel=2)
        self.enabled = enabled
        self.cache_enabled = cache_enabled is not False
        self._saved = threading.local()

    def __enter__(self) -> autocast:
        if self.enabled:
            in_use.add("region")
        stack = self._saved.__dict__.setdefault("stack", [])
        stack.append((_state.region, _state.inherited))
        moved = _state.moved
        _state.region = Region(self.dtype, self.device_type, self.cache_enabled, moved) if self.enabled else None
        _state.inherited = False
        _state.depth += 1
        return self

    def __exit__(self, *exc: Any) -> None:
        _state.region, _state.inherited = self._saved.stack.pop()
        _state.depth -= 1
        if _state.depth == 0:
            _forget_halves()


off = autocast(enabled=False)


def unaffected(function: Callable) -> Callable:
    """The function, which runs inside a region as it does outside: in-place forms, and pullbacks on tensors."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not in_use or region() is None:
            return function(*args, **kwargs)
        with off:
            return function(*args, **kwargs)

    return wrapper


def snapshot() -> tuple:
    """This thread's region, and what `lists` has moved in it; see within."""
    return region(), _state.moved


@contextmanager
def within(taken: tuple) -> Iterator[None]:
    """Inside the block autocast is as it was when the snapshot was taken: what runs again is cast as it was at first."""
    moved = _state.moved
    with off:
        _state.region, _state.moved = taken
        try:
            yield
        finally:
            _state.moved = moved


class lists:
    """Move ops to other classes inside a `with` block: `amp.lists(add_full=[F.linear])`.

    Args:
        add_half: functions that shall run in half precision.
        add_full: functions that shall run in float32.
        add_widest, add_keep: functions for the other two classes.

    Raises:
        TypeError: for what is no function of minidl with a class of its own: of some, only the ops that they call have one.
    """

    def __init__(self, add_half: Iterable[Callable] = (), add_full: Iterable[Callable] = (),
                 add_widest: Iterable[Callable] = (), add_keep: Iterable[Callable] = ()):
        self._moved = {body_of(function): cast
                       for cast, functions in ((Cast.HALF, add_half), (Cast.FULL, add_full), (Cast.WIDEST, add_widest),
                                               (Cast.KEEP, add_keep)) for function in functions}
        self._saved = threading.local()

    def __enter__(self) -> lists:
        self._saved.__dict__.setdefault("stack", []).append((_state.moved, _state.region, _state.inherited))
        _state.moved = {**_state.moved, **self._moved}
        here = region()
        if here is not None:
            _state.region, _state.inherited = Region(here.dtype, here.device_type, here.cached, _state.moved), False
        return self

    def __exit__(self, *exc: Any) -> None:
        _state.moved, _state.region, _state.inherited = self._saved.stack.pop()


def body_of(function: Callable) -> Callable:
    """By what `lists` knows a function: the body of its op, or of the composition that has a class."""
    if hasattr(function, "body"):
        return function.body
    if hasattr(function, "op"):
        return function.op.function
    raise TypeError(f"amp.lists expected functions of minidl that have an autocast class, got {function!r}, which has none of "
                    f"its own; name the functions that it calls")
