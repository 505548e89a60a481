"""Owns settings that torch takes and this library keeps: threads, precision, determinism."""

from __future__ import annotations

import builtins
from typing import Any

from .._backends.registry import registry
from .._compat.argument_errors import parsed
from .._compat.warn_once import warn, warn_once
from .._tensor.settings import SETTINGS
from .denormals import flushes
from .publish import surface

_PRECISIONS = ("highest", "high", "medium")


@surface(method=False, internal=False)
def set_float32_matmul_precision(precision: str) -> None:
    """Kept without effect: float32 products are of full precision; other words give a warning."""
    if not isinstance(precision, str):
        raise RuntimeError(
            f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}"
        )
    if precision not in _PRECISIONS:
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
        )
        return
    SETTINGS["precision"] = precision


@surface(method=False, internal=False)
def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision was given."""
    return str(SETTINGS["precision"])


@surface(method=False, internal=False)
@parsed()
def set_num_threads(int: int) -> None:
    """Let native cpu kernels use so many, and the BLAS libraries that are loaded: numpy's, and
    scipy's after its first use. ACL chooses its own. RuntimeError below 1."""
    if type(int) is not builtins.int:
        raise RuntimeError(f"set_num_threads expects an int, but got {type(int).__name__}")
    if not -(1 << 31) <= int < 1 << 31:
        raise ValueError("Overflow when unpacking long")
    if int < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    from threadpoolctl import threadpool_limits

    from .._backends.cpu import native

    native.set_threads(int)
    threadpool_limits(int, user_api="blas")


@surface(method=False, internal=False)
@parsed()
def get_num_threads() -> int:
    """The threads of native cpu kernels: OMP_NUM_THREADS, else the process's CPUs, at first."""
    from .._backends.cpu import native

    return native.threads()


@surface(method=False, internal=False)
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask devices for deterministic kernels (ACL_OPT_DETERMINISTIC); cpu's always are."""
    from .._backends.npu import runtime

    for value, name in ((mode, "'mode' (position 1)"), (warn_only, "'warn_only'")):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument {name} must be bool, not"
                f" {type(value).__name__}"
            )
    runtime.set_deterministic(mode)
    SETTINGS["deterministic"], SETTINGS["warn_only"] = mode, warn_only
    registry.on_change()  # programs hold no alert


@surface(method=False, internal=False)
def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic kernels were asked for."""
    return bool(SETTINGS["deterministic"])


@surface(method=False, internal=False)
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether use_deterministic_algorithms was given `warn_only`."""
    return bool(SETTINGS["warn_only"])


@surface(method=False, internal=False)
def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 or "default", 1 or "warn", 2 or "error"; RuntimeError for others."""
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    modes: dict[int | str, int] = {"default": 0, "warn": 1, "error": 2, 0: 0, 1: 1, 2: 2}
    if debug_mode not in modes:
        words = isinstance(debug_mode, str)
        expected = "one of `default`, `warn`, `error`" if words else "0, 1, or 2"
        raise RuntimeError(
            f"invalid value of debug_mode, expected {expected}, but got {debug_mode}"
        )
    use_deterministic_algorithms(modes[debug_mode] > 0, warn_only=modes[debug_mode] == 1)


@surface(method=False, internal=False)
def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: default, warn or error."""
    return (1 if SETTINGS["warn_only"] else 2) if SETTINGS["deterministic"] else 0


@surface(method=False, internal=False)
def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype by a typed tensor class, `torch.DoubleTensor`, or its name."""
    from .._dispatch import plans
    from .._tensor import dtype as dt
    from .conversion import typed
    from .queries import refuse_cuda

    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use"
        " torch.set_default_dtype() and torch.set_default_device() as alternatives."
    )
    dtype, where = typed(t)
    refuse_cuda(where or "", dtype.legacy + "Tensor")
    dt.set_default_dtype(dtype)
    plans.clear()


@surface(method=False, internal=False)
@parsed()
def set_num_interop_threads(int: int) -> None:
    """Kept without effect: calls run one after another. RuntimeError below 1."""
    if type(int) is not builtins.int:
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(int).__name__}")
    if int < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    SETTINGS["interop"] = int


@surface(method=False, internal=False)
@parsed()
def get_num_interop_threads() -> int:
    """What set_num_interop_threads was given; 1 before."""
    return builtins.int(SETTINGS.get("interop", 1))


@surface(method=False, internal=False)
@parsed()
def set_flush_denormal(mode: bool) -> bool:
    """Whether this thread's arithmetic can take subnormal numbers for zeros: it does by `mode`."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return flushes(mode)


@surface(method=False, internal=False)
def init_num_threads() -> None:
    """Nothing: numpy and ACL choose their threads."""
