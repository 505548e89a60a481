"""Owns warnings of calls: they name the program's line, and torch's kernels give theirs once."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

# Code that a call or a backward pass runs through: written as text, or in folders that torch has
# in C.
_PACKAGE = re.escape(str(Path(__file__).parent.parent))
_WITHIN = re.compile(rf"<mindtorch |{_PACKAGE}/(?:_|ops/|utils/hooks)")

_warned: set[str] = set()
_always = False


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the innermost line that is not inside of a call."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _WITHIN.match(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def warn_once(text: str, key: str | None = None, category: type[Warning] = UserWarning) -> None:
    """A warning, the first time (of its text, or of `key`) or each time (set_warn_always)."""
    key = key or text
    if _always or key not in _warned:
        _warned.add(key)
        warn(text, category)


def is_warn_always_enabled() -> bool:
    """Whether `set_warn_always` asks for each warning each time."""
    return _always


def set_warn_always(b: bool, /) -> None:
    """Give warnings that come once in a process each time; the program's filters stay."""
    global _always
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _always = b
