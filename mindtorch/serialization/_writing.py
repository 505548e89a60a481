"""Owns writing a file: a pickle that names storages, and their bytes beside it."""

from __future__ import annotations

import errno
import io
import os
import pickle
import re
import secrets
import sys
import zipfile
import zlib
from collections import OrderedDict
from contextlib import suppress
from types import FunctionType
from typing import Any, BinaryIO, cast

from .._functional.queries import layout, strided
from .._tensor import dtype as dt
from .._tensor.device import CPU, device as Device
from .._tensor.geometry import Size, geometry
from .._tensor.storage import Storage
from .._tensor.tensor import Tensor, wrap
from .._tensor.typed_storage import TypedStorage
from .._tensor.untyped_storage import UntypedStorage
from ._legacy import MAGIC, PROTOCOL
from ._locations import location_tag
from ._options import Options
from ._pickles import Pickler

# Where storages begin in a file, so that a mapped one can be used in place.
ALIGNMENT = 64


class _Global:
    """Pickles as `module.name` without importing it: files name torch's own functions."""

    def __init__(self, module: str, name: str):
        self.module = module
        self.name = name

    def __call__(self) -> None:
        raise TypeError("a _Global is only ever pickled")


_REBUILD = _Global("torch._utils", "_rebuild_tensor_v2")
_REBUILD_PARAMETER = _Global("torch._utils", "_rebuild_parameter")
_REBUILD_PARAMETER_WITH_STATE = _Global("torch._utils", "_rebuild_parameter_with_state")
_REBUILD_FROM_TYPE = _Global("torch._tensor", "_rebuild_from_type_v2")
_REBUILD_META = _Global("torch._utils", "_rebuild_meta_tensor_no_storage")
_REBUILD_NESTED = _Global("torch._utils", "_rebuild_nested_tensor")
_JAGGED = _Global("torch.nested._internal.nested_tensor", "NestedTensor")
_REBUILD_JAGGED = _Global("torch.nested._internal.nested_tensor", "_rebuild_njt")
_REBUILD_SPARSE = _Global("torch._utils", "_rebuild_sparse_tensor")
_REBUILD_QUANTIZED = _Global("torch._utils", "_rebuild_qtensor")
_GET_LAYOUT = _Global("torch.serialization", "_get_layout")
_TENSOR = _Global("torch", "Tensor")


class _Pickler(Pickler):
    """Writes tensors as torch does, and collects their storages in `blobs`.

    Before zip files (`older`), a storage also said what it was a view of: of nothing.
    """

    def __init__(
        self, file: BinaryIO, blobs: dict[str, _Stored], protocol: int, older: bool = False
    ):
        super().__init__(file, protocol)
        self.blobs = blobs
        self.older = older
        self.keys: dict[int, str] = {}
        self.globals: dict[str, _Global] = {}

    def dump(self, obj: Any) -> None:
        try:
            super().dump(obj)
        except pickle.PicklingError as error:  # in the words of the pickler in C, which torch uses
            text = r"(.*): it's not found as (.*)\.(\w+)"
            raise pickle.PicklingError(
                re.sub(text, r"\1: attribute lookup \3 on \2 failed", str(error))
            ) from None

    def save_global(self, obj: Any, name: str | None = None) -> None:
        path = str(name or getattr(obj, "__qualname__", ""))
        if "<locals>" in path:  # as the pickler in C says it
            raise AttributeError(f"Can't pickle local object {path!r}")
        try:
            super().save_global(obj, name)
        except pickle.PicklingError as error:
            place, _, _ = str(error).rpartition(f".{path}")
            if not path or ": it's not found as " not in place:
                raise
            what, _, module = place.rpartition(": it's not found as ")
            raise pickle.PicklingError(
                f"{what}: attribute lookup {path} on {module} failed"
            ) from None

    dispatch = {**Pickler.dispatch, FunctionType: save_global}

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if obj.__class__ is dt.dtype:
            obj = self._named(obj._name)
        if obj.__class__ is _Global:
            self._write_global(obj)
        elif obj.__class__ is layout:
            self.save_reduce(_GET_LAYOUT, (str(obj),), obj=obj)
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
        if isinstance(value, UntypedStorage | TypedStorage):
            dtype = value.dtype if isinstance(value, TypedStorage) else None
            value = _Stored(value._storage, dtype, value._untyped_storage.device)
        if not isinstance(value, _Stored):
            return None
        key = self.keys.setdefault(id(value.storage), str(len(self.keys)))
        first = self.blobs.setdefault(key, value)
        if self.older and first.dtype is not value.dtype and value.storage.nbytes:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different"
                " types"
            )
        if value.dtype is None:
            kind = self.globals.setdefault("?", _Global("torch.storage", "UntypedStorage"))
        else:
            kind = self._named(value.dtype.legacy + "Storage")
        view: tuple[None, ...] = (None,) if self.older else ()
        return ("storage", kind, key, value.tag, value.count, *view)


class PicklerForTorch(_Pickler):
    """Writes classes of this library by torch's names, in files that torch reads too."""

    def save_global(self, obj: Any, name: str | None = None) -> None:
        module = str(getattr(obj, "__module__", ""))
        if module.partition(".")[0] in ("mindtorch", "torch"):
            home = module.replace("mindtorch", "torch", 1)
            named = _Global(home, obj.__qualname__)
            self._write_global(self.globals.setdefault(f"{home}.{named.name}", named))
        else:
            super().save_global(obj, name)

    dispatch = {**_Pickler.dispatch, FunctionType: save_global}


class _Stored:
    """A storage with the dtype that it is written under; None: bytes."""

    def __init__(self, storage: Storage, dtype: dt.dtype | None, device: Device):
        self.storage = storage
        self.dtype = dtype
        self.device = device
        self.tag = location_tag(UntypedStorage.of(storage, device))

    @property
    def count(self) -> int:
        """How many elements; bytes where it has no dtype."""
        return self.storage.nbytes // (1 if self.dtype is None else self.dtype.itemsize)

    def bytes(self) -> bytes:
        if Options.skipping:
            return bytes(self.storage.nbytes)
        if self.device is CPU:
            return bytes(self.storage.bytes)
        flat = geometry((self.storage.nbytes,), (1,), 0, dt.uint8, self.device)
        return bytes(wrap(flat, self.storage).cpu()._storage.bytes)


def _reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    kind, state = type(tensor), tensor.__dict__
    if kind.__name__ == "Parameter":
        args: Any = (tensor.detach(), tensor.requires_grad, OrderedDict())
        return (_REBUILD_PARAMETER_WITH_STATE, (*args, state)) if state else (
            _REBUILD_PARAMETER, args)  # fmt: skip
    if tensor.is_nested and tensor.layout is strided:
        nested: Any = tensor
        return _REBUILD_NESTED, nested._saved_parts()
    if tensor.is_nested:
        jagged: Any = tensor
        return _REBUILD_FROM_TYPE, (_REBUILD_JAGGED, _JAGGED, (jagged._jagged_parts(),), {})
    if hasattr(kind, "__torch_dispatch__"):
        return cast("tuple[Any, ...]", tensor.__reduce_ex__(2))
    if tensor.layout is not strided:
        sparse: Any = tensor
        return _REBUILD_SPARSE, (tensor.layout, sparse._saved_parts())
    if tensor.is_quantized:
        return _reduce_quantized(tensor)
    geom = tensor._geom
    wants = tensor.requires_grad
    if tensor.device.type == "meta":
        return _REBUILD_META, (tensor.dtype, tuple(geom.shape), geom.strides, wants)
    stored = _Stored(tensor._storage, tensor.dtype, tensor.device)
    args = (stored, geom.offset, tuple(geom.shape), geom.strides, wants, OrderedDict())
    if kind is Tensor and not state:
        return _REBUILD, args
    return _REBUILD_FROM_TYPE, (_REBUILD, _TENSOR if kind is Tensor else kind, args, state)


def _reduce_quantized(tensor: Any) -> tuple[Any, ...]:
    geom, axis = tensor._geom, tensor._axis
    stored = _Stored(tensor._storage, tensor.dtype, tensor.device)
    scheme = _Global("torch", str(tensor.qscheme()).removeprefix("torch."))
    scales = (scheme, tensor._scales, tensor._zeros, *(() if axis is None else (axis,)))
    places = (geom.offset, tuple(geom.shape), geom.strides)
    return _REBUILD_QUANTIZED, (stored, *places, scales, False, OrderedDict())


def write(
    obj: Any,
    f: str | os.PathLike[str] | BinaryIO,
    protocol: int,
    *,
    record_order: bool,
    older: bool = False,
    root: str = "archive",
) -> None:
    """Write to a file, or beside a path and then over it; into what is no file (a device, a pipe)
    straight. `older`: as before zip files. `root`: the folder in the zip file; a path gives its
    own name without the ending."""
    if not isinstance(f, str | os.PathLike):
        (_write_older(obj, f, protocol) if older else _write(obj, f, protocol, record_order, root))
        return
    path = os.fspath(f)
    if not older and os.path.basename(path) in ("", "."):
        raise RuntimeError(f"[enforce fail at inline_container.cc:720] . invalid file name: {path}")
    if not older and os.path.isdir(path):
        raise RuntimeError(
            "[enforce fail at inline_container.cc:747] . open file failed with strerror: Is a"
            " directory"
        )
    stem = os.path.basename(path).rpartition(".")[0] or os.path.basename(path)
    root = stem if stem.isascii() else root
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            write(obj, file, protocol, record_order=record_order, older=older, root=root)
        return
    folder, name = os.path.split(os.path.realpath(path))
    if not path or not os.path.isdir(folder):
        if older:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
    beside = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(4)}.part")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            write(obj, file, protocol, record_order=record_order, older=older, root=root)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            os.chmod(beside, os.stat(path).st_mode & 0o7777)
        os.replace(beside, os.path.join(folder, name))
    except BaseException:
        with suppress(FileNotFoundError):  # an interrupt may come once it is in its place
            os.unlink(beside)
        raise


def _write(obj: Any, file: BinaryIO, protocol: int, record_order: bool, root: str) -> None:
    blobs: dict[str, _Stored] = {}
    body = io.BytesIO()
    _Pickler(body, blobs, protocol).dump(obj)
    archive = zipfile.ZipFile(_from_here(file), "w", zipfile.ZIP_STORED)

    def add(name: str, data: Any) -> None:
        archive.writestr(aligned(archive, f"{root}/{name}"), data)

    try:
        add("data.pkl", body.getvalue())
        add(".format_version", "1")
        add(".storage_alignment", str(ALIGNMENT))
        if record_order:
            add("byteorder", sys.byteorder)
        for key, stored in blobs.items():
            add(f"data/{key}", stored.bytes())
        add("version", "3\n")
        add(".data/serialization_id", fingerprint(archive))
        archive.close()
    except BaseException:
        # Closing beside an entry that an interrupt cut off is a ValueError, which would hide it.
        archive.fp = None
        raise


class _FromHere:
    """The rest of a file as one that begins at 0: an archive behind another is whole by itself."""

    def __init__(self, file: BinaryIO, start: int):
        self.start, self.tell_all, self.seek_all = start, file.tell, file.seek
        self.write, self.flush = file.write, file.flush

    def tell(self) -> int:
        return self.tell_all() - self.start

    def seek(self, place: int) -> int:
        return self.seek_all(place + self.start) - self.start


def _from_here(file: BinaryIO) -> BinaryIO:
    try:
        start = file.tell()
    except (AttributeError, OSError):  # a pipe: zipfile counts by itself
        return file
    return cast("BinaryIO", _FromHere(file, start)) if start else file


def fingerprint(archive: zipfile.ZipFile) -> str:
    """Twenty digits of the entries' names and twenty of their checksums: equal for equal files."""
    names = zlib.crc32("".join(archive.namelist()).encode())
    sums = zlib.crc32(b"".join(e.CRC.to_bytes(4, "little") for e in archive.infolist()))
    return f"{names:020}{sums:020}"


def _write_older(obj: Any, file: BinaryIO, protocol: int) -> None:
    """Five pickles and the bytes of each storage, in the layout that `_legacy` reads."""
    blobs: dict[str, _Stored] = {}
    machine = {
        "protocol_version": PROTOCOL,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for value in (MAGIC, PROTOCOL, machine):
        pickle.dump(value, file, protocol)
    _Pickler(file, blobs, protocol, older=True).dump(obj)
    pickle.dump(sorted(blobs), file, protocol)
    for _, stored in sorted(blobs.items()):
        file.write(stored.count.to_bytes(8, sys.byteorder))
        file.write(stored.bytes())


def aligned(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """An entry whose bytes begin at a multiple of ALIGNMENT: its header has an extra field of
    padding (APPNOTE.TXT 4.5; the header itself has 30 bytes)."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o600 << 16
    header = archive.start_dir + 30 + len(name) + 4
    padding = -header % ALIGNMENT
    entry.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    return entry
