"""Owns the pipes of files, and the one that puts values of one key together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..datapipe import DataChunk, IterDataPipe, functional_datapipe
from ..utils.common import (
    StreamWrapper,
    get_file_binaries_from_pathnames,
    get_file_pathnames_from_root,
)
from ._functions import check_picklable


class _Nominal(IterDataPipe):
    """A pipe of as many values as its maker says."""

    length = -1

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("list_files")
class FileListerIterDataPipe(_Nominal):
    """Paths of the files in one folder or several, whose names are one of `masks`."""

    def __init__(
        self, root: str | Sequence[str] | IterDataPipe = ".", masks: str | list[str] = "", *,
        recursive: bool = False, abspath: bool = False, non_deterministic: bool = False,
        length: int = -1,
    ) -> None:  # fmt: skip
        super().__init__()
        from . import IterableWrapperIterDataPipe

        roots = [root] if isinstance(root, str) else root
        self.datapipe: IterDataPipe = (
            roots if isinstance(roots, IterDataPipe) else IterableWrapperIterDataPipe(roots)
        )
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(
                path, self.masks, self.recursive, self.abspath, self.non_deterministic
            )


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(_Nominal):
    """(path, open stream) of each path; ValueError for a mode that does not read."""

    def __init__(
        self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None,
        length: int = -1,
    ) -> None:  # fmt: skip
        super().__init__()
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[tuple[str, StreamWrapper]]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """(label, what is read) of each labelled stream, `chunk` bytes at a time or all at once."""

    def __init__(self, datapipe: IterDataPipe, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for label, stream in self.datapipe:
            while data := stream.read(self.chunk):
                yield label, data
            stream.close()


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Batches of values of one key: of `group_size`, or what is there at the end.

    With `buffer_size` values at hand the largest batch goes, if it has `guaranteed_group_size`
    values: else it is dropped, or RuntimeError without `drop_remaining`. AssertionError for sizes
    that are not within each other.
    """

    def __init__(
        self, datapipe: IterDataPipe, group_key_fn: Callable[[Any], Any], *,
        keep_key: bool = False, buffer_size: int = 10000, group_size: int | None = None,
        guaranteed_group_size: int | None = None, drop_remaining: bool = False,
    ) -> None:  # fmt: skip
        check_picklable(group_key_fn)
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        least = guaranteed_group_size
        if least is not None and (group_size is None or not 0 < least <= group_size):
            raise AssertionError(
                "guaranteed_group_size must be > 0 and <= group_size and group_size must be set"
            )
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size = buffer_size, group_size
        self.guaranteed_group_size = group_size if least is None else least
        self.drop_remaining, self.wrapper_class = drop_remaining, DataChunk

    def _largest(self, waiting: dict[Any, list[Any]]) -> list[Any] | None:
        """Take the largest batch out; None where it is dropped."""
        values = waiting.pop(max(waiting, key=lambda key: len(waiting[key])))
        if self.guaranteed_group_size is None or len(values) >= self.guaranteed_group_size:
            return values
        if not self.drop_remaining:
            raise RuntimeError("Failed to group items", str(values))
        return None

    def __iter__(self) -> Iterator[Any]:
        waiting: dict[Any, list[Any]] = defaultdict(list)
        for value in self.datapipe:
            key = self.group_key_fn(value)
            waiting[key].append(value)
            if len(waiting[key]) == self.group_size:
                yield self._batch(key, waiting.pop(key))
            if sum(map(len, waiting.values())) == self.max_buffer_size:
                values = self._largest(waiting)
                if values is not None:
                    yield self._batch(key, values)
        for key, values in waiting.items():
            yield self._batch(key, values)

    def _batch(self, key: Any, values: list[Any]) -> Any:
        batch = self.wrapper_class(values)
        return (key, batch) if self.keep_key else batch
