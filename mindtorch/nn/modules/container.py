"""Owns Sequential, ModuleList and ModuleDict; the parameter containers stand in
_parameter_containers."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from typing import Any

from ..._compat.method_names import written_out
from ..._tensor.tensor import Tensor
from ..._tensor.types import Self
from ._parameter_containers import ParameterDict, ParameterList
from .module import Module, _indented

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """Modules by keyword; FutureWarning: Module does as much."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in"
            " `nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


@written_out("__iter__", "__len__", "__setitem__", "__delitem__", "append", "insert", "pop")
class _Indexed(Module):
    """Children under the names "0", "1", …, in order."""

    def _position(self, index: int) -> int:
        place = operator.index(index)
        size = len(self)
        if not -size <= place < size:
            raise IndexError(f"index {place} is out of range")
        return place % size

    def _key(self, index: int) -> str:
        return list(self._modules)[self._position(index)]

    def _renumber(self, values: Iterable[Module | None]) -> None:
        self._modules = {str(i): module for i, module in enumerate(values)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int) -> None:
        keys = list(self._modules)
        for key in keys[index] if isinstance(index, slice) else [self._key(index)]:
            delattr(self, key)
        self._renumber(self._modules.values())

    def insert(self, index: int, module: Module) -> Self | None:
        """Puts `module` before position `index`."""
        values = list(self._modules.values())
        values.insert(index, module)
        self._renumber(values)
        return None

    def pop(self, key: int) -> Module:
        """Takes out and gives the module at `key`."""
        value = self[key]
        del self[key]
        return value

    def append(self, module: Module) -> Self:
        """Adds `module` at the end."""
        self.add_module(str(len(self)), module)
        return self

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class Sequential(_Indexed):
    """Calls its modules one after the other; takes modules or one OrderedDict of them."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Tensor | int) -> Tensor | int:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.__class__(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def insert(self, index: int, module: Module) -> Self:
        """Puts `module` before position `index`; IndexError outside [-n, n]."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        super().insert(index + size if index < 0 else index, module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Appends every module of `sequential`."""
        for module in sequential:
            self.append(module)
        return self

    def __add__(self, other: Iterable[Module]) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is "
                "given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Iterable[Module]) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is "
                "given."
            )
        return self.extend(list(other))

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*(list(self) * _times(self, times)))

    def __rmul__(self, times: int) -> Sequential:
        return self * times

    def __imul__(self, times: int) -> Self:
        items = list(self)
        for _ in range(_times(self, times) - 1):
            self.extend(items)
        return self


def _times(owner: Module, times: int) -> int:
    if not isinstance(times, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(owner)} and {type(times)}")
    if times <= 0:
        raise ValueError(f"Non-positive multiplication factor {times} for {type(owner)}")
    return times


class ModuleList(_Indexed):
    """A list of modules that are registered; it has no forward."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.__class__(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def extend(self, modules: Iterable[Module]) -> Self:
        """Appends every module of an iterable; TypeError for anything else."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        for i, module in enumerate(list(modules), len(self)):
            self.add_module(str(i), module)
        return self

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        lines = []
        for first, last, text in _runs([repr(module) for module in self]):
            count = last - first + 1
            name = f"({first}): " if count == 1 else f"({first}-{last}): {count} x "
            lines.append(name + _indented(text))
        if not lines:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


def _runs(texts: list[str]) -> list[tuple[int, int, str]]:
    """Joins neighbours of equal text into (first, last, text)."""
    runs: list[tuple[int, int, str]] = []
    for i, text in enumerate(texts):
        if runs and runs[-1][2] == text:
            runs[-1] = (runs[-1][0], i, text)
        else:
            runs.append((i, i, text))
    return runs


class ModuleDict(Module):
    """A dict of modules that are registered, in insertion order; it has no forward."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Drops every module."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Takes out and gives the module at `key`."""
        value = self[key]
        del self[key]
        return value

    def keys(self) -> KeysView[str]:
        """Gives the names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """Gives (name, module)."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """Gives the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds the modules of a mapping or of an iterable of pairs; later names win."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        if isinstance(modules, Mapping | ModuleDict):
            for key, module in modules.items():
                self[key] = module
            return
        for i, pair in enumerate(modules):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"ModuleDict update sequence element #{i} should be Iterable; "
                    f"is{type(pair).__name__}"
                )
            key, module = _pair_of(pair, i)
            self[key] = module


def _pair_of(pair: Any, i: int) -> tuple[Any, Any]:
    if len(pair) != 2:
        raise ValueError(
            f"ModuleDict update sequence element #{i} has length {len(pair)}; 2 is required"
        )
    return pair[0], pair[1]
