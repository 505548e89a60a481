"""Owns the names of torch.nn: layers, containers, parameters, functional, init and utilities."""

from typing import Any

from . import functional, init, modules, parallel, parameter, utils
from .modules import *
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter",
    "factory_kwargs", "functional", "init", "modules", "parallel", "parameter", "utils",
]  # fmt: skip
__all__ += modules.__all__


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """device, dtype and memory_format of `kwargs` and of its "factory_kwargs"; TypeError else."""
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    if unexpected := kwargs.keys() - names - {"factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in names & kwargs.keys():
        if name in result:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        result[name] = kwargs[name]
    return result
