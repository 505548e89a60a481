"""Owns the names of what is compiled: functions and types, and numbers where two have one name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .errors import ScriptError
from .graph import Graph
from .kinds import ScriptType
from .schemas import ScriptDeclaration

_NAMES_IN_USE: set[str] = set()
_NUMBERS = itertools.count()


def module_path(module: str) -> str:
    """The name of a module of Python in the language's own."""
    if module == "__main__":
        return "__torch__"
    if module.split(".")[0] == "mindtorch":
        module = ".".join(["torch", *module.split(".")[1:]])
    return f"__torch__.{module}"


def unique_name(name: str) -> str:
    """`name`, which is taken from then on, with a number where it was taken before."""
    head, _, last = name.rpartition(".")
    while name in _NAMES_IN_USE:
        name = f"{head}.___torch_mangle_{next(_NUMBERS)}.{last}"
    _NAMES_IN_USE.add(name)
    return name


@dataclass
class LoweredFunction:
    """A function with a declaration; its graph is there where its source is."""

    name: str
    qualified: str
    schema: ScriptDeclaration
    made_graph: Graph | None = None
    lower: Callable[[], Graph] | None = None
    text: tuple[str, list[Any]] | None = None  # of one that was saved, with its constants

    @property
    def graph(self) -> Graph | None:
        """The graph, made when it is first asked for; None where the text cannot be lowered."""
        lower, self.lower = self.lower, None
        if self.made_graph is None and lower is not None:
            with suppress(NotImplementedError, ScriptError):
                self.made_graph = lower()
        return self.made_graph


@dataclass(eq=False)
class ClassType:
    """A class of the language: attributes with types, constants, methods."""

    qualified: str
    kind: ScriptType
    source: Any = None
    attributes: dict[str, ScriptType] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    modules: dict[str, ClassType] = field(default_factory=dict)
    methods: dict[str, Callable[[], LoweredFunction]] = field(default_factory=dict)
    is_module: bool = False
    parameters: frozenset[str] = frozenset()
    example: Any = None
    compiled: dict[str, LoweredFunction] = field(default_factory=dict)

    def ignored(self, name: str) -> tuple[ScriptDeclaration, bool] | None:
        """The declaration of a method that stays Python's, and whether it may not be called."""
        function = getattr(self.source, name, None)
        modifier = modifier_of(function) if function is not None else ""
        if function is None or modifier not in ("ignore", "unused"):
            return None
        return HOOKS.declaration(function, self), modifier == "unused"

    def method(self, name: str) -> LoweredFunction | None:
        """A method, compiled when it is first asked for."""
        if name not in self.compiled and name in self.methods:
            self.compiled[name] = self.methods[name]()
        return self.compiled.get(name)


CLASSES: dict[str, ClassType] = {}  # by qualified name


def class_of(kind: ScriptType) -> ClassType | None:
    """The class that a type names."""
    return CLASSES.get(kind.name) if kind.kind in ("Class", "Interface") else None


def modifier_of(function: Callable[..., Any]) -> str:
    """`ignore`, `unused` or `export`, by the function's decorator."""
    return str(getattr(function, "_torchscript_modifier", "")).partition(" ")[0]


class Hooks:
    """What the compiler, which is above all of this, does for it."""

    declaration: Callable[[Callable[..., Any], ClassType | None], ScriptDeclaration]
    compile_function: Callable[[Callable[..., Any], ClassType | None], LoweredFunction]
    graph_of: Callable[[Callable[..., Any], ClassType, ScriptDeclaration], Graph]
    function_of: Callable[[object], object]
    class_type: Callable[[type], ClassType]


HOOKS = Hooks()
