"""Owns attributes of a program on its Functions' nodes that have names of the nodes' own."""

from __future__ import annotations

import sys

_PACKAGE = __name__.partition(".")[0] + "."
# What nodes are made of, which programs may have for their own: `ctx.index = index`.
OUR_NAMES = frozenset((
    "args", "edges", "free", "geoms", "hooks", "index", "label", "name", "next_edges", "op", "outs",
    "prehooks", "saved", "seq", "tensor_hooks", "unpack",
))  # fmt: skip
_SHADOWING: dict[type, type] = {}


def asked_by_program() -> bool:
    """Whether a program, not the library, runs the function that calls the one that asks."""
    place = str(sys._getframe(2).f_globals.get("__name__", ""))
    return not place.startswith((_PACKAGE, "torch."))


class _Shadowing:
    """A node of which a program sees its own attributes where it gave them names of ours."""

    def __getattribute__(self, name: str) -> object:
        if name in OUR_NAMES and asked_by_program():
            theirs = object.__getattribute__(self, "__dict__")["_attributes_of_program"]
            if name in theirs:
                return theirs[name]
        return super().__getattribute__(name)


def shadowing(cls: type) -> type:
    """The class of nodes as `cls` that show a program's attributes before their own."""
    if issubclass(cls, _Shadowing):
        return cls
    if cls not in _SHADOWING:
        members = {"__slots__": (), "__module__": cls.__module__}
        _SHADOWING[cls] = type(cls.__name__, (_Shadowing, cls), members)
    return _SHADOWING[cls]
