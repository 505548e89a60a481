"""Owns finding what the simulator's C++ implements; refuses duplicates and unknown names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from .catalog import WORKSPACE, Catalog

# An op row: every aclnnXxx among the arguments of a macro call ACLNN_…(…) in the first column.
ROW = re.compile(r"^ACLNN_[A-Z0-9_]+\(", re.MULTILINE)
# Two operators are named after no prefix of their own, those of images after their library.
OP = re.compile(r"\b(?:aclnn[A-Z]\w*|acldvpp[A-Z]\w*|aclRfft1D|aclStft)\b")
# A runtime function: defined with the marker ACLSIM_API in the first column.
API = re.compile(r"^ACLSIM_API\b[^;{(]*?\b(\w+)\s*\(", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def find_ops(sources: Iterable[Path], catalog: Catalog) -> list[str]:
    """Names of the operators that have a row, sorted."""
    paths: dict[str, Path] = {}
    for source in sources:
        text = COMMENT.sub("", source.read_text(encoding="utf-8"))
        for call in ROW.finditer(text):
            for name in OP.findall(_arguments(text, call.end())):
                if name in paths:
                    raise ValueError(f"{name}: rows in {paths[name].name} and {source.name}")
                if name not in catalog.functions or name + WORKSPACE not in catalog.functions:
                    raise ValueError(f"{source.name}: {name} is not an operator of the catalog")
                paths[name] = source
    return sorted(paths)


def find_functions(sources: Iterable[Path]) -> dict[str, Path]:
    """Name → file of every function marked ACLSIM_API."""
    paths: dict[str, Path] = {}
    for source in sources:
        for match in API.finditer(COMMENT.sub("", source.read_text(encoding="utf-8"))):
            if match[1] in paths:
                raise ValueError(f"{match[1]}: defined in {paths[match[1]]} and {source}")
            paths[match[1]] = source
    return paths


def _arguments(text: str, start: int) -> str:
    """The text from `start`, just after an opening parenthesis, to the one that closes it."""
    depth = 1
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[start:end]
    raise ValueError(f"unbalanced parentheses after {text[start : start + 40]!r}")
