"""Owns `save` and `load`: tensors and state dicts through pickle; refuses other globals on load.

A file is a zip with one pickle (`data.pkl`) and one entry per storage (`data/<key>`), as torch's
are; storages are little-endian. Loading allows only the globals that tensors need, unless
`weights_only=False` says that the file is trusted.
"""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _dtype as dt
from ._device import CPU, resolve
from ._device import device as Device
from ._geometry import Size, geometry
from ._storage import Storage
from ._tensor import Tensor, wrap
from .ops.spec import aten


class UnsafeGlobalError(pickle.UnpicklingError):
    """A file names a global that tensors do not need; the message names it and the remedy."""


def rebuild(
    storage: tuple[Storage, dt.dtype], offset: int, size: Any, stride: Any,
    requires_grad: bool = False, hooks: Any = None, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor over a loaded storage (torch._utils._rebuild_tensor_v2)."""
    held, dtype = storage
    made = wrap(geometry(tuple(size), tuple(stride), offset, dtype, CPU), held)
    return made.requires_grad_() if requires_grad else made


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
    def __init__(self, file: Any, blobs: dict[str, Any], protocol: int):
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
        held = self.memo.get(id(obj))
        if held is not None:
            self.write(self.get(held[0]))
            return
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    def persistent_id(self, value: Any) -> Any:
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


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2) -> None:
    """Write `obj` to a path or binary file; tensors that share a storage share it in the file."""
    blobs: dict[str, _Stored] = {}
    body = io.BytesIO()
    _Pickler(body, blobs, pickle_protocol).dump(obj)
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", body.getvalue())
        archive.writestr("archive/byteorder", "little")
        for key, stored in blobs.items():
            archive.writestr(f"archive/data/{key}", stored.bytes())
        archive.writestr("archive/version", "3\n")


_TENSOR_GLOBALS: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): rebuild,
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("mindtorch.serialization", "rebuild"): rebuild,
    ("mindtorch.serialization", "rebuild_parameter"): rebuild_parameter,
    ("torch", "Size"): Size,
    ("mindtorch._geometry", "Size"): Size,
    ("mindtorch._device", "device"): Device,
    ("torch", "device"): Device,
}
_ALLOWED = {d.legacy + "Storage": d for d in dt.ALL}
_extra: dict[tuple[str, str], Any] = {}


def add_safe_globals(objects: list[Any]) -> None:
    """Let `load(weights_only=True)` accept these functions and classes."""
    for item in objects:
        _extra[item.__module__, item.__qualname__] = item


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, read: Callable[[str], bytes], place: Any, strict: bool):
        super().__init__(file)
        self.read = read
        self.place = place
        self.strict = strict
        self.loaded: dict[str, Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        found = _TENSOR_GLOBALS.get((module, name)) or _extra.get((module, name))
        if found is not None:
            return found
        if module in ("torch", "mindtorch._dtype", "mindtorch") and name in dt._BY_NAME:
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
        _, kind, key, _, _ = pid
        dtype = _ALLOWED[kind]
        if key not in self.loaded:
            self.loaded[key] = Storage(np.frombuffer(bytearray(self.read(key)), np.uint8))
        return (self.loaded[key], dtype)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
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
    with zipfile.ZipFile(f) as archive:
        body = next(n for n in archive.namelist() if n.endswith("data.pkl"))
        root = body[: -len("data.pkl")]
        unpickler = _Unpickler(
            io.BytesIO(archive.read(body)), lambda key: archive.read(f"{root}data/{key}"), None,
            weights_only,
        )  # fmt: skip
        return _placed(unpickler.load(), map_location)


def _placed(value: Any, where: Any) -> Any:
    if where is None or callable(where):
        return value
    if isinstance(where, dict):
        where = next(iter(where.values()))
    device = resolve(where)
    return value if device is CPU else _move(value, device)


def _move(value: Any, device: Any) -> Any:
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
