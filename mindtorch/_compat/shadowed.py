"""Owns names that are a function of a package though a module below it bears them too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def keep(package: str, names: Mapping[str, Callable[[], Any]]) -> None:
    """Let `package.name` be what its function gives, whatever imports of `package.name` set."""

    def shown(find: Callable[[], Any]) -> property:
        return property(lambda self: find(), lambda self, module: None)

    module = sys.modules[package]
    members = {name: shown(find) for name, find in names.items()}
    module.__class__ = type("Package", (ModuleType,), members)
    for name in names:
        vars(module).pop(name, None)
