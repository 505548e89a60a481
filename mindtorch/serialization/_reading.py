"""Owns reading a file: its pickle, checked as it is unpickled, and the storages it names."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import zipfile
from collections import Counter, OrderedDict
from types import ModuleType
from typing import Any, BinaryIO

from .._tensor import dtype as dt
from . import _pickles
from ._archive import Archive
from ._globals import known
from ._guarded import Guarded, represent
from ._legacy import Noting, read_legacy
from ._locations import Place
from ._options import safe_names
from ._pickles import Reader
from ._storages import Storages

_REFUSED = (
    "Weights only load failed. This file can still be loaded, to do so you have two options,"
    " \033[1mdo those steps only if you trust the source of the checkpoint\033[0m. \n"
)


def _refusal(why: str, allowed: str) -> pickle.UnpicklingError:
    """What torch raises for a file that has more than tensors need; its first line is torch's."""
    return pickle.UnpicklingError(
        f"{_REFUSED}\t(1) weights_only=False in `torch.load` lets the file run any code.\n\t(2)"
        f" {allowed}\n\tWeightsUnpickler error: {why}"
    )


class _Zipped(Storages):
    def __init__(self, archive: Archive, where: Place):
        super().__init__(where)
        self.archive = archive

    def read(self, key: str, dtype: dt.dtype | None, count: int) -> Any:
        return self.archive.storage(key, dtype, count)


class _Unpickler(Guarded):
    """Reads the pickle of a file that is not trusted: only what tensors need is made."""

    dispatch = dict(Guarded.dispatch)

    def __init__(self, file: BinaryIO, storages: Storages, **options: Any):
        super().__init__(file, **options)
        self.storages = storages
        self.allowed = safe_names()

    def load_build(self) -> None:
        """Set the state of an object: only of what the file itself makes.

        Everything else that a strict file can name is shared: dtypes, devices, functions.
        """
        target = self.stack[-2]
        trusted = isinstance(target, OrderedDict | Counter) or type(target) in self.allowed.values()
        if not trusted:
            raise _refusal(
                f"the file sets the state of {represent(target)}, which is no part of it",
                "Write the file anew without it.",
            )
        super().load_build()

    dispatch[pickle.BUILD[0]] = load_build

    def writable(self, target: Any, kinds: tuple[type, ...]) -> bool:
        return super().writable(target, kinds) or type(target) in self.allowed.values()

    def everything(self) -> Any:
        """The object of the file; RuntimeError for a damaged one."""
        try:
            return self.load()
        except (RuntimeError, OSError):  # a handler's TimeoutError too
            raise
        except Exception as error:
            if str(error).startswith(_REFUSED):
                raise
            what = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"load: data.pkl cannot be read ({what}); it is damaged") from error

    def named(self, module: str, name: str) -> Any:
        value = self.allowed.get((module, name))
        if value is None:
            value = known(module, name)
        if value is None:
            raise _refusal(
                f"Unsupported global: GLOBAL {module}.{name} was not an allowed global by default.",
                f"`torch.serialization.add_safe_globals([{module}.{name}])` allows this one.",
            )
        return value

    def persistent_load(self, pid: Any) -> Any:
        return self.storages.by(pid)


class _Trusting(Reader):
    """What reading the pickle of a trusted file means: what it names is imported and called."""

    def __init__(self, file: BinaryIO, storages: Storages, **options: Any):
        super().__init__(file, **options)
        self.storages = storages

    def everything(self) -> Any:
        return self.load()

    def find_class(self, module: str, name: str) -> Any:
        return _imported(module, name, super().find_class)

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and pid and pid[0] == "module":
            return pid[1]  # a class with its source text, in files older than the zip format
        return self.storages.by(pid)


def _imported(module: str, name: str, otherwise: Any) -> Any:
    """What a trusted file names; torch's own names are ours."""
    value = known(module, name)
    if value is not None and module not in ("builtins", "__builtin__", "_codecs"):
        return value
    if module == "torch" or module.startswith("torch."):
        try:
            place: Any = importlib.import_module("mindtorch" + module.removeprefix("torch"))
            for part in name.split("."):
                place = getattr(place, part)
            return place
        except (ImportError, AttributeError):
            pass
    return otherwise(module, name)


def read(
    f: str | os.PathLike[str] | BinaryIO,
    where: Place,
    module: ModuleType | None,
    strict: bool,
    mmap: bool | None,
    options: dict[str, Any],
) -> Any:
    """Read a file of either format."""
    if isinstance(f, str | os.PathLike):
        if os.path.exists(f) and not (os.path.isfile(f) or os.path.isdir(f)):
            raise RuntimeError(f"load: {os.fspath(f)!r} is a device or a pipe, no file of tensors")
        if mmap and not zipfile.is_zipfile(f):
            raise RuntimeError(
                "mmap can only be used with files saved with"
                " `torch.save(_use_new_zipfile_serialization=True), please torch.save your"
                " checkpoint with this option in order to use mmap."
            )
        with open(f, "rb") as file:
            return _read(file, os.fspath(f) if mmap else None, where, module, strict, options)
    if not (hasattr(f, "read") and hasattr(f, "seek")):
        raise AttributeError(
            f"{type(f).__name__!r} object has no attribute 'seek'. You can only torch.load from a"
            " file that is seekable. Please pre-load the data into a buffer like io.BytesIO and"
            " try to load from it instead."
        )
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    return _read(f, None, where, module, strict, options)


def _read(
    file: BinaryIO, mapped: str | None, where: Place, module: ModuleType | None, strict: bool,
    options: dict[str, Any],
) -> Any:  # fmt: skip
    kind: Any = _Unpickler if strict else _of_module(module or _pickles)
    start = file.tell()
    if not zipfile.is_zipfile(file):
        file.seek(start)
        try:
            return read_legacy(file, where, kind, options)
        except EOFError:  # torch's own unpickler says no more
            raise EOFError(*() if strict else ("Ran out of input",)) from None
    with _unzipped(file) as opened:
        archive = Archive(opened, mapped)
        storages = _Zipped(archive, where)
        return kind(io.BytesIO(archive.pickle()), storages, **options).everything()


def _unzipped(file: str | os.PathLike[str] | BinaryIO) -> zipfile.ZipFile:
    """The zip file; RuntimeError, as torch's, for one whose directory is damaged."""
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError) as error:
        raise RuntimeError(f"load: failed reading the zip archive: {error}") from error


def _of_module(module: ModuleType) -> Any:
    """An unpickler of another pickle module, for trusted files."""
    return type("Unpickler", (_Trusting, module.Unpickler), {})


def unsafe_globals(f: str | os.PathLike[str] | BinaryIO) -> list[str]:
    """The names in a file that strict loading refuses."""
    with _unzipped(f) as opened:
        body = Archive(opened, None).pickle()
    reader = Noting(io.BytesIO(body))
    try:
        reader.load()
    except RuntimeError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise RuntimeError(f"load: data.pkl cannot be read ({what}); it is damaged") from error
    allowed = safe_names()
    refused = {n for n in reader.names if n not in allowed and known(*n) is None}
    return sorted(".".join(name) for name in refused)
