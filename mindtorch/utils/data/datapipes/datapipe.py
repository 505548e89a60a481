"""Owns what pipes of data have in common: methods by registered names, and one reader at a time."""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import mindtorch

from ..dataset import Dataset, IterableDataset

if TYPE_CHECKING:
    from typing_extensions import Self

PipeT = TypeVar("PipeT", bound=type)


class _Registry:
    """The part of pipes whose methods are made by `functional_datapipe`."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __getattr__(self, attribute_name: str) -> Any:
        if attribute_name in self.functions:
            return functools.partial(self.functions[attribute_name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute_name}")

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Let pipes have a method."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Let a method of pipes make another; Exception for a name that is taken."""
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )

        def make(source: Any, *args: Any, **options: Any) -> Any:
            return cls_to_register(source, *args, **options)

        make.__name__, make.__doc__ = function_name, cls_to_register.__doc__
        cls.functions[function_name] = make

    def __repr__(self) -> str:
        return type(self).__qualname__

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.functions})


class IterDataPipe(_Registry, IterableDataset[Any]):
    """Values one after the other; a second reader ends the first."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _reader = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__iter__" in vars(cls):
            setattr(cls, "__iter__", _one_reader(vars(cls)["__iter__"]))  # noqa: B010

    def reset(self) -> None:
        """Begin again, for a new reader; pipes with a state of their own forget it here."""


def _one_reader(function: Callable[[Any], Any]) -> Callable[[Any], Iterator[Any]]:
    @functools.wraps(function)
    def read(self: IterDataPipe) -> Iterator[Any]:
        self._reader += 1
        self.reset()
        return _checked(self, function(self), self._reader)

    return read


def _checked(pipe: IterDataPipe, values: Iterator[Any], reader: int) -> Iterator[Any]:
    for value in values:
        yield value
        if pipe._reader != reader:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from"
                f" the same IterDataPipe: {_described(pipe)}\n"
                "This may be caused multiple references to the same IterDataPipe. We recommend"
                " using `.fork()` if that is necessary."
            )


def _described(pipe: IterDataPipe) -> str:
    """A pipe as the call that made it."""
    parts = []
    for name in inspect.signature(type(pipe).__init__).parameters:
        value = getattr(pipe, name, None)
        if name != "self":
            plain = getattr(value, "__name__", None) or str(value)
            parts.append(f"{name}={plain}")
    return f"{type(pipe).__qualname__}({', '.join(parts)})"


class Shuffled(IterDataPipe):
    """A pipe whose readers each have an order of their own, drawn from a seed of torch's."""

    def __init__(self) -> None:
        super().__init__()
        self._enabled, self._rng = True, random.Random()
        self._seed: int | None = None

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Whether the order is another."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: Any) -> Self:
        """Draw the next reader's order from a seed."""
        self._seed = seed
        return self

    def reset(self) -> None:
        if self._enabled:
            if self._seed is None:
                self._seed = int(mindtorch.empty((), dtype=mindtorch.int64).random_().item())
            self._rng.seed(self._seed)
            self._seed = None


class MapDataPipe(_Registry, Dataset[Any]):
    """Values by key."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class DFIterDataPipe(IterDataPipe):
    """A pipe of data frames."""


class DataChunk(list[Any]):
    """A batch of values, which may be batches."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The values in brackets."""
        return f"{indent}[{', '.join(str(value) for value in self)}]"

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()

    def raw_iterator(self) -> Iterator[Any]:
        """The values as they were given."""
        yield from self.items


class functional_datapipe:  # noqa: N801 - torch's name
    """A decorator: pipes get a method that makes the class. Exception for a taken name."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls: PipeT) -> PipeT:
        for kind in (IterDataPipe, MapDataPipe):
            if issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls)
        return cls


def length_of(pipe: Any, *sources: Any) -> list[int]:
    """The lengths of what a pipe reads; TypeError where one has none."""
    if any(not hasattr(type(source), "__len__") for source in sources):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return [len(source) for source in sources]
