"""Modules that hold others: Sequential, ModuleList, ModuleDict, and the like for parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from ..tensor.dtypes import dtype_name
from .module import Module, indented
from .parameter import Parameter


class _Numbered(Module):
    """Parts under the names "0", "1", ...; what lists of modules and of parameters share."""

    _kind: Any = Module

    def _parts(self) -> dict[str, Any]:
        return {name: part for name, part in self.__dict__.items() if name.isdigit()}

    def _replace(self, parts: Iterable[Any]) -> None:
        parts = list(parts)
        for part in parts:
            if part is not None and not isinstance(part, self._kind):
                raise TypeError(f"{type(self).__name__} expected {self._kind.__name__}s, got {type(part).__name__}")
        for name in self._parts():
            del self.__dict__[name]
        for i, part in enumerate(parts):
            self.__dict__[str(i)] = part

    def _name_at(self, index: int) -> str:
        names = list(self._parts())
        place = index.__index__()
        if not -len(names) <= place < len(names):
            raise IndexError(f"{type(self).__name__} expected an index from {-len(names)} to {len(names) - 1}, got {place}")
        return names[place]

    def __len__(self) -> int:
        return len(self._parts())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts().values())

    def _like(self, parts: Any) -> Any:
        kind: Any = type(self)
        return kind(parts)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._like(list(self)[index])
        return self.__dict__[self._name_at(index)]

    def __setitem__(self, index: int, part: Any) -> None:
        parts = list(self)
        parts[int(self._name_at(index))] = part
        self._replace(parts)

    def __delitem__(self, index: Any) -> None:
        parts = list(self)
        del parts[index]
        self._replace(parts)

    def append(self, part: Any) -> Any:
        """Add a part at the end; returns the container."""
        self._replace([*self, part])
        return self

    def extend(self, parts: Iterable[Any]) -> Any:
        """Add several parts at the end; returns the container."""
        self._replace([*self, *parts])
        return self

    def insert(self, index: int, part: Any) -> Any:
        """Add a part before another."""
        parts = list(self)
        parts.insert(index, part)
        self._replace(parts)
        return self

    def pop(self, index: int = -1) -> Any:
        """Take a part out and return it."""
        part = self[index]
        del self[index]
        return part

    def __iadd__(self, parts: Iterable[Any]) -> Any:
        return self.extend(parts)

    def __add__(self, other: Iterable[Any]) -> Any:
        return self._like([*self, *other])


class ModuleList(_Numbered):
    """A list of modules, whose parameters belong to the module that holds the list."""

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        self._replace(modules or ())

    def _lines_of_parts(self) -> list[str]:
        """Equal parts in a row on one line, as PyTorch shows them."""
        lines = []
        first = 0
        for text, same in groupby(map(indented, self)):
            count = len(list(same))
            lines.append(f"({first}): {text}" if count == 1 else f"({first}-{first + count - 1}): {count} x {text}")
            first += count
        return lines


class ParameterList(_Numbered):
    """A list of parameters; tensors that are none become such."""

    _kind = Parameter

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._replace(values or ())

    def _replace(self, parts: Iterable[Any]) -> None:
        super()._replace(part if isinstance(part, Parameter) else Parameter(part) for part in parts)

    def _lines_of_parts(self) -> list[str]:
        return _lines_of_parameters(self._parts())


class Sequential(_Numbered):
    """Modules one after the other: each takes the output of the one before.

    Args:
        modules: in order, or one dict of names and modules.
    """

    def __init__(self, *modules: Any):
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(modules):
                self.add_module(str(i), module)

    def _parts(self) -> dict[str, Any]:
        return self._modules

    def _replace(self, parts: Iterable[Any]) -> None:
        for name in self._parts():
            del self.__dict__[name]
        for i, part in enumerate(parts):
            self.add_module(str(i), part)

    def append(self, part: Module) -> Any:
        """Add a module at the end, under its number; returns the container."""
        name = str(len(self))
        if name in self._modules:
            raise KeyError(f"Sequential.append expected no part of the name {name!r} yet; use add_module")
        self.add_module(name, part)
        return self

    def extend(self, parts: Iterable[Module]) -> Any:
        """Add several modules at the end; returns the container."""
        for part in list(parts):
            self.append(part)
        return self

    def insert(self, index: int, part: Module) -> Any:
        """Add a module before another. Those after it get the next numbers, so all names must be numbers.

        Raises:
            ValueError: if there are other names.
        """
        names = list(self._modules)
        if names != list(map(str, range(len(names)))):
            raise ValueError(f"Sequential.insert expected parts without names of their own, got {', '.join(names)}; make a new "
                             f"Sequential")
        return super().insert(index, part)

    def forward(self, input: Any) -> Any:
        for part in self.__dict__.values():
            if isinstance(part, Module):
                input = part(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return self.__dict__[self._name_at(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        name = self._name_at(index)
        if not isinstance(module, Module):
            raise TypeError(f"Sequential expected a Module, got {type(module).__name__}")
        setattr(self, name, module)

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        gone = names[index] if isinstance(index, slice) else [self._name_at(index)]
        for name in gone:
            delattr(self, name)
        if all(name.isdigit() for name in names):  # numbers close up
            self._replace(list(self))

    def __add__(self, other: Iterable[Module]) -> Any:
        return type(self)(*self, *other)

    def __mul__(self, times: int) -> Any:
        """The same modules several times over."""
        return type(self)(*list(self) * times)

    __rmul__ = __mul__


class _Named(Module):
    """Parts under names of the user's; what dicts of modules and of parameters share."""

    _kind: Any = Module

    def _parts(self) -> dict[str, Any]:
        return {name: part for name, part in self.__dict__.items() if isinstance(part, self._kind)}

    def __getitem__(self, key: str) -> Any:
        return self._parts()[key]

    def __setitem__(self, key: str, part: Any) -> None:
        if not isinstance(part, self._kind):
            raise TypeError(f"{type(self).__name__} expected a {self._kind.__name__} for {key!r}, got {type(part).__name__}")
        if key not in self._parts():
            self._check_new_name(key)
        setattr(self, key, part)

    def __delitem__(self, key: str) -> None:
        self._parts()[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._parts())

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts())

    def __contains__(self, key: str) -> bool:
        return key in self._parts()

    def keys(self) -> Any:
        """The names."""
        return self._parts().keys()

    def values(self) -> Any:
        """The parts."""
        return self._parts().values()

    def items(self) -> Any:
        """Pairs of name and part."""
        return self._parts().items()

    def get(self, key: str, default: Any = None) -> Any:
        """The part of a name, or the default."""
        return self._parts().get(key, default)

    def pop(self, key: str) -> Any:
        """Take a part out and return it."""
        part = self[key]
        del self[key]
        return part

    def clear(self) -> None:
        """Take all parts out."""
        for key in list(self):
            del self[key]

    def update(self, parts: Any) -> None:
        """Add the parts of a dict or of pairs."""
        for key, part in parts.items() if hasattr(parts, "items") else parts:
            self[key] = part


class ModuleDict(_Named):
    """A dict of modules, whose parameters belong to the module that holds the dict."""

    def __init__(self, modules: Any = None):
        super().__init__()
        self.update(modules or {})


class ParameterDict(_Named):
    """A dict of parameters; tensors that are none become such."""

    _kind = Parameter

    def __init__(self, parameters: Any = None):
        super().__init__()
        self.update(parameters or {})

    def __setitem__(self, key: str, part: Any) -> None:
        super().__setitem__(key, part if isinstance(part, Parameter) else Parameter(part))

    def _lines_of_parts(self) -> list[str]:
        return _lines_of_parameters(self._parts())


def _lines_of_parameters(parts: dict[str, Parameter]) -> list[str]:
    return [f"({name}): {type(part).__name__} containing: [{dtype_name(part.dtype)} of size {'x'.join(map(str, part.shape))}]"
            for name, part in parts.items()]
