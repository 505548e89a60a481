"""Owns getting one batch out of a dataset; the same code runs
in the main process and in workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .dataset import IterableDataset


class Fetcher:
    """Makes a batch from indices, or from the next samples of an iterable dataset."""

    def __init__(
        self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool,
        iterable: bool | None = None,
    ) -> None:  # fmt: skip
        if iterable is None:
            iterable = isinstance(dataset, IterableDataset)
        self.dataset = dataset
        self.batched = batched
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.iterator = iter(dataset) if iterable else None
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """Gives a batch; StopIteration when an iterable dataset is at its end."""
        if self.iterator is not None:
            return self._next(index)
        if not self.batched:
            return self.collate_fn(self.dataset[index])
        many = getattr(self.dataset, "__getitems__", None)
        samples = many(index) if many else [self.dataset[i] for i in index]
        return self.collate_fn(samples)

    def _next(self, index: Any) -> Any:
        assert self.iterator is not None
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate_fn(next(self.iterator))
        samples = []
        for _ in index:
            try:
                samples.append(next(self.iterator))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(index)):
            raise StopIteration
        return self.collate_fn(samples)
