"""Owns how errors name the class of a value."""

from __future__ import annotations

from typing import Any

_name_in_errors: Any = type.__dict__["__name__"]


class CClass(type):
    """A class that Python's errors call by its full name, as those of C: 'torch.Size'.

    Its `__name__` is without the module, as a class of C has it too.
    """

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], module: str = "torch"
    ):
        super().__init__(name, bases, namespace)
        if CClass not in map(type, bases):  # classes of users have none
            _name_in_errors.__set__(cls, f"{module}.{name}")

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], module: str = ""
    ) -> CClass:
        return super().__new__(mcs, name, bases, namespace)

    __name__: Any = property(lambda cls: cls.__qualname__)


def name_in_errors(kind: type) -> str:
    """The name by which Python's own errors call a class."""
    name: str = _name_in_errors.__get__(kind)
    return name


def class_name(value: object) -> str:
    """A class as C names it in errors: one that C defines with its module, others without."""
    kind = type(value)
    if kind.__module__.endswith(".func._batched"):  # no class of its own in torch
        return "Tensor"
    if kind.__module__.endswith(".return_types"):
        return f"torch.return_types.{kind.__name__}"
    if kind.__module__ == "builtins" or kind.__flags__ & _HEAP_TYPE:
        return name_in_errors(kind)
    return f"{kind.__module__}.{kind.__name__}"


def name_class(kind: type, name: str, module: str) -> None:
    """Let a class be called as the one that torch has for its instances."""
    kind.__name__ = kind.__qualname__ = name
    kind.__module__ = module


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: its tp_name has no module
