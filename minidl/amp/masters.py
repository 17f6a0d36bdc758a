"""Float32 masters: to iterate over them, and to write and read a half model's state dict through them, without loss."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from ..autograd.mode import no_grad
from ..tensor import dtypes
from ..tensor.convert import to_array
from ..tensor.tensor import Tensor, make_tensor


def master_params(optimizer: Any) -> Iterator[Tensor]:
    """The parameters of an optimizer, in float32 where it keeps a master of a half one.

    A master shares the optimizer's memory, and its `.grad` is the parameter's: clip_grad_norm_(master_params(optimizer), 1)
    clips what the next step uses.
    """
    for group in optimizer.param_groups:
        for p in group["params"]:
            master = optimizer.master_of(p)
            if master is None:
                yield p
                continue
            shown = make_tensor(master.array[...], None).requires_grad_(p.requires_grad)
            if p.grad is not None:
                shown.requires_grad_().node.grad = p.grad
            yield shown


def keep_state_dict_float32(model: Any, optimizers: list) -> None:
    """Let the state dicts of a model, and of each module in it, be float32: what its half parameters' masters say."""
    owners = _Owners(optimizers)
    for module in model.modules():
        checkpoint = _Checkpoint(owners)
        module.register_state_dict_post_hook(checkpoint.save)
        module.register_load_state_dict_pre_hook(checkpoint.before_load)
        module.register_load_state_dict_post_hook(checkpoint.after_load)


class _Owners:
    """The optimizers that may hold masters. A copy of a model shares them, a pickled one has none."""

    def __init__(self, optimizers: list):
        self.optimizers = weakref.WeakSet(optimizers)

    def master_of(self, parameter: Tensor) -> Tensor | None:
        found = (optimizer.master_of(parameter) for optimizer in self.optimizers)
        return next((master for master in found if master is not None), None)

    def __deepcopy__(self, memo: dict) -> _Owners:
        return self

    def __reduce__(self) -> tuple:
        return _Owners, ([],)


class _Checkpoint:
    """The state dict hooks of one module."""

    def __init__(self, owners: _Owners):
        self.owners = owners
        self.incoming: dict[str, Any] = {}

    def save(self, module: Any, state_dict: dict, prefix: str, local_metadata: dict) -> None:
        for name, tensor in _half_tensors(module):
            held = state_dict.get(prefix + name)
            if held is not None and held is not tensor:  # it is the parameter itself under keep_vars
                master = self.owners.master_of(tensor)
                state_dict[prefix + name] = (tensor.float() if master is None else master).detach()

    def before_load(self, module: Any, state_dict: dict, prefix: str, *rest: Any) -> None:
        self.incoming = {name: state_dict[prefix + name] for name, _ in _half_tensors(module) if prefix + name in state_dict}

    def after_load(self, module: Any, incompatible_keys: Any) -> None:
        incoming, self.incoming = self.incoming, {}
        for name, tensor in _half_tensors(module):
            master = self.owners.master_of(tensor) if name in incoming else None
            if master is not None:
                exact = make_tensor(to_array(incoming[name]), None)
                with no_grad():
                    master.copy_(exact.reshape(master.shape))


def _half_tensors(module: Any) -> list[tuple[str, Tensor]]:
    own = (*module.named_parameters(recurse=False, remove_duplicate=False), *module.named_buffers(recurse=False))
    return [(name, tensor) for name, tensor in own if tensor.dtype in dtypes.HALF]
