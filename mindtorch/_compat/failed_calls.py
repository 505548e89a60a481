"""Owns reading a call that failed from the stack: the name, and the arguments as they were given.

Entries see values alone. The entry's frame has them, the caller's bytecode which came by name.
"""

from __future__ import annotations

import dis
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

from .missing_args import Missing

_VARARGS, _VARKEYWORDS = 4, 8  # CO_VARARGS, CO_VARKEYWORDS
# Forms that users call by name.
FORMS = frozenset(("function", "method", "inplace"))
# What an entry calls a local that holds an argument as it was given, before it was converted.
ORIGINAL = "given_"


@dataclass(frozen=True)
class FailedCall:
    """The name as signatures are listed by (`.add` is a method), and the arguments."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


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
        return FailedCall("." * method + values["name"], args[method:], dict(values["kwargs"]))
    code = frame.f_code
    form = code.co_filename.strip("<>").removesuffix(", overloaded").rpartition(" ")[2]
    if form not in FORMS:
        return None
    method = form != "function"
    arguments = _Arguments(frame, method)
    caller = frame.f_back
    total, names = (None, ()) if caller is None else _call_site(caller)
    args = arguments.by_place(None if total is None else total - len(names), names)
    kwargs = arguments.by_name(len(args), names)
    return FailedCall("." * method + code.co_name, args[method:], kwargs)


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

    def __init__(self, frame: FrameType, method: bool) -> None:
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


def _call_site(frame: FrameType) -> tuple[int | None, tuple[str, ...]]:
    """How many arguments the call has that a frame is at, None if unknown, and the names."""
    recent: list[dis.Instruction] = []
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset > frame.f_lasti:
            break
        recent = [*recent[-2:], instruction]
    if not recent or not recent[-1].opname.startswith("CALL"):
        return None, ()
    if recent[-1].opname.startswith("CALL_FUNCTION_EX"):
        return None, ()
    if recent[-1].opname in ("CALL_KW", "CALL_FUNCTION_KW"):
        at = recent[-2].arg
    else:
        at = next((i.arg for i in recent if i.opname == "KW_NAMES"), None)
    constants = frame.f_code.co_consts
    names = constants[at] if at is not None and at < len(constants) else ()
    return recent[-1].arg, names if isinstance(names, tuple) else ()
