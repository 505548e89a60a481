"""Owns the schedules made of others, and the one that follows a metric."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..._compat.method_names import written_out
from ...optim.optimizer import Optimizer
from ._base import EPOCH_DEPRECATION_WARNING, LRScheduler, check_optimizer, set_rate


@written_out("state_dict", "load_state_dict")
class _OfMembers(LRScheduler):
    """What schedules made of others share."""

    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """As the base's, members as their own state dicts."""
        skipped = ("optimizer", "_schedulers")
        state = {key: value for key, value in self.__dict__.items() if key not in skipped}
        state["_schedulers"] = [member.state_dict() for member in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what state_dict gave."""
        state = state_dict.copy()
        members = state.pop("_schedulers")
        self.__dict__.update(state)
        for member, saved in zip(self._schedulers, members, strict=True):
            member.load_state_dict(saved)


class SequentialLR(_OfMembers):
    """Runs one schedule after the other, the next one from each milestone on."""

    last_epoch: int

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler, but got no scheduler."
            )
        for i, scheduler in enumerate(schedulers):
            _check_member(type(self).__name__, i, scheduler, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Making the members has stepped each of them once: that is undone; whose turn it is begins.
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        self.recursive_undo()
        member = self._schedulers[bisect_right(self._milestones, 0)]
        member._initial_step()
        self._last_lr = member.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Takes back the first step of every member, and of their members."""
        members = (self if sched is None else sched).__dict__.get("_schedulers")
        if members is None:
            if sched is not None and hasattr(sched, "last_epoch"):
                sched.last_epoch -= 1
            return
        for member in members:
            self.recursive_undo(member)

    def step(self) -> None:
        """Goes to the next epoch, in the member whose turn it is."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        member = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            member._update_lr(0)
        else:
            member.step()
        self._last_lr = member.get_last_lr()


class ChainedScheduler(_OfMembers):
    """Steps several schedules together."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            _check_member(type(self).__name__, i, scheduler, optimizer)
        self._schedulers = list(schedulers)
        self.optimizer = optimizer
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def step(self) -> None:
        """Steps every member."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]


def _check_member(name: str, i: int, scheduler: Any, optimizer: Optimizer) -> None:
    if not hasattr(scheduler, "optimizer"):
        raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
    if isinstance(scheduler, ReduceLROnPlateau):
        raise ValueError(
            f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional "
            "kwargs to be specified when calling `step`, but got one at index "
            f"{i} in the given schedulers sequence."
        )
    if scheduler.optimizer is not optimizer:
        raise ValueError(
            f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
            f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is "
            f"different from {type(optimizer).__name__}."
        )


class ReduceLROnPlateau(LRScheduler):
    """Multiplies by factor when a metric has not improved for `patience` steps."""

    best: float
    cooldown_counter: int
    num_bad_epochs: int

    min_lrs: list[Any]
    default_min_lr: Any | None

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        self.factor = factor
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, list | tuple):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr: Any | None = min_lr
            self.min_lrs = [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode_worse: float = float("inf") if mode == "min" else -float("inf")
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def _is_better(self, a: float, best: float) -> bool:
        """Says whether metric `a` improves on `best` by more than the threshold."""
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return a < bound if self.mode == "min" else a > bound

    @property
    def in_cooldown(self) -> bool:
        """Says whether bad steps are not counted at present."""
        return self.cooldown_counter > 0

    def step(self, metrics: float, epoch: int | None = None) -> None:
        """Takes the metric of this step and lowers the rates when it has stalled."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch: int = epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    "The number of param groups in the `optimizer` "
                    f"({len(groups)}) differs from when `ReduceLROnPlateau` was initialized "
                    f"({len(self.min_lrs)}), usually due to a new param group being added to the "
                    "optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs: list[Any] = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            if old - new > self.eps:
                set_rate(group, new)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what state_dict gave."""
        self.__dict__.update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
