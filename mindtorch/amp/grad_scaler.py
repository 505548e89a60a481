"""Owns the scaling of losses whose float16 gradients would vanish."""

from __future__ import annotations

import enum
import functools
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import mindtorch

from .._functional.lists import unscale_by_lists
from .._tensor import dtype as dt
from .._tensor.device import device as Device
from .._tensor.tensor import Tensor
from ..optim.optimizer import Optimizer

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """How far a scaler is with an optimizer's gradients."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses so that float16 gradients do not vanish; skips steps that overflow."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        if enabled and device == "cuda":
            text = "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling."
            warnings.warn(text, stacklevel=2)
            enabled = False
        self._device, self._enabled = device, enabled
        if not enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None  # until something is scaled
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    def scale(self, outputs: Any) -> Any:
        """`outputs` times the scale: a tensor, or tensors in lists, tuples and iterators."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                where = outputs.device
                self._scale = mindtorch.tensor(self._init_scale, dtype=dt.float32, device=where)
                self._growth_tracker = mindtorch.tensor(
                    self._init_growth_tracker, dtype=dt.int32, device=where
                )
            return outputs * self._scale.to(outputs.device)
        if not isinstance(outputs, Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = map(self.scale, outputs)
        return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled

    def _started(self, what: str) -> tuple[Tensor, Tensor]:
        """The scale and the count of good steps; AssertionError before anything was scaled."""
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use"
                " scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale, self._growth_tracker

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the optimizer's gradients by the scale; note whether one is not finite."""
        if not self._enabled:
            return
        scale, _ = self._started("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, 1.0 / scale)
        state["stage"] = OptState.UNSCALED

    def _found_inf_per_device(self, optimizer: Optimizer) -> dict[Device, Tensor]:
        overflows: dict[Device, Tensor] = self._per_optimizer_states[id(optimizer)][
            "found_inf_per_device"
        ]
        return overflows

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step()`, unless a gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._started("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        overflows = self._found_inf_per_device(optimizer).values()
        if not overflows:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if any(map(bool, overflows)) else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Grow the scale after enough good steps; back off after an overflow."""
        if not self._enabled:
            return
        scale, tracker = self._started("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            kind = new_scale.device.type
            if kind != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                    "torch.FloatTensor with requires_grad=False."
                )
            scale.copy_(new_scale)
        else:
            self._adapt(scale, tracker)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _adapt(self, scale: Tensor, tracker: Tensor) -> None:
        overflows = [one for state in self._per_optimizer_states.values()
                 for one in state["found_inf_per_device"].values()]  # fmt: skip
        if not overflows:
            raise AssertionError("No inf checks were recorded prior to update.")
        good = 0 if any(map(bool, overflows)) else int(tracker) + 1
        if not good:
            scale.mul_(self._backoff_factor)
        elif good == self._growth_interval:
            grown = float(scale) * self._growth_factor
            if grown <= dt.finfo(dt.float32).max:
                scale.fill_(grown)
            good = 0
        tracker.fill_(good)

    def get_scale(self) -> float:
        """The scale; 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

    def get_growth_factor(self) -> float:
        """What the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Let the scale grow by another factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What an overflow multiplies the scale by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Let an overflow multiply the scale by another factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Good steps until the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Let the scale grow after another number of good steps."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker)

    def is_enabled(self) -> bool:
        """Whether scaling happens."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs; nothing where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over another scaler's state."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled"
                " instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def _unscale_grads_(
        self, optimizer: Optimizer, inv_scale: Tensor, found_inf: Tensor | None = None,
        allow_fp16: bool = False,
    ) -> dict[Device, Tensor]:  # fmt: skip
        """Multiply the gradients by `inv_scale`; for each device 1. where one isn't finite, or 0.

        `found_inf` is what torch's counts in; ValueError for float16, unless it is allowed.
        """
        overflows: dict[Device, Tensor] = {}
        lists: dict[tuple[Device, dt.dtype], list[Tensor]] = defaultdict(list)
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.dtype is dt.float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grad = p.grad._values() if p.grad.is_sparse else p.grad
                lists[grad.device, grad.dtype].append(grad)
        with mindtorch.no_grad():
            for (device, _), grads in lists.items():
                overflow = _unscale(grads, inv_scale)
                known = overflows.get(device)
                overflows[device] = overflow if known is None else known.maximum(overflow)
        return overflows


def _unscale(grads: list[Tensor], inv_scale: Tensor) -> Tensor:
    """Multiply gradients of one device and dtype; 1. where one isn't finite, or 0."""
    device = grads[0].device
    if device.type == "npu":
        overflow = mindtorch.zeros((), dtype=dt.float32, device=device)
        if unscale_by_lists(grads, overflow, inv_scale.to(device, dt.float32)):
            return overflow
    inverse, overflows = float(inv_scale), []
    for grad in grads:
        overflows.append(mindtorch.isfinite(grad).all().logical_not().float())
        if inverse != 1.0:
            grad.mul_(inverse)
    return functools.reduce(mindtorch.maximum, overflows)
