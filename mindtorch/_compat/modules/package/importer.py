"""Owns environments that modules are imported from: Python's own, packages, several in order."""

from __future__ import annotations

import importlib
import logging
import pickle
from abc import ABC, abstractmethod
from collections.abc import MutableMapping
from contextlib import suppress
from functools import reduce
from types import ModuleType
from typing import Any

from ._mangling import demangle, get_mangle_prefix, is_mangled

log = logging.getLogger(__name__)
_whichmodule: Any = getattr(pickle, "whichmodule")  # noqa: B009 - not in the stubs


class ObjNotFoundError(Exception):
    """An importer finds no object of a name."""


class ObjMismatchError(Exception):
    """An importer finds another object of the same name."""


def imported_module(name: str) -> ModuleType:
    """A module of Python; torch's are this library's."""
    if name.partition(".")[0] == "torch":
        with suppress(ModuleNotFoundError):
            return importlib.import_module(f"mindtorch{name.removeprefix('torch')}")
    return importlib.import_module(name)


def torch_name(module: str) -> str:
    """The name that torch has for a module of this library."""
    head, dot, rest = module.partition(".")
    return f"torch{dot}{rest}" if head == "mindtorch" else module


def _of_reduce(obj: Any) -> str | None:
    """The name that an object's `__reduce__` gives in place of its parts."""
    if isinstance(obj, type | ModuleType) or not hasattr(obj, "__reduce__"):
        return None
    with suppress(Exception):
        parts = obj.__reduce__()
        return parts if isinstance(parts, str) else None
    return None


class Importer(ABC):
    """An environment: it imports modules by name, and names objects so that they are found."""

    modules: MutableMapping[str, ModuleType]

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """The module; ModuleNotFoundError."""

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """Module and name by which this environment finds the object.

        ObjNotFoundError where there is nothing of that name, ObjMismatchError for another object.
        """
        name = name or _of_reduce(obj) or getattr(obj, "__qualname__", None) or obj.__name__
        module_name = torch_name(demangle(self.whichmodule(obj, name)))
        try:
            hit: Any = reduce(getattr, name.split("."), self.import_module(module_name))
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{name}") from None
        if hit is obj:
            return module_name, name
        (mine, place, importer), (other, there, second) = (
            self._whereabouts(v, name) for v in (obj, hit)
        )
        raise ObjMismatchError(
            f"\n\nThe object provided is from '{mine}', which is coming from {place}."
            f"\nHowever, when we import '{other}', it's coming from {there}."
            f"\nTo fix this, make sure this 'PackageExporter's importer lists {importer} before"
            f" {second}."
        )

    def _whereabouts(self, obj: Any, name: str) -> tuple[str, str, str]:
        module = self.whichmodule(obj, name)
        if not is_mangled(module):
            return module, "the current Python environment", "'sys_importer'"
        package = get_mangle_prefix(module)
        return module, package, f"the importer for {package}"

    def whichmodule(self, obj: Any, name: str) -> str:
        """The name of the module that an object says it is of, or of one that has it."""
        home = getattr(obj, "__module__", None)
        if home is not None:
            return str(home)
        for module_name, module in dict(self.modules).items():
            if module_name in ("__main__", "__mp_main__") or module is None:
                continue
            with suppress(AttributeError):
                if reduce(getattr, name.split("."), module) is obj:
                    return module_name
        return "__main__"


class _SysImporter(Importer):
    """Python's own modules."""

    def import_module(self, module_name: str) -> ModuleType:
        return imported_module(module_name)

    def whichmodule(self, obj: Any, name: str) -> str:
        home = getattr(obj, "__module__", None)
        return str(home if home is not None else _whichmodule(obj, name))


sys_importer = _SysImporter()


def _is_empty_package(module: ModuleType) -> bool:
    """Whether a module stands only for the modules below it, in a package."""
    return (
        getattr(module, "__torch_package__", False)
        and hasattr(module, "__path__")
        and getattr(module, "__file__", None) is None
    )


class OrderedImporter(Importer):
    """Several environments, of which the first that has a module gives it."""

    def __init__(self, *args: Importer):
        self._importers = list(args)

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        for importer in self._importers:
            try:
                return importer.get_name(obj, name)
            except (ObjNotFoundError, ObjMismatchError) as error:
                log.warning(
                    "Tried to call get_name with obj %s, and name %s on %s and got %s",
                    obj, name, importer, error,
                )  # fmt: skip
        raise ObjNotFoundError(
            f"Could not find obj {obj} and name {name} in any of the importers {self._importers}"
        )

    def import_module(self, module_name: str) -> ModuleType:
        missing = ModuleNotFoundError(module_name)
        for importer in self._importers:
            if not isinstance(importer, Importer):
                raise TypeError(
                    f"{importer} is not a Importer. All importers in OrderedImporter must inherit"
                    " from Importer."
                )
            try:
                module = importer.import_module(module_name)
            except ModuleNotFoundError as error:
                missing = error
                continue
            if not _is_empty_package(module):
                return module
        raise missing

    def whichmodule(self, obj: Any, name: str) -> str:
        names = (importer.whichmodule(obj, name) for importer in self._importers)
        return next((n for n in names if n != "__main__"), "__main__")
