"""Owns `save` and `load`: the zip format of torch.save, read and written without torch.

A file is a zip of one pickle, which names tensors' storages, and one entry per storage. Loading is
strict by default (`weights_only=True`): only tensors, containers, numbers and what
`add_safe_globals` names are made; anything else in a file is refused. Sizes, strides and storages
are checked before anything is made of them. The format before zip files is written where it is
asked for, and read.
"""

from __future__ import annotations

import os
import pickle
import warnings
from types import ModuleType
from typing import Any, BinaryIO

from .._tensor.device import device as Device
from .._tensor.dtype import ALL, dtype as Dtype
from ._legacy import ZIP_MAGIC
from ._locations import Place, default_restore_location, location_tag, register_package
from ._options import (
    LoadEndianness,
    add_safe_globals,
    clear_safe_globals,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    get_safe_globals,
    safe_globals,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from ._reading import read, unsafe_globals
from ._writing import write

__all__ = [
    "LoadEndianness", "add_safe_globals", "clear_safe_globals",
    "default_restore_location", "get_crc32_options", "get_default_load_endianness",
    "get_default_mmap_options", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load",
    "location_tag", "register_package", "safe_globals", "save", "set_crc32_options",
    "set_default_load_endianness", "set_default_mmap_options", "skip_data",
]  # fmt: skip

DEFAULT_PROTOCOL = 2
_TRUE = ("1", "y", "yes", "true")


def save(
    obj: Any,
    f: str | os.PathLike[str] | BinaryIO,
    pickle_module: ModuleType = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write `obj` to a path or binary file; tensors that share a storage share it in the file.

    A path is replaced only once everything is on disk: a full disk or a crash leaves the older
    file as it was. AttributeError for what cannot be written to.
    """
    if not isinstance(f, str | os.PathLike) and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    write(
        obj, f, pickle_protocol,
        record_order=not _disable_byteorder_record, older=not _use_new_zipfile_serialization,
    )  # fmt: skip


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Place = None,
    pickle_module: ModuleType | None = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save` or torch.save wrote, to the devices it was saved from or `map_location`.

    `map_location` is a device, a dict from saved to wanted devices, or a function of a storage (on
    cpu) and the saved device's name that returns a storage, or None for the default. `mmap` maps a
    path's storages into memory, written to by nobody. FileNotFoundError; RuntimeError for other
    files and absent devices; pickle.UnpicklingError for objects that `weights_only` refuses.
    """
    if not (isinstance(map_location, str | dict | Device | None) or callable(map_location)):
        raise TypeError(f"{type(map_location).__name__!r} object is not callable")
    return read(f, map_location, pickle_module, _strict(weights_only, pickle_module), mmap,
                pickle_load_args)  # fmt: skip


def _strict(weights_only: bool | None, pickle_module: ModuleType | None) -> bool:
    """Whether only tensors are made: the argument, or what the environment forces."""
    always = os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    never = os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    if always and never:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD`"
            " should be set, but both were set."
        )
    if weights_only is None:
        weights_only = pickle_module is None and not never
    strict = weights_only or always
    if strict and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return strict


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike[str] | BinaryIO) -> list[str]:
    """The functions and classes that `f` names and `load(weights_only=True)` refuses, sorted."""
    return unsafe_globals(f)


def _is_zipfile(f: str | os.PathLike[str] | BinaryIO) -> bool:
    """Whether a file, where it is read next, starts as the zip format does."""
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return _is_zipfile(file)
    start = f.tell()
    head = f.read(len(ZIP_MAGIC))
    f.seek(start)
    return head == ZIP_MAGIC


class SourceChangeWarning(Warning):
    """The source of a class is not what it was when a file was written."""


class StorageType:
    """A legacy class of storages, by its dtype."""

    def __init__(self, name: str) -> None:
        self._dtype = dtype_of_storage(name)

    @property
    def dtype(self) -> Dtype:
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def dtype_of_storage(name: str) -> Dtype:
    """The dtype of `FloatStorage` and its kin; KeyError for other names."""
    kinds = {f"{dtype.legacy}Storage": dtype for dtype in ALL}
    if name not in kinds:
        raise KeyError(f'pickle storage type "{name}" is not recognized')
    return kinds[name]


def check_module_version_greater_or_equal(
    module: ModuleType, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's version is at least one; RuntimeError, or a warning, for no version."""
    version = str(vars(module)["__version__"])
    try:
        parts = zip(req_version_tuple, version.split("."), strict=False)
        return tuple(type(part)(text) for part, text in parts) >= req_version_tuple
    except ValueError as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{version}' and cannot be"
            f" compared with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


def normalize_storage_type(storage_type: type) -> type:
    """The class of torch itself that has a storage class's name."""
    import mindtorch

    kind: type = getattr(mindtorch, storage_type.__name__)
    return kind


# What `map_location` may be, for annotations.
MAP_LOCATION = Place
