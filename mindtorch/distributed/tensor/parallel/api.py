"""Owns parallelize_module: styles for modules, by their names."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from mindtorch import nn

from ...device_mesh import DeviceMesh, current_mesh
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: nn.Module, device_mesh: DeviceMesh | None = None, parallelize_plan: Any = None, *,
    src_data_rank: int | None = 0,
) -> nn.Module:  # fmt: skip
    """Give a module, or those whose names match the keys of a dict, a style."""
    mesh = device_mesh or current_mesh()
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so"
            " this parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan,"
            f" {type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        token, _, rest = path.partition(".")
        if not path:
            parallelize_module(module, mesh, style)
            continue
        children = [child for name, child in module.named_children() if fnmatch(name, token)]
        if not children:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token"
                f" '{token}' in module {module}, skipping this plan entry.",
                stacklevel=2,
            )
        for child in children:
            plan = {rest: style} if rest else style
            parallelize_module(child, mesh, plan, src_data_rank=src_data_rank)
    return module
