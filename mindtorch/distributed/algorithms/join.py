"""Owns Join: training in which processes run out of inputs at different times.

A process that has none left takes part in the collectives of the others, as its hooks say.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple

import mindtorch
import mindtorch.distributed as dist

__all__ = ["Join", "JoinHook", "Joinable"]
_SKEW: Final = 1000


class JoinHook:
    """What a process does for one Joinable after its own inputs have ended."""

    def main_hook(self) -> None:
        """Take part in the collectives of one iteration of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once, when no process has inputs left."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """Of what is in no context."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """What can be in a Join; it calls Join.notify_join_context before its own collectives."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What is done for it after the inputs have ended; `kwargs` are those of Join."""

    @property
    @abstractmethod
    def join_device(self) -> mindtorch.device:
        """The device of Join's own collectives."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of Join's own collectives."""

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        """DistributedDataParallel has the methods, and another base."""
        if cls is not Joinable:
            return NotImplemented
        return all(hasattr(other, name) for name in cls.__abstractmethods__ - {"__init__"})


class Join:
    """`with Join([model, optimizer]):` around a loop over inputs, of which ranks have other counts.

    ValueError for no joinables and for those of several groups; RuntimeError on every rank when the
    first has no inputs left, where `throw_on_early_termination`.
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True,
        throw_on_early_termination: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throw_on_early_termination = throw_on_early_termination
        for at, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, at == 0)
        self._process_group = joinables[0].join_process_group
        if any(j.join_process_group != self._process_group for j in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._rank = dist.get_rank(self._process_group)
        self._device = joinables[0].join_device

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, *_: object) -> None:
        if not self._enable or kind:
            return
        iterations = 0
        while self._get_num_nonjoined_procs():
            if iterations > _SKEW:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_SKEW}. This means that rank "
                    f"{self._rank} has at least {_SKEW} fewer inputs than other currently-active "
                    "ranks. This level of skew could lead to performance degradation during "
                    "training.",
                    stacklevel=2,
                )
            if self._throw_on_early_termination:
                ones = mindtorch.ones(1, device=self._device)
                dist.all_reduce(ones, group=self._process_group)
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            for hook in self._join_hooks:
                hook.main_hook()
            iterations += 1
        for hook in self._join_hooks:
            hook.post_hook(iterations == 0)

    def _get_num_nonjoined_procs(self) -> float:
        count = mindtorch.zeros(1, device=self._device)
        dist.all_reduce(count, group=self._process_group)
        return count.item()

    @staticmethod
    def notify_join_context(joinable: Joinable) -> dist.Work | None:
        """Say that this process has inputs; the first joinable's call does, and gives the work.

        RuntimeError where a rank has ended and `throw_on_early_termination`.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(
                f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor"
            )
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        device, group = joinable.join_device, joinable.join_process_group
        work = dist.all_reduce(mindtorch.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = mindtorch.zeros(1, device=device)
            dist.all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError(
                    "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                )
        return work
