"""Owns torch.nn.attention's names: which of torch's kernels may compute attention."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...ops.rows.nn import attention_kernels as _kernels

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.Enum):
    """Names of attention kernels, numbered as torch.nn.attention numbers them."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    # As pybind11's enums, whose members are numbers to these alone.
    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __hash__(self) -> int:
        return int(self.value)


_BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "mem_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
    "overrideable": SDPBackend.OVERRIDEABLE,
}


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The kernels that may run, by their priority or in a fixed order."""
    backends = [_BACKENDS[name] for name, enabled in _kernels.ENABLED.items() if enabled]
    if with_priority:
        backends.sort(key=lambda backend: _kernels.PRIORITY.index(int(backend)))
    return backends


def _sdpa_kernel(backends: list[Any], set_priority: bool = False) -> None:
    for name, backend in _BACKENDS.items():
        _kernels.enable(name, backend in backends)
    if set_priority:
        first = [int(backend) for backend in backends]
        _kernels.PRIORITY[:] = first + [n for n in _kernels.PRIORITY if n not in first]


@contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict[str, object]]:
    """Inside, only these of torch's kernels compute scaled_dot_product_attention.

    Each device has one way to compute it; a call that torch would refuse, for the kernels that
    are left do not take it, is refused. AssertionError for neither a backend nor a list.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got"
            f" {type(backends).__name__}"
        )
    allowed = [backends] if isinstance(backends, SDPBackend) else list(dict.fromkeys(backends))
    previous = _cur_sdpa_kernel_backends(set_priority)
    try:
        _sdpa_kernel(allowed, set_priority)
        yield {}
    finally:
        _sdpa_kernel(previous, set_priority)


# Versions of flash attention by name: None for those of CUDA, or what activates a program's own.
_impls: dict[str, Callable[..., Any] | None] = {"FA3": None, "FA4": None}
_active: list[Any] = []


def list_flash_attention_impls() -> list[str]:
    """Names of versions: those of CUDA's flash attention, and what programs registered."""
    return sorted(_impls)


def current_flash_attention_impl() -> str | None:
    """The version that was activated and gave a handle; None for torch's own choice."""
    return _active[-1][0] if _active else None


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Let `activate_flash_attention_impl(impl)` call `register_fn`, which may give a handle."""
    _impls[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """ValueError for an unknown version, NotImplementedError for one of CUDA's."""
    if impl not in list_flash_attention_impls():
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations:"
            f" {list_flash_attention_impls()}"
        )
    register = _impls[impl]
    if register is None:
        raise NotImplementedError(f"activate_flash_attention_impl: {impl} is for CUDA alone")
    restore_flash_attention_impl(_raise_warn=False)
    handle = register()
    if handle is not None:
        _active.append((impl, handle))


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Take back what was activated; a line of the log where nothing was."""
    if not _active:
        if _raise_warn:
            logging.getLogger(__name__).warning(
                "Trying to restore default FA2 impl when no custom impl was activated"
            )
        return
    _, handle = _active.pop()
    handle.remove()
