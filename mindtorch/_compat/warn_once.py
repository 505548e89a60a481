"""Owns warnings that torch's kernels give once in a process, and whether they come each time."""

from __future__ import annotations

import warnings

_warned: set[str] = set()
_always = False


def warn_once(text: str) -> None:
    """A UserWarning, the first time or each time (torch.set_warn_always)."""
    if _always or text not in _warned:
        _warned.add(text)
        warnings.warn(text, UserWarning, stacklevel=3)


def is_warn_always_enabled() -> bool:
    """Whether `set_warn_always` asks for each warning each time."""
    return _always


def set_warn_always(b: bool, /) -> None:
    """Give warnings that come once in a process each time; the program's filters stay."""
    global _always
    _always = b
