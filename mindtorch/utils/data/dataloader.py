"""Owns DataLoader: samples to batches, in this process or in workers."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.context import BaseContext
from typing import Any

import mindtorch

from ..._random.generator import Generator
from ._collate import default_collate, default_convert
from ._fetch import Fetcher
from ._utils.pin_memory import pin_memory
from ._worker import Workers, get_worker_info
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]


class _DatasetKind:
    """Whether a dataset is asked by index or goes on by itself, and what fetches from it."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> Fetcher:
        """What gets batches out of a dataset of that kind."""
        iterable = kind == _DatasetKind.Iterable
        return Fetcher(dataset, auto_collation, collate_fn, drop_last, iterable)


class _InfiniteConstantSampler:
    """None for ever: an iterable dataset needs no indices."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader:
    """Iterates over a dataset in batches; a new iterator is one epoch."""

    prefetch_factor: int | None

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        _warn_of_many(num_workers)
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.persistent_workers = persistent_workers
        self.generator = generator
        iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        self._IterableDataset_len_called: int | None = None
        if iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                    "and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            sampler = self._default_sampler(bool(shuffle))
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        default = default_collate if self._auto_collation else default_convert
        self.collate_fn = default if collate_fn is None else collate_fn
        self._workers: Workers | None = None

    def __setattr__(self, name: str, value: object) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset",
                 "persistent_workers")  # fmt: skip
        if name in fixed and "_workers" in self.__dict__:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def _default_sampler(self, shuffle: bool) -> Sampler[Any] | _InfiniteConstantSampler:
        if self._dataset_kind == _DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    @property
    def multiprocessing_context(self) -> Any:
        """How workers start: a context or its name; ValueError and TypeError for anything else."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, multiprocessing_context: Any) -> None:
        if multiprocessing_context is not None and not self.num_workers:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers"
                f" > 0), but got num_workers={self.num_workers}"
            )
        starts = multiprocessing.get_all_start_methods()
        if isinstance(multiprocessing_context, str) and multiprocessing_context not in starts:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in"
                f" {starts!r}, but got multiprocessing_context={multiprocessing_context!r}"
            )
        if not isinstance(multiprocessing_context, str | BaseContext | None):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string"
                " specifying the start method, but got"
                f" multiprocessing_context={multiprocessing_context}"
            )
        self.__multiprocessing_context = multiprocessing_context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if self._workers is not None:  # persistent ones go on with their random numbers
            return _MultiProcessingDataLoaderIter(self, self._workers)
        # The epoch's seed is drawn before the first index, as torch draws it.
        base_seed = mindtorch.empty((), dtype=mindtorch.int64).random_(generator=self.generator)
        seed = int(base_seed.item())
        if self.num_workers:
            return _MultiProcessingDataLoaderIter(self, Workers(self, seed))
        return _SingleProcessDataLoaderIter(self)

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Iterable:
            length = self._IterableDataset_len_called = len(self.dataset)
            if self.batch_size is None:
                return length
            extra = 0 if self.drop_last else self.batch_size - 1
            return (length + extra) // self.batch_size
        return len(self._index_sampler)


class _BaseDataLoaderIter:
    """An epoch of a loader: what `iter(loader)` gives."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader, self._index_sampler = loader, loader._index_sampler
        self._reported = loader._IterableDataset_len_called
        self._num_yielded = 0
        _check_pinned(loader)
        self._pins = bool(loader.pin_memory) and mindtorch.accelerator.is_available()

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __iter__(self) -> Iterator[Any]:
        return self

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        batch = self._next_data()
        self._num_yielded += 1
        if self._reported is not None and self._num_yielded > self._reported:
            many = (
                "For multiprocessing data-loading, this could be caused by not properly configuring"
                " the IterableDataset replica at each worker. Please see https://pytorch.org/docs/"
                "stable/data.html#torch.utils.data.IterableDataset for examples."
            )
            warnings.warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be "
                f"{self._reported}(when accessing len(dataloader)), but {self._num_yielded} samples"
                f" have been fetched. {many if self._loader.num_workers else ''}",
                stacklevel=2,
            )
        return pin_memory(batch) if self._pins else batch


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """One epoch in this process."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._indices = iter(loader._index_sampler)
        self._fetcher = _DatasetKind.create_fetcher(
            loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn,
            loader.drop_last,
        )  # fmt: skip

    def _next_data(self) -> Any:
        return self._fetcher.fetch(next(self._indices))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """One epoch in worker processes; they stop with it unless they are persistent."""

    def __init__(self, loader: DataLoader, workers: Workers) -> None:
        super().__init__(loader)
        self._workers = workers
        if loader._workers is not None:
            workers.reset()
        if loader.persistent_workers:
            loader._workers = workers
        self._batches = self._workers.batches(iter(loader._index_sampler))
        self._open = True

    def _next_data(self) -> Any:
        try:
            return next(self._batches)
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        if self._open and not self._loader.persistent_workers:
            self._workers.close()
        self._open = False

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            self._close()


def _check_pinned(loader: DataLoader) -> None:
    """Warns where pinned memory is asked for in a way that has no effect."""
    if loader.pin_memory and loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,"
            f"ignore pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=4,
        )
    if loader.pin_memory and not mindtorch.accelerator.is_available():
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, "
            "then device pinned memory won't be used.",
            stacklevel=4,
        )


def _warn_of_many(workers: int) -> None:
    """More processes than this one may have processors."""
    processors = len(os.sched_getaffinity(0))
    if workers > processors:
        warnings.warn(
            f"This DataLoader will create {workers} worker processes in total. Our suggested max"
            f" number of worker in current system is {processors}, which is smaller than what this"
            " DataLoader is going to create. Please be aware that excessive worker creation might"
            " get DataLoader running slow or even freeze, lower the worker number to avoid"
            " potential slowness/freeze if necessary.",
            stacklevel=3,
        )


def _check_workers(count: int, timeout: float, prefetch: int | None, persistent: bool) -> None:
    if count < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if count == 0 and prefetch is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch is not None and prefetch < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and count == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    if shuffle not in (False, None):
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified shuffle option, but got "
            f"shuffle={shuffle}"
        )
    for name, choice in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if choice is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={choice}"
            )
