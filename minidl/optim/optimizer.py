"""The base of all optimizers: parameter groups, state, state dicts, hooks, and one step over flat arrays.

An optimizer is a formula: `update` says how a stretch of parameters changes given its gradient and state. What is
common is here: float32 masters of half parameters, blocks that stay in the cache, parameters without gradients.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ..autograd.hooks import RemovableHandle
from ..autograd.mode import enable_grad, no_grad
from ..tensor import dtypes, journal
from ..tensor.convert import to_array
from ..tensor.tensor import Tensor, make_tensor
from .flat import MASTER, FlatBlock, follow

CHUNK = 32768  # elements that are updated at a time: parameter, gradient, state and temporaries stay in the cache
FLUSH_EVERY = 16  # steps


class Optimizer:
    """Base class. A subclass passes its options as `defaults` and defines `update`, or its own `step`.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of them with options of their own under "params".
        defaults: the options of groups that do not set them.
        master_weights: keep a float32 value of each half parameter and round it to half after each step. Without, half
            parameters are updated in float32 and rounded, and changes below their resolution are lost.

    Attributes:
        param_groups: dicts of "params" and options; options may be changed at any time.
        state: parameter -> dict of state tensors and numbers.
        taken_steps, skipped_steps: how many were taken, and how many a loss scaler has skipped (it counts these itself),
            since the constructor. Schedules look at both.
        skip_next_step: True lets the next step do nothing but clear the gradients, and count as skipped.

    Raises:
        TypeError, ValueError: for what are no parameters, doubled ones, and impossible options.
    """

    elementwise = True  # each element is updated on its own; otherwise `update` gets whole parameters in their shapes

    def __init__(self, params: Any, defaults: dict, *, master_weights: bool = True):
        self.defaults = defaults
        self.master_weights = master_weights
        self.param_groups: list[dict] = []
        self._state: defaultdict = defaultdict(dict)
        self._state_seen = False
        self.taken_steps = self.skipped_steps = 0
        self.skip_next_step = False
        self._blocks: list[list[FlatBlock]] = []
        self._hooks: dict[str, dict] = {kind: {} for kind in ("step_pre", "step", "save_pre", "save", "load_pre", "load")}
        if isinstance(params, (Tensor, dict)):
            raise TypeError(f"{type(self).__name__} expected an iterable of parameters or of dicts, got "
                            f"{type(params).__name__}; wrap it in a list")
        groups = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__} expected parameters, got an empty list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    # What a subclass says

    def initial_state(self, group: dict) -> dict[str, float]:
        """Name -> number with which that state tensor starts, for a group's options."""
        return {}

    def begin(self, group: dict, numbers: dict) -> Any:
        """Called once a step for parameters of one history: advances their numbers ("step", ...) in place, and returns
        what `update` shall get."""
        return None

    def update(self, xp: Any, group: dict, now: Any, p: Any, g: Any, state: dict[str, Any]) -> None:
        """Change p and the state in place; g is left as it is.

        Args:
            xp: the backend.
            now: what `begin` returned.
            p, g: arrays of float32 or wider: parameters (or their masters) and gradients.
            state: the state arrays, by name.
        """
        raise NotImplementedError(f"{type(self).__name__} expected a method update, or its own step")

    def check_parameter(self, p: Tensor) -> None:
        """Raise ValueError for a parameter that the formula does not suit."""

    # Groups

    def add_param_group(self, param_group: dict) -> None:
        """Add parameters with options of their own under the key "params"; missing options are the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"add_param_group expected a dict, got {type(param_group).__name__}")
        group = dict(param_group)
        if isinstance(group["params"], set):
            raise TypeError("add_param_group expected an ordered collection of parameters, got a set")
        given: list[Any] = [group["params"]] if isinstance(group["params"], Tensor) else list(group["params"])
        if not given:
            raise ValueError("add_param_group expected parameters, got an empty list")
        if isinstance(given[0], tuple):
            group["param_names"] = [name for name, _ in given]
            given = [parameter for _, parameter in given]
        taken = {id(p) for other in self.param_groups for p in other["params"]}
        for p in given:
            if not isinstance(p, Tensor):
                raise TypeError(f"{type(self).__name__} expected Tensors as parameters, got {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError(f"{type(self).__name__} expected leaves, got a computed tensor of shape {p.shape}; "
                                 f"optimize the parameter that it was computed from")
            if p.dtype not in dtypes.FLOATING:
                raise ValueError(f"{type(self).__name__} expected floating parameters, got {dtypes.dtype_name(p.dtype)}")
            if id(p) in taken:
                raise ValueError(f"{type(self).__name__} got a parameter of shape {p.shape} twice, or in two groups")
            taken.add(id(p))
            self.check_parameter(p)
        group["params"] = given
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)
        self._blocks.append([])
        if self._has_formula():
            self._lay_out(len(self.param_groups) - 1)

    def _has_formula(self) -> bool:
        return type(self).update is not Optimizer.update

    def _lay_out(self, index: int) -> None:
        """Make the blocks of a group anew; state moves along."""
        group = self.param_groups[index]
        for block in self._blocks[index]:
            block.export()
        kinds: dict[tuple, list] = {}
        for p in group["params"]:
            kinds.setdefault((p.dtype, p.device), []).append(p)
        initial = self.initial_state(group)
        with no_grad():
            self._blocks[index] = [FlatBlock(parameters, initial, self._state, self.master_weights)
                                   for parameters in kinds.values()]

    def __getstate__(self) -> dict:
        """For pickle and deepcopy: without hooks, and without the flat arrays, which the next step makes anew."""
        state = self.state
        return {**self.__dict__, "_state": state, "_blocks": [[] for _ in self._blocks],
                "_hooks": {kind: {} for kind in self._hooks}}

    @property
    def state(self) -> defaultdict:
        for blocks in self._blocks:
            for block in blocks:
                block.export()
        self._state_seen = True
        return self._state

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or with set_to_none=False set them to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none or p.grad is None:
                    p.grad = None
                else:
                    p.grad = p.grad.detach().zero_()

    def master_of(self, parameter: Tensor) -> Tensor | None:
        """The float32 value of a half parameter, edits of the parameter included; None where none is kept (yet)."""
        master = self._state[parameter].get(MASTER) if parameter in self._state else None
        if not self._has_formula() or master is None or parameter.dtype not in dtypes.HALF:
            return None
        follow(parameter.backend, master.array, parameter.array)
        return master

    def keep_master(self, parameter: Tensor, value: Tensor) -> None:
        """Let the master of a half parameter start from a float32 value, of which the parameter is the rounded one."""
        if self._has_formula():
            self._state[parameter][MASTER] = value

    def agree(self, flag: bool) -> bool:
        """What all ranks say together where one says `flag`; a single process agrees with itself."""
        return flag

    # The step

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: computes the gradients anew and returns the loss.

        Returns:
            what closure returned.
        """
        if self._hooks["step_pre"]:
            self._call_hooks("step_pre", (closure,))
        if self.skip_next_step:
            self.skip_next_step = False
            self.skipped_steps += 1
            return self.zero_grad()
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for index, group in enumerate(self.param_groups):
            self._step_group(index, group)
        self._state_seen = False
        self.taken_steps += 1
        journal.commit()
        if self._hooks["step"]:
            self._call_hooks("step", (closure,))
        return loss

    def _step_group(self, index: int, group: dict) -> None:
        if not self._is_laid_out(index, group):
            for block in self._blocks[index]:
                block.follow_edits()
            if self._state_seen:
                for block in self._blocks[index]:  # what the user wrote into the state counts
                    block.numbers = [{}] * len(block.parameters)
            self._lay_out(index)
        for block in self._blocks[index]:
            block.follow_edits()
            for first, last, numbers in block.runs():
                now = self.begin(group, numbers)
                if not self._state.get(block.parameters[first]):
                    self._enter(block, first, last)
                g = block.gradient(first, last)
                if self.elementwise:
                    self._stretch(block, group, now, g, first, last)
                else:
                    self._each(block, group, now, g, first, last)
                block.written(first, last)
                if numbers.get("step", 1) % FLUSH_EVERY == 0:
                    block.flush_subnormals(first, last)

    def _is_laid_out(self, index: int, group: dict) -> bool:
        """Are the blocks of a group still those of its parameters, options and state?"""
        names = self.initial_state(group).keys()
        wanted = set(map(id, group["params"]))  # users may put other parameters there
        count = 0
        for block in self._blocks[index]:
            count += len(block.parameters)
            if not block.identities <= wanted or not block.in_place() or names != block.names:
                return False
            if self._state_seen and not block.owns_state():
                return False
        return count == len(group["params"])

    def _enter(self, block: FlatBlock, first: int, last: int) -> None:
        for i in range(first, last):
            entry = self._state[block.parameters[i]]
            for name, tensors in block.entries.items():
                entry[name] = tensors[i]

    def _stretch(self, block: FlatBlock, group: dict, now: Any, g: Any, first: int, last: int) -> None:
        """Update parameters in a row in pieces that stay in the cache."""
        xp, wide = block.xp, block.wide
        maximize = group.get("maximize", False)
        for low, high, target, p, state in block.stretches(first, last, CHUNK if xp.device_type == "cpu" else block.size):
            if p is None:
                p = xp.asarray(target, wide)
            piece = xp.asarray(g[low:high], wide)
            self.update(xp, group, now, p, -piece if maximize else piece, state)
            if p is not target:
                xp.assign(target, p)

    def _each(self, block: FlatBlock, group: dict, now: Any, g: Any, first: int, last: int) -> None:
        """Update parameters one by one, each in its shape."""
        xp, wide = block.xp, block.wide
        for i in range(first, last):
            shape, start = block.parameters[i].shape, block.starts[i] - block.starts[first]
            target = block.views[i]
            p = block.entries[MASTER][i].array if MASTER in block.entries else xp.asarray(target, wide)
            piece = xp.asarray(g[start:start + block.stops[i] - block.starts[i]].reshape(shape), wide)
            state = {name: tensors[i].array for name, tensors in block.entries.items() if name != MASTER}
            self.update(xp, group, now, p, -piece if group.get("maximize", False) else piece, state)
            if block.wide is not block.dtype:
                xp.assign(target, p)

    # State dicts

    def state_dict(self) -> dict:
        """{"state": {number of the parameter: its state}, "param_groups": options, parameters by number}, as in PyTorch."""
        self._call_hooks("save_pre", ())
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers[id(p)] = len(numbers)
            groups.append({**{k: v for k, v in group.items() if k != "params"},
                           "params": [numbers[id(p)] for p in group["params"]]})
        seen = self._state_seen
        state = {numbers[id(p)]: self._saved(entry) for p, entry in self.state.items() if entry and id(p) in numbers}
        self._state_seen = seen
        result = {"state": state, "param_groups": groups}
        for hook in list(self._hooks["save"].values()):
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def _saved(self, entry: dict) -> dict:
        return dict(entry)

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over state and options that state_dict() gave, PyTorch's included. On an error nothing is changed.

        Raises:
            ValueError: if it belongs to other parameter groups, or a state tensor has another shape.
        """
        state_dict = dict(state_dict)
        for hook in list(self._hooks["load_pre"].values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        who = f"{type(self).__name__}.load_state_dict"
        if not {"state", "param_groups"} <= state_dict.keys():
            raise ValueError(f"{who} expected a dict with state and param_groups, got {sorted(map(str, state_dict))}")
        saved = state_dict["param_groups"]
        sizes, found = [len(g["params"]) for g in self.param_groups], [len(g["params"]) for g in saved]
        if sizes != found:
            raise ValueError(f"{who} expected param_groups of {sizes} parameters, got {found}")
        by_number: dict[Any, Tensor] = {}
        names: dict[Any, set] = {}
        for mine, theirs in zip(self.param_groups, saved):
            arrays = {*self.initial_state({**mine, **theirs}), MASTER} if self._has_formula() else set()
            by_number.update(zip(theirs["params"], mine["params"]))
            names.update(dict.fromkeys(theirs["params"], arrays))
        state: dict = {}
        for number, entry in state_dict["state"].items():
            number = int(number) if number not in by_number and str(number).isdigit() else number
            if number not in by_number:
                raise ValueError(f"{who} got a state of the parameter {number!r}, which is in no group")
            state[by_number[number]] = self._loaded(who, by_number[number], number, entry, names[number])
        for mine, theirs in zip(self.param_groups, saved):
            mine.update({k: copy.deepcopy(v) for k, v in theirs.items() if k != "params"})
        masters = {p: self.master_of(p) for group in self.param_groups for p in group["params"]}
        self._blocks = [[] for _ in self.param_groups]
        self._state.clear()
        self._state.update(state)
        for p, master in masters.items():  # a state of float32 parameters has none
            if master is not None:
                self._state[p].setdefault(MASTER, master)
        if self._has_formula():
            for index in range(len(self.param_groups)):
                self._lay_out(index)
        for hook in list(self._hooks["load"].values()):
            hook(self)

    def _loaded(self, who: str, p: Tensor, number: Any, entry: dict, arrays: set) -> dict:
        """A parameter's state from a saved one, in which PyTorch has numbers as tensors; `arrays` are none of them."""
        made: dict = {}
        strangers = {name for name, value in entry.items() if getattr(value, "shape", None) == p.shape and p.ndim} - arrays
        if arrays and strangers and not arrays - {MASTER} <= entry.keys():
            raise ValueError(f"{who} expected the state {', '.join(sorted(arrays - {MASTER})) or 'of no tensors'} of the "
                             f"parameter {number}, got {', '.join(sorted(strangers))}; it was saved by another optimizer")
        for name, value in entry.items():
            if name == MASTER and arrays and not (self.master_weights and p.dtype in dtypes.HALF):
                continue
            if value is None or isinstance(value, (bool, int, float, str, list, tuple, dict)):
                made[name] = copy.deepcopy(value)
                continue
            tensor = make_tensor(to_array(value), None)
            if name == "step":
                made[name] = int(tensor.item())
            elif tensor.ndim == 0 and (p.ndim or (arrays and name not in arrays)):
                made[name] = tensor.item()
            elif tensor.shape != p.shape and name in arrays:
                raise ValueError(f"{who} expected {name} of the parameter {number} of shape {p.shape}, got {tensor.shape}")
            else:
                wide = dtypes.float32 if p.dtype in dtypes.HALF else p.dtype
                made[name] = tensor.to(p.device, dtype=wide, copy=True)
        return made

    # Hooks

    def _call_hooks(self, kind: str, args: tuple) -> None:
        for hook in list(self._hooks[kind].values()):
            hook(self, args, {}) if kind in ("step_pre", "step") else hook(self)

    def _add_hook(self, kind: str, hook: Callable) -> RemovableHandle:
        if not callable(hook):
            raise TypeError(f"register_{kind}_hook expected a function, got {type(hook).__name__}")
        return RemovableHandle(self._hooks[kind], hook)

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step."""
        return self._add_hook("step_pre", hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return self._add_hook("step", hook)

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer)` before state_dict."""
        return self._add_hook("save_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after state_dict; what it returns replaces the result."""
        return self._add_hook("save", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; what it returns is loaded instead."""
        return self._add_hook("load_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return self._add_hook("load", hook)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name not in ("params", "param_names")]
        return "\n".join([*lines, ")"])


def decay(group: dict, p: Any, g: Any) -> Any:
    """The gradient with that of the L2 penalty; or, where a group says decoupled_weight_decay, the gradient as it is
    after p has been shrunk by lr * weight_decay."""
    if not group["weight_decay"]:
        return g
    if group.get("decoupled_weight_decay"):
        p *= 1 - group["lr"] * group["weight_decay"]
        return g
    return g + p * group["weight_decay"]


def check_options(who: str, nonnegative: Iterable[tuple[str, Any]] = (), fractions: Iterable[tuple[str, Any]] = ()) -> None:
    """Refuse negative options, and fractions outside [0, 1).

    Raises:
        ValueError: that names the option and its value.
    """
    for name, value in nonnegative:
        if not value >= 0:
            raise ValueError(f"{who} expected {name} >= 0, got {value}")
    for name, value in fractions:
        if not 0 <= value < 1:
            raise ValueError(f"{who} expected {name} in [0, 1), got {value}")
