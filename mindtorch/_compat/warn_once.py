"""Owns warnings that torch's kernels give once in a process, and whether they come each time."""

from __future__ import annotations

import warnings

_warned: set[str] = set()
_always = False


def warn_once(
    text: str, key: str | None = None, category: type[Warning] = UserWarning, stacklevel: int = 3
) -> None:
    """A warning, the first time (of its text, or of `key`) or each time (set_warn_always)."""
    key = key or text
    if _always or key not in _warned:
        _warned.add(key)
        warnings.warn(text, category, stacklevel=stacklevel)


def is_warn_always_enabled() -> bool:
    """Whether `set_warn_always` asks for each warning each time."""
    return _always


def set_warn_always(b: bool, /) -> None:
    """Give warnings that come once in a process each time; the program's filters stay."""
    global _always
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _always = b
