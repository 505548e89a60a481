"""Owns the text of a program: its syntax tree, and the place where each part of it begins."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .graph import NotLowered, Place


@dataclass
class ProgramText:
    """A function's tree and where its text stands."""

    tree: ast.FunctionDef
    file: str
    first_line: int
    indent: int
    lines: list[str]

    def place(self, node: ast.AST) -> Place:
        """Where a node begins, as torch counts it."""
        line, column = begin(node)
        return self.file, self.first_line + line - 1, column + self.indent


def begin(node: ast.AST) -> tuple[int, int]:
    """The line and the column of a node; an operator begins with its left side."""
    match node:
        case ast.BinOp(left=left) | ast.Compare(left=left):
            return begin(left)
        case ast.BoolOp(values=values):
            return begin(values[0])
        case ast.Call(func=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
            return begin(inner)
        case ast.IfExp(body=body):
            return begin(body)
        case ast.Assign(targets=targets):
            return begin(targets[0])
        case ast.AugAssign(target=target):
            return begin(target)
    assert isinstance(node, ast.expr | ast.stmt | ast.arg)
    return node.lineno, node.col_offset


def end(node: ast.AST) -> tuple[int, int]:
    """The line and the column where a node ends; a call ends with what is called."""
    if isinstance(node, ast.Call):
        return end(node.func)
    assert isinstance(node, ast.expr | ast.stmt | ast.arg)
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def source_of(function: Callable[..., Any]) -> ProgramText:
    """The source of a function; NotLowered where there is none, or it is no plain function."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise NotLowered(f"no source of {function!r}") from error
    text = "".join(lines)
    plain = textwrap.dedent(text)
    indent = len(text.split("\n", 1)[0]) - len(plain.split("\n", 1)[0])
    tree = ast.parse(plain).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise NotLowered(f"{function!r} is no plain function")
    file = inspect.getsourcefile(function) or "<string>"
    return ProgramText(tree, file, first, indent, text.splitlines())
