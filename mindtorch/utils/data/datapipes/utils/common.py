"""Owns the names and the streams of files that pipes give."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from typing import Any, NoReturn

__all__ = [
    "StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root",
    "match_masks",
]  # fmt: skip


class StreamWrapper:
    """A stream that is closed when nobody has it any more; it has the stream's methods.

    RuntimeError for a `parent_stream` of another class; one that was told to `autoclose` is closed
    with the last stream out of it.
    """

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.closed = False
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name
        self.child_counter, self.close_on_last_child = 0, False
        if parent_stream is None:
            return
        if not isinstance(parent_stream, StreamWrapper):
            raise RuntimeError(
                f"Parent stream should be StreamWrapper, {type(parent_stream)} was given"
            )
        parent_stream.child_counter += 1

    @classmethod
    def close_streams(cls, v: object, depth: int = 0) -> None:
        """Close the streams in dicts, lists and tuples, ten of them one in another."""
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict | list | tuple) and depth < 10:
            for value in v.values() if isinstance(v, dict) else v:
                cls.close_streams(value, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["file_obj"], name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the stream, once."""
        if self.closed:
            return
        parent = self.parent_stream
        if isinstance(parent, StreamWrapper):
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        with contextlib.suppress(AttributeError):
            self.file_obj.close(*args, **kwargs)
        self.closed = True

    def autoclose(self) -> None:
        """Close with the last of the streams out of this one: at once where there are none."""
        self.close_on_last_child = True
        if not self.child_counter:
            self.close()

    def __dir__(self) -> list[str]:
        return list({*vars(self), *vars(StreamWrapper), *dir(self.file_obj)})

    def __del__(self) -> None:
        if not vars(self).get("closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        label = "" if self.name is None else f"{self.name},"
        return f"StreamWrapper<{label}{self.file_obj!r}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        self.__init__(obj)  # type: ignore[misc]


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name is one of the patterns; any is where there are none."""
    patterns = [masks] if isinstance(masks, str) else masks
    return not masks or any(fnmatch(name, pattern) for pattern in patterns)


def get_file_pathnames_from_root(
    root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterator[str]:  # fmt: skip
    """Paths of the files of a folder, sorted by names; of a file, its own."""

    def refuse(error: OSError) -> NoReturn:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    for folder, folders, files in os.walk(root, onerror=refuse):
        place = os.path.abspath(folder) if abspath else folder
        for file in files if non_deterministic else sorted(files):
            if match_masks(file, masks):
                yield os.path.join(place, file)
        if not recursive:
            return
        if not non_deterministic:
            folders.sort()  # which `os.walk` follows


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str], mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """(path, open stream) of each; TypeError for a path that is no text."""
    mode = f"r{mode}" if mode in ("b", "t") else mode
    for pathname in pathnames if isinstance(pathnames, Iterable) else [pathnames]:
        if not isinstance(pathname, str):
            raise TypeError(f"Expected string type for pathname, but got {type(pathname)}")
        yield pathname, StreamWrapper(open(pathname, mode, encoding=encoding))  # noqa: SIM115
