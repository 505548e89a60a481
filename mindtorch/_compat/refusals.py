"""Owns public names that are there to be refused: what a call says of itself, and why.

A module lists its names. Those of classes are classes, for isinstance and for subclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any


class _RefusedClass(type):
    """Classes to be refused: their public attributes, such as members of enumerations, too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_") or name in ("mro",):
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")
        return refused(
            f"{cls.__module__.replace('mindtorch', 'torch', 1)}.{cls.__name__}.{name}",
            str(cls.__doc__).partition(": ")[2],
        )


@cache
def refused(full_name: str, why: str) -> Any:
    """A class or function that raises NotImplementedError: `full_name` is its name in torch."""
    module, _, name = full_name.rpartition(".")
    text = f"{full_name}: {why}"

    def refuse(*_: object, **__: object) -> Any:
        raise NotImplementedError(text)

    home = module.replace("torch", "mindtorch", 1)
    if name[:1].isupper():
        # `except torch.AcceleratorError` wants an exception.
        bases = (RuntimeError,) if name.endswith(("Error", "Exception")) else ()
        return _RefusedClass(name, bases, {"__init__": refuse, "__module__": home, "__doc__": text})
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = home
    refuse.__doc__ = text
    return refuse


def without_kernel(name: str, backend: str) -> str:
    """What torch says of an operator that has no kernel for a kind of tensors."""
    return (
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend. This could be"
        " because the operator doesn't exist for this backend, or was omitted during the"
        " selective/custom build process (if using custom build)."
    )


def refusals(full_name: str, why: str, names: Iterable[str]) -> Callable[[str], Any]:
    """A module's `__getattr__`: the names that torch has there are refused when called."""
    known = frozenset(names)

    def find(name: str) -> Any:
        if name in known:
            return refused(f"{full_name}.{name}", why)
        raise AttributeError(
            f"module '{full_name.replace('torch', 'mindtorch', 1)}' has no attribute '{name}'"
        )

    return find
