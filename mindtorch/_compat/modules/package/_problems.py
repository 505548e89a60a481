"""Owns why modules cannot be packed, and what is said of them."""

from __future__ import annotations

import importlib.machinery
from collections import defaultdict
from enum import Enum
from types import ModuleType
from typing import Any

from ._digraph import DiGraph

NOT_OF_THE_SYSTEM = ("sys", "io")  # of Python's own library, but not taken for granted


class PackagingErrorReason(Enum):
    """Why a module cannot be packed."""

    IS_EXTENSION_MODULE = (
        "Module is a C extension module. torch.package supports Python modules only."
    )
    NO_DUNDER_FILE = "Module had no __file__ defined."
    SOURCE_FILE_NOT_FOUND = "Module had a __file__, but we could not find it in your filesystem."
    DEPENDENCY_RESOLUTION_FAILED = "Dependency resolution failed."
    NO_ACTION = "Module did not match against any action pattern. Extern, mock, or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = (
        "Module was mocked out, but is still being used in the package. Please intern or extern"
        " the mocked modules if objects are supposed to be in the package."
    )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}>"


class EmptyMatchError(Exception):
    """A rule that had to match a module matched none."""


class PackagingError(Exception):
    """Modules that cannot be packed, by reason; `dependency_graph` has them all."""

    def __init__(self, dependency_graph: DiGraph, debug: bool = False):
        self.dependency_graph = dependency_graph
        broken: dict[PackagingErrorReason, list[str]] = defaultdict(list)
        for name, facts in dependency_graph.nodes.items():
            if facts.get("error") is not None:
                broken[facts["error"]].append(name)
        text = "\n"
        for reason, names in broken.items():
            text += f"* {reason.value}\n" + "".join(self._lines(n, debug) for n in names)
        if not debug:
            text += (
                "\nSet debug=True when invoking PackageExporter for a visualization of where broken"
                " modules are coming from!\n"
            )
        super().__init__(text)

    def _lines(self, name: str, debug: bool) -> str:
        text, context = f"    {name}\n", self.dependency_graph.nodes[name].get("error_context")
        if context is not None:
            text += f"      Context: {context}\n"
        if name in NOT_OF_THE_SYSTEM:
            text += (
                "      Note: While we usually use modules in the python standard library from the"
                f" local environment, `{name}` has a lot of system level access and therefore can"
                f" pose a security risk. We heavily recommend removing `{name}` from your packaged"
                " code. However, if that is not possible, add it to the extern list by calling"
                f' PackageExporter.extern("`{name}`")\n'
            )
        if debug:
            path = " -> ".join(self.dependency_graph.first_path(name))
            text += f"      A path to {name}: {path}\n"
        return text


def why_no_source(module: ModuleType) -> dict[str, Any]:
    """The attributes of a module whose text is not there."""
    filename = getattr(module, "__file__", None)
    if filename is None:
        return {"error": PackagingErrorReason.NO_DUNDER_FILE, "error_context": None}
    if filename.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
        return {"error": PackagingErrorReason.IS_EXTENSION_MODULE, "error_context": None}
    return {
        "error": PackagingErrorReason.SOURCE_FILE_NOT_FOUND,
        "error_context": f"filename: {filename}",
    }


for _kind in (PackagingErrorReason, EmptyMatchError, PackagingError):
    _kind.__module__ = "mindtorch.package.package_exporter"  # where torch has them
