"""Owns torch's checks of conditions, and what stands for symbolic numbers: plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from .._tensor.device import DeviceLike
from .._tensor.tensor import Tensor
from .warn_once import warn


def _check_with(
    error_type: type[Exception], cond: object, message: Callable[[], Any] | None = None
) -> None:
    """Raise `error_type` with the message where `cond` is false; TypeError if it is no bool."""
    if (assume := getattr(cond, "assume", None)) is not None:  # of a number that is traced
        assume()
        return
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use"
            " torch._check_tensor_all() to assert that all elements are true."
        )
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type(
            "Expected cond to be True, but got False. (Could this error message be improved? If"
            " so, please report an enhancement request to PyTorch.)"
        )
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: object, message: Callable[[], Any] | None = None) -> None:
    """RuntimeError where `cond` is false."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: object, message: Callable[[], Any] | None = None) -> None:
    """IndexError where `cond` is false."""
    _check_with(IndexError, cond, message)


def _check_value(cond: object, message: Callable[[], Any] | None = None) -> None:
    """ValueError where `cond` is false."""
    _check_with(ValueError, cond, message)


def _check_type(cond: object, message: Callable[[], Any] | None = None) -> None:
    """TypeError where `cond` is false."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: object, message: Callable[[], Any] | None = None) -> None:
    """NotImplementedError where `cond` is false."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(
    i: int, message: Callable[[], Any] | None = None, *, max: int | None = None
) -> None:
    """RuntimeError for a negative size, or one above `max`."""
    warn(
        "_check_is_size will be removed in a future PyTorch release along with"
        " guard_size_oblivious.     Use _check(i >= 0) instead.",
        FutureWarning,
    )
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable[[], Any] | None = None
) -> None:
    """Raise `error_type` where an element of the bool tensor `cond` is false."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if not str(cond.dtype).endswith("bool"):
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """RuntimeError where an element of the bool tensor `cond` is false."""
    _check_tensor_all_with(RuntimeError, cond, message)


class SymInt:
    """A symbolic size: that of a nested tensor's ragged dim, other sizes are ints."""

    __module__ = "mindtorch"


class SymFloat:
    """Stands for a symbolic float: none is ever made."""


class SymBool:
    """Stands for a symbolic bool: none is ever made."""


def sym_int(a: float) -> int:
    """The number as an int."""
    return int(a)


def sym_float(a: float) -> float:
    """The number as a float."""
    return float(a)


def sym_not(a: object) -> bool:
    """Python's not."""
    return not a


def sym_max(a: float, b: float) -> float:
    """The larger; a float where either is."""
    return max(a, b) if type(a) is type(b) else float(max(a, b))


def sym_min(a: float, b: float) -> float:
    """The smaller; a float where either is."""
    return min(a, b) if type(a) is type(b) else float(min(a, b))


def sym_sum(args: Iterable[float], /) -> float:
    """Python's sum."""
    return sum(args)


def sym_ite(b: object, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`."""
    return t if b else f


def get_device_module(device: DeviceLike | None = None) -> ModuleType:
    """The module of a device type: torch.npu, torch.cpu …; RuntimeError where there is none."""
    import importlib

    from .._tensor.device import device as Device

    if device is None:
        from .._backends import npu

        name = "npu" if npu.is_available() else "cpu"
    else:
        name = device.split(":")[0] if isinstance(device, str) else Device(device).type
    if name not in ("npu", "cpu", "cuda", "xpu", "mps"):
        raise RuntimeError(f"Device '{name}' does not have a corresponding module registered")
    return importlib.import_module(f"{__package__.rpartition('.')[0]}.{name}")
