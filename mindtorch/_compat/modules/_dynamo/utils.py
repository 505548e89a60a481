"""torch._dynamo.utils: questions about a compiler that is not here."""

from __future__ import annotations

from typing import Any

from ..compiler.recorder import counters

__all__ = ["counters", "is_compile_supported"]


def is_compile_supported(device_type: Any) -> bool:
    """False: calls stay eager."""
    return False
