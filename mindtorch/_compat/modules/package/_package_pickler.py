"""Owns the pickles of packages: what they name is found by importers, torch's by its own names."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from types import FunctionType
from typing import Any, BinaryIO

from mindtorch.serialization._pickles import Pickler, Unpickler
from mindtorch.serialization._reading import imported
from mindtorch.serialization._storages import Storages
from mindtorch.serialization._writing import PicklerForTorch

from .importer import Importer, ObjMismatchError, ObjNotFoundError, sys_importer


class PackagePickler(PicklerForTorch):
    """Writes an object; `reduced(obj)` says what stands for one that packs itself, or None.

    `keys` and `blobs` are those of the whole package. PicklingError for what `importer` does not
    find.
    """

    def __init__(
        self, file: BinaryIO, importer: Importer, protocol: int, keys: dict[int, str],
        blobs: dict[str, Any], reduced: Callable[[object], tuple[Any, ...] | None],
    ):  # fmt: skip
        super().__init__(file, blobs, protocol)
        self.keys, self.importer, self.reduced = keys, importer, reduced

    def dump(self, obj: Any) -> None:
        Pickler.dump(self, obj)  # with errors in the words of Python's own pickler

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        return super().persistent_id(value) or self.reduced(value)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        of_torch = str(getattr(obj, "__module__", "")).partition(".")[0] in ("mindtorch", "torch")
        if of_torch:
            super().save_global(obj, name)
            return
        if self.importer is sys_importer:
            Pickler.save_global(self, obj, name)
            return
        try:
            module, name = self.importer.get_name(obj, name)
        except (ObjNotFoundError, ObjMismatchError) as error:
            raise pickle.PicklingError(f"Can't pickle {obj}: {error}") from error
        outer, dot, last = name.rpartition(".")
        proto: int = getattr(self, "proto")  # noqa: B009 - not declared
        if proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        elif dot:
            place: Any = self.importer.import_module(module)
            for part in outer.split("."):
                place = getattr(place, part)
            self.save_reduce(getattr, (place, last), obj=obj)
            return
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    dispatch = {**PicklerForTorch.dispatch, FunctionType: save_global}


class PackageUnpickler(Unpickler):
    """Reads an object whose classes are a package's."""

    def __init__(self, importer: Importer, file: BinaryIO, **options: Any):
        super().__init__(file, **options)
        self._importer = importer
        self.storages: Storages
        self.reduce: Callable[[tuple[Any, ...]], object]

    def find_class(self, module: str, name: str) -> Any:
        def of_package(module: str, name: str) -> Any:
            return getattr(self._importer.import_module(module), name)

        if module.partition(".")[0] == "torch":
            return imported(module, name, lambda m, n: getattr(importlib.import_module(m), n))
        return of_package(module, name)

    def persistent_load(self, pid: Any) -> Any:
        return self.reduce(pid[1:]) if pid[0] == "reduce_package" else self.storages.by(pid)
