"""Policy: in which dtype a module computes, whatever the dtype of its parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import dtypes
from .autocast import autocast, off
from .tensor import Tensor

_MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
_PLAIN = ("float16", "bfloat16", "float32", "float64")


class Policy:
    """The dtypes of a module's computation and parameters. Assign it to an attribute: `module.policy = Policy("float32")`.

    Under "mixed_float16" and "mixed_bfloat16" parameters are float32 and the module runs inside an autocast region of the
    other dtype. Under a plain dtype it runs outside of any region, and floating tensors (float64 excepted) are cast to that
    dtype before they come in; the parameters have to be of it already.

    Args:
        name: "mixed_float16", "mixed_bfloat16", "float32", "float64", "float16" or "bfloat16".

    Attributes:
        name: as given.
        compute_dtype, variable_dtype: of the computation, and of the parameters.

    Raises:
        ValueError: for another name.

    Source: Keras' mixed_precision.Policy.
    """

    def __init__(self, name: str):
        if isinstance(name, str) and name in _MIXED:
            self.compute_dtype, self.variable_dtype = dtypes.as_dtype(_MIXED[name]), dtypes.float32
        elif isinstance(name, str) and name in _PLAIN:
            self.compute_dtype = self.variable_dtype = dtypes.as_dtype(name)
        else:
            raise ValueError(f"Policy expected one of {', '.join([*_MIXED, *_PLAIN])}, got {name!r}")
        self.name = name

    @property
    def is_mixed(self) -> bool:
        """Does it cast op by op, rather than at the module's door?"""
        return self.name in _MIXED

    def region(self) -> autocast:
        """The autocast region in which a module of this policy runs."""
        return _region(self.compute_dtype) if self.is_mixed else off

    def inputs(self, values: Any) -> Any:
        """A module's inputs, nested in tuples, lists and dicts, as this policy wants them."""
        if self.is_mixed:
            return values
        wanted = self.compute_dtype
        return map_tensors(lambda t: t.to(wanted) if t.dtype in dtypes.FLOATING and t.dtype != dtypes.float64 else t, values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Policy({self.name!r})"


@functools.cache
def _region(dtype: Any) -> autocast:
    return autocast(dtype=dtype)


def map_tensors(function: Callable[[Tensor], Any], values: Any) -> Any:
    """Values nested in tuples, lists and dicts, with each tensor replaced by `function(tensor)`."""
    if isinstance(values, Tensor):
        return function(values)
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*[map_tensors(function, value) for value in values])
    if type(values) in (list, tuple):
        return type(values)([map_tensors(function, value) for value in values])
    if isinstance(values, dict):
        mapped = {name: map_tensors(function, value) for name, value in values.items()}
        return mapped if type(values) is dict else _refilled(values, mapped)
    return values


def _refilled(values: dict, mapped: dict) -> dict:
    """A copy of a dict of some other kind, such as an OrderedDict, with new values."""
    same_kind = values.copy()
    same_kind.update(mapped)
    return same_kind
