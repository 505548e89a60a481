"""Owns questions about packages: what is of one, why one failed, what modules a call uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType, ModuleType
from typing import Any

from ._mangling import is_mangled
from .package_exporter import PackagingError


def is_from_package(obj: Any) -> bool:
    """Whether a module, or an object's class, was loaded from a package."""
    return is_mangled(obj.__name__ if type(obj) is ModuleType else type(obj).__module__)


def find_first_use_of_broken_modules(exc: PackagingError) -> dict[str, list[str]]:
    """The path by which each module that could not be packed was first met."""
    if not isinstance(exc, PackagingError):
        raise AssertionError(f"exception must be a PackagingError, got {type(exc).__name__}")
    graph = exc.dependency_graph
    return {n: graph.first_path(n) for n, facts in graph.nodes.items() if facts.get("error")}


def trace_dependencies(
    callable: Callable[..., Any], inputs: Iterable[tuple[Any, ...]]
) -> list[str]:
    """The modules of the functions of Python that calls with these inputs run."""
    used: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        name = frame.f_code.co_name
        places = (frame.f_globals, frame.f_locals)
        hit = next((p[name] for p in places if name in p), None)
        if hit is None:
            hit = getattr(frame.f_locals.get("self"), name, None)
        module = getattr(hit, "__module__", None)
        if module:
            used.add(module)

    sys.setprofile(note)
    try:
        for arguments in inputs:
            callable(*arguments)
    finally:
        sys.setprofile(None)
    return list(used)
