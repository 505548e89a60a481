"""Owns torch.nn.attention's names: which of torch's kernels may compute attention."""

from __future__ import annotations

import enum
from collections.abc import Iterator
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


def list_flash_attention_impls() -> list[str]:
    """CUDA's flash attention has versions to choose from; none is here."""
    return ["FA3", "FA4"]


def current_flash_attention_impl() -> None:
    """None: no version is allowed."""


def activate_flash_attention_impl(impl: str) -> None:
    """ValueError for an unknown version, NotImplementedError for one of CUDA's."""
    if impl not in list_flash_attention_impls():
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations:"
            f" {list_flash_attention_impls()}"
        )
    raise NotImplementedError(f"activate_flash_attention_impl: {impl} is for CUDA alone")


def restore_flash_attention_impl() -> None:
    """Accepted without effect: no version is allowed."""
