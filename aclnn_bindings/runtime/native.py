"""Owns the door to the compiled extension and the translation of its failures into exceptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

from ..errors import (
    ArgumentError,
    BindingError,
    ClosedHandleError,
    ForkedError,
    MissingSymbolError,
    RuntimeStateError,
    StillUsedError,
    UnknownPointerError,
    UnsupportedSignatureError,
)
from .status import AclOutOfMemoryError, StatusCodes

try:
    from ._block import (
        Block,
        Memory,
        Operator,
        View,
        allocate,
        connect,
        launch,
        launch_into,
        launch_many,
        operands,
        taken,
        vary_lanes,
    )
    from ._launch import ffi, lib
except ImportError as error:  # pragma: no cover - only in a tree that was not built
    raise ImportError(
        f"aclnn_bindings.runtime._launch: {error}; build it by installing the package "
        "(`pip install .` with a C++ compiler)"
    ) from error


def _entry(name: str) -> int:
    """The address of an entry point, for callers in C."""
    return int(ffi.cast("uintptr_t", ffi.addressof(lib, name)))


lib.mt_heed(
    connect(
        _entry("mt_release"),
        _entry("mt_launch"),
        _entry("mt_launch_all"),
        _entry("mt_alloc_for"),
        _entry("mt_session"),
        ClosedHandleError,
    )
)

__all__ = [
    "SESSION", "Block", "Memory", "Operator", "View", "address_of", "allocate", "ffi", "launch",
    "launch_into", "launch_many", "lib", "operands", "text_of", "throw", "vary_lanes",
]  # fmt: skip

# The session's number as mt_session gives it, without a call: the runtime keeps it.
SESSION: Final = [0]

_REASONS: Final[dict[int, tuple[type[BindingError], str]]] = {
    lib.MT_NOT_STARTED: (RuntimeStateError, "the runtime is not started: open a device first"),
    lib.MT_FORKED: (
        ForkedError,
        "this process was forked after the runtime had started, and ACL does not survive a fork: "
        'use the "spawn" start method, or fork before the first device call',
    ),
    lib.MT_STOPPED: (RuntimeStateError, "the runtime was closed: call aclnn_bindings.open() again"),
    lib.MT_CLOSED_MEMORY: (
        ClosedHandleError,
        "device memory that it is given is from a runtime that was closed, and its contents with "
        "it: make the tensor again",
    ),
    lib.MT_CLOSED_HANDLE: (
        ClosedHandleError,
        "it was closed, or made before the runtime restarted",
    ),
    lib.MT_WRONG_COUNT: (ArgumentError, "the plan expects {detail} addresses"),
    lib.MT_UNKNOWN_POINTER: (
        UnknownPointerError,
        "no live block starts at {detail:#x}: it was freed before, or never allocated here",
    ),
    lib.MT_MISSING_FUNCTION: (MissingSymbolError, "no library of this install exports it"),
    lib.MT_TOO_MANY_ARGUMENTS: (
        UnsupportedSignatureError,
        "more arguments than registers and {detail} stack words hold",
    ),
    lib.MT_NULL_DESCRIPTOR: (
        RuntimeStateError,
        "it returned NULL for argument {detail}: out of host memory, or a NULL value",
    ),
    lib.MT_STILL_USED: (StillUsedError, "others still depend on it: close them first"),
}


_OVER_LIMIT: Final[dict[str, Any]] = {
    "name": "over the memory limit",
    "remedy": "raise the limit, free tensors, or ask for less",
}
_ALLOCATING: Final = ("aclrtMalloc", "aclrtMallocAlign32", "mt_alloc")


def address_of(data: Any) -> int:
    """The address of cffi data, as a number."""
    return int(ffi.cast("uintptr_t", data))


def text_of(pointer: Any) -> str:
    """A C string as text, "" for NULL."""
    return "" if not pointer else ffi.string(pointer).decode("utf-8", "replace")


def throw(
    codes: StatusCodes,
    *,
    op: str | None = None,
    shapes: Sequence[Sequence[int]] = (),
    dtypes: Sequence[str] = (),
    account: Callable[[int], str] | None = None,
) -> NoReturn:
    """Raise the calling thread's last failure: AclError for ACL's codes, a named error for ours,
    and what a signal's handler raised where that ended a wait.

    `account(bytes asked)` tells who holds device memory, for a failed allocation of it.
    """
    failure = lib.mt_last_failure()
    call, code, detail = text_of(failure.call), int(failure.code), int(failure.detail)
    if code == lib.MT_INTERRUPTED:
        raise taken() or KeyboardInterrupt
    message = text_of(failure.message).strip()
    if account is not None and call in _ALLOCATING and code not in _REASONS:
        message = " | ".join(part for part in (message, account(detail)) if part)
    if code in _REASONS:
        kind, text = _REASONS[code]
        raise kind(f"{call}: {text.format(detail=detail)}")
    facts: Any = {"message": message, "op": op, "shapes": shapes, "dtypes": dtypes}
    if code == lib.MT_OVER_LIMIT:
        raise AclOutOfMemoryError(call, code, **_OVER_LIMIT, **facts)
    raise codes.error(call, code, **facts)
