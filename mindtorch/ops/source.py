"""Owns functions that are written as source: the one place that compiles text.

Written, as dataclasses do, where generic code over arguments costs more than a small operation.
Tracebacks and debuggers show the text: it is entered into `linecache` under the function's place.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

from .codes import CODES


def compiled(source: str, place: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """The function that `source` defines first, with `scope` as its globals.

    `place` names what it was written for, such as `entry add`; it stands in tracebacks.
    """
    filename = f"<mindtorch {place}>"
    exec(CODES.of(source, filename), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return scope[source[source.index("def ") + 4 : source.index("(")]]
