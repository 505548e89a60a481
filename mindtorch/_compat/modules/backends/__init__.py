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


class _Engines(Switches):
    """torch.backends.quantized: names alone, as what is quantised here computes as FBGEMM does."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "engine" and value not in self.supported_engines:
            if value == "none":
                raise RuntimeError("quantized engine NoQEngine is not supported")
            raise RuntimeError(f"{value} is not a valid value for quantized engine")
        super().__setattr__(name, value)


quantized = _Engines(engine="x86", supported_engines=["qnnpack", "onednn", "x86", "fbgemm"])

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
