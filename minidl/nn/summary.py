"""summary: a table of a model's layers, their output shapes, parameters and multiply-adds, and of the memory it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..autograd.closures import collect
from ..autograd.graph import Node, Output
from ..autograd.mode import enable_grad, watch_nodes
from ..tensor import dtypes
from ..tensor.creation import zeros
from ..tensor.ops.sampling import randn
from ..tensor.random import Generator, default_generator
from ..tensor.tensor import Tensor
from .module import Module, register_module_forward_hook, register_module_forward_pre_hook
from .parameter import is_uninitialized

__all__ = ["LayerSummary", "Summary", "summary"]


@dataclass(frozen=True)
class LayerSummary:
    """One row of a Summary: what a module has and does itself, without its sub-modules.

    Attributes:
        name: its dotted name in the model; "" is the model itself.
        type: its class.
        output_shape: of its (first) output in its last call; None for a module that was not called.
        parameters: elements of its parameters; of those that modules share, at the first of them.
        multiply_adds: in all its calls.
    """

    name: str
    type: str
    output_shape: tuple[int, ...] | None
    parameters: int
    multiply_adds: int

    def bytes(self, dtype: Any = dtypes.float32) -> int:
        """Bytes of its parameters and its output in a dtype."""
        return (self.parameters + math.prod(self.output_shape or (0,))) * dtypes.as_dtype(dtype).itemsize


@dataclass(frozen=True)
class Summary:
    """What `summary` found; str() makes the table. All counts are of elements.

    Attributes:
        rows: the modules that have parameters or multiply, and all without sub-modules, in the order of named_modules().
        parameters, trainable: elements of all parameters, and of those that require grad.
        buffers: elements of all buffers.
        multiply_adds: of one forward with these inputs: matrix products, convolutions, attention, recurrent layers.
        activations: floating values that one forward keeps for backward.
        masks: bytes of what it keeps besides: masks and indices.
    """

    rows: tuple[LayerSummary, ...]
    parameters: int
    trainable: int
    buffers: int
    multiply_adds: int
    activations: int
    masks: int

    def bytes(self, dtype: Any = dtypes.float32) -> int:
        """Bytes of parameters, buffers and what one forward keeps for backward, with all floating values in a dtype."""
        values = self.parameters + self.buffers + self.activations
        return values * dtypes.as_dtype(dtype).itemsize + self.masks

    def __str__(self) -> str:
        head = ("layer", "type", "output shape", "parameters", "multiply-adds", "float32 bytes", "float16 bytes")
        body = [(row.name or "(itself)", row.type, "-" if row.output_shape is None else str(row.output_shape),
                 f"{row.parameters:,}", f"{row.multiply_adds:,}", f"{row.bytes():,}", f"{row.bytes(dtypes.float16):,}")
                for row in self.rows]
        widths = [max(map(len, column)) for column in zip(head, *body)]
        lines = ["  ".join(cell.ljust(width) if i < 3 else cell.rjust(width)
                           for i, (cell, width) in enumerate(zip(cells, widths))).rstrip() for cells in (head, *body)]
        rule = "-" * (sum(widths) + 12)
        totals = [f"parameters     {self.parameters:,} ({self.trainable:,} trainable), buffers {self.buffers:,}",
                  f"multiply-adds  {self.multiply_adds:,}",
                  f"activations    {self.activations:,} kept for backward",
                  f"memory         {_mebibytes(self.bytes())} in float32, {_mebibytes(self.bytes(dtypes.float16))} in float16"]
        return "\n".join([lines[0], rule, *lines[1:], rule, *totals])

    __repr__ = __str__


def summary(model: Module, input_shape: Any = None, *, input_dtype: Any = None, inputs: Any = None) -> Summary:
    """Run one forward in evaluation mode and report what each layer has and does; the model is left as it was.

    Multiply-adds are counted from the operations that run, so `F.linear` in a model's own forward counts as well as a layer.
    Element-wise operations, reductions, look-ups, and what runs under `no_grad` are not counted; causal attention counts in
    full.

    Args:
        input_shape: of the input, batch axis included, such as (1, 3, 32, 32); a list of shapes for several inputs.
        input_dtype: of the input, or a list; default the model's own. Floating inputs are random, integers zeros.
        inputs: a tensor, or a sequence of arguments, to run the model on, instead of input_shape.

    Raises:
        TypeError: for a model that is no Module, or not exactly one of input_shape and inputs.
        ValueError: for a lazy layer that has seen no input yet.
        RuntimeError: where the model cannot run on the input; it names the layer.
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary expected a Module, got {type(model).__name__}")
    lazy = [name for name, t in (*model.named_parameters(), *model.named_buffers()) if is_uninitialized(t)]
    if lazy:
        raise ValueError(f"summary expected a model whose shapes are known, got {lazy[0]} uninitialized; run the model once")
    arguments = _arguments(model, input_shape, input_dtype, inputs)
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    with _left_as_it_was(model):
        calls = _Calls(model)
        output = calls.run(model.eval(), arguments)
        activations, masks = calls.kept()
        del output
    rows = list(_rows(model, calls))
    return Summary(tuple(rows), sum(row.parameters for row in rows), trainable, sum(b.numel() for b in model.buffers()),
                   sum(row.multiply_adds for row in rows), activations, masks)


# Inputs

def _arguments(model: Module, shapes: Any, dtype: Any, inputs: Any) -> list:
    if (shapes is None) == (inputs is None):
        raise TypeError("summary expected either input_shape or inputs")
    if inputs is not None:
        if dtype is not None:
            raise TypeError("summary expected input_dtype only together with input_shape; cast the inputs instead")
        return [inputs] if isinstance(inputs, Tensor) else list(inputs)
    several = isinstance(shapes, list) and all(isinstance(shape, (tuple, list)) for shape in shapes)
    given, shapes = shapes, shapes if several else [shapes]
    if not all(isinstance(shape, (tuple, list)) and all(isinstance(n, int) and n >= 0 for n in shape) for shape in shapes):
        raise TypeError(f"summary expected input_shape, a shape or a list of shapes, got {given!r}")
    like: Any = next((p for p in model.parameters() if p.is_floating_point()), None)
    if dtype is None:
        dtype = dtypes.float32 if like is None else like.dtype
    kinds = list(dtype) if isinstance(dtype, (list, tuple)) else [dtype] * len(shapes)
    if len(kinds) != len(shapes):
        raise TypeError(f"summary expected an input_dtype for each of {len(shapes)} inputs, got {len(kinds)}")
    return [_example(tuple(shape), dtypes.as_dtype(kind), "cpu" if like is None else like.device)
            for shape, kind in zip(shapes, kinds)]


def _example(shape: tuple, dtype: Any, device: Any) -> Tensor:
    if dtype not in dtypes.FLOATING:
        return zeros(shape, dtype=dtype, device=device)
    return randn(shape, generator=Generator(), dtype=dtype, device=device)


def _tracked(value: Any) -> Any:
    """A floating tensor as one that was computed: its use is recorded, and it may be edited in place."""
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.detach().requires_grad_().clone()
    return value


@contextmanager
def _left_as_it_was(model: Module) -> Iterator[None]:
    """Let all parameters require grad inside, and put back afterwards everything that a forward may change."""
    attributes = [(module, dict(module.__dict__)) for module in model.modules()]
    values = [(t, t.array, t.array.copy()) for t in (*model.parameters(), *model.buffers())]
    frozen = [p for p in model.parameters() if p.is_floating_point() and not p.requires_grad]
    rng = default_generator().get_state()
    for parameter in frozen:
        parameter.requires_grad_()
    try:
        yield
    finally:
        for module, before in attributes:
            module.__dict__.clear()
            module.__dict__.update(before)
        for tensor, array, value in values:
            array[...] = value
            tensor.array = array
        for parameter in frozen:
            parameter.requires_grad_(False)
        default_generator().set_state(rng)


# What the modules do

class _Calls:
    """The nodes that each module of a model makes itself, and its output's shape."""

    def __init__(self, model: Module):
        self.names = {module: name for name, module in model.named_modules()}
        self.nodes: dict[Module, list[Node]] = {module: [] for module in self.names}
        self.shapes: dict[Module, tuple | None] = {}
        self.own = {_owner(t.array) for t in (*model.parameters(), *model.buffers())}
        self.open: list[tuple[Module, Any]] = []  # the modules whose forward runs, and who noted nodes before each

    def run(self, model: Module, arguments: list) -> Any:
        handles = [register_module_forward_pre_hook(self.enter), register_module_forward_hook(self.leave)]
        tracked = [_tracked(value) for value in arguments]
        before = watch_nodes(None)
        try:
            with enable_grad():
                return model(*tracked)
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            module = self.open[-1][0] if self.open else model
            where = f" in {self.names[module]} ({type(module).__name__})" if self.names[module] else ""
            shapes = ", ".join(str(x.shape) if isinstance(x, Tensor) else type(x).__name__ for x in arguments)
            name = type(model).__name__
            raise RuntimeError(f"summary could not run {name} on an input of {shapes}{where}: {error}") from error
        finally:
            watch_nodes(before)
            for handle in handles:
                handle.remove()

    def enter(self, module: Module, args: tuple) -> None:
        if module in self.names:
            self.open.append((module, watch_nodes(self.nodes[module])))

    def leave(self, module: Module, args: tuple, output: Any) -> None:
        if module not in self.names:
            return
        entered, before = self.open.pop()
        while entered is not module:  # whose forward raised an error that the model has caught
            entered, before = self.open.pop()
        watch_nodes(before)
        self.shapes[module] = _first_shape(output)

    def kept(self) -> tuple[int, int]:
        """Floating elements, and bytes of other arrays, that the graph keeps and the model does not own."""
        arrays: dict[int, Any] = {}
        for node in (node for nodes in self.nodes.values() for node in nodes):
            for array in _held(node):
                owner = _owner(array)
                if owner not in self.own:
                    arrays[owner] = _root(array)
        floating = [a.size for a in arrays.values() if a.dtype in dtypes.FLOATING]
        return sum(floating), sum(a.nbytes for a in arrays.values() if a.dtype not in dtypes.FLOATING)


def _held(node: Node) -> list:
    found: list = []
    collect(node.pullback, node.xp.array_type, found)
    if node.saved is not None:
        collect(node.saved[0], node.xp.array_type, found)
    return found


def _root(array: Any) -> Any:
    """The array that owns the memory of a view."""
    while type(array.base) is type(array):
        array = array.base
    return array


def _owner(array: Any) -> int:
    return id(_root(array))


def _first_shape(output: Any) -> tuple | None:
    if isinstance(output, Tensor):
        return tuple(output.shape)
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, (tuple, list)) else ()
    return next((shape for shape in map(_first_shape, parts) if shape is not None), None)


def _rows(model: Module, calls: _Calls) -> Iterator[LayerSummary]:
    seen: set[int] = set()
    for name, module in model.named_modules():
        own = [p for p in module._parameters.values() if id(p) not in seen]
        seen.update(map(id, own))
        multiply_adds = sum(map(_multiply_adds, calls.nodes[module]))
        if own or multiply_adds or not module._modules:
            parameters = sum(p.numel() for p in own)
            yield LayerSummary(name, type(module).__name__, calls.shapes.get(module), parameters, multiply_adds)


# What the operations do

def _multiply_adds(node: Node) -> int:
    count = _COUNTS.get(node.op.name)
    return 0 if count is None or isinstance(node, Output) else count(node.shape, _input_shapes(node))


def _input_shapes(node: Node) -> list:
    """The shape of each input; None for one without gradient that the pullback does not need."""
    arrays = {id(array): array for array in _held(node)}
    shapes: list = [edge.shape if edge is not None else None for edge in node.edges]
    for i, key in enumerate(node.keys[:len(shapes)]):
        if shapes[i] is None and key in arrays:
            shapes[i] = tuple(arrays[key].shape)
    return shapes


def _of_product(shape: tuple, left: tuple | None, right: tuple | None) -> int:
    """Of left @ right, from the result's shape and that of either factor."""
    inner = left[-1] if left is not None else right[-min(2, len(right))]  # type: ignore
    return math.prod(shape) * inner


def _of_linear(shape: tuple, inputs: Sequence) -> int:
    return math.prod(shape) * (inputs[1] or inputs[0])[-1]


def _of_convolution(shape: tuple, inputs: Sequence) -> int:
    return math.prod(shape) * math.prod(inputs[1][1:])


def _of_transposed_convolution(shape: tuple, inputs: Sequence) -> int:
    return math.prod(inputs[0]) * math.prod(inputs[1][1:])


def _of_attention(shape: tuple, inputs: Sequence) -> int:
    key, features = inputs[1], inputs[0][-1]
    return math.prod(shape[:-1]) * key[-2] * (features + shape[-1])


def _of_recurrence(states: int) -> Callable[[Sequence, Sequence], int]:
    def count(shapes: Sequence, inputs: Sequence) -> int:  # the matrices among what follows the states are weights
        weights = [shape for shape in inputs[1 + states:] if shape is not None and len(shape) == 2]
        return math.prod(shapes[0][:2]) * sum(map(math.prod, weights))

    return count


_COUNTS: dict[str, Callable] = {
    "linear": _of_linear,
    "matmul": lambda shape, inputs: _of_product(shape, *inputs),
    "contract": lambda shape, inputs: _of_product(shape, *inputs),
    "dot": lambda shape, inputs: _of_product(shape, *inputs),
    "plus_product": lambda shape, inputs: _of_product(shape, *inputs[1:]),
    "euclidean": lambda shape, inputs: math.prod(shape) * (inputs[0] or inputs[1])[-1],
    "convolution": _of_convolution,
    "convolution_input": _of_transposed_convolution,
    "attention": _of_attention,
    "lstm": _of_recurrence(2),
    "gru": _of_recurrence(1),
    "rnn": _of_recurrence(1),
}


def _mebibytes(count: int) -> str:
    return f"{count / 2 ** 20:.2f} MiB"
