"""Owns torch.amp: the autocast context and gradient scaling."""

from __future__ import annotations

import enum
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._autograd.grad_mode import LOCAL, MODES, ContextDecorator
from .._tensor import dtype as dt
from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from ..optim.optimizer import Optimizer
from .switches import (
    DEFAULTS,
    _enter_autocast,  # noqa: F401 - a name in graphs
    _exit_autocast,  # noqa: F401
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_available,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_cpu_dtype,
    set_autocast_cpu_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
    set_autocast_gpu_dtype,
)

__all__ = [
    "GradScaler", "autocast", "autocast_decrement_nesting", "autocast_increment_nesting",
    "clear_autocast_cache", "custom_bwd", "custom_fwd", "get_autocast_cpu_dtype",
    "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_available",
    "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled",
    "set_autocast_cache_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled",
    "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
]  # fmt: skip


def _warn_of_alias(device: str, name: str) -> None:
    """Of a class of `torch.cpu.amp` or `torch.cuda.amp`, by its constructor."""
    warnings.warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use"
        f" `torch.amp.{name}('{device}', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(ContextDecorator):  # noqa: N801 - torch's name
    """Run matrix products and convolutions in a lower precision, inside this context.

    `device_type` names the tensors it is for; "cuda" is accepted and has no effect.
    """

    def __init__(
        self,
        device_type: str,
        dtype: dt.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        Device(device_type)  # RuntimeError for none that is known
        self.device_type, self.asked_dtype = device_type, dtype
        self.dtype = dtype or DEFAULTS.get(device_type, dt.float16)
        self.enabled = enabled and self._has_casts()

    device = property(lambda self: self.device_type)
    fast_dtype = property(lambda self: self.dtype)
    _enabled = property(lambda self: self.enabled)

    def _has_casts(self) -> bool:
        """Whether there are casts to the dtype; a warning in torch's words where there are none."""
        if self.device_type == "cuda":
            text = "CUDA is not available or torch_xla is imported. Disabling autocast."
            warnings.warn(text, stacklevel=3)
            return False
        known = self.device_type not in DEFAULTS or self.dtype in (dt.bfloat16, dt.float16)
        if not known:
            name = self.device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=3,
            )
        return known

    def clone(self) -> autocast:
        return autocast(self.device_type, self.dtype, self.enabled)

    def steps(self) -> Iterator[autocast]:
        if not isinstance(self.dtype, Dtype):
            raise TypeError(
                "set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not"
                f" {type(self.dtype).__name__}"
            )
        before = LOCAL.autocast
        tracer = getattr(LOCAL.functions[-1], "autocast", None) if LOCAL.functions else None
        settings = dict(before or {})
        settings.pop(self.device_type, None)
        if self.enabled:
            settings[self.device_type] = self.dtype
        try:
            MODES.active += 1
            LOCAL.autocast = settings
            if tracer is not None:
                tracer(self)
            yield self
        finally:
            if tracer is not None:
                tracer(None)
            LOCAL.autocast = before
            MODES.active -= 1


def _check_device_type(device_type: object) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str,
    cast_inputs: Dtype | None = None,
) -> Any:
    """Decorates a Function's forward: its inputs are cast, autocast is off inside."""
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def inside(*args: Any, **kwargs: Any) -> Any:
        if cast_inputs is None or not is_autocast_enabled(device_type):
            return fwd(*args, **kwargs)
        cast = [a.to(cast_inputs) if isinstance(a, Tensor) and a.is_floating_point() else a
                for a in args]  # fmt: skip
        with autocast(device_type, enabled=False):
            return fwd(*cast, **kwargs)

    return inside


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorates a Function's backward."""
    _check_device_type(device_type)
    return (lambda b: b) if bwd is None else bwd


class OptState(enum.Enum):
    """How far a scaler is with an optimizer's gradients."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


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
        if enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._used = False  # whether something was scaled: torch has no scale until then
        self._scale = init_scale
        self._growth = growth_factor
        self._backoff = backoff_factor
        self._interval = growth_interval
        self._enabled = enabled
        self._good_steps = 0
        self._stages: dict[int, OptState] = {}
        self._overflow: dict[int, bool] = {}

    def scale(self, outputs: Any) -> Any:
        """`outputs` times the scale."""
        if not self._enabled:
            return outputs
        self._used = True
        if isinstance(outputs, Tensor):
            return aten.mul(outputs, self._scale)
        if not isinstance(outputs, Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        kind: Any = type(outputs)
        return kind(self.scale(o) for o in outputs)

    def _refuse_unused(self, what: str) -> None:
        """AssertionError in torch's words before anything was scaled."""
        if not self._used:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use"
                " scaler.scale(loss or outputs) earlier in the iteration."
            )

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the optimizer's gradients by the scale; note whether one is not finite."""
        if not self._enabled:
            return
        self._refuse_unused("unscale_")
        stage = self._stages.get(id(optimizer))
        if stage is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        if any(grad.dtype is dt.float16 for grad in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        self._stages[id(optimizer)] = OptState.UNSCALED
        bad = False
        for grad in grads:
            grad.mul_(1.0 / self._scale)
            bad = bad or not bool(aten.all(aten.isfinite(grad)))
        if grads:
            self._overflow[id(optimizer)] = bad

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step()`, unless a gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._refuse_unused("step")
        stage = self._stages.get(id(optimizer))
        if stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if stage is None:
            self.unscale_(optimizer)
        if id(optimizer) not in self._overflow:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        self._stages[id(optimizer)] = OptState.STEPPED
        if self._overflow[id(optimizer)]:
            return None
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | None = None) -> None:
        """Grow the scale after enough good steps; back off after an overflow."""
        if not self._enabled:
            return
        self._refuse_unused("update")
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._overflow:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._overflow.values()):
            self._scale *= self._backoff
            self._good_steps = 0
        else:
            self._good_steps += 1
            if self._good_steps == self._interval:
                self._scale *= self._growth
                self._good_steps = 0
        self._stages.clear()
        self._overflow.clear()

    def get_scale(self) -> float:
        """The scale; 1.0 when disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What the scale grows by."""
        return self._growth

    def set_growth_factor(self, new_factor: float) -> None:
        """Let the scale grow by another factor."""
        self._growth = new_factor

    def get_backoff_factor(self) -> float:
        """What an overflow multiplies the scale by."""
        return self._backoff

    def set_backoff_factor(self, new_factor: float) -> None:
        """Let an overflow multiply the scale by another factor."""
        self._backoff = new_factor

    def get_growth_interval(self) -> int:
        """Good steps until the scale grows."""
        return self._interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Let the scale grow after another number of good steps."""
        self._interval = new_interval

    def is_enabled(self) -> bool:
        """Whether scaling happens."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs; nothing where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth,
            "backoff_factor": self._backoff,
            "growth_interval": self._interval,
            "_growth_tracker": self._good_steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over another scaler's state."""
        if not self._enabled:
            return
        if not state:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled"
                " instance of GradScaler."
            )
        self._scale = state["scale"]
        self._growth = state["growth_factor"]
        self._backoff = state["backoff_factor"]
        self._interval = state["growth_interval"]
        self._good_steps = state["_growth_tracker"]


autocast.__module__ = "mindtorch.amp.autocast_mode"
GradScaler.__module__ = "mindtorch.amp.grad_scaler"
