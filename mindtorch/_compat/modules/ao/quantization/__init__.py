"""torch.ao.quantization's names: classes for isinstance and for subclasses; use is refused."""

from __future__ import annotations

from typing import Any

from mindtorch._compat.refusals import refused


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return refused(f"torch.ao.quantization.{name}", "mindtorch has no quantised modules")
