"""Owns the mean of parameters over ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import mindtorch
import mindtorch.distributed as dist
from mindtorch.distributed import ProcessGroup, group
from mindtorch.nn import Parameter

__all__ = [
    "ProcessGroup", "average_parameters", "average_parameters_or_parameter_groups",
    "get_params_to_average", "group",
]  # fmt: skip

Parameters = Iterable[Parameter] | Iterable[dict[str, Any]]


def average_parameters(
    params: Iterator[Parameter], process_group: ProcessGroup | int | None
) -> None:
    """Parameters become the mean of all ranks', who is not in the group keeps theirs."""
    where = group.WORLD if process_group is None else process_group
    if dist.get_rank(where) < 0:
        return
    mine = list(params)
    flat = mindtorch.cat([p.detach().reshape(-1) for p in mine])
    flat /= dist.get_world_size(where)
    dist.all_reduce(flat, group=where)
    for p, part in zip(mine, flat.split([p.numel() for p in mine]), strict=True):
        p.data = part.view_as(p).type_as(p)


def get_params_to_average(params: Parameters) -> list[Parameter]:
    """Those with gradients, of parameters or groups; NotImplementedError for other classes."""
    learning: list[Parameter] = []
    for one in params:
        if not isinstance(one, Parameter | dict):
            raise NotImplementedError(f"Parameter input of type {type(one)} is not supported")
        several = one["params"] if isinstance(one, dict) else [one]
        learning += [p for p in several if p.grad is not None]
    return learning


def average_parameters_or_parameter_groups(
    params: Parameters, process_group: ProcessGroup | int | None
) -> None:
    """The mean over ranks of a model's parameters, or of an optimizer's groups."""
    average_parameters(iter(get_params_to_average(params)), process_group)
