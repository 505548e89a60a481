"""Owns torch.nn.attention's names: which kernel computes attention is not ours to choose."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


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


@contextmanager
def sdpa_kernel(
    backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Without effect: each device has one way to compute scaled_dot_product_attention.

    AssertionError for what is not a backend or backends.
    """
    backend_list = [backends] if isinstance(backends, SDPBackend) else list(backends)
    assert all(isinstance(b, SDPBackend) for b in backend_list), (
        "Backend must be an instance of SDPBackend or a list of SDPBackend instances"
    )
    yield
