"""torch.quantization: the older name of torch.ao.quantization."""

from __future__ import annotations

from typing import Any

from mindtorch._compat.shadowed import keep

from .ao import quantization

__path__: list[str] = []  # what is below is in absent_modules.txt
keep(__name__, {
    "quantize": lambda: quantization.quantize, "fuse_modules": lambda: quantization.fuse_modules,
})  # fmt: skip


def __getattr__(name: str) -> Any:
    return getattr(quantization, name)
