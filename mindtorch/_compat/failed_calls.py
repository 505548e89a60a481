"""Owns reading a call from the stack: the name, and the arguments as they were given.

Entries see values alone. The entry's frame has them, the caller's bytecode which came by name.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from dis import Instruction, get_instructions
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from .missing_args import Missing

_VARARGS, _VARKEYWORDS = 4, 8  # CO_VARARGS, CO_VARKEYWORDS
# Forms that users call by name.
FORMS = frozenset(("function", "method", "inplace"))
# What an entry calls a local that holds an argument as it was given, before it was converted.
ORIGINAL = "given_"


@dataclass(frozen=True)
class FailedCall:
    """The name as signatures are listed by (`.add` is a method), and the arguments.

    A method's `self` is apart from the others: a tuple of it, empty for a function.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    self: tuple[Any, ...] = ()


def failed_call() -> FailedCall | None:
    """The call of the outermost entry that no code of users is below; None without one."""
    frame = _entry_frame()
    if frame is None:
        return None
    if frame.f_globals.get("__name__") == _CHOICE:
        values = frame.f_locals
        method = values["form"] != "function"
        if values["form"] not in FORMS:
            return None
        args = tuple(v for v in values["args"] if v.__class__ is not Missing)
        name, kwargs = "." * method + values["name"], dict(values["kwargs"])
        return FailedCall(name, args[method:], kwargs, args[:method])
    code = frame.f_code
    form = code.co_filename.strip("<>").removesuffix(", overloaded").rpartition(" ")[2]
    if form not in FORMS:
        return None
    method = form != "function"
    caller = frame.f_back
    total, names = (None, ()) if caller is None else _call_site(caller)
    arguments = _Arguments(frame, method, names)
    args = arguments.by_place(None if total is None else total - len(names), names)
    kwargs = arguments.by_name(len(args), names)
    return FailedCall("." * method + code.co_name, args[method:], kwargs, args[:method])


def _entry_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(_ENTRIES):
        frame = frame.f_back
    outer = frame
    while frame is not None and (
        frame.f_code.co_filename.startswith("<mindtorch ")
        or frame.f_globals.get("__name__", "").startswith("mindtorch._dispatch")
    ):
        choice = frame.f_code.co_name == "call" and frame.f_globals.get("__name__") == _CHOICE
        if choice or frame.f_code.co_filename.startswith(_ENTRIES):
            outer = frame
        frame = frame.f_back
    return outer


_ENTRIES = ("<mindtorch entry ", "<mindtorch composite ", "<mindtorch layer ")


_CHOICE = "mindtorch._dispatch.overloads"  # whose `call` has the arguments as they are


class _Arguments:
    """The values that an entry's parameters had when it was called."""

    def __init__(self, frame: FrameType, method: bool, of_caller: tuple[str, ...]) -> None:
        code, values = frame.f_code, frame.f_locals
        named = code.co_varnames
        count, only = code.co_argcount, code.co_kwonlyargcount
        after = count + only + bool(code.co_flags & _VARARGS)
        more = named[count + only] if code.co_flags & _VARARGS else None
        self.places = named[:count]
        self.only = named[count : count + only]
        self.values = {n: values.get(ORIGINAL + n, values.get(n)) for n in self.places + self.only}
        rest = values.get(ORIGINAL + more, values[more]) if more else ()
        self.more = rest if rest.__class__ is tuple else (rest,)
        self.extra = dict(values[named[after]]) if code.co_flags & _VARKEYWORDS else {}
        if more and rest == () and ORIGINAL + more in values:  # they came by name, or not at all
            self.extra |= {more: values[more]} if more in of_caller else {}
        self.method = method
        self.defaults = _defaults(frame)

    def _passed(self, name: str) -> bool:
        value = self.values[name]
        return value.__class__ is not Missing and value is not self.defaults.get(name, Missing)

    def by_place(self, count: int | None, names: tuple[str, ...]) -> tuple[Any, ...]:
        """The values by place: as many as the caller's bytecode says, where that can be."""
        free = [n for n in self.places if n not in names]
        free = free[: next((i for i, n in enumerate(self.places) if n in names), len(free))]
        last = max((i + 1 for i, n in enumerate(free) if self._passed(n)), default=0)
        if self.more:
            return tuple(self.values[n] for n in self.places) + self.more
        if count is None:  # of a call with `*args`: those by name are not told from them
            last = next((i for i, n in enumerate(free) if not self._passed(n)), len(free))
        for size in () if count is None else (count + self.method, count):
            if last <= size <= len(free):
                last = size
                break
        values = (self.values[n] for n in free[:last])
        return tuple(v for v in values if v.__class__ is not Missing)

    def by_name(self, placed: int, names: tuple[str, ...]) -> dict[str, Any]:
        """The values by name, in the order of the call where it is known."""
        rest = {n: self.values[n] for n in self.places[placed:] + self.only}
        known = {n: v for n, v in rest.items() if n in names or self._passed(n)}
        known |= self.extra
        ordered = {n: known[n] for n in names if n in known}
        return ordered | {n: v for n, v in known.items() if n not in ordered}


def _defaults(frame: FrameType) -> dict[str, Any]:
    """An entry's defaults by parameter: its globals name them `D_parameter`."""
    named = {n: v for n, v in frame.f_globals.items() if n.startswith("D_")}
    return {n[2:]: v for n, v in named.items()} | {"out": None}


@lru_cache(maxsize=4096)
def steps(code: CodeType) -> dict[int, tuple[Instruction, Instruction, Instruction]]:
    """Each instruction by its offset and by those of its caches, with the ones before and behind.

    Python 3.11 may call from PRECALL, which stands before CALL.
    """
    every = list(get_instructions(code, show_caches=True))
    bare = [s for s in every if s.opname not in ("PRECALL", "CACHE")]
    place = {s.offset: at for at, s in enumerate(bare)}
    around, at = {}, 0
    for step in every:
        at = place.get(step.offset, at + (step.opname == "PRECALL"))
        if 0 < at < len(bare) - 1:
            around[step.offset] = bare[at - 1], bare[at], bare[at + 1]
    return around


def names_of_call(
    frame: FrameType, before: Instruction, call: Instruction
) -> tuple[int, tuple[str, ...]] | None:
    """How many arguments a call has, and the names of those by name; None of what is no call."""
    if call.opname not in ("CALL", "CALL_KW", "CALL_FUNCTION", "CALL_FUNCTION_KW", "CALL_METHOD"):
        return None
    named = before.opname == "KW_NAMES" or call.opname.endswith("_KW")
    names = frame.f_code.co_consts[before.arg or 0] if named else ()
    return int(call.arg or 0), names if isinstance(names, tuple) else ()


def _call_site(frame: FrameType) -> tuple[int | None, tuple[str, ...]]:
    """How many arguments the call has that a frame is at, None if unknown, and the names."""
    around = steps(frame.f_code).get(frame.f_lasti)
    return (around and names_of_call(frame, *around[:2])) or (None, ())
