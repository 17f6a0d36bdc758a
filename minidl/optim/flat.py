"""Parameters laid one behind the other in one array, with their gradients and their optimizer state laid out alike.

An update then runs over one long array instead of once per parameter. Parameters stay tensors of their own: each shows
its piece of the array. The layout is a cache: where a parameter was replaced, moved or cast, it is made anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..autograd import edits
from ..autograd.graph import Leaf
from ..tensor import dtypes
from ..tensor.tensor import Tensor, make_tensor

_ALIGNMENT = 16       # elements: each parameter starts at a new cache line
MASTER = "master"     # the state in which a half parameter keeps its float32 value


class FlatBlock:
    """Parameters of one group, dtype and device.

    Args:
        parameters: of one dtype on one device.
        initial: name -> number with which the state of that name starts.
        state: parameter -> its state: tensors, which become views of this block, and numbers.
        master: keep half parameters in float32 besides.
    """

    def __init__(self, parameters: list[Tensor], initial: dict[str, float], state: dict, master: bool):
        self.parameters = parameters
        self.identities = frozenset(map(id, parameters))
        self.xp = parameters[0].backend
        self.dtype = parameters[0].dtype
        self.device = parameters[0].device
        self.wide = dtypes.float32 if self.dtype in dtypes.HALF else self.dtype
        self.starts: list[int] = []
        size = 0
        for p in parameters:
            self.starts.append(size)
            size += -(-math.prod(p.shape) // _ALIGNMENT) * _ALIGNMENT
        self.stops = [start + math.prod(p.shape) for start, p in zip(self.starts, parameters)]
        self.places = [(start, p.shape) for start, p in zip(self.starts, parameters)]
        self.size = size
        self.values = self._like(self.dtype, [p.array for p in parameters])
        self.views = self.xp.pieces(self.values, self.places)
        for p, view in zip(parameters, self.views):
            p.array = view
        self.gradients = self._zeros(self.dtype)
        self.leaves: list[Any] = [None] * len(parameters)
        self.lend()
        if master and self.dtype in dtypes.HALF:
            initial = {**initial, MASTER: 0.0}
        self.state = state
        self.arrays: dict[str, Any] = {}
        self.entries: dict[str, list[Tensor]] = {}
        for name, start in initial.items():
            self.arrays[name] = flat = self._zeros(self.wide)
            if start:
                flat[...] = start
            self.entries[name] = [make_tensor(window, None) for window in self.xp.pieces(flat, self.places)]
        self.names = self.arrays.keys() - {MASTER}
        self._stretches: dict[tuple, list] = {}
        if MASTER in self.arrays:
            self.arrays[MASTER][...] = self.values
        self.numbers: list[dict] = [_numbers(state.get(p, {})) for p in parameters]
        for i in range(1, len(parameters)):  # parameters of one history share one dict
            if self.numbers[i] == self.numbers[i - 1]:
                self.numbers[i] = self.numbers[i - 1]
        for i, p in enumerate(parameters):
            if state.get(p):
                self._take_over(i, state[p])
        self.stamps = [edits.edit_count(view) for view in self.views]  # of the last edit that the masters know of

    def _like(self, dtype: Any, arrays: list) -> Any:
        flat = self._zeros(dtype)
        for window, array in zip(self.xp.pieces(flat, self.places), arrays):
            window[...] = array
        return flat

    def _zeros(self, dtype: Any) -> Any:
        return make_zeros(self.xp, self.size, dtype, self.device)

    def _take_over(self, index: int, entry: dict) -> None:
        """Copy a parameter's state into this block and put the views of it in its place."""
        for name, tensors in self.entries.items():
            if isinstance(entry.get(name), Tensor):
                tensors[index].array[...] = self.xp.asarray(entry[name].to(self.device).array, self.wide)
            entry[name] = tensors[index]

    def lend(self) -> None:
        """Let backward write the gradients into this block."""
        windows: Any = None
        for i, p in enumerate(self.parameters):
            if p.node is self.leaves[i]:
                continue
            self.leaves[i] = leaf = p.node if type(p.node) is Leaf else None  # None: it requires no gradient now
            if leaf is not None:
                windows = self.xp.pieces(self.gradients, self.places) if windows is None else windows
                leaf.buffer, leaf.lent = windows[i], True
        # the windows' only owners are the leaves, which count who else holds them

    def in_place(self) -> bool:
        """True while each parameter still shows its piece of this block."""
        for p, view, leaf in zip(self.parameters, self.views, self.leaves):
            if p.array is not view:
                return False
            if p.node is not leaf:
                self.lend()
        return True

    def owns_state(self) -> bool:
        """True while the state dicts hold this block's tensors; users may put others there."""
        for i, p in enumerate(self.parameters):
            entry = self.state.get(p) or {}
            if self.numbers[i] != _numbers(entry):
                return False
            if entry and any(entry.get(name) is not tensors[i] for name, tensors in self.entries.items()):
                return False
        return True

    def export(self) -> None:
        """Write the numbers of each parameter's state into its dict."""
        for i, p in enumerate(self.parameters):
            if self.numbers[i]:
                entry = self.state[p]
                entry.update(self.numbers[i])
                for name, tensors in self.entries.items():
                    entry.setdefault(name, tensors[i])

    def follow_edits(self) -> None:
        """Bring edits of half parameters by others into their float32 masters; where nobody wrote, the master stays."""
        if MASTER not in self.arrays:
            return
        for i, (p, view) in enumerate(zip(self.parameters, self.views)):
            if (p.array is not view or edits.edit_count(view) != self.stamps[i]) and p.device == self.device:
                follow(self.xp, self.entries[MASTER][i].array, p.array)

    def written(self, first: int, last: int) -> None:
        """Note that the parameters `first` to `last` (exclusive) have been edited in place."""
        for view in self.views[first:last]:
            edits.record_edit(view)
        if MASTER in self.arrays:
            self.stamps[first:last] = map(edits.edit_count, self.views[first:last])

    def flush_subnormals(self, first: int, last: int) -> None:
        """Set state near the end of the dtype's range to zero. Running means of gradients that have become zero would end
        in subnormal numbers and stay there, and a CPU takes some forty times longer for each of those."""
        if self.xp.device_type != "cpu":
            return
        least = 8 * dtypes.finfo(self.wide).tiny
        for name, array in self.arrays.items():
            if name != MASTER:
                piece = array[self.starts[first]:self.stops[last - 1]]
                piece *= self.xp.abs(piece) >= least

    def runs(self) -> Iterator[tuple[int, int, dict]]:
        """(first, last, numbers): parameters in a row that have a gradient and one history."""
        numbers = self.numbers
        first = None
        for i, leaf in enumerate(self.leaves):
            present = leaf is not None and leaf.grad is not None
            if first is not None and (not present or numbers[i] is not numbers[first]):
                yield self._run(first, i)
                first = None
            if present and first is None:
                first = i
        if first is not None:
            yield self._run(first, len(self.leaves))

    def _run(self, first: int, last: int) -> tuple[int, int, dict]:
        shared = self.numbers[first]
        outside = (first > 0 and self.numbers[first - 1] is shared) or (
            last < len(self.numbers) and self.numbers[last] is shared)
        fresh = not shared
        if outside or fresh:
            shared = dict(shared)
            self.numbers[first:last] = [shared] * (last - first)
        return first, last, shared

    def stretches(self, first: int, last: int, length: int) -> list[tuple]:
        """The parameters `first` to `last` in pieces of a length: (begin and end from the first parameter's start, values,
        the float32 or wider values to update (None where there is no master), {name: state})."""
        key = (first, last, length)
        if key not in self._stretches:
            start, stop = self.starts[first], self.stops[last - 1]
            master = self.arrays.get(MASTER) if self.wide != self.dtype else self.values
            self._stretches[key] = [
                (low - start, high - start, *self._piece(low, high, master))
                for low, high in ((low, min(low + length, stop)) for low in range(start, stop, length))]
        return self._stretches[key]

    def _piece(self, low: int, high: int, master: Any) -> tuple:
        target = self.values[low:high]
        p = target if master is self.values else None if master is None else master[low:high]
        return target, p, {name: self.arrays[name][low:high] for name in self.names}

    def gradient(self, first: int, last: int) -> Any:
        """The gradients of parameters in a row as one 1-d array; where they lie in this block already, without a copy."""
        leaves = self.leaves[first:last]
        start, stop = self.starts[first], self.stops[last - 1]
        if all(leaf.grad.array is leaf.buffer for leaf in leaves):
            return self.gradients[start:stop]
        exact = all(leaf.grad.dtype == self.dtype for leaf in leaves)  # unscaled gradients of halves are float32
        flat = self._zeros(self.dtype if exact else self.wide)
        for window, leaf in zip(self.xp.pieces(flat, self.places)[first:last], leaves):
            window[...] = leaf.grad.array
        return flat[start:stop]


def follow(xp: Any, master: Any, values: Any) -> None:
    """Bring half values into their float32 master wherever they are not what the master rounds to."""
    same = master.astype(values.dtype) == values
    master[...] = xp.where(same, master, values.astype(master.dtype))


def make_zeros(xp: Any, size: int, dtype: Any, device: Any) -> Any:
    """A 1-d array of zeros on a device."""
    if device.type == "cpu":
        return xp.zeros(size, dtype)
    return Tensor((), dtype).to(device).new_zeros((size,)).array


def _numbers(entry: dict) -> dict:
    return {name: value for name, value in entry.items() if not isinstance(value, Tensor) and value is not None}
