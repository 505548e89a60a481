"""Owns the switch of native cpu kernels, spelled as the others of torch.backends.

`with torch.backends.native.flags(enabled=False):` computes in numpy alone. For a whole process,
MINDTORCH_NATIVE=0 says the same.
"""

from __future__ import annotations

from contextlib import AbstractContextManager


def is_available() -> bool:
    """Whether the kernels were built."""
    from mindtorch._backends.cpu import native

    return native.built()


def is_enabled() -> bool:
    """Whether new calls may take them."""
    from mindtorch._backends.cpu import native

    return native.switch.enabled


def flags(*, enabled: bool) -> AbstractContextManager[None]:
    """Take them or not within a `with`; RuntimeError where they were not built."""
    from mindtorch._backends.cpu import native

    return native.flags(enabled=enabled)


__all__ = ["flags", "is_available", "is_enabled"]
