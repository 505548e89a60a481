"""Owns what an expression can be besides a value: functions, modules, ranges, tuples of such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .graph import ScriptValue
from .kinds import ScriptType
from .matching import Supplied
from .unit import ClassType, LoweredFunction


class Sugar:
    """Something that an expression stands for."""


@dataclass
class Simple(Sugar):
    """A value of the graph."""

    value: ScriptValue


@dataclass
class OperatorCall(Sugar):
    """An operator, with the object whose method it is."""

    name: str
    self_value: Supplied | None = None
    magic: str = ""


@dataclass
class Cast(Sugar):
    """`int`, `float`, `bool`, `str` of a value."""

    name: str
    kind: ScriptType
    magic: str


@dataclass
class TensorCast(Sugar):
    """A method of tensors that names a dtype: `x.float()`."""

    dtype: int
    value: ScriptValue


@dataclass
class FunctionChoice(Sugar):
    """A function with a declaration, or several of one name that are tried in order."""

    candidates: Sequence[LoweredFunction]
    flag: str = ""


@dataclass
class Method(Sugar):
    """A method of an object."""

    owner: ScriptValue
    name: str
    function: LoweredFunction


@dataclass
class PythonObject(Sugar):
    """A module of Python, or another object whose attributes are looked up at once."""

    value: Any


@dataclass
class ModuleObject(Sugar):
    """A module of layers."""

    value: ScriptValue
    type: ClassType


@dataclass
class ClassObject(Sugar):
    """A class of the language."""

    type: ClassType


@dataclass
class NamedTuple(Sugar):
    """A class of named tuples."""

    kind: ScriptType
    source: type


@dataclass
class Special(Sugar):
    """A form that looks at its arguments' text: `isinstance`, `range`, `annotate`."""

    form: str


@dataclass
class Raised(Sugar):
    """A class of exceptions, or an instance: then with its message."""

    name: str
    message: ScriptValue | None = None
    class_name: ScriptValue | None = None


@dataclass
class Range(Sugar):
    """`range`, whose start is zero where it has only an end."""

    start: ScriptValue
    end: ScriptValue
    step: ScriptValue
    only_end: bool
    length: int | None = None


@dataclass
class Together(Sugar):
    """Several things that are iterated over at once: `zip`, `enumerate`."""

    children: list[Sugar] = field(default_factory=list)
    length: int | None = None


@dataclass
class TupleOfThings(Sugar):
    """A tuple of any things; a loop over it is written out."""

    members: list[Sugar]


@dataclass
class Returning(Sugar):
    """A method whose result is known: `items` of a module."""

    result: Sugar


@dataclass
class Printing(Sugar):
    """`print`."""


@dataclass
class IgnoredFunction(Sugar):
    """A function that stays Python's, or one that may not be called where it is dropped."""

    schema: Any
    dropped: bool = False
    owner: ScriptValue | None = None
