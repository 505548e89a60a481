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
    named = inspect.isgeneratorfunction(function)

    @functools.wraps(function)
    def read(self: IterDataPipe) -> Iterator[Any]:
        self._reader += 1
        self.reset()
        values = _checked(self, function(self), self._reader)
        return _naming(self, values) if named else values

    return read


def _checked(pipe: IterDataPipe, values: Iterator[Any], reader: int) -> Iterator[Any]:
    for value in values:
        yield value
        if pipe._reader != reader:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from"
                f" the same IterDataPipe: {_described(pipe)}\n"
                "This may be caused by multiple references to the same IterDataPipe. We recommend"
                f" using `.fork()` if that is necessary.{_SINGLE}, feel free to comment on"
                " this issue: https://github.com/pytorch/data/issues/45."
            )


_SINGLE = "\nFor feedback regarding this single iterator per IterDataPipe constraint"
_THROWN = "This exception is thrown by __iter__ of"


def _naming(pipe: IterDataPipe, values: Iterator[Any]) -> Iterator[Any]:
    """Errors name the pipe that raised them, in their first text."""
    try:
        yield from values
    except Exception as error:
        text, *more = error.args or ("",)
        if not isinstance(text, str):
            text, more = "", []
        if _THROWN not in text and _SINGLE not in text:
            error.args = (f"{text}\n{_THROWN} {_described(pipe)}", *more)
        raise


def _described(pipe: IterDataPipe) -> str:
    """A pipe as the call that made it, arguments by their names in order."""
    values = {
        name: getattr(pipe, name)
        for name in sorted(inspect.signature(type(pipe)).parameters) if hasattr(pipe, name)
    }  # fmt: skip
    parts = (f"{k}={v.__name__ if inspect.isfunction(v) else repr(v)}" for k, v in values.items())
    return f"{type(pipe).__name__}({', '.join(parts)})"


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
