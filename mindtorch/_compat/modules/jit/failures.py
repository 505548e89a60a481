"""Owns errors of scripted and traced code: where in the program a step failed, and the error."""

from __future__ import annotations

import dis
import inspect
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, TracebackType

from mindtorch._tensor.subclass import OURS

from . import state

_CONTEXT = 2  # lines around the one that failed
_HEAD = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript"


class Error(Exception):
    """What `raise` and `assert` of compiled code give."""

    __module__ = "mindtorch.jit"


@contextmanager
def interpreted(traced: bool = False) -> Iterator[None]:
    """Inside, an error says where in scripted code it was, and is a RuntimeError.

    TypeErrors and errors of classes of ours are as they are; inside of another scripted function,
    errors pass. What is raised in the program itself is an Error.
    """
    outermost = not (state.CURRENT.scripting or state.CURRENT.tracing)
    try:
        yield
    except Exception as error:
        places = _places(error.__traceback__)
        raised = isinstance(error, Error) or (not traced and _is_raised(error.__traceback__))
        usual = type(error) in ((RuntimeError,) if traced else _ERRORS)
        if not outermost or not places or not (raised or usual) or str(error).startswith(_HEAD):
            raise
        text = _traced_text(places) if traced else "".join(map(_scripted_text, places))
        kind, words = (Error if raised else RuntimeError), _words(error, raised)
        raise kind(f"{_HEAD} (most recent call last):\n{text}{words}\n") from None


_ERRORS = (RuntimeError, IndexError, KeyError, ValueError, ZeroDivisionError)
_WORDS = (  # of Python, and of the language
    (r"integer division or modulo by zero|integer modulo by zero", "division by 0"),
    (r"(.+) is not in list", r"'\1' is not in list"),
    (r"not enough values to unpack \(expected (\d+), got (\d+)\)",
     r"Expected \1 elements in a list but found \2"),
    (r"invalid literal for int.*", "stoll"),
    (r"could not convert string to float.*", "stod"),
    (r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)",
     r"select(): index \1 out of range for tensor of size [\3] at dimension \2"),
)  # fmt: skip


def _words(error: Exception, raised: bool) -> str:
    name = type(error).__name__
    if isinstance(error, AssertionError):
        return f"RuntimeError: AssertionError: {error}"
    if raised and not isinstance(error, Error):
        return f"{type(error).__module__}.{name}: {error}"
    if isinstance(error, KeyError):
        return f"RuntimeError: KeyError: {error.args[0]}"
    for pattern, text in _WORDS:
        if re.fullmatch(pattern, str(error)):
            return f"RuntimeError: {re.sub(pattern, text, str(error))}"
    return f"RuntimeError: {error}"


def _is_raised(trace: TracebackType | None) -> bool:
    """Whether the innermost step of a traceback is a `raise` or an `assert` of the program."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_code.co_filename.startswith(OURS):
        return False
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"


Place = tuple[CodeType, int, int]


def _places(trace: TracebackType | None) -> list[Place]:
    """The steps of the program in a traceback, the innermost last."""
    places = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(OURS):
            places.append((code, trace.tb_lineno, trace.tb_lasti))
        trace = trace.tb_next
    return places


def _traced_text(places: list[Place]) -> str:
    lines = [f"{c.co_filename}({line}): {c.co_name}\n" for c, line, _ in reversed(places)]
    outer = [f for f in traceback.extract_stack() if not f.filename.startswith(OURS)]
    lines += [f"{f.filename}({f.lineno}): {f.name}\n" for f in reversed(outer[-1:])]
    return "".join(lines)


def _scripted_text(place: Place) -> str:
    """A function's lines around a step, which is underlined."""
    code, line, instruction = place
    _, last, start, end = list(code.co_positions())[instruction // 2]
    head = f'  File "{code.co_filename}", line {line}, in {code.co_name}\n'
    try:
        lines, first = inspect.getsourcelines(code)
    except OSError:
        return head
    at = line - first
    text = lines[at].rstrip("\n")
    start, end = start or 0, end if end is not None and last == line else len(text)
    bracket = text.find("(", start, end)
    callee = text[start : bracket if bracket > 0 else end]
    if bracket > 0 and callee.replace(".", "").isidentifier():
        end = bracket
    if dis.opname[code.co_code[instruction]] == "RAISE_VARARGS":
        start, end = len(text) - len(text.lstrip()), len(text.rstrip().rstrip("\"')"))
    elif end != bracket:  # what closes a last call or text does not count
        end -= text[start:end].endswith(('"]', "']", ")"))
    before = "".join(lines[max(0, at - _CONTEXT) : at])
    after = "".join(lines[at + 1 : at + 1 + _CONTEXT])
    mark = f"{' ' * start}{'~' * (end - start)} <--- HERE\n"
    return f"{head}{before}{text}\n{mark}{after}"
