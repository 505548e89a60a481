"""Owns PackageExporter: what goes into a package, by rules for the modules that it needs."""

from __future__ import annotations

import io
import os
import platform
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

from mindtorch.serialization._records import PyTorchFileWriter
from mindtorch.utils.hooks import RemovableHandle

from ._digraph import DiGraph
from ._mangling import demangle, is_mangled
from ._package_pickler import PackagePickler
from ._problems import (
    NOT_OF_THE_SYSTEM,
    EmptyMatchError,
    PackagingError,
    PackagingErrorReason,
    why_no_source,
)
from .find_file_dependencies import find_files_source_depends_on, globals_of, source_of
from .glob_group import GlobGroup, GlobPattern
from .importer import Importer, OrderedImporter, sys_importer

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError", "PackagingErrorReason"]

_gate_torchscript_serialization = True
_MOCKED = (
    "from _mock import MockedObject\n"
    "def __getattr__(attr: str):\n"
    "    return MockedObject(__name__ + '.' + attr, _suppress_err=True)\n"
)


class _Action(Enum):
    INTERN = 1
    EXTERN = 2
    MOCK = 3
    DENY = 4
    REPACKAGED_MOCK_MODULE = 5
    SKIP = 6


@dataclass
class _Rule:
    action: _Action
    allow_empty: bool
    was_matched: bool = False


Hook = Callable[["PackageExporter", str], None]


class PackageExporter:
    """Writes a package to a path or a binary file; `close`, or the end of a `with`, finishes it.

    Modules that code and pickles need are interned (their text is packed), externed (imported
    where the package is loaded), mocked or denied by the first rule that matches; torch and
    Python's own library are external. PackagingError for modules without a rule.
    """

    importer: Importer

    def __init__(
        self, f: Any, importer: Importer | Sequence[Importer] = sys_importer, debug: bool = False
    ):
        self.debug = debug
        path = os.fspath(f) if isinstance(f, str | os.PathLike) else None
        self.buffer = f if path is None else None
        if not isinstance(importer, Importer):
            if not isinstance(importer, Sequence):
                raise TypeError(
                    "importer arg should be an Importer or a sequence of Importers, got"
                    f" {type(importer)} instead."
                )
            importer = OrderedImporter(*importer)
        self.importer = importer
        self.zip_file = PyTorchFileWriter(f if path is None else path)
        self.zip_file.set_min_version(6)
        self.dependency_graph = DiGraph()
        self.patterns: dict[GlobGroup, _Rule] = {}
        self._written: set[str] = set()
        self._keys: dict[int, str] = {}
        self._blobs: dict[str, Any] = {}
        self._reduced: dict[int, tuple[Any, ...]] = {}
        self._hooks: dict[_Action, OrderedDict[int, Hook]] = {
            a: OrderedDict() for a in (_Action.EXTERN, _Action.MOCK, _Action.INTERN)
        }
        self._unique_id = 0

    # Rules.

    def _rule(
        self, action: _Action, include: GlobPattern, exclude: GlobPattern, empty: bool
    ) -> None:
        self.patterns[GlobGroup(include, exclude=exclude)] = _Rule(action, empty)

    def intern(
        self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
    ) -> None:
        """Pack modules of these names, with what they need."""
        self._rule(_Action.INTERN, include, exclude, allow_empty)

    def mock(
        self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
    ) -> None:
        """Pack modules in their place whose names are all there, and of no use."""
        self._rule(_Action.MOCK, include, exclude, allow_empty)

    def extern(
        self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
    ) -> None:
        """Let modules be imported from where the package is loaded."""
        self._rule(_Action.EXTERN, include, exclude, allow_empty)

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()) -> None:
        """Modules that the package may not need."""
        self._rule(_Action.DENY, include, exclude, True)

    def _hook(self, action: _Action, hook: Hook) -> RemovableHandle:
        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    def register_extern_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(exporter, module_name)` for each external module as the package is closed."""
        return self._hook(_Action.EXTERN, hook)

    def register_mock_hook(self, hook: Hook) -> RemovableHandle:
        """The same for mocked modules."""
        return self._hook(_Action.MOCK, hook)

    def register_intern_hook(self, hook: Hook) -> RemovableHandle:
        """The same for packed modules."""
        return self._hook(_Action.INTERN, hook)

    # What is packed.

    def get_unique_id(self) -> str:
        """A number that is given once."""
        self._unique_id += 1
        return str(self._unique_id - 1)

    def save_source_file(
        self, module_name: str, file_or_directory: str, dependencies: bool = True
    ) -> None:
        """A file as a module, or all files of Python in a folder as a package."""
        path = Path(file_or_directory)
        files = list(path.glob("**/*.py")) if path.is_dir() else [path]
        for file in files:
            inner = file.relative_to(path).with_suffix("").parts if path.is_dir() else ()
            package = file.name == "__init__.py"
            parts = inner[:-1] if package and inner else inner
            text = file.read_bytes().decode()
            self.save_source_string(".".join((module_name, *parts)), text, package, dependencies)

    def save_source_string(
        self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True
    ) -> None:
        """A text as a module."""
        self.dependency_graph.add_node(
            module_name, source=src, is_package=is_package, provided=True, action=_Action.INTERN
        )
        if dependencies:
            self._add_dependencies(src, module_name, is_package)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """A module by its name."""
        if not isinstance(module_name, str):
            raise TypeError(
                "save_module() expects a string input, did you perhaps mean to pass `__name__`?"
            )
        self._intern(module_name, dependencies)

    def save_text(self, package: str, resource: str, text: str) -> None:
        """A text as a file of a package."""
        self.save_binary(package, resource, text.encode())

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Bytes as a file of a package."""
        self._write(file_of(package, resource), binary)

    def save_pickle(
        self, package: str, resource: str, obj: Any, dependencies: bool = True,
        pickle_protocol: int = 3,
    ) -> None:  # fmt: skip
        """An object, pickled, as a file of a package; its classes are packed by the rules."""
        if pickle_protocol not in (3, 4):
            raise AssertionError(
                f"torch.package only supports pickle protocols 3 and 4, got {pickle_protocol}"
            )
        name = file_of(package, resource)
        body, known = io.BytesIO(), set(self._blobs)
        PackagePickler(
            body, self.importer, pickle_protocol, self._keys, self._blobs, self._reduce
        ).dump(obj)
        for key in [k for k in self._blobs if k not in known]:
            content = self._blobs[key].bytes()
            self.zip_file.write_record(f".data/{key}.storage", content, len(content))
        node = f"<{package}.{resource}>"
        self.dependency_graph.add_node(node, action=_Action.INTERN, provided=True, is_pickle=True)
        if dependencies:
            self._add_globals(node, body.getvalue(), f"`{resource}` in package `{package}`")
        self._write(name, body.getvalue())

    def _reduce(self, obj: Any) -> tuple[Any, ...] | None:
        if type(obj).__name__ == "RecursiveScriptModule" and _gate_torchscript_serialization:
            raise Exception(
                "Serializing ScriptModules directly into a package is a beta feature. To use, set"
                " global `torch.package.package_exporter._gate_torchscript_serialization` to"
                " `False`."
            )
        if isinstance(obj, type) or not hasattr(obj, "__reduce_package__"):
            return None
        if id(obj) not in self._reduced:
            parts = obj.__reduce_package__(self)
            self._reduced[id(obj)] = ("reduce_package", id(obj), *parts)
        return self._reduced[id(obj)]

    def _add_globals(self, node: str, data: bytes, where: str) -> None:
        fields: dict[str, list[str]] = {}
        for module, name in globals_of(data):
            fields.setdefault(module, []).append(name)
        for module, names in fields.items():
            self.dependency_graph.add_edge(node, module)
            rule = None if _is_given(module) else self._rule_of(module)
            if rule is None or rule.action is not _Action.MOCK:
                self.add_dependency(module)
                continue
            self.dependency_graph.add_node(
                module,
                action=_Action.MOCK,
                error=PackagingErrorReason.MOCKED_BUT_STILL_USED,
                error_context=f"Object(s) '{names}' from module `{module}` was mocked out during"
                f" packaging but is being used in resource - {where}. ",
                provided=True,
            )

    # Modules.

    def _rule_of(self, module_name: str) -> _Rule | None:
        return next((r for p, r in self.patterns.items() if p.matches(module_name)), None)

    def _module(self, name: str) -> ModuleType:
        try:
            return self.importer.import_module(name)
        except ModuleNotFoundError:
            if not is_mangled(name):
                raise
            raise ModuleNotFoundError(
                f"Module not found: '{name}'. Make sure the PackageImporter that created this"
                " module is present in `self.importer`"
            ) from None

    def _exists(self, name: str) -> bool:
        try:
            self._module(name)
        except Exception:
            return False
        return True

    def _add_dependencies(self, source: str, module_name: str, is_package: bool) -> None:
        package = module_name if is_package else module_name.rsplit(".", 1)[0]
        try:
            references = find_files_source_depends_on(source, package)
        except Exception as error:
            self.dependency_graph.add_node(
                module_name,
                error=PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED,
                error_context=str(error),
            )
            return
        needed: dict[str, None] = {}
        for module, name in references:
            whole = f"{module}.{name}"
            if name is not None and self._exists(whole):
                needed[whole] = None
            elif self._exists(module):
                needed[module] = None
        for module in needed:
            self.dependency_graph.add_edge(module_name, module)
            self.add_dependency(module)

    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """A module that is needed, packed by the first rule that matches."""
        graph = self.dependency_graph
        if graph.nodes.get(module_name, {}).get("provided") is True:
            return
        special = {
            "torch_package_importer": _Action.SKIP, "_mock": _Action.REPACKAGED_MOCK_MODULE
        }.get(module_name, _Action.EXTERN if _is_given(module_name) else None)  # fmt: skip
        if special is not None:
            graph.add_node(module_name, action=special, provided=True)
            return
        rule = self._rule_of(module_name)
        if rule is None:
            graph.add_node(module_name, error=PackagingErrorReason.NO_ACTION)
            return
        rule.was_matched = True
        graph.add_node(module_name, action=rule.action, provided=True)
        if rule.action is _Action.DENY:
            graph.add_node(module_name, error=PackagingErrorReason.DENIED)
        if rule.action is _Action.INTERN:
            self._intern(module_name, dependencies)

    def _intern(self, module_name: str, dependencies: bool) -> None:
        module = self._module(module_name)
        module_name = demangle(module_name)
        facts: dict[str, Any] = {
            "action": _Action.INTERN, "is_package": hasattr(module, "__path__"), "provided": True
        }  # fmt: skip
        source = source_of(module)
        if source is None:
            self.dependency_graph.add_node(module_name, **facts, **why_no_source(module))
            return
        self.dependency_graph.add_node(module_name, **facts, source=source)
        if dependencies:
            self._add_dependencies(source, module_name, facts["is_package"])

    # The file.

    def _write(self, name: str, content: str | bytes) -> None:
        if name in self._written:
            raise AssertionError(
                f"Tried to write file '{name}', but it already exists in this archive. Please file"
                " a bug."
            )
        self._written.add(name)
        if is_mangled(name):
            raise AssertionError(
                f"Tried to save a torch.package'd module as '{name}'. Directly saving"
                " torch.package'd modules is not allowed."
            )
        data = content.encode() if isinstance(content, str) else content
        self.zip_file.write_record(name, data, len(data))

    def _write_source(self, module: str, source: str, is_package: bool) -> None:
        self._write(module.replace(".", "/") + ("/__init__.py" if is_package else ".py"), source)

    def _write_mocks(self) -> None:
        if "_mock.py" not in self._written:
            self._write_source("_mock", (Path(__file__).parent / "_mock.py").read_text(), False)

    def _write_modules(self) -> None:
        nodes = self.dependency_graph.nodes
        if any("error" in facts for facts in nodes.values()):
            raise PackagingError(self.dependency_graph, debug=self.debug)
        for pattern, rule in self.patterns.items():
            if not rule.allow_empty and not rule.was_matched:
                raise EmptyMatchError(
                    f"Exporter did not match any modules to {pattern}, which was marked as"
                    " allow_empty=False"
                )
        external = []
        for name, facts in nodes.items():
            action = facts["action"]
            for hook in self._hooks.get(action, {}).values():
                hook(self, name)
            if action is _Action.EXTERN:
                external.append(name)
            elif action is _Action.MOCK:
                self._write_mocks()
                self._write_source(name, _MOCKED, hasattr(self._module(name), "__path__"))
            elif action is _Action.REPACKAGED_MOCK_MODULE:
                self._write_mocks()
            elif action is _Action.INTERN and not facts.get("is_pickle"):
                self._write_source(name, facts["source"], facts["is_package"])
        self._write(".data/extern_modules", "\n".join(external) + "\n")

    def close(self) -> None:
        """Write the modules, and finish the file.

        PackagingError for modules that cannot be packed, EmptyMatchError for rules that match none.
        """
        self._write_modules()
        self._write(".data/python_version", platform.python_version())
        self._finish()

    def _finish(self) -> None:
        self.zip_file.write_end_of_file()
        if self.buffer is not None:
            self.buffer.flush()

    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(self, kind: type | None, error: object, traceback: object) -> None:
        if kind is None:
            self.close()
        else:
            self._finish()

    # What is known of the modules.

    def dependency_graph_string(self) -> str:
        """The graph of what needs what, in the language of Graphviz."""
        return self.dependency_graph.to_dot()

    def _with_action(self, action: _Action) -> list[str]:
        nodes = self.dependency_graph.nodes.items()
        return sorted(n for n, f in nodes if f.get("action") is action and "is_pickle" not in f)

    def externed_modules(self) -> list[str]:
        """The external modules, sorted."""
        return self._with_action(_Action.EXTERN)

    def interned_modules(self) -> list[str]:
        """The packed modules."""
        return self._with_action(_Action.INTERN)

    def mocked_modules(self) -> list[str]:
        """The mocked modules."""
        return self._with_action(_Action.MOCK)

    def denied_modules(self) -> list[str]:
        """The denied modules."""
        return self._with_action(_Action.DENY)

    def get_rdeps(self, module_name: str) -> list[str]:
        """What needs a module."""
        graph = self.dependency_graph
        return list(graph.predecessors(module_name)) if module_name in graph else []

    def all_paths(self, src: str, dst: str) -> str:
        """The paths between two modules, in the language of Graphviz."""
        text: str = self.dependency_graph.all_paths(src, dst)
        return text


def file_of(package: str, resource: str) -> str:
    """The path of a package's file; ValueError for a path as its name."""
    folder, name = os.path.split(resource)
    if folder:
        raise ValueError(f"{resource!r} must be only a file name")
    return f"{package.replace('.', '/')}/{name}"


def _is_given(module_name: str) -> bool:
    top = module_name.partition(".")[0]
    return top == "torch" or (top not in NOT_OF_THE_SYSTEM and top in sys.stdlib_module_names)
