"""Owns the names of what packages hold: `<torch_package_0>.a.b` is module `a.b` of one package."""

from __future__ import annotations

import itertools
import re

_NUMBERS = itertools.count()


def is_mangled(name: str) -> bool:
    """Whether a name is of a package's module."""
    return re.match(r"<torch_package_\d+>", name) is not None


def demangle(name: str) -> str:
    """The name without its package."""
    return name.partition(".")[2] if is_mangled(name) else name


def get_mangle_prefix(name: str) -> str:
    """The package of a name; a name that has none, as it is."""
    return name.partition(".")[0] if is_mangled(name) else name


class PackageMangler:
    """Names of one package."""

    def __init__(self) -> None:
        self._parent = f"<torch_package_{next(_NUMBERS)}>"

    def mangle(self, name: str) -> str:
        """The name of a module of this package."""
        return f"{self._parent}.{name}"

    def demangle(self, mangled: str) -> str:
        """The name without this package; those of other packages as they are."""
        return mangled.removeprefix(f"{self._parent}.")

    def parent_name(self) -> str:
        """The package."""
        return self._parent
