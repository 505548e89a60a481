"""torch.utils.data.datapipes.iter: steps of pipes whose values come one after the other."""

from __future__ import annotations

import copy
import warnings
from builtins import callable as is_callable  # torch has a module of that name in this package
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from ....._compat.refusals import refusals
from ...dataloader import default_collate
from ...sampler import Sampler as _Sampler, SequentialSampler
from ..datapipe import DataChunk, IterDataPipe, Shuffled, functional_datapipe, length_of
from ..utils.common import validate_input_col
from ._functions import check_picklable
from .files import (
    FileListerIterDataPipe,
    FileOpenerIterDataPipe,
    GrouperIterDataPipe,
    StreamReaderIterDataPipe,
)

__all__ = [
    "Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter",
    "Forker", "Grouper", "IterableWrapper", "Mapper", "Multiplexer", "Sampler", "ShardingFilter",
    "Shuffler", "StreamReader", "UnBatcher", "Zipper",
]  # fmt: skip
__getattr__ = refusals(
    "torch.utils.data.datapipes.iter",
    "mindtorch decodes no files by their names",
    ("RoutedDecoder",),
)


class IterableWrapperIterDataPipe(IterDataPipe):
    """The values of an iterable, of which each reader has a copy."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(self.iterable)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place"
                    " modification would affect source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        if isinstance(self.iterable, Sized):
            return len(self.iterable)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """`fn` of each value, or of some of its columns, put where `output_col` says."""

    def __init__(
        self, datapipe: IterDataPipe, fn: Callable[..., Any], input_col: Any = None,
        output_col: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        check_picklable(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, list | tuple):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        validate_input_col(fn, input_col)
        self.datapipe, self.fn = datapipe, fn
        self.input_col, self.output_col = input_col, output_col

    def _apply_fn(self, data: Any) -> Any:
        columns, target = self.input_col, self.output_col
        if columns is None:
            return self.fn(data)
        several = isinstance(columns, list | tuple)
        result = self.fn(*(data[c] for c in columns)) if several else self.fn(data[columns])
        if target is None and several:
            target = columns[0]
            rest = [c for c in columns[1:] if c != target]
        else:
            target, rest = (columns if target is None else target), []
        values = list(data) if isinstance(data, tuple) else copy.copy(data)
        if target == -1 and not isinstance(values, dict):
            values.append(result)
        else:
            values[target] = result
        for column in sorted(rest, reverse=True, key=str) if rest else ():
            del values[column]
        return tuple(values) if isinstance(data, tuple) else values

    def __iter__(self) -> Iterator[Any]:
        for value in self.datapipe:
            yield self._apply_fn(value)

    def __len__(self) -> int:
        return length_of(self, self.datapipe)[0]


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Each batch as a DataLoader would put it together."""

    def __init__(
        self, datapipe: IterDataPipe, conversion: Callable[..., Any] | None = default_collate,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        function = collate_fn if collate_fn is not None else conversion
        if not is_callable(function):
            raise NotImplementedError("collate: conversion: mindtorch has no data frames")
        super().__init__(datapipe, fn=function)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The values of which `filter_fn`, of all or of some columns, is true."""

    def __init__(
        self, datapipe: IterDataPipe, filter_fn: Callable[..., Any], input_col: Any = None
    ) -> None:
        super().__init__()
        check_picklable(filter_fn)
        validate_input_col(filter_fn, input_col)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def _apply_filter_fn(self, data: Any) -> Any:
        if self.input_col is None:
            return self.filter_fn(data)
        if isinstance(self.input_col, list | tuple):
            return self.filter_fn(*(data[column] for column in self.input_col))
        return self.filter_fn(data[self.input_col])

    def __iter__(self) -> Iterator[Any]:
        for value in self.datapipe:
            answer = self._apply_filter_fn(value)
            if not isinstance(answer, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got",
                    type(answer),
                )
            if answer:
                yield value


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Batches of `batch_size` values."""

    def __init__(
        self, datapipe: IterDataPipe, batch_size: int, drop_last: bool = False,
        wrapper_class: type[DataChunk] = DataChunk,
    ) -> None:  # fmt: skip
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[DataChunk]:
        batch: list[Any] = []
        for value in self.datapipe:
            batch.append(value)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        (count,) = length_of(self, self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The values of batches, of batches of batches by `unbatch_level`; -1 is all of them."""

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for value in self.datapipe:
            yield from self._dive(value, self.unbatch_level)

    def _dive(self, value: Any, level: int) -> Iterator[Any]:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or (level == -1 and not isinstance(value, list | DataChunk)):
            yield value
        elif not isinstance(value, list | DataChunk):
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )
        else:
            for each in value:
                yield from self._dive(each, level if level == -1 else level - 1)


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """The values of several pipes, one pipe after the other."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length_of(self, *self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of one value of each pipe, until one ends."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length_of(self, *self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """One value of each pipe in turn, until one ends."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for values in zip(*self.datapipes, strict=False):
            yield from values

    def __len__(self) -> int:
        return min(length_of(self, *self.datapipes)) * len(self.datapipes)


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler gives of a pipe with a length."""

    def __init__(
        self, datapipe: IterDataPipe, sampler: type[_Sampler[Any]] = SequentialSampler,
        sampler_args: tuple[Any, ...] | None = None, sampler_kwargs: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__()
        self.datapipe = datapipe
        kind: Any = sampler
        options = {"data_source": datapipe, **(sampler_kwargs or {})}
        self.sampler = kind(*(sampler_args or ()), **options)

    def __iter__(self) -> Iterator[Any]:
        yield from self.sampler

    def __len__(self) -> int:
        return length_of(self, self.sampler)[0]


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffled):
    """The values in another order, drawn from a buffer."""

    def __init__(
        self, datapipe: IterDataPipe, *, buffer_size: int = 10000, unbatch_level: int = 0
    ) -> None:
        super().__init__()
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe: Any = datapipe
        if unbatch_level:
            self.datapipe = UnBatcherIterDataPipe(datapipe, unbatch_level)
        self.buffer_size = buffer_size

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer: list[Any] = []
        for value in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(value)
                continue
            at = self._rng.randint(0, len(buffer) - 1)
            picked, buffer[at] = buffer[at], value
            yield picked
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return length_of(self, self.datapipe)[0]


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th value, of which `apply_sharding` says n."""

    def __init__(self, source_datapipe: IterDataPipe, sharding_group_filter: Any = None) -> None:
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: Any = None
    ) -> None:
        """Keep the values whose number leaves `instance_id`; ValueError for none of that many."""
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than"
                f" num_of_instances({num_of_instances})"
            )
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator[Any]:
        for at, value in enumerate(self.source_datapipe):
            if at % self.num_of_instances == self.instance_id:
                yield value

    def __len__(self) -> int:
        (count,) = length_of(self, self.source_datapipe)
        more = self.instance_id < count % self.num_of_instances
        return count // self.num_of_instances + more


class _Child(IterDataPipe):
    """One of the pipes that `fork` and `demux` give: reads what the others have not yet taken."""

    def __init__(self, shared: _Source, at: int) -> None:
        self.shared, self.at = shared, at

    def __iter__(self) -> Iterator[Any]:
        return self.shared.values(self.at)

    def reset(self) -> None:
        self.shared.begin(self.at)

    def __len__(self) -> int:
        if self.shared.classify is not None:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return length_of(self, self.shared.source)[0]


class _Source:
    """A pipe that several read: what one is ahead of the others is kept for them."""

    def __init__(
        self, source: IterDataPipe, count: int, size: int, classify: Callable[[Any], Any] | None,
        name: str, drop_none: bool = False,
    ) -> None:  # fmt: skip
        if count < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {count} is found")
        self.source, self.size, self.classify, self.name = source, size, classify, name
        self.drop_none, self.waiting = drop_none, [deque[Any]() for _ in range(count)]
        self.begun = [False] * count
        self.values_of: Iterator[Any] | None = None

    def begin(self, at: int) -> None:
        """A new reader of one child: of all, where that child was read before."""
        if self.begun[at] or self.values_of is None:
            self.values_of = iter(self.source)
            for queue in self.waiting:
                queue.clear()
            self.begun = [False] * len(self.waiting)
        self.begun[at] = True

    def values(self, at: int) -> Iterator[Any]:
        """The values of one child."""
        queue, source = self.waiting[at], self.values_of
        while source is not None:
            if queue:
                yield queue.popleft()
                continue
            try:
                value = next(source)
            except StopIteration:
                return
            for to in self._takers(value):
                self.waiting[to].append(value)
                if 0 <= self.size < sum(map(len, self.waiting)) and to != at:
                    space = "" if self.classify is None else " "
                    raise BufferError(
                        f"{self.name} buffer overflow,{space}buffer size {self.size} is"
                        " insufficient."
                    )

    def _takers(self, value: Any) -> Iterable[int]:
        if self.classify is None:
            return range(len(self.waiting))
        to = self.classify(value)
        if to is None and self.drop_none:
            return ()
        if to is None or not 0 <= to < len(self.waiting):
            raise ValueError(
                "Output of the classification fn should be between 0 and"
                f" {len(self.waiting) - 1}. {to} is returned."
            )
        return (int(to),)


def Forker(  # noqa: N802 - torch's name
    datapipe: IterDataPipe, num_instances: int, buffer_size: int = 1000, copy: str | None = None
) -> list[IterDataPipe]:
    """Pipes that each give all values; `buffer_size` is how many one may be ahead, -1 any."""
    if copy not in (None, "shallow", "deep"):
        raise ValueError(
            f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
        )
    shared = _Source(datapipe, num_instances, buffer_size, None, "ForkerIterDataPipe")
    pipes: list[IterDataPipe] = [_Child(shared, at) for at in range(num_instances)]
    how = {None: None, "shallow": _copies.copy, "deep": _copies.deepcopy}[copy]
    return pipes if how is None else [MapperIterDataPipe(pipe, how) for pipe in pipes]


def Demultiplexer(  # noqa: N802 - torch's name
    datapipe: IterDataPipe, num_instances: int, classifier_fn: Callable[[Any], int | None],
    drop_none: bool = False, buffer_size: int = 1000,
) -> list[IterDataPipe]:  # fmt: skip
    """Pipes of the values of which `classifier_fn` gives their number."""
    check_picklable(classifier_fn)
    shared = _Source(
        datapipe, num_instances, buffer_size, classifier_fn, "DemultiplexerIterDataPipe", drop_none
    )
    return [_Child(shared, at) for at in range(num_instances)]


_copies = copy
IterDataPipe.register_function("fork", Forker)
IterDataPipe.register_function("demux", Demultiplexer)
IterableWrapper, Mapper, Collator = (
    IterableWrapperIterDataPipe, MapperIterDataPipe, CollatorIterDataPipe,
)  # fmt: skip
FileLister, FileOpener, StreamReader, Grouper = (
    FileListerIterDataPipe, FileOpenerIterDataPipe, StreamReaderIterDataPipe, GrouperIterDataPipe,
)  # fmt: skip
Filter, Batcher, UnBatcher = FilterIterDataPipe, BatcherIterDataPipe, UnBatcherIterDataPipe
Concater, Zipper, Multiplexer = ConcaterIterDataPipe, ZipperIterDataPipe, MultiplexerIterDataPipe
Sampler, Shuffler, ShardingFilter = (
    SamplerIterDataPipe, ShufflerIterDataPipe, ShardingFilterIterDataPipe,
)  # fmt: skip
