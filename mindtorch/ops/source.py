"""Owns functions that are written as source: the one place that compiles text.

Written, as dataclasses do, where generic code over arguments costs more than a small operation.
Tracebacks and debuggers show the text: it is entered into `linecache` under the function's place.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import CodeType
from typing import Any

from .codes import CODES

_COMPILED: dict[str, CodeType] = {}  # by source: many operators' functions differ in globals alone


def _code(source: str, filename: str) -> CodeType:
    code = _COMPILED.get(source)
    if code is None:
        _COMPILED[source] = code = CODES.of(source)
    return _placed(code, filename)


def _placed(code: CodeType, filename: str) -> CodeType:
    """The code as if it stood in another file."""
    inner = tuple(_placed(c, filename) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=filename, co_consts=inner)


def compiled(source: str, place: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """The function that `source` defines first, with `scope` as its globals.

    `place` names what it was written for, such as `entry add`; it stands in tracebacks.
    """
    filename = f"<mindtorch {place}>"
    exec(_code(source, filename), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return scope[source[source.index("def ") + 4 : source.index("(")]]
