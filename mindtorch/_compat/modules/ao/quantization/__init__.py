"""torch.ao.quantization: in eager mode and of graphs; exported programs are refused."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mindtorch._compat.absent_modules import refused_names
from mindtorch._compat.refusals import refused

from .fake_quantize import *  # noqa: F403
from .fuse_modules import *  # noqa: F403
from .fuser_method_mappings import *  # noqa: F403
from .observer import *  # noqa: F403
from .observer import _PartialWrapper as _PartialWrapper
from .qconfig import *  # noqa: F403
from .qconfig_mapping import *  # noqa: F403
from .quantization_mappings import *  # noqa: F403
from .quantize import *  # noqa: F403
from .stubs import *  # noqa: F403
from .utils import QuantType as QuantType


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if f"ao.quantization.{name}" in refused_names():
        return import_module(f"{__name__}.{name}")
    return refused(
        f"torch.ao.quantization.{name}",
        "mindtorch has quantisation of modules and of graphs of fx, not this",
    )
