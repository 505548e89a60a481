"""Owns averaging of weights: AveragedModel, its averages, SWALR and update_bn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import mindtorch
from mindtorch.nn.modules.batchnorm import _BatchNorm
from mindtorch.nn.modules.module import Module

from .._tensor.device import DeviceLike, device as Device
from .._tensor.tensor import Tensor
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype
from .lr_scheduler import LRScheduler
from .lr_scheduler._base import per_group
from .optimizer import Optimizer

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
           "get_swa_multi_avg_fn", "update_bn"]  # fmt: skip


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], Any]:
    """Gives the exponential average: decay · average + (1 - decay) · new."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )

    def ema_update(averaged: Any, new: Any, count: Any) -> Any:
        return decay * averaged + (1 - decay) * new

    return ema_update


def get_swa_avg_fn() -> Callable[[Any, Any, Any], Any]:
    """Gives the equal average of all that came."""

    def swa_update(averaged: Tensor, new: Tensor, count: Tensor) -> Tensor:
        return averaged + (new - averaged) / (count + 1)

    return swa_update


MultiAverage = Callable[[Sequence[Tensor], Sequence[Tensor], Tensor | int], None]


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Gives the exponential average of lists of tensors, in place."""
    get_ema_avg_fn(decay)  # refuses what is no decay

    def ema_update(averaged: Sequence[Tensor], new: Sequence[Tensor], count: Tensor | int) -> None:
        with mindtorch.no_grad():
            if averaged[0].is_floating_point() or averaged[0].is_complex():
                mindtorch._foreach_lerp_(averaged, new, 1 - decay)
                return
            for average_, other in zip(averaged, new, strict=True):
                average_.copy_(average_ * decay + other * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> MultiAverage:
    """Gives the equal average of all lists of tensors that came, in place."""

    def swa_update(averaged: Sequence[Tensor], new: Sequence[Tensor], count: Tensor | int) -> None:
        with mindtorch.no_grad():
            if averaged[0].is_floating_point() or averaged[0].is_complex():
                mindtorch._foreach_lerp_(averaged, new, 1 / (count + 1))
                return
            differences = mindtorch._foreach_sub(new, averaged)
            if isinstance(count, Tensor):
                divisors = [count + 1] * len(averaged)
                mindtorch._foreach_addcdiv_(averaged, differences, divisors)
            else:
                mindtorch._foreach_add_(averaged, differences, alpha=1.0 / (count + 1))

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over update_parameters calls."""

    module: Module

    n_averaged: Any

    def __init__(
        self,
        model: Module,
        device: DeviceLike | None = None,
        avg_fn: Callable[[Any, Any, Any], Any] | None = None,
        multi_avg_fn: Callable[..., Any] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", mindtorch.tensor(0, dtype=mindtorch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the model's present parameters into the averages."""
        extra = list(model.buffers()) if self.use_buffers else []
        buffers = list(self.module.buffers()) if self.use_buffers else []
        averaged = [k.detach() for k in (*self.module.parameters(), *buffers)]
        pairs = list(zip(averaged, (*model.parameters(), *extra), strict=False))  # torch's pairing
        averaged = [k for k, _ in pairs]
        new = [n.detach().to(k.device) for k, n in pairs]
        if not int(self.n_averaged.item()):
            for k, n in zip(averaged, new, strict=True):
                k.copy_(n)
        else:
            self._average(averaged, new)
        if not self.use_buffers:
            for k, n in zip(self.module.buffers(), model.buffers(), strict=False):
                k.detach().copy_(n.detach().to(k.device))
        self.n_averaged += 1

    def _average(self, averaged: list[Tensor], new: list[Tensor]) -> None:
        each = self.avg_fn
        if each is None and self.multi_avg_fn is None and averaged[0].device.type == "cpu":
            each = get_swa_avg_fn()
        if each is not None:
            for k, n in zip(averaged, new, strict=True):
                k.copy_(each(k, n, self.n_averaged.to(k.device)))
            return
        average = self.multi_avg_fn or get_swa_multi_avg_fn()
        groups: dict[Any, Any] = _group_tensors_by_device_and_dtype([[*averaged], [*new]])
        for (device, _), ((mine, theirs), _) in groups.items():
            average(mine, theirs, self.n_averaged.to(device))


def update_bn(
    loader: Iterable[Any], model: Module, device: Device | str | int | None = None
) -> None:
    """Computes the batch norms' statistics anew over the loader, as cumulative averages."""
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    training, momenta = model.training, [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    with mindtorch.no_grad():
        for batch in loader:
            input = batch[0] if isinstance(batch, list | tuple) else batch
            model(input if device is None else input.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Anneals the rate to swa_lr over anneal_epochs, then keeps it."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        rates = per_group("swa_lr", optimizer, swa_lr)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        t = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self._share(step - 1)
        now = self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            # What the rate was before annealing, from where it stands now.
            start = group["swa_lr"]
            if before != 1:
                start = (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
