"""From tensors to arrays and back: every op of minidl runs through `apply`.

`apply` takes the inputs' arrays, picks their backend, brings them to the dtypes that the op asks for, runs the op's
body, wraps the value and records a node. Op bodies are therefore pure mathematics on arrays.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..autograd.graph import Node, Output
from ..autograd.mode import state
from ..autograd.op import Cast, Op, Promote
from . import autocast, dtypes, inplace
from .backend import backend_of
from .checked import explained
from .convert import to_array
from .device import CPU
from .tensor import Tensor, make_tensor
from .transfer import move

_PROMOTE = {Cast.HALF: Promote.SAME, Cast.FULL: Promote.FLOAT, Cast.WIDEST: Promote.COMMON, Cast.KEEP: Promote.NONE}
_TRACKED_KINDS = "fV"  # floating dtypes; ml_dtypes' bfloat16 calls itself V

OPS: list[Op] = []  # every declared op, so that tests can ask that each one has a row


def op(cast: Cast, *, promote: Promote | None = None, wide: bool | None = None, replay: bool = False,
       view: bool = False) -> Callable[[Callable], Callable]:
    """Declare an op: turn a function of arrays `body(xp, *arrays, **attributes)` into a function of tensors.

    Args:
        cast: its autocast class.
        promote: how inputs of different dtypes meet; by default what suits the class (HALF: the same dtype, FULL:
            common and floating, WIDEST: common, KEEP: as they come).
        wide: compute half inputs in float32 and round the value once; by default for the class FULL. Otherwise the
            body gets half arrays and sees to its own accumulation through xp's methods.
        replay: the pullback closes over float arrays other than inputs and values, so higher-order gradients run the
            body again on tensors. Its inputs are kept.
        view: the value may share memory with the first input.

    Returns:
        A function that takes the inputs as tensors (or numbers, None, and constant arrays) and the attributes as
        keywords. Its `.op` is the record.
    """
    promote = _PROMOTE[cast] if promote is None else promote
    wide = cast is Cast.FULL if wide is None else wide

    def declare(body: Callable) -> Callable:
        record = Op(body.__name__.strip("_"), body, cast, promote, wide, replay, view)
        OPS.append(record)

        signature = inspect.signature(body)
        parameters = list(signature.parameters.values())[1:]
        names = {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}

        @functools.wraps(body)
        def call(*inputs, **attributes):
            if attributes and not names.keys().isdisjoint(attributes):
                inputs, attributes = _inputs_by_name(names, inputs, attributes)
            return apply(record, inputs, attributes)

        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore
        call.op = record  # type: ignore
        return call

    return declare


def composed(cast: Cast) -> Callable[[Callable], Callable]:
    """Give a function that is composed of ops an autocast class of its own: under autocast its tensors are cast first, and
    the ops inside run as they do without autocast. An explicit `dtype=` is kept."""

    def declare(function: Callable) -> Callable:
        names = list(inspect.signature(function).parameters)
        place = names.index("dtype") if "dtype" in names else None

        @functools.wraps(function)
        def call(*args, **kwargs):
            if not autocast.in_use or autocast.region() is None:
                return function(*args, **kwargs)
            dtype = kwargs.get("dtype", args[place] if place is not None and place < len(args) else None)
            arrays = _arrays_in([*args, *kwargs.values()])
            target = None if dtype is not None else autocast.dtype_for(function, cast, arrays)
            if target is not None:
                args = tuple([_cast_argument(a, target) for a in args])
                kwargs = {name: _cast_argument(a, target) for name, a in kwargs.items()}
            with autocast.off:
                return function(*args, **kwargs)

        call.body = function  # type: ignore[attr-defined]
        return call

    return declare


def listed_as(called: Callable) -> Callable[[Callable], Callable]:
    """Let amp.lists move a function together with the op that it calls."""

    def mark(function: Callable) -> Callable:
        function.body = called.op.function  # type: ignore[attr-defined]
        return function

    return mark


def _arrays_in(value: Any) -> list:
    if isinstance(value, Tensor):
        return [value.array]
    return [array for part in value for array in _arrays_in(part)] if type(value) in (list, tuple) else []


def _cast_argument(value: Any, dtype: Any) -> Any:
    if isinstance(value, Tensor):
        wanted = value.array.dtype != dtype and autocast.touches(value.array)
        return apply(_AS_FULL if dtype == dtypes.float32 else _AS_HALF, (value,), {}) if wanted else value
    return type(value)([_cast_argument(v, dtype) for v in value]) if type(value) in (list, tuple) else value


def _itself(xp, x):
    """Autocast casts it first."""
    return x, lambda g: g


_AS_HALF = Op("as_half", _itself, Cast.HALF, Promote.NONE, wide=False, replay=False, view=False)
_AS_FULL = Op("as_full", _itself, Cast.FULL, Promote.NONE, wide=False, replay=False, view=False)


def _inputs_by_name(names: dict, inputs: tuple, attributes: dict) -> tuple[tuple, dict]:
    """Inputs that were given as keywords, at their places."""
    rest = dict(attributes)
    placed = list(inputs)
    for name, default in list(names.items())[len(inputs):]:
        if name not in rest and (default is inspect.Parameter.empty or names.keys().isdisjoint(rest)):
            break
        placed.append(rest.pop(name, default))
    return tuple(placed), rest


def apply(op: Op, inputs: tuple, attributes: dict) -> Any:
    """Run an op on tensors, and record it where a gradient is wanted."""
    if inplace.history_written:
        inplace.refresh_views(inputs)
    arrays = []
    edges = []
    first: Any = None
    dtype: Any = None
    uniform = True
    tracked = False
    for t in inputs:
        if t.__class__ is Tensor or isinstance(t, Tensor):
            array = t.array
            node = t.node
            arrays.append(array)
            edges.append(node)
            if node is not None:
                tracked = True
            if first is None:
                first = array
                dtype = array.dtype
            elif array.dtype is not dtype or array.__class__ is not first.__class__:
                uniform = False
        else:
            arrays.append(t)
            edges.append(None)
            if t is not None and t.__class__ is not float:
                uniform = False
    if first is None:
        return apply(op, _some_tensor(op, inputs), attributes)
    if autocast.in_use and autocast.region() is not None:
        arrays = autocast.cast_inputs(op.function, op.cast, arrays, edges)
        first = next((a for a in arrays if hasattr(a, "dtype")), first)
        dtype = first.dtype
        uniform = all([a is None or a.__class__ is float or (a.__class__ is first.__class__ and a.dtype is dtype)
                       for a in arrays])
    xp = backend_of(first)
    if not uniform or dtype.kind != "f" or xp.device_type != "cpu":
        joined = _joined(op, inputs, arrays)
        if joined is not None:
            return apply(op, joined, attributes)
        arrays = _promote(op, xp, arrays)
        dtype = next(a.dtype for a in arrays if xp.is_array(a))
    if op.wide and dtype.itemsize == 2 and dtype in dtypes.HALF:
        out = _apply_wide(op, xp, arrays, edges, tracked and state.grad, attributes)
    else:
        try:
            value, pullback = op.function(xp, *arrays, **attributes)
        except ValueError as error:
            raise _explained(op, arrays, error) from None
        except AttributeError as error:
            raise error if hasattr(error.obj, "dtype") else explained(error, op.function, (xp, *arrays), attributes) from None
        if tracked and pullback is not None and state.grad:
            out = _record(op, xp, arrays, edges, value, pullback, attributes)
        else:
            out = _wrap(xp, value, arrays)
    if op.view:
        out.view_of = (inputs[0], op, attributes, edges[0])
    return out


def _explained(op: Op, arrays: list, error: ValueError) -> Exception:
    """What the array module says of shapes that do not broadcast, in our words; any other error as it is."""
    if "broadcast" not in str(error):
        return error
    shapes = " and ".join(str(tuple(a.shape)) for a in arrays if hasattr(a, "shape"))
    return RuntimeError(f"{op.name} expected shapes that broadcast, got {shapes}; lengths must be equal or 1")


def _wrap(xp: Any, value: Any, arrays: list) -> Any:
    """Tensors without history around the values of an op."""
    if value.__class__ is tuple:
        return tuple([_wrap(xp, part, arrays) for part in value])
    if value.__class__ is not xp.array_type:
        value = xp.asarray(value)
    else:
        for array in arrays:
            if array is value:  # one array object belongs to one node
                value = value[...]
                break
    return make_tensor(value, None)


def _record(op: Op, xp: Any, arrays: list, edges: list, value: Any, pullback: Any, attributes: dict) -> Any:
    """Tensors with a node around the values of an op."""
    if value.__class__ is tuple:
        return _record_several(op, xp, arrays, edges, value, pullback, attributes)
    out = _wrap(xp, value, arrays)
    array = out.array
    if array.dtype.kind not in _TRACKED_KINDS:
        return out
    if pullback.__class__ is tuple and None in edges:
        pullback = tuple([None if edge is None else f for f, edge in zip(pullback, edges)])
    keys = [*map(id, arrays), id(value)]
    out.node = node = Node(op, xp, tuple(edges), pullback, array.shape, array.dtype, keys)
    if op.replay:
        node.saved = (tuple(arrays), attributes)
    return out


def _record_several(op: Op, xp: Any, arrays: list, edges: list, values: tuple, pullback: Any,
                    attributes: dict) -> tuple:
    outs = _wrap(xp, values, arrays)
    shapes = [out.array.shape for out in outs]
    kinds = [out.array.dtype if out.array.dtype.kind in _TRACKED_KINDS else None for out in outs]
    keys = [*map(id, arrays), *map(id, values)]
    parent = Node(op, xp, tuple(edges), pullback, shapes, kinds, keys)  # type: ignore[arg-type]
    if op.replay:
        parent.saved = (tuple(arrays), attributes)
    for i, out in enumerate(outs):
        if kinds[i] is not None:
            out.node = Output(parent, i)
    return outs


def _apply_wide(op: Op, xp: Any, arrays: list, edges: list, tracked: bool, attributes: dict) -> Any:
    """Run the body on float32 copies of half inputs and round its values once; keep halves for backward."""
    half = next(a.dtype for a in arrays if xp.is_array(a) and a.dtype in dtypes.HALF)
    wide = [xp.widen(a) if xp.is_array(a) else a for a in arrays]
    value, pullback = op.function(xp, *wide, **attributes)
    values = value if type(value) is tuple else (value,)
    narrow = tuple([xp.asarray(v, half) if v.dtype == dtypes.float32 else xp.asarray(v) for v in values])
    rounded = narrow if type(value) is tuple else narrow[0]
    if not tracked or pullback is None:
        return _wrap(xp, rounded, arrays)
    stored = {id(w): a for w, a in zip(wide, arrays)}
    stored.update({id(v): n for v, n in zip(values, narrow)})
    _store_half(pullback, stored)
    out = _record(op, xp, arrays, edges, rounded, pullback, attributes)
    for part in out if type(out) is tuple else (out,):
        if part.node is not None:
            node = part.node.edges[0] if type(part.node) is Output else part.node
            node.packed = True
    return out


def _store_half(pullback: Any, stored: dict[int, Any]) -> None:
    """Put the half arrays where the pullback holds their widened copies; the node widens them again for backward."""
    if isinstance(pullback, tuple):
        for part in pullback:
            _store_half(part, stored)
    elif isinstance(pullback, FunctionType):
        for cell in pullback.__closure__ or ():
            held = cell.cell_contents
            if isinstance(held, (tuple, list)):
                cell.cell_contents = type(held)(stored.get(id(part), part) for part in held)
            elif isinstance(held, FunctionType):
                _store_half(held, stored)
            else:
                cell.cell_contents = stored.get(id(held), held)


def _some_tensor(op: Op, inputs: tuple) -> tuple:
    """Inputs of which none is a tensor: the first array or number becomes one."""
    for i, value in enumerate(inputs):
        if value is not None:
            return (*inputs[:i], make_tensor(to_array(value), None), *inputs[i + 1:])
    raise TypeError(f"{op.name} expected a tensor, got only None")


def _joined(op: Op, inputs: tuple, arrays: list) -> tuple | None:
    """All arrays must lie on one device, except that 0-d CPU tensors may join a GPU's: the inputs with those moved, or
    None where there are none."""
    device = None
    strays = False
    for a in arrays:
        if a is None or isinstance(a, (bool, int, float)):
            continue
        if not hasattr(a, "dtype"):
            raise TypeError(f"{op.name} expected tensors or numbers, got {type(a).__name__}; make a tensor of it first")
        here = backend_of(a).device_of(a)
        if a.ndim == 0 and here is CPU:
            strays = True
            continue
        device = here if device is None else device
        if here != device:
            raise RuntimeError(f"{op.name} expected all tensors on one device, got {device} and {here}; move one with .to()")
    if not strays or device is None or device is CPU:
        return None
    return tuple(t if t is None or isinstance(t, (bool, int, float)) or t.ndim else move(t, device) for t in inputs)


def _promote(op: Op, xp: Any, arrays: list) -> list:
    """Cast the inputs to the dtype in which they meet. The edges undo the cast in backward."""
    if op.promote is Promote.NONE:
        return arrays
    operands = [a for a in arrays if a is not None]
    if op.promote is Promote.SAME:
        found = {a.dtype for a in operands if xp.is_array(a)}
        if len(found) > 1:
            names = " and ".join(sorted(dtypes.dtype_name(d) for d in found))
            raise RuntimeError(f"{op.name} expected inputs of one dtype, got {names}; cast one with .to(dtype)")
        return arrays
    dtype = dtypes.result_type_of(operands)
    if op.promote is Promote.FLOAT and dtype not in dtypes.FLOATING:
        dtype = dtypes.get_default_dtype()
    return [xp.asarray(a, dtype) if xp.is_array(a) and a.dtype != dtype else
            _fit(a, dtype) if type(a) is int else a for a in arrays]


def _fit(value: int, dtype: Any) -> Any:
    """A Python integer as an operand of `dtype`: wrapped around where it does not fit, as in PyTorch."""
    if dtype not in dtypes.INTEGER:
        return value
    info = dtypes.iinfo(dtype)
    if info.min <= value <= info.max:
        return value
    span = 1 << info.bits
    return (value - info.min) % span + info.min

