"""Owns methods that torch writes out in each class: errors of their arguments name that class."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)


def written_out(*names: str) -> Callable[[_Class], _Class]:
    """Give each direct subclass of a shared base functions `names` under its own name.

    "_Inplace.__init__() got an unexpected keyword argument" would name a class of ours alone.
    What inherits from those subclasses inherits as ever.
    """

    def decorate(base: _Class) -> _Class:
        def init_subclass(cls: Any, /, **options: object) -> None:
            parent: Any = super(base, cls)
            parent.__init_subclass__(**options)
            if base in cls.__bases__:
                for name in names:
                    write_out(cls, name)

        setattr(base, "__init_subclass__", classmethod(init_subclass))  # noqa: B010
        return base

    return decorate


def write_out(cls: type, name: str) -> None:
    """Copy the function `name` that `cls` inherits into it, unless it has one."""
    shared = getattr(cls, name)
    if name in vars(cls) or not isinstance(shared, FunctionType):
        return
    function = FunctionType(
        shared.__code__, shared.__globals__, name, shared.__defaults__, shared.__closure__
    )
    function.__qualname__, function.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
    function.__kwdefaults__, function.__doc__ = shared.__kwdefaults__, shared.__doc__
    function.__annotations__ = shared.__annotations__
    type.__setattr__(cls, name, function)
