"""torch.utils.data.datapipes.map: steps of pipes whose values are asked for by key."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..datapipe import DataChunk, MapDataPipe, Shuffled, functional_datapipe
from ..iter._functions import check_picklable

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


def default_fn(data: Any) -> Any:
    """The value itself."""
    return data


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The values of a sequence or mapping, of which it has a copy."""

    def __init__(self, sequence: Sequence[Any] | Mapping[Any, Any], deepcopy: bool = True) -> None:
        self.sequence: Any = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place"
                    " modification would affect source data",
                    stacklevel=2,
                )

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """`fn` of each value."""

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any] = default_fn) -> None:
        super().__init__()
        check_picklable(fn)
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Batches of `batch_size` values."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False,
        wrapper_class: type[DataChunk] = DataChunk,
    ) -> None:  # fmt: skip
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> DataChunk:
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.datapipe))
        if first >= last or (self.drop_last and last - first < self.batch_size):
            raise IndexError(f"Index {index} is out of bound.")
        return self.wrapper_class([self.datapipe[at] for at in range(first, last)])

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _with_keys(datapipes: tuple[Any, ...]) -> tuple[Any, ...]:
    """At least one pipe, all with keys; ValueError or TypeError else."""
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    return datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """The values of several pipes, numbered one pipe after the other."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes: Any = _with_keys(datapipes)

    def __getitem__(self, index: int) -> Any:
        at = index
        for pipe in self.datapipes:
            if at < len(pipe):
                return pipe[at]
            at -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of the values that pipes have by one key."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes: Any = _with_keys(datapipes)

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        values = []
        for pipe in self.datapipes:
            try:
                values.append(pipe[index])
            except IndexError as error:
                raise IndexError(
                    f"Index {index} is out of range for one of the input MapDataPipes {pipe}."
                ) from error
        return tuple(values)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


class ShufflerIterDataPipe(Shuffled):
    """The values of a pipe with keys in another order, one after the other."""

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices

    def __iter__(self) -> Iterator[Any]:
        order = list(self.indices)
        if self._enabled:
            order = self._rng.sample(order, len(order))[::-1]
        for at in order:
            yield self.datapipe[at]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
SequenceWrapper, Mapper, Batcher = (
    SequenceWrapperMapDataPipe, MapperMapDataPipe, BatcherMapDataPipe,
)  # fmt: skip
Concater, Zipper, Shuffler = ConcaterMapDataPipe, ZipperMapDataPipe, ShufflerIterDataPipe
