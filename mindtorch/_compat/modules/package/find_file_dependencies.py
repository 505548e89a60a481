"""Owns what modules a text of Python and a pickle need, and where the text of one is."""

from __future__ import annotations

import ast
import importlib.machinery
import linecache
import pickletools
from collections.abc import Iterator
from importlib.util import resolve_name
from types import ModuleType
from typing import Any

_TEXTS = {"BINUNICODE", "BINUNICODE8", "SHORT_BINUNICODE"}
_RECALLS = {"BINGET", "GET", "LONG_BINGET"}
Reference = tuple[str, str | None]  # a module, and what is taken of it


def find_files_source_depends_on(source: str, package: str) -> list[Reference]:
    """The modules that a text of `package` names in imports, each once; SyntaxError."""
    finder = _Imports(package)
    finder.visit(ast.parse(source))
    return list(finder.references)


class _Imports(ast.NodeVisitor):
    def __init__(self, package: str):
        self.package = package
        self.references: dict[Reference, None] = {}

    def _add(self, module: str | None, level: int, names: list[str]) -> None:
        if level:
            module = resolve_name("." * level + (module or ""), self.package)
        for name in names:
            self.references[module or "", None if name == "*" else name] = None

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.references[alias.name, None] = None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._add(node.module, node.level, [alias.name for alias in node.names])

    def visit_Call(self, node: ast.Call) -> None:
        if not (isinstance(node.func, ast.Name) and node.func.id == "__import__" and node.args):
            return
        parts: dict[str, Any] = {k.arg: k.value for k in node.keywords if k.arg}
        parts.update(zip(("name", "globals", "locals", "fromlist", "level"), node.args))  # noqa: B905
        try:
            name = ast.literal_eval(parts["name"])
            names = [str(n) for n in ast.literal_eval(parts["fromlist"])] if (
                "fromlist" in parts) else ["*"]  # fmt: skip
            level = ast.literal_eval(parts["level"]) if "level" in parts else 0
        except ValueError:
            return  # computed
        self._add(name, level, names)


def globals_of(data: bytes) -> Iterator[tuple[str, str]]:
    """The modules and names that a pickle refers to."""
    memo: dict[int, str | None] = {}
    module: str | None = None
    field: str | None = None
    for operation, argument, _ in pickletools.genops(data):
        text: Any = argument
        if operation.name == "GLOBAL":
            first, _, second = text.partition(" ")
            yield first, second
        elif operation.name in _TEXTS:
            module, field = field, text
            memo[len(memo)] = text
        elif operation.name == "MEMOIZE":
            memo.setdefault(len(memo), None)
        elif operation.name in _RECALLS:
            module, field = field, memo.get(text)
        elif operation.name == "STACK_GLOBAL" and module is not None and field is not None:
            yield module, field


def source_of(module: ModuleType) -> str | None:
    """The text of a module; None where it has no file of Python."""
    loader = getattr(module.__spec__, "loader", None)
    filename = getattr(module, "__file__", None)
    if isinstance(loader, importlib.machinery.SourceFileLoader):
        filename = loader.path
    if not isinstance(filename, str) or not filename.endswith(".py"):
        return None
    return "".join(linecache.getlines(filename, module.__dict__))
