"""Owns what a traced program's text says of a call: its arguments, its name and its line."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dis import Instruction, get_instructions
from types import CodeType, FrameType
from typing import Any, cast

from .._compat.failed_calls import names_of_call, steps
from .._dispatch.entry import arguments
from .._dispatch.overrides import _as_composite, _is_python
from ..ops.spec import Op

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


def root_call(target: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Call what is traced; frames outside of this one are none of its own."""
    return target(*args, **kwargs)


def _frames() -> Iterator[tuple[str, FrameType, Instruction, Instruction, Instruction]]:
    """Frames of the program and of modules: where from, and the instructions around the call."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not root_call.__code__:
        home = str(frame.f_globals.get("__name__", ""))
        inside = home.startswith("mindtorch.") and not home.startswith("mindtorch.nn.modules.")
        if not inside and not frame.f_code.co_filename.startswith("<mindtorch"):
            around = steps(frame.f_code).get(frame.f_lasti)
            if around is None:
                return
            yield home, frame, *around
        frame = frame.f_back


def result_name() -> str | None:
    """The local variable that takes what is being computed, None where none does at once."""
    for home, *_, behind in _frames():
        if behind.opname == "STORE_FAST" and not home.endswith("modules.module"):
            return str(behind.argval)
        if behind.opname != "RETURN_VALUE" and not home.endswith("modules.module"):
            return None
    return None


def unpacked_names() -> list[str]:
    """The variables of `a, b = ...`, where that takes what is being computed."""
    for home, frame, *_, behind in _frames():
        if behind.opname == "UNPACK_SEQUENCE":
            steps = get_instructions(frame.f_code)
            stores = [s for s in steps if s.offset > behind.offset][: behind.arg]
            return [str(s.argval) for s in stores if s.opname == "STORE_FAST"]
        if behind.opname != "RETURN_VALUE" and not home.endswith("modules.module"):
            return []
    return []


def call_site() -> tuple[int, tuple[str, ...]] | None:
    """How many positional arguments a call was written with, and its keywords; None if unknown."""
    for _, frame, before, call, _ in _frames():
        site = names_of_call(frame, before, call)
        return None if site is None else (site[0] - len(site[1]), site[1])
    return None


def source_line() -> str:
    """Where the program makes a call, and its text; "" if unknown."""
    for _, frame, *_ in _frames():
        path, line, name = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        text = linecache.getline(path, line).strip()
        if not text:
            return ""
        return f"# File: {path}:{line} in {name}, code: {text}"
    return ""


def _of_program(code: CodeType, names: Mapping[str, object]) -> bool:
    home = str(names.get("__name__", ""))
    return not home.startswith("mindtorch") and not code.co_filename.startswith("<mind")


def _program_frames() -> list[FrameType]:
    """The program's frames inside of what is traced, the innermost first."""
    frames, frame = list[FrameType](), cast("FrameType | None", sys._getframe(1))
    while frame is not None and frame.f_code is not root_call.__code__:
        if _of_program(frame.f_code, frame.f_globals):
            frames.append(frame)
        frame = frame.f_back
    return frames if frame is not None else []


def stack_text() -> str:
    """The program's lines inside of what is traced by a Tracer, the outermost first."""
    lines, frame = list[str](), cast("FrameType | None", sys._getframe(1))
    while frame is not None and frame.f_code.co_name != "_traced":
        code, number = frame.f_code, frame.f_lineno
        if _of_program(code, frame.f_globals):
            source = linecache.getline(code.co_filename, number).strip()
            place = f'File "{code.co_filename}", line {number}, in {code.co_name}'
            lines.insert(0, place + f"\n    {source}" * bool(source))
        frame = frame.f_back
    return "\n  ".join(lines) if frame is not None else ""


def variable_of(tensor: object) -> str | None:
    """Where the function that is traced has a tensor: `L['x']`, `G['x']` of its module."""
    frames = _program_frames()
    if not frames:
        return None
    for scope, variables in (("L", frames[-1].f_locals), ("G", frames[-1].f_globals)):
        for name, value in variables.items():
            if value is tensor:
                return f"{scope}[{name!r}]"
    return None


def _places(error: Exception | None) -> list[tuple[CodeType, int, int]]:
    """Code, line and instruction of the program's frames, or of those of an error."""
    if error is None:
        frames = _program_frames()[::-1]
        return [(f.f_code, f.f_lineno, f.f_lasti) for f in frames]
    places, trace = list[tuple[CodeType, int, int]](), error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if _of_program(code, trace.tb_frame.f_globals):
            places.append((code, trace.tb_lineno, trace.tb_lasti))
        trace = trace.tb_next
    return places


def user_stack(error: Exception | None = None) -> str:
    """Where the program is, or an error's, as a traceback shows it, the outermost frame first."""
    text = ""
    for code, number, at in _places(error):
        line = linecache.getline(code.co_filename, number).rstrip()
        start = list(code.co_positions())[at // 2][2] or 0
        source = line.lstrip()
        start -= len(line) - len(source)
        text += f'  File "{code.co_filename}", line {number}, in {code.co_name}\n'
        if source:
            text += f"    {source}\n"
            if start > 0:
                text += "    " + " " * start + "^" * (len(source) - start) + "\n"
    return text


def as_written(op: Op, form: str, raw: Sequence[Any]) -> tuple[Arguments, Keywords]:
    """Arguments by position and by name as the program has them, where that can be seen."""
    site = call_site()
    if site is None or form in ("operator", "augmented") or op.api.variadic:
        return _as_composite(op, raw)
    method = form in ("method", "inplace")
    args = arguments(op, "method") if method else op.schema.args
    values = dict(zip([a.name for a in op.schema.args], raw, strict=True))
    names = ["input" if a.name == "self" else a.name for a in args]
    count, keywords = site[0] + method, site[1]
    positional = sum(not a.keyword_only for a in args)  # more are several sizes
    if not set(keywords) <= set(names) or count > positional or count + len(keywords) > len(names):
        return _as_composite(op, raw)
    ordered = dict(zip(names, (values[a.name] for a in args), strict=True))
    if not {n for n, a in zip(names, args, strict=True) if not a.has_default} <= {
        *names[:count],
        *keywords,
    }:  # what is written there is another call, which makes this one
        return _as_composite(op, raw)
    return tuple(ordered.values())[:count], {k: ordered[k] for k in keywords}


def as_called_by_python(op: Op, form: str, raw: Sequence[Any]) -> tuple[Arguments, Keywords]:
    """The same; what torch writes in Python hands all of its options on by name."""
    return _as_composite(op, raw) if _is_python(op) else as_written(op, form, raw)
