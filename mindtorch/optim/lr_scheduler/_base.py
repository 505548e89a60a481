"""Owns LRScheduler: base rates, epochs, the order of steps, state dicts; refuses the formulas."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..._tensor.tensor import Tensor
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)

_ORDER_WARNING = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
    "you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  "
    "Failure to do this will result in PyTorch skipping the first value of the learning rate "
    "schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)

_OVERRIDDEN_WARNING = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. "
    "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


def set_rate(group: dict[str, Any], value: float) -> None:
    """Sets a group's rate; a tensor rate is filled in place, as a captured step holds it."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(value))
    else:
        group["lr"] = value


def check_optimizer(optimizer: Optimizer) -> None:
    """TypeError for anything but an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value per parameter group: a list of the right length, or one value repeated."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups. "
                         f"{name} has {len(value)} values, param_groups has {groups}.")  # fmt: skip
    return list(value)


class LRScheduler:
    """Base of every schedule: subclasses give `get_lr`, from the groups' present rates."""

    last_epoch: int

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                rate = group["lr"]
                group.setdefault("initial_lr", rate.clone() if isinstance(rate, Tensor) else rate)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                    "scheduler with last_epoch >= 0.\nThis typically happens when:\n1. You're "
                    "trying to resume training from a checkpoint but haven't properly loaded the "
                    "optimizer state\n2. You're using last_epoch >= 0 for a fresh training run "
                    "(not recommended)"
                )
        self.base_lrs: list[Any] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _track_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with _initial(self):
            self.step()

    def state_dict(self) -> dict[str, Any]:
        """Gives every attribute but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what state_dict gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step set."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates of the present epoch; subclasses give it."""
        raise NotImplementedError

    def _rates(self) -> list[Any]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, "
                "please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    if TYPE_CHECKING:  # subclasses take other arguments

        def step(self, *args: Any, **kwargs: Any) -> None: ...

    else:

        def step(self, epoch: int | None = None) -> None:
            """Goes to the next epoch (or to `epoch`) and sets its rates."""
            if self._step_count == 1:
                self._check_order()
            self._step_count += 1
            if epoch is not None:
                warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
            self._update_lr(epoch)

    def _check_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(_OVERRIDDEN_WARNING, UserWarning, stacklevel=3)
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(_ORDER_WARNING, UserWarning, stacklevel=3)

    def _update_lr(self, epoch: int | None = None) -> None:
        with _inside_step(self):
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed is None else closed()
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            set_rate(group, value)
        self._last_lr: list[Any] = [_plain(group["lr"]) for group in self.optimizer.param_groups]


def _plain(rate: float) -> float:
    return rate.clone() if isinstance(rate, Tensor) else rate


@contextmanager
def _inside_step(scheduler: LRScheduler) -> Iterator[None]:
    scheduler._get_lr_called_within_step = True
    try:
        yield
    finally:
        scheduler._get_lr_called_within_step = False


@contextmanager
def _initial(scheduler: LRScheduler) -> Iterator[None]:
    scheduler._is_initial = True
    try:
        yield
    finally:
        scheduler._is_initial = False


def _track_steps(optimizer: Any) -> None:
    """Notes on the optimizer that it has stepped, so that a
    wrong order of calls can be warned of."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    original, holder = (
        optimizer.step.__func__,
        weakref.ref(optimizer),
    )  # no cycle: it is freed at once

    @functools.wraps(original)
    def tracked(*args: Any, **kwargs: Any) -> Any:
        stepping: Any = holder()
        stepping._opt_called = True
        return original(stepping, *args, **kwargs)

    tracked.__dict__["_wrapped_by_lr_sched"] = True
    optimizer.step = tracked
