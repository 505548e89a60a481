"""Owns how instances of Tensor's subclasses are noticed: their Geometry has no plan.

Entries look plans up by the Geometry of their arguments. An instance of a subclass shows a copy of
its Geometry that no plan is kept for, so that its calls reach the slow path, which asks the class
(`__torch_function__`). Plain tensors pay nothing. Inside `off()` the instance is a plain tensor.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .geometry import Geometry

_marked: dict[Geometry, Geometry] = {}
_LIMIT = 1 << 12


class _SubclassState(threading.local):
    off = 0
    below = 0  # whether wrappers are the tensors that their geometry says they are


LOCAL = _SubclassState()


class Marked(Geometry):
    """A Geometry of a subclass's instance: equal in content, never in a plan's key."""

    __slots__ = ("plain",)
    plain: Geometry


def marked(geom: Geometry) -> Geometry:
    """The copy that stands for `geom` in instances of subclasses."""
    match = _marked.get(geom)
    if match is None:
        instance = Marked.__new__(Marked)
        for name in ("contiguous", "device", "dtype", "extent", "ndim", "np_strides", "numel",
                     "offset", "shape", "strides"):  # fmt: skip
            setattr(instance, name, getattr(geom, name))
        instance.plain = geom
        if len(_marked) > _LIMIT:
            _marked.clear()
        match = _marked[geom] = instance
    return match


def plain(geom: Geometry) -> Geometry:
    """The Geometry itself, of a marked one too."""
    return geom.plain if geom.__class__ is Marked else geom


@contextmanager
def off() -> Iterator[None]:
    """Instances of subclasses are plain tensors inside."""
    LOCAL.off += 1
    try:
        yield
    finally:
        LOCAL.off -= 1


def showing(slot: Any, state: str = "off") -> Any:
    """The property that a subclass has in place of the slot `_geom`.

    `state`: that in which its instances are plain tensors.
    """

    def read(self: Any) -> Geometry:
        geom = slot.__get__(self)
        return geom if getattr(LOCAL, state) else marked(geom)

    def write(self: Any, geom: Geometry) -> None:
        slot.__set__(self, plain(geom))

    return property(read, write)


# Properties whose values are tensors, so that a class that gives its own kind gives it here too.
# How files of ours begin, as code objects name them: by the path that was imported.
OURS = (os.path.dirname(os.path.dirname(__file__)) + os.sep, "<mindtorch")
_SETTABLE = frozenset(("data", "grad", "names", "requires_grad"))
# Methods that torch has in Python: what they take is handed on by name.
_BY_NAME: dict[str, dict[str, object]] = {
    "backward": {"gradient": None, "retain_graph": None, "create_graph": False, "inputs": None},
    "norm": {"p": "fro", "dim": None, "keepdim": False, "dtype": None},
    "unique": {"sorted": True, "return_inverse": False, "return_counts": False, "dim": None},
    "unique_consecutive": {"return_inverse": False, "return_counts": False, "dim": None},
}
_TENSOR_PROPERTIES = frozenset(("H", "T", "data", "grad", "imag", "mH", "mT", "real"))
# What changes a tensor's class asks none: a class's own `__torch_function__` may use it.
_NOT_ASKED = frozenset(("as_subclass",))
# Set by the dispatcher: `hand_over`, which asks the classes that want a call, and `function_of`,
# which gives the function behind a method of C; `through_mode`, which asks a dispatch mode.
DOOR: dict[str, Any] = {}


def asking(tensor: Any) -> Any:
    """What finds attributes of a subclass's instance: methods of `tensor` ask the class first.

    Entries of rows ask by themselves; this serves composites, overloads, and what is written by
    hand.
    """

    def read(self: Any, name: str) -> Any:
        if LOCAL.off or name[0] == "_":
            return object.__getattribute__(self, name)
        place = vars(tensor).get(name)
        if name in _TENSOR_PROPERTIES or (
            isinstance(place, property)
            and getattr(type(self), name) is place  # and no class's own
            and not hasattr(type(self), "_row_call")  # which takes rows alone
            and called_by_program()
        ):
            return DOOR["hand_over"](vars(tensor)[name].__get__, (self,), (self,), {})
        value = object.__getattribute__(self, name)
        if name in _NOT_ASKED or getattr(value, "__self__", None) is not self:
            return value
        func = vars(tensor).get(name)
        if func is None or getattr(type(self), name) is not func or not _asks_nobody(func):
            return value

        def method(*args: Any, **kwargs: Any) -> Any:
            if name in _BY_NAME:
                kwargs = {
                    **_BY_NAME[name],
                    **dict(zip(_BY_NAME[name], args, strict=False)),
                    **kwargs,
                }
                args = ()
            return DOOR["hand_over"](func, (self,), (self, *args), kwargs)

        return method

    return read


def asking_to_set(tensor: Any) -> Any:
    """What sets attributes of a subclass's instance: the class is asked for torch's own."""

    def write(self: Any, name: str, value: Any) -> None:
        if name in _SETTABLE and not LOCAL.off and called_by_program():
            DOOR["hand_over"](vars(tensor)[name].__set__, (self,), (self, value), {})
        else:
            object.__setattr__(self, name, value)

    return write


def called_by_program() -> bool:
    """Whether the caller was called by code that is not ours."""
    return not sys._getframe(2).f_code.co_filename.startswith(OURS)


# Methods that Python looks up in the class, so that `asking` does not see them, and those of them
# that are there once rows are loaded.
OPERATORS_OF_ROWS = frozenset(f"__{name}__" for name in (
    "getitem", "setitem", "contains", "add", "radd", "sub", "rsub", "mul", "rmul", "matmul",
    "rmatmul", "truediv", "rtruediv", "rdiv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow",
    "and", "or", "xor", "invert", "neg", "abs", "iadd", "isub", "imul", "itruediv", "int", "float",
    "bool", "index", "array", "iter",
))  # fmt: skip
ASKING_OPERATORS = frozenset((
    "__getitem__", "__setitem__", "__contains__", "__deepcopy__", "__len__", "__reversed__",
    "__repr__", "__int__",
    "__float__", "__bool__", "__index__", "__complex__", "__format__", "__invert__", "__rsub__",
    "__rpow__", "__rmod__", "__rtruediv__", "__floordiv__", "__rfloordiv__",
))  # fmt: skip


def asking_operator(tensor: Any, name: str) -> Callable[..., Any]:
    """A method of a subclass that Python calls by an operator: the class is asked first."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        func = getattr(tensor, name)
        if LOCAL.off:
            return func(self, *args, **kwargs)
        try:
            if name == "__repr__":
                kwargs = {"tensor_contents": None, **kwargs}
            return DOOR["hand_over"](func, (self,), (self, *args), kwargs)
        except TypeError:  # Python asks the other operand, as after torch's own operators
            if name in _BINARY:
                return NotImplemented
            raise

    method.__name__ = name
    return method


_BINARY = frozenset((
    "__rsub__", "__rpow__", "__rmod__", "__rtruediv__", "__floordiv__", "__rfloordiv__",
))  # fmt: skip


def _asks_nobody(func: Any) -> bool:
    code = getattr(DOOR["function_of"](func), "__code__", None)
    return code is not None and not code.co_filename.startswith("<mindtorch entry")


def disabled_torch_function_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The `__torch_function__` of subclasses whose instances are plain tensors to functions."""
    with off():
        return func(*args, **(kwargs or {}))
