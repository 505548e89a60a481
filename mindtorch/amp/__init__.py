"""Owns torch.amp: the autocast context and gradient scaling."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .._autograd.grad_mode import LOCAL, MODES, ContextDecorator
from .._tensor import dtype as dt
from .._tensor.device import STANDING_IN
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from .grad_scaler import GradScaler
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
        _check_device_type(device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self._cache_enabled = (
            is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        device_type = STANDING_IN.get(device_type, device_type)
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
        name, takes = "CPU", [dt.bfloat16, dt.float16]
        if self.device_type == "npu":
            name, takes = "npu", [dt.float16, dt.bfloat16, dt.float32]
        known = self.device_type not in DEFAULTS or self.dtype in takes
        if not known:
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of {', '.join(map(str, takes))} currently.",
                stacklevel=3,
            )
        return known

    def clone(self) -> autocast:
        return autocast(self.device_type, self.dtype, self.enabled)

    def __call__(self, func: Any) -> Any:
        """The function inside the context; a class is taken as a function, as in torch."""
        if not isinstance(func, type):
            return super().__call__(func)
        return functools.wraps(func)(
            super().__call__(lambda *args, **kwargs: func(*args, **kwargs))
        )

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
        cache = is_autocast_cache_enabled()
        try:
            MODES.active += 1
            LOCAL.autocast = settings
            autocast_increment_nesting()
            set_autocast_cache_enabled(self._cache_enabled)
            if tracer is not None:
                tracer(self)
            yield self
        finally:
            if tracer is not None:
                tracer(None)
            LOCAL.autocast = before
            MODES.active -= 1
            autocast_decrement_nesting()
            set_autocast_cache_enabled(cache)


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
    def decorate_fwd(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        on = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, cast_inputs), **_cast(kwargs, cast_inputs))

    return decorate_fwd


def _cast(value: Any, dtype: Dtype) -> Any:
    """Floating tensors other than float64 in the dtype, those in containers too."""
    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.dtype is not dt.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, dict):
        return {_cast(k, dtype): _cast(v, dtype) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_cast(v, dtype) for v in value)
    return value


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorates a Function's backward: it runs under the autocast that its forward ran under."""
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return decorate_bwd


autocast.__module__ = "mindtorch.amp.autocast_mode"
