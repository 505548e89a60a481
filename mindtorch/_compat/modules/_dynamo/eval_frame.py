"""torch._dynamo.eval_frame: the class of compiled modules, for isinstance."""

from __future__ import annotations

from ..compiler.optimized import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """True: functions are traced."""
    return True
