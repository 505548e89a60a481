"""torch._dynamo.eval_frame: the class of compiled modules, for isinstance."""

from __future__ import annotations


class OptimizedModule:
    """Stands for a compiled module: torch.compile gives back the module itself."""
