"""Owns settings that torch takes and this library keeps: threads, precision, determinism."""

from __future__ import annotations

from typing import Any

from .publish import surface

_settings: dict[str, Any] = {"precision": "highest", "threads": 1}
_PRECISIONS = ("highest", "high", "medium")


@surface(method=False, internal=False)
def set_float32_matmul_precision(precision: str) -> None:
    """Kept without effect: float32 products are of full precision. RuntimeError for other words."""
    if precision not in _PRECISIONS:
        raise RuntimeError(f"{precision} is not one of {', '.join(_PRECISIONS)}")
    _settings["precision"] = precision


@surface(method=False, internal=False)
def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision was given."""
    return str(_settings["precision"])


@surface(method=False, internal=False)
def set_num_threads(int: int) -> None:
    """Kept without effect: numpy and ACL choose their threads. RuntimeError below 1."""
    if int < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    _settings["threads"] = int


@surface(method=False, internal=False)
def get_num_threads() -> int:
    """What set_num_threads was given; 1 before."""
    return int(_settings["threads"])


@surface(method=False, internal=False)
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask devices for deterministic kernels (ACL_OPT_DETERMINISTIC); cpu's always are."""
    from .._backends.npu import runtime

    runtime.set_deterministic(mode)
