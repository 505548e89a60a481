"""torch.quantization: the older name of torch.ao.quantization."""

from __future__ import annotations

from typing import Any

from .ao import quantization

__path__: list[str] = []  # what is below is in absent_modules.txt


def __getattr__(name: str) -> Any:
    return getattr(quantization, name)
