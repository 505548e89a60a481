"""torch.ao.nn: modules for quantisation; each package loads when it is first asked for."""

from importlib import import_module
from types import ModuleType

__all__ = ["intrinsic", "qat", "quantizable", "quantized", "sparse"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
