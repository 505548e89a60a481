"""Owns means of parameters over groups of several sizes, larger ones less often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mindtorch.distributed as dist

from . import averagers, utils

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """`period_group_size_dict` names periods, small ones first, and the sizes of their groups; at a
    step that several periods divide, the largest counts.

    ValueError for none, for periods below one, and where the last group is not the whole.
    """

    def __init__(
        self, period_group_size_dict: Mapping[int, int] | None = None, warmup_steps: int = 0,
        process_group: dist.ProcessGroup | None = None,
    ) -> None:  # fmt: skip
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError(
                "The minimum period in arg ``period_group_size_dict`` must be a positive value."
            )
        if self._periods[-1] == 1:
            averagers._warn_of_one("the maximum period in arg ``period_group_size_dict``")
        whole, last = (
            dist.get_world_size(self.process_group), list(period_group_size_dict.values())[-1]
        )  # fmt: skip
        if last != whole:
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {last} must be equal to the "
                f"size of arg ``process_group`` {whole}."
            )
        self.period_process_group_dict: dict[int, dist.ProcessGroup | None] = {
            period: self.process_group
            if size == whole
            else dist.new_subgroups(group_size=size, group=self.process_group)[0]
            for period, size in period_group_size_dict.items()
        }
        self.warmup_steps = averagers._require_steps(warmup_steps)

    def _find_process_group(self) -> dist.ProcessGroup | None:
        """The group of the largest period that divides the step."""
        periods = (p for p in reversed(self._periods) if self.step % p == 0)
        period = next(periods, None)
        return None if period is None else self.period_process_group_dict[period]

    def average_parameters(self, params: Any) -> None:
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
