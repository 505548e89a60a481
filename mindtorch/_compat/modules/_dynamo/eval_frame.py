"""torch._dynamo.eval_frame: the class of compiled modules, for isinstance."""

from __future__ import annotations


class OptimizedModule:
    """Stands for a compiled module: torch.compile gives back the module itself."""


def is_dynamo_supported() -> bool:
    """False: calls stay eager."""
    return False
