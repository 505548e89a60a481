"""Owns how a program that the language refuses is refused: what is said, and where."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NoReturn, TypeVar

from .graph import NotLowered
from .sources import ProgramText, begin, end

R = TypeVar("R")
_BEFORE, _AFTER = 2, 2  # lines shown around a fault


class ScriptError(RuntimeError):
    """A program that the language refuses; `certain` where it is so whatever is lowered here."""

    def __init__(self, text: str, certain: bool = False):
        super().__init__(text)
        self.text, self.certain, self.where = text, certain, ""

    def found_at(self, source: ProgramText, node: ast.AST) -> None:
        """Note the innermost place of the fault."""
        self.where = self.where or excerpt(source, node)


class FrontendError(NotLowered):
    """A construct of Python that the language has not."""

    def __init__(self, text: str):
        super().__init__(text)
        self.text, self.where = text, ""

    def found_at(self, source: ProgramText, node: ast.AST) -> None:
        """Note the innermost place of the fault."""
        self.where = self.where or excerpt(source, node)

    def __str__(self) -> str:
        return f"{self.text}:\n{self.where}"


class NotSupportedError(FrontendError):
    """A form of a construct that the language has not."""


class UnsupportedNodeError(NotSupportedError):
    """A kind of statement or expression that the language has not."""


for _error in (FrontendError, NotSupportedError, UnsupportedNodeError):
    _error.__module__ = "torch.jit.frontend"


def excerpt(source: ProgramText, node: ast.AST) -> str:
    """The lines around a node, with the node underlined."""
    line, column = begin(node)
    last, stop = end(node)
    lines = source.lines
    first = max(0, line - 1 - _BEFORE)
    text = [f'  File "{source.file}", line {source.first_line + line - 1}']
    for number, content in enumerate(lines[first : last + _AFTER], first + 1):
        text.append(content)
        if line <= number <= last:
            lead = len(content) - len(content.lstrip()) - source.indent
            start = column if number == line else lead
            width = (stop if number == last else len(content.rstrip()) - source.indent) - start
            mark = " " * (start + source.indent) + "~" * max(width, 1)
            text.append(mark + " <--- HERE" * (number == last))
    return "\n".join(line for line in text if line.strip()) + "\n"


def refused(error: ScriptError) -> NoReturn:
    """RuntimeError with the text of a fault and its place."""
    raise RuntimeError(f"\n{error.text}:\n{error.where}") from error


def at_boundary(action: Callable[[], R]) -> R:
    """What an action gives; a fault of the program is a RuntimeError with its place."""
    try:
        return action()
    except ScriptError as error:
        refused(error)


def check(action: Callable[[], object]) -> None:
    """Raise what is certainly refused; anything else is said when the result is asked for."""
    try:
        action()
    except ScriptError as error:
        if error.certain:
            refused(error)
    except FrontendError:
        raise
    except Exception:
        return  # the lowered form will say it
