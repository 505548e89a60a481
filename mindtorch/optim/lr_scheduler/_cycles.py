"""Owns the schedules that come back: warm restarts, cycles, one cycle."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from ...optim.optimizer import Optimizer
from ._base import LRScheduler, check_optimizer, per_group, set_rate


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine over T_i epochs, then again from base with T_i · T_mult."""

    T_i: int

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, int | float):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: Any = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Goes on by one epoch, or to `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur = self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        else:
            self._jump(epoch)
        self.last_epoch: int = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            set_rate(group, value)
        self._last_lr = self._rates()

    def _jump(self, epoch: int) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            done = self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_cur = epoch - done
            self.T_i = self.T_0 * self.T_mult**n


def _momentum_key(optimizer: Optimizer) -> str | None:
    """Where a group keeps its momentum: `momentum`, or the first of `betas`."""
    for key in ("momentum", "betas"):
        if key in optimizer.defaults:
            return key
    return None


def _set_momentum(group: dict[str, Any], key: str, value: float) -> None:
    group[key] = (value, *group["betas"][1:]) if key == "betas" else value


class CyclicLR(LRScheduler):
    """Goes from base_lr to max_lr and back, with an amplitude that may shrink."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        bases = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, bases, strict=True):
                set_rate(group, rate)
        self.max_lrs: list[Any] = per_group("max_lr", optimizer, max_lr)
        down = float(step_size_up if step_size_down is None else step_size_down)
        self.total_size: float = float(step_size_up) + down
        self.step_ratio: float = float(step_size_up) / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode: str = scale_mode if scale_fn or mode != "exp_range" else "iterations"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = bases

    def _start_momentum(self, base: float, largest: float, last_epoch: int) -> None:
        key = _momentum_key(self.optimizer)
        if key is None:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1: bool = key == "betas"
        self.base_momentums: list[Any] = per_group("base_momentum", self.optimizer, base)
        self.max_momentums: list[Any] = per_group("max_momentum", self.optimizer, largest)
        if last_epoch == -1:
            pairs = zip(self.optimizer.param_groups, self.max_momentums, strict=True)
            for i, (group, momentum) in enumerate(pairs):
                _set_momentum(group, key, momentum)
                group["max_momentum"] = self.max_momentums[i]
                group["base_momentum"] = self.base_momentums[i]

    def scale_fn(self, x: float) -> float:
        """The amplitude's factor at cycle (or iteration) x."""
        if self._scale_fn_custom is not None:
            return float(self._scale_fn_custom(x))
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else float(self.gamma**x)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            key = "betas" if self.use_beta1 else "momentum"
            pairs = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, pairs, strict=True):
                _set_momentum(group, key, high - (high - low) * height * scale)
        ranges = zip(self.base_lrs, self.max_lrs, strict=True)
        return [base + (top - base) * height * scale for base, top in ranges]

    def state_dict(self) -> dict[str, Any]:
        """As the base's, without a custom scale function."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        saved = custom is not None and not isinstance(custom, types.FunctionType)
        state["_scale_fn_custom"] = dict(custom.__dict__) if saved else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what state_dict gave."""
        state = state_dict.copy()
        saved = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if saved is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(saved)


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))


def _linear(start: float, end: float, share: float) -> float:
    return (end - start) * share + start


class OneCycleLR(LRScheduler):
    """Rises to max_lr, then falls far below the start, momentum the other way."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps: int = _total(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = self._phases(pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            tops = per_group("max_lr", optimizer, max_lr)
            for group, top in zip(optimizer.param_groups, tops, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _phases(self, share: float, three: bool) -> list[dict[str, Any]]:
        end = float(share * self.total_steps) - 1
        last = self.total_steps - 1
        ways: list[tuple[float, str, str, str, str]]
        if three:
            ways = [
                (end, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                (2 * end, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            ways = [
                (end, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                (last, "max_lr", "min_lr", "base_momentum", "max_momentum"),
            ]
        keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        return [dict(zip(keys, way, strict=True)) for way in ways]

    def _start_momentum(self, base: float, largest: float, last_epoch: int) -> None:
        key = _momentum_key(self.optimizer)
        if key is None:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1: bool = key == "betas"
        if last_epoch != -1:
            return
        highs = per_group("max_momentum", self.optimizer, largest)
        lows = per_group("base_momentum", self.optimizer, base)
        for group, high, low in zip(self.optimizer.param_groups, highs, lows, strict=True):
            _set_momentum(group, key, high)
            group["max_momentum"] = high
            group["base_momentum"] = low

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        anneal = _cosine if self._anneal_func_type == "cos" else _linear
        start = 0.0
        phase = self._schedule_phases[-1]
        for i, phase in enumerate(self._schedule_phases):
            if step <= phase["end_step"] or i == len(self._schedule_phases) - 1:
                break
            start = phase["end_step"]
        share = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(anneal(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                momentum = anneal(
                    group[phase["start_momentum"]], group[phase["end_momentum"]], share
                )
                _set_momentum(group, "betas" if self.use_beta1 else "momentum", momentum)
        return rates


def _total(total: int | None, epochs: int | None, per_epoch: int | None) -> int:
    if total is not None:
        if total <= 0 or not isinstance(total, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total}")
        return total
    if epochs is None or per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in (("epochs", epochs), ("steps_per_epoch", per_epoch)):
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return epochs * per_epoch
