"""Owns ParameterList and ParameterDict: containers that register the tensors put into them."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..._functional.queries import typename
from ..._tensor.tensor import Tensor
from ..._tensor.types import Self
from ..parameter import Parameter
from .module import Module

__all__ = ["ParameterDict", "ParameterList"]


def _as_entry(value: Tensor | int) -> Tensor | int:
    """A plain tensor becomes a Parameter; everything else is kept as it is (torch document)."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _described(key: int | str, value: Tensor | int, of: Callable[..., Any]) -> str:
    if not isinstance(value, Tensor):
        return f"({key}): Object of type: {type(value).__name__}"
    size = "x".join(str(size) for size in value.size())
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    where = "" if value.device.type in ("cpu", "meta") else f" ({value.device})"
    return f"({key}): {kind} containing: [{of(value)} of size {size}{where}]"


class ParameterList(Module):
    """A list whose tensors are registered parameters."""

    __module__ = "mindtorch.nn.modules.container"

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name(self, index: int) -> str:
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"index {place} is out of range")
        return str(place % len(self))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            picked = self.__class__()
            picked.extend(self[i] for i in range(*index.indices(len(self))))
            return picked
        return getattr(self, self._name(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name(index), _as_entry(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def append(self, value: Tensor) -> Self:
        """Adds a value at the end."""
        name = str(self._size)
        self._size += 1
        setattr(self, name, _as_entry(value))
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds every value of an iterable that is no tensor."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                + type(values).__name__
            )
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def extra_repr(self) -> str:
        return "\n".join(_line(_described(i, value, _dtype)) for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


def _dtype(value: Tensor) -> str:
    return str(value.dtype)


def _line(text: str) -> str:
    return "  " + text


class ParameterDict(Module):
    """A dict whose tensors are registered parameters, in insertion order."""

    __module__ = "mindtorch.nn.modules.container"

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _key_to_attr(key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'). Open an issue on github if you need "
                "non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Tensor | int) -> None:
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _as_entry(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Gives a new container of the same values."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Gives the value at `key`, put there when it was not."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Drops every value."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes out and gives the value at `key`."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Takes out and gives the last (key, value)."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Gives the value at `key`, or the default."""
        return self[key] if key in self else default  # noqa: SIM401 - this is get itself

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Gives a new container with `default` at every key."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """Gives the keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Gives (key, value)."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """Gives the values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds the values of a mapping or of an iterable of pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, "
                "but got " + type(parameters).__name__
            )
        if isinstance(parameters, OrderedDict | ParameterDict):
            parameters = parameters.items()
        elif isinstance(parameters, Mapping):
            parameters = sorted(parameters.items())  # torch sorts the keys of a plain dict
        for i, pair in enumerate(parameters):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"ParameterDict update sequence element #{i} should be Iterable; "
                    f"is{type(pair).__name__}"
                )
            key, value = _pair_of(tuple(pair), i)
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_line(_described(key, value, typename)) for key, value in self.items())

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self


def _pair_of(pair: tuple[Any, ...], i: int) -> tuple[Any, Any]:
    if len(pair) != 2:
        raise ValueError(
            f"ParameterDict update sequence element #{i} has length {len(pair)}; 2 is required"
        )
    return pair[0], pair[1]
