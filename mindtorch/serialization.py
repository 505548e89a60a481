"""Owns `save` and `load`: tensors and state dicts through pickle; refuses other globals on load.

A file is a zip with one pickle (`data.pkl`) and one entry per storage (`data/<key>`), as torch's
are; storages have the byte order that `byteorder` says. Loading allows only the globals that
tensors need and changes no object that is not the file's own, unless `weights_only=False` says
that the file is trusted. Sizes that a file declares are checked before anything is made of them.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import tempfile
import zipfile
import zlib
from collections import OrderedDict
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np

from ._tensor import dtype as dt
from ._tensor.device import CPU, resolve
from ._tensor.device import device as Device
from ._tensor.geometry import Size, geometry
from ._tensor.storage import Storage
from ._tensor.tensor import Tensor, wrap
from .ops.spec import aten


class UnsafeGlobalError(pickle.UnpicklingError):
    """A file names a global that tensors do not need; the message names it and the remedy."""


def rebuild(
    storage: tuple[Storage, dt.dtype], offset: int, size: tuple[int, ...], stride: tuple[int, ...],
    requires_grad: bool = False, hooks: Any = None, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor over a loaded storage (torch._utils._rebuild_tensor_v2)."""
    memory, dtype = storage
    shape, strides = _numbers(size, "size"), _numbers(stride, "stride")
    if len(shape) != len(strides) or offset < 0:
        raise RuntimeError(f"load: size {shape}, stride {strides}, offset {offset} fit no tensor")
    places = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    need = (offset + places + 1) * dtype.itemsize if 0 not in shape else 0
    if need > memory.nbytes:
        raise RuntimeError(
            f"load: a tensor of size {list(shape)}, stride {list(strides)} and offset {offset}"
            f" needs {need} bytes of a storage of {memory.nbytes}; the file is damaged"
        )
    tensor = wrap(geometry(shape, strides, offset, dtype, CPU), memory)
    return tensor.requires_grad_() if requires_grad else tensor


def _numbers(values: Any, what: str) -> tuple[int, ...]:
    numbers = tuple(values)
    if any(n.__class__ is not int or n < 0 for n in numbers):
        raise RuntimeError(f"load: {what} {numbers} of a tensor: expected numbers from 0 on")
    return numbers


def rebuild_parameter(data: Tensor, requires_grad: bool, hooks: Any) -> Any:
    """A Parameter over a loaded tensor (torch._utils._rebuild_parameter)."""
    from .nn import Parameter

    return Parameter(data, requires_grad)


class _Global:
    """Pickles as `module.name` without importing it: files name torch's own functions."""

    def __init__(self, module: str, name: str):
        self.module = module
        self.name = name

    def __call__(self) -> None:
        raise TypeError("a _Global is only ever pickled")


_REBUILD = _Global("torch._utils", "_rebuild_tensor_v2")
_REBUILD_PARAMETER = _Global("torch._utils", "_rebuild_parameter")


# The Python pickler, not the C one: only it lets a global be written without being importable.
_PythonPickler: Any = vars(pickle)["_Pickler"]


class _Pickler(_PythonPickler):  # type: ignore[misc]
    def __init__(self, file: BinaryIO, blobs: dict[str, Any], protocol: int):
        super().__init__(file, protocol)
        self.blobs = blobs
        self.keys: dict[int, str] = {}
        self.globals: dict[str, _Global] = {}

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if obj.__class__ is dt.dtype:
            obj = self._named(obj._name)
        if obj.__class__ is _Global:
            self._write_global(obj)
        elif isinstance(obj, Tensor):
            self.save_reduce(*_reduce_tensor(obj), obj=obj)
        elif obj.__class__ is Size:
            self.save_reduce(self._named("Size"), (tuple(obj),), obj=obj)
        elif obj.__class__ is Device:
            args = (obj.type,) if obj.index is None else (obj.type, obj.index)
            self.save_reduce(self._named("device"), args, obj=obj)
        else:
            super().save(obj, save_persistent_id)

    def _named(self, name: str) -> _Global:
        return self.globals.setdefault(name, _Global("torch", name))

    def _write_global(self, obj: _Global) -> None:
        memoized = self.memo.get(id(obj))
        if memoized is not None:
            self.write(self.get(memoized[0]))
            return
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        if not isinstance(value, _Stored):
            return None
        key = self.keys.setdefault(id(value.storage), str(len(self.keys)))
        self.blobs.setdefault(key, value)
        count = value.storage.nbytes // value.dtype.itemsize
        kind = self._named(value.dtype.legacy + "Storage")
        return ("storage", kind, key, value.device, count)


class _Stored:
    def __init__(self, tensor: Tensor):
        self.storage = tensor._storage
        self.dtype = tensor.dtype
        self.device = str(tensor.device)
        self.host = tensor

    def bytes(self) -> bytes:
        if self.device == "cpu":
            return bytes(self.storage.bytes)
        geom = self.host._geom
        count = self.storage.nbytes // geom.dtype.itemsize
        flat = wrap(geom.at((count,), (1,), 0), self.storage)
        return bytes(flat.cpu()._storage.bytes)


def _reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    geom = tensor._geom
    leaf = tensor.requires_grad and tensor.is_leaf
    if type(tensor).__name__ == "Parameter":
        plain = tensor.detach()
        return _REBUILD_PARAMETER, (plain, tensor.requires_grad, OrderedDict())
    args: Any = (_Stored(tensor), geom.offset, tuple(geom.shape), geom.strides, leaf, OrderedDict())
    return _REBUILD, args


def save(
    obj: Any,
    f: str | os.PathLike[str] | BinaryIO,
    pickle_module: ModuleType | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write `obj` to a path or binary file; tensors that share a storage share it in the file.

    A path is replaced only once everything is on disk: a full disk or a crash leaves the older
    file as it was.
    """
    if not isinstance(f, str | os.PathLike):
        _write(obj, f, pickle_protocol)
        return
    path = os.fspath(f)
    folder, name = os.path.split(os.path.realpath(path))
    handle, beside = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            _write(obj, file, pickle_protocol)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, _mode_of(path))
        os.replace(beside, os.path.join(folder, name))
    except BaseException:
        os.unlink(beside)
        raise


def _mode_of(path: str) -> int:
    """The permissions of the file that is replaced, else those of a new one."""
    try:
        return os.stat(path).st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _write(obj: Any, file: BinaryIO, protocol: int) -> None:
    blobs: dict[str, _Stored] = {}
    body = io.BytesIO()
    _Pickler(body, blobs, protocol).dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", body.getvalue())
        archive.writestr("archive/byteorder", sys.byteorder)
        for key, stored in blobs.items():
            archive.writestr(f"archive/data/{key}", stored.bytes())
        archive.writestr("archive/version", "3\n")


_TENSOR_GLOBALS: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): rebuild,
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("torch", "Size"): Size,
    ("torch", "device"): Device,
}
_ALLOWED = {d.legacy + "Storage": d for d in (*dt.ALL, *dt.STORED)}
_extra: dict[tuple[str, str], Any] = {}


def add_safe_globals(objects: list[Any]) -> None:
    """Let `load(weights_only=True)` accept these functions and classes."""
    for item in objects:
        _extra[item.__module__, item.__qualname__] = item


# The Python unpickler, not the C one: only it lets one opcode be refused.
_PythonUnpickler: Any = vars(pickle)["_Unpickler"]


class _Unpickler(_PythonUnpickler):  # type: ignore[misc]
    """Reads the pickle of a file; `strict` allows only what tensors need."""

    dispatch = dict(_PythonUnpickler.dispatch)

    def __init__(self, file: BinaryIO, archive: _Archive, strict: bool):
        super().__init__(file)
        self.archive = archive
        self.strict = strict
        self.loaded: dict[str, Any] = {}

    def load_build(self) -> None:
        """Set the state of an object: in strict mode only of an ordered dict, which a file makes.

        Everything else that a strict file can name is shared: dtypes, devices, functions.
        """
        target = self.stack[-2]
        own = isinstance(target, OrderedDict) or type(target) in _extra.values()
        if self.strict and not own:
            raise UnsafeGlobalError(
                f"Weights only load failed: the file sets the state of {target!r}, which is no "
                "part of it. If you trust the file, load it with weights_only=False."
            )
        super().load_build()

    dispatch[pickle.BUILD[0]] = load_build

    def load_bytearray8(self) -> None:
        raise RuntimeError("load: data.pkl holds a bytearray, which nothing that is saved needs")

    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8

    def everything(self) -> Any:
        """The object of the file; RuntimeError for a damaged one. What a trusted file's own classes
        raise is theirs."""
        if not self.strict:
            return self.load()
        try:
            return self.load()
        except (RuntimeError, UnsafeGlobalError):
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"load: data.pkl cannot be read ({what}); it is damaged") from error

    def find_class(self, module: str, name: str) -> Any:
        known = _TENSOR_GLOBALS.get((module, name)) or _extra.get((module, name))
        if known is not None:
            return known
        if module == "torch" and name in dt._BY_NAME:
            return dt._BY_NAME[name]
        if module == "torch" and name in _ALLOWED:
            return name
        if self.strict:
            raise UnsafeGlobalError(
                f"Weights only load failed: the file names {module}.{name}, which tensors do not"
                " need. If you trust the file, load it with weights_only=False, or allow this one"
                " with torch.serialization.add_safe_globals."
            )
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        try:
            _, kind, key, _, count = pid
            dtype = _ALLOWED[kind]
        except (ValueError, KeyError, TypeError):
            raise RuntimeError(f"load: {pid!r} describes no storage; the file is damaged") from None
        if key not in self.loaded:
            self.loaded[key] = Storage(self.archive.storage(key, dtype, count))
        return (self.loaded[key], dtype)


# A pickle says what there is, not what it holds: larger ones are not made by saving tensors.
_LARGEST_PICKLE = 1 << 30


class _Archive:
    """A zip file as `save` writes it: one pickle, storages, their byte order."""

    def __init__(self, archive: zipfile.ZipFile):
        self.archive = archive
        names = archive.namelist()
        if len(set(names)) != len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise RuntimeError(f"load: {twice} stands twice in the file; it is damaged")
        body = next((n for n in names if n.endswith("data.pkl")), None)
        if body is None:
            raise RuntimeError("load: the zip file holds no data.pkl; torch.save did not write it")
        self.root = body[: -len("data.pkl")]
        order = f"{self.root}byteorder"
        self.swapped = order in names and self._read(order, 16).strip() != sys.byteorder.encode()

    def pickle(self) -> bytes:
        return self._read(f"{self.root}data.pkl", _LARGEST_PICKLE)

    def storage(self, key: str, dtype: dt.dtype, count: int) -> Any:
        """The bytes of a storage of `count` elements, in this machine's order."""
        size = count * dtype.itemsize
        data = np.frombuffer(bytearray(self._read(f"{self.root}data/{key}", size)), np.uint8)
        if data.size != size:
            raise RuntimeError(
                f"load: storage {key} has {data.size} bytes, the file says {size}; it is damaged"
            )
        unit = dtype.itemsize // (2 if dtype.is_complex else 1)
        if self.swapped and unit > 1:
            data = np.ascontiguousarray(data.reshape(-1, unit)[:, ::-1]).reshape(-1)
        return data

    def _read(self, name: str, most: int) -> bytes:
        """An entry of at most `most` bytes; checked before it is unpacked."""
        try:
            declared = self.archive.getinfo(name).file_size
            if declared > most:
                raise RuntimeError(f"load: {name} unpacks to {declared} bytes, at most {most} fit")
            return self.archive.read(name)
        except (KeyError, zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise RuntimeError(f"load: {name} cannot be read: {error}") from None


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: str | None = None,
    pickle_module: ModuleType | None = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save` or torch.save wrote; FileNotFoundError, or RuntimeError for other files."""
    if isinstance(f, str | os.PathLike) and not os.path.exists(f):
        raise FileNotFoundError(f"[Errno 2] No such file or directory: '{f}'")
    if not zipfile.is_zipfile(f):
        raise RuntimeError(
            "load: the file is not a zip archive as torch.save writes it (or is cut short); a"
            " safetensors file is read with the safetensors library"
        )
    with zipfile.ZipFile(f) as opened:
        archive = _Archive(opened)
        unpickler = _Unpickler(io.BytesIO(archive.pickle()), archive, weights_only)
        return _placed(unpickler.everything(), map_location)


def _placed(value: Any, where: str | None) -> Any:
    if where is None or callable(where):
        return value
    if isinstance(where, dict):
        where = next(iter(where.values()))
    device = resolve(where)
    return value if device is CPU else _move(value, device)


def _move(value: Any, device: Device) -> Any:
    if isinstance(value, Tensor):
        moved = aten.to(value.detach(), device)
        if type(value) is not Tensor:
            value.data = moved
            return value
        return moved.requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return type(value)((k, _move(v, device)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return type(value)(_move(v, device) for v in value)
    return value
