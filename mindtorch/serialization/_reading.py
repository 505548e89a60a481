"""Owns reading a file: its pickle, checked as it is unpickled, and the storages it names."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import sys
import warnings
import zipfile
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from types import ModuleType
from typing import Any, BinaryIO

from .._tensor import dtype as dt
from . import _pickles
from ._archive import Archive
from ._globals import DimRange, known
from ._guarded import Guarded
from ._legacy import ZIP_MAGIC, Noting, damaged_zip, read_legacy
from ._locations import Place
from ._options import safe_names
from ._pickles import Reader
from ._storages import Storages

_BLOCKED = ("sys", "os", "posix", "nt")  # nobody can allow what is in these modules
_FAILED = "Weights only load failed. "
_UNSAFE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load`"
    " from `False` to `True`. Re-running `torch.load` with `weights_only` set to `False` will"
    " likely succeed, but it can result in arbitrary code execution. Do it only if you got the file"
    " from a trusted source."
)
_DOCS = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with"
    " weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
)


def _unsupported(module: str, name: str) -> pickle.UnpicklingError:
    """What torch raises for a file that names what it may not."""
    module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
    if module in _BLOCKED:
        return pickle.UnpicklingError(
            f"{_FAILED}{_UNSAFE}\n\n\nTrying to load unsupported GLOBAL {module}.{name} whose"
            f" module {module} is blocked.{_DOCS}"
        )
    path = name if module in ("builtins", "__builtin__") else f"{module}.{name}"
    return pickle.UnpicklingError(
        f"{_FAILED}This file can still be loaded, to do so you have two options, \033[1mdo those"
        f" steps only if you trust the source of the checkpoint\033[0m. \n\t(1) {_UNSAFE}\n\t(2)"
        " Alternatively, to load with `weights_only=True` please check the recommended steps in the"
        f" following error message.\n\tWeightsUnpickler error: Unsupported global: GLOBAL {path}"
        f" was not an allowed global by default. Please use `torch.serialization.add_safe_globals("
        f"[{path}])` or the `torch.serialization.safe_globals([{path}])` context manager to"
        f" allowlist this global if you trust this class/function.{_DOCS}"
    )


def _refusal(why: str) -> pickle.UnpicklingError:
    """What torch raises for a file that does more than tensors need."""
    return pickle.UnpicklingError(
        f"{_FAILED}{_UNSAFE}\nPlease file an issue with the following so that we can make"
        " `weights_only=True` compatible with your use case: WeightsUnpickler error: \n\n"
        f"{why}{_DOCS}"
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
        trusted = (
            isinstance(target, OrderedDict | Counter | DimRange)
            or type(target) in self.allowed.values()
        )
        if not trusted:
            raise _refusal(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via"
                f" `add_safe_globals`, but got {type(target)}"
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
            if str(error).startswith(_FAILED):
                raise
            what = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"load: data.pkl cannot be read ({what}); it is damaged") from error

    def named(self, module: str, name: str) -> Any:
        value = None if module in _BLOCKED else self.allowed.get((module, name))
        if value is None:
            value = known(module, name)
        if value is None:
            raise _unsupported(module, name)
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
        return imported(module, name, super().find_class)

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and pid and pid[0] == "module":
            return pid[1]  # a class with its source text, in files older than the zip format
        return self.storages.by(pid)


def imported(module: str, name: str, otherwise: Any) -> Any:
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
        if mmap and not _starts_as_zip(f):
            raise RuntimeError(
                "mmap can only be used with files saved with"
                f" `torch.save({f}, _use_new_zipfile_serialization=True), please torch.save your"
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


def _starts_as_zip(path: str | os.PathLike[str]) -> bool:
    with open(path, "rb") as file:
        return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC


def _read(
    file: BinaryIO, mapped: str | None, where: Place, module: ModuleType | None, strict: bool,
    options: dict[str, Any],
) -> Any:  # fmt: skip
    kind: Any = _Unpickler if strict else _of_module(module or _pickles)
    start = file.tell()
    _check_options(options, strict)
    zipped = file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
    size = file.seek(0, os.SEEK_END) - start if zipped else 0
    file.seek(start)
    if not zipped:
        if strict:
            _refuse_operands(file)
        try:
            return read_legacy(file, where, kind, options, _strictly if strict else _plainly)
        except EOFError:  # torch's own unpickler says no more
            raise EOFError(*() if strict else ("Ran out of input",)) from None
    with _unzipped(file, size) as opened:
        archive = Archive(opened, mapped)
        storages = _Zipped(archive, where)
        body = io.BytesIO(archive.pickle())
        head = body.read(2)
        body.seek(0)
        if strict and head[:1] == b"\x80" and head[1:] != b"\x02":
            _refuse_operands(body)
        return kind(body, storages, **options).everything()


def _check_options(options: dict[str, Any], strict: bool) -> None:
    """What torch's unpicklers say of options; TypeError for those that they lack."""
    unknown = options.keys() - ({"encoding"} if strict else {"encoding", "errors", "fix_imports"})
    if strict and options:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=5)
    for name in sorted(unknown):
        text = (f"Unpickler.__init__() got an unexpected keyword argument {name!r}" if strict else
                f"{name!r} is an invalid keyword argument for Unpickler()")  # fmt: skip
        raise TypeError(text)


_OPERANDS = frozenset((
    "GLOBAL", "NEWOBJ", "REDUCE", "BUILD", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "MARK",
    "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "NONE", "NEWFALSE", "NEWTRUE", "EMPTY_TUPLE",
    "EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "BININT", "BININT1", "BININT2", "BINFLOAT",
    "BINUNICODE", "SHORT_BINSTRING", "BINPERSID", "BINGET", "LONG_BINGET", "BINPUT",
    "LONG_BINPUT", "LONG1", "PROTO", "STOP",
))  # fmt: skip


def _refuse_operands(file: BinaryIO) -> None:
    """UnpicklingError for an operand that files which are not trusted may not have.

    KeyError, as torch's, for a value that was not kept before.
    """
    import pickletools  # which older files alone need

    start = file.tell()
    memo: set[object] = set()
    first = file.read(1)
    if isinstance(first, str):
        raise AssertionError("Expected bytes, got str") if first else EOFError
    file.seek(start)
    try:
        for operand, argument, _ in pickletools.genops(file):
            if operand.name not in _OPERANDS:
                raise _refusal(f"Unsupported operand {ord(operand.code)}")
            if operand.name == "PROTO" and argument != 2:
                warnings.warn(_OTHER_PROTOCOL.format(argument), stacklevel=4)
            if operand.name.endswith("BINPUT"):
                memo.add(argument)
            if operand.name.endswith("BINGET") and argument not in memo:
                raise KeyError(argument)
    except ValueError:
        pass  # no pickle: its reader says so
    finally:
        file.seek(start)


_OTHER_PROTOCOL = (
    "Detected pickle protocol {} in the checkpoint, which was not the default pickle protocol used"
    " by `torch.load` (2). The weights_only Unpickler might not support all instructions"
    " implemented by this protocol, please file an issue for adding support if you encounter this."
)


def _strictly(error: Exception, head: bytes) -> Exception:
    """What is raised for a file that is no pickle of tensors, where it is not trusted."""
    missing = error.__context__  # the KeyError of what a text asks the empty memo for
    if isinstance(error, pickle.UnpicklingError) and isinstance(missing, KeyError):
        return missing
    if head[:1] in (b"R", b"a", b"e", b"s", b"u"):  # these take what the stack has not
        return IndexError("pop from empty list")
    return _refusal(f"Unsupported operand {head[0]}")


def _plainly(error: Exception, head: bytes) -> Exception:
    """What is raised for a file that is no pickle, where it is trusted."""
    if isinstance(error, pickle.UnpicklingError):
        return error
    return pickle.UnpicklingError(f"invalid load key, {chr(head[0])!r}.")


def _unzipped(file: str | os.PathLike[str] | BinaryIO, size: int = sys.maxsize) -> zipfile.ZipFile:
    """The zip file of `size` bytes; torch's RuntimeError for one whose directory is damaged."""
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError) as error:
        raise damaged_zip(size) from error


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
