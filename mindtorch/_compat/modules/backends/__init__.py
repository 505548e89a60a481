"""Owns torch.backends' names: switches of other devices, kept and without effect."""

from __future__ import annotations

from typing import Any


class Switches:
    """Attributes that code sets and reads; `is_available()` is false."""

    def __init__(self, **values: Any):
        self.__dict__.update(values)

    def is_available(self) -> bool:
        return False

    def is_built(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


mkl = Switches()
mkldnn = Switches(enabled=False)
openmp = Switches()
nnpack = Switches()
opt_einsum = Switches(enabled=False, strategy=None)

quantized = Switches(engine="none", supported_engines=["none"])

from . import cpu, cuda, cudnn, mps, native  # noqa: E402 - they use Switches

__all__ = [
    "Switches",
    "cpu",
    "cuda",
    "cudnn",
    "mkl",
    "mkldnn",
    "mps",
    "native",
    "openmp",
    "opt_einsum",
    "quantized",
]

fp32_precision = "none"


def disable_global_flags() -> None:
    """Accepted without effect: switches are kept as they are set."""


def flags_frozen() -> bool:
    """False."""
    return False
