"""Owns autocast's switches as functions, which torch keeps beside the context."""

from __future__ import annotations

import warnings
from typing import Any

from .._autograd.grad_mode import LOCAL, MODES
from .._compat.argument_parser import of_signatures
from .._compat.class_names import class_name
from .._tensor import dtype as dt
from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype

DEFAULTS: dict[str, Dtype] = {"cpu": dt.bfloat16, "npu": dt.float16}


class _State:
    """What is kept without effect: a cache of casts, and how deep contexts are."""

    cache = True
    nesting = 0


def is_autocast_available(device_type: str) -> bool:
    """Whether torch has autocast for a device type; RuntimeError for no type."""
    return Device(device_type).type in (
        *DEFAULTS,
        "cuda",
        "xpu",
        "xla",
        "hpu",
        "mps",
        "mtia",
        "maia",
    )


@of_signatures("is_autocast_enabled(std::string_view device_type)", "is_autocast_enabled()")
def is_autocast_enabled(device_type: str = "npu") -> bool:
    """Whether autocast is on for a device type, on this thread; RuntimeError for no type."""
    Device(device_type)
    return device_type in (LOCAL.autocast or {})


@of_signatures("get_autocast_dtype(std::string_view device_type)")
def get_autocast_dtype(device_type: str) -> Dtype:
    """The dtype that autocast uses for a device type; RuntimeError for no type."""
    Device(device_type)
    dtype: Dtype = (LOCAL.autocast or {}).get(device_type) or DEFAULTS.get(device_type, dt.float16)
    return dtype


@of_signatures(
    "set_autocast_enabled(std::string_view device_type, bool enabled)",
    "set_autocast_enabled(bool enabled)",
)
def set_autocast_enabled(
    device_type: str | bool | None = None, enabled: bool | None = None
) -> None:
    """Turn autocast on or off for a device type (without one: npu), on this thread."""
    kind, value = (
        (device_type, enabled) if isinstance(device_type, str) else
        ("npu", device_type or enabled)
    )  # fmt: skip
    Device(kind)
    settings = dict(LOCAL.autocast or {})
    if bool(value) == (kind in settings):
        return
    if value:
        settings[kind] = DEFAULTS.get(kind, dt.float16)
        MODES.active += 1
    else:
        del settings[kind]
        MODES.active -= 1
    LOCAL.autocast = settings or None


@of_signatures("set_autocast_dtype(std::string_view device_type, ScalarType dtype)")
def set_autocast_dtype(device_type: str, dtype: Dtype) -> None:
    """Set the dtype that autocast uses for a device type, on this thread where it is on."""
    Device(device_type)
    if device_type in (LOCAL.autocast or {}):
        LOCAL.autocast = {**LOCAL.autocast, device_type: dtype}
    else:
        DEFAULTS[device_type] = dtype


def _deprecated(name: str, device_type: str, argument: str = "") -> None:
    general = name.replace("_cpu", "").replace("_gpu", "")
    arguments = f"'{device_type}', {argument}" if argument else f"'{device_type}'"
    warnings.warn(
        f"torch.{name}({argument}) is deprecated. Please use torch.{general}({arguments})"
        " instead. ",
        DeprecationWarning,
        stacklevel=3,
    )


def _check(name: str, kind: type, value: object) -> None:
    """TypeError, in the words of functions of C that take one value, for one of another class."""
    if not isinstance(value, kind):
        name_of_kind = "bool" if kind is bool else "torch.dtype"
        raise TypeError(f"{name} must be a {name_of_kind} (got {class_name(value)})")


def is_autocast_cpu_enabled() -> bool:
    """is_autocast_enabled("cpu")."""
    _deprecated("is_autocast_cpu_enabled", "cpu")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """set_autocast_enabled("cpu", enabled)."""
    _check("enabled", bool, enabled)
    _deprecated("set_autocast_cpu_enabled", "cpu", "enabled")
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> Dtype:
    """get_autocast_dtype("cpu")."""
    _deprecated("get_autocast_cpu_dtype", "cpu")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: Dtype) -> None:
    """set_autocast_dtype("cpu", dtype)."""
    _check("dtype", Dtype, dtype)
    _deprecated("set_autocast_cpu_dtype", "cpu", "dtype")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> Dtype:
    """get_autocast_dtype("npu")."""
    _deprecated("get_autocast_gpu_dtype", "cuda")
    return get_autocast_dtype("npu")


def set_autocast_gpu_dtype(dtype: Dtype) -> None:
    """set_autocast_dtype("npu", dtype)."""
    _check("dtype", Dtype, dtype)
    set_autocast_dtype("npu", dtype)


def is_autocast_cache_enabled() -> bool:
    """What set_autocast_cache_enabled was given: casts are not kept, so it has no effect."""
    return _State.cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Kept without effect."""
    _check("enabled", bool, enabled)
    _State.cache = enabled


def clear_autocast_cache() -> None:
    """Nothing: casts are not kept."""


def autocast_increment_nesting() -> int:
    """Count a context; how many there are now."""
    _State.nesting += 1
    return _State.nesting


def autocast_decrement_nesting() -> int:
    """Count one context less; how many there are now."""
    _State.nesting -= 1
    return _State.nesting


def _enter_autocast(
    device_type: str, dtype: Dtype | None = None, enabled: bool = True,
    cache_enabled: bool | None = None,
) -> object:  # fmt: skip
    """autocast from here on, in a graph; what `_exit_autocast` ends."""
    from . import autocast

    context = autocast(device_type, dtype, enabled, cache_enabled)
    context.__enter__()
    return context


def _exit_autocast(mode: Any) -> None:
    """End what `_enter_autocast` began."""
    mode.__exit__(None, None, None)


for _function in (_enter_autocast, _exit_autocast):
    _function.__module__ = "mindtorch.amp.autocast_mode"
