"""Owns the names and the streams of files that pipes give."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from io import IOBase
from typing import Any, NoReturn

__all__ = [
    "StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root",
    "match_masks", "validate_input_col", "validate_pathname_binary_tuple",
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
        StreamWrapper.__init__(self, obj)


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


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """ValueError for a function that does not take as many values as there are columns."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # of C, which tells nothing
        return
    count = len(input_col) if isinstance(input_col, list | tuple) else 1
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needs = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    plain: Any = fn.func if isinstance(fn, functools.partial) else fn
    name = getattr(plain, "__name__", repr(plain))
    if needs:
        raise ValueError(
            f"The function {name} takes {len(needs)} non-default keyword-only parameters, which is"
            " not allowed."
        )
    more = any(p.default is p.empty for p in places[count:])
    if more or (len(places) < count and all(p.kind is not p.VAR_POSITIONAL for p in parameters)):
        few = len(parameters) < count
        raise ValueError(
            f"The function {name} takes {len(parameters if few else places)}"
            f" {'' if few else 'positional '}parameters, but {count} are required."
        )


def validate_pathname_binary_tuple(data: tuple[str, Any]) -> None:
    """TypeError unless it is a path and a stream."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    path, stream = data
    if not isinstance(path, str):
        raise TypeError(
            "pathname within the tuple should have string type pathname, but it is type"
            f" {type(path)}"
        )
    if not isinstance(stream, IOBase | StreamWrapper):
        raise TypeError(
            "binary stream within the tuple should have IOBase orits subclasses as type, but it is"
            f" type {type(stream)}"
        )
