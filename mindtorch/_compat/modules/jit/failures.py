"""Owns errors of scripted and traced code: where in the program a step failed, and the error."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, TracebackType

from mindtorch._tensor.subclass import OURS

from . import state

_CONTEXT = 2  # lines around the one that failed
_HEAD = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript"


@contextmanager
def interpreted(traced: bool = False) -> Iterator[None]:
    """Inside, an operator's RuntimeError says where in scripted code the operator is.

    Other errors are those of Python; inside of another scripted function, errors pass as they are.
    """
    outermost = not (state.CURRENT.scripting or state.CURRENT.tracing)
    try:
        yield
    except RuntimeError as error:
        if not outermost or type(error) is not RuntimeError or str(error).startswith(_HEAD):
            raise
        places = _places(error.__traceback__)
        text = _traced_text(places) if traced else "".join(map(_scripted_text, places))
        if not places:
            raise
        raise RuntimeError(
            f"{_HEAD} (most recent call last):\n{text}RuntimeError: {error}\n"
        ) from None


Place = tuple[CodeType, int, tuple[int | None, int | None, int | None, int | None]]


def _places(trace: TracebackType | None) -> list[Place]:
    """The steps of the program in a traceback, the innermost last."""
    places = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(OURS):
            positions = list(code.co_positions())
            places.append((code, trace.tb_lineno, positions[trace.tb_lasti // 2]))
        trace = trace.tb_next
    return places


def _traced_text(places: list[Place]) -> str:
    lines = [f"{c.co_filename}({line}): {c.co_name}\n" for c, line, _ in reversed(places)]
    outer = [f for f in traceback.extract_stack() if not f.filename.startswith(OURS)]
    lines += [f"{f.filename}({f.lineno}): {f.name}\n" for f in reversed(outer[-1:])]
    return "".join(lines)


def _scripted_text(place: Place) -> str:
    """A function's lines around a step, which is underlined."""
    code, line, (_, last, start, end) = place
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
    before = "".join(lines[max(0, at - _CONTEXT) : at])
    after = "".join(lines[at + 1 : at + 1 + _CONTEXT])
    mark = f"{' ' * start}{'~' * (end - start)} <--- HERE\n"
    return f"{head}{before}{text}\n{mark}{after}"
