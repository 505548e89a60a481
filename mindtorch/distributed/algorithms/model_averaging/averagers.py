"""Owns what averages parameters over ranks every few steps."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import mindtorch.distributed as dist

from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


def _require_steps(warmup_steps: int) -> int:
    if warmup_steps < 0:
        raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
    return warmup_steps


def _warn_of_one(what: str) -> None:
    warnings.warn(
        f"When {what} is 1, no need to use model averaging because the communication cost of "
        "all-reducing parameters will be no less than the cost of all-reducing gradients by "
        "DistributedDataParallel in the backward pass. Therefore, only DistributedDataParallel "
        "should be used for this case.",
        stacklevel=3,
    )


class ModelAverager(ABC):
    """Counts steps; `process_group` is the group of all for None."""

    def __init__(self, process_group: dist.ProcessGroup | None = None) -> None:
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: utils.Parameters) -> None:
        """Count a step, and average the parameters at some."""
        raise NotImplementedError


class PeriodicModelAverager(ModelAverager):
    """Averages at every `period`-th step from `warmup_steps` on."""

    def __init__(
        self, period: int, warmup_steps: int = 0, process_group: dist.ProcessGroup | None = None
    ) -> None:
        super().__init__(process_group)
        self.warmup_steps = _require_steps(warmup_steps)
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            _warn_of_one("period")
        self.period = period

    def average_parameters(self, params: Any) -> None:
        past = self.step - self.warmup_steps
        if past >= 0 and past % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
