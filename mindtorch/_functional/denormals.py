"""Owns whether a thread's arithmetic takes subnormal numbers for zeros: a bit of the processor."""

from __future__ import annotations

import builtins
import ctypes
import platform

# By machine, of what C's fegetenv gives: the word that says it, and its bits.
_BITS = {"x86_64": (7, 0x8040), "AMD64": (7, 0x8040), "aarch64": (0, 1 << 24)}


def flushes(mode: builtins.bool) -> builtins.bool:
    """Let this thread take subnormal numbers for zeros, or not; False where it cannot."""
    where = _BITS.get(platform.machine())
    library = ctypes.CDLL(None)
    if where is None or not hasattr(library, "fegetenv") or not hasattr(library, "fesetenv"):
        return False
    word, bits = where
    environment = (ctypes.c_uint32 * 8)()
    library.fegetenv(environment)
    environment[word] = environment[word] | bits if mode else environment[word] & ~bits
    return builtins.bool(library.fesetenv(environment) == 0)
