"""torch.npu.utils: where programs of torch_npu look for what torch.npu has."""

from __future__ import annotations

from .._backends.npu import runtime
from .._tensor.tensor import Tensor
from . import (
    current_device,
    current_stream,
    default_stream,
    device,
    device_of,
    is_bf16_supported,
    set_device,
    set_stream,
    stream,
    synchronize,
)

__all__ = ["current_device", "current_stream", "default_stream", "device", "device_of",
           "get_cann_version", "is_bf16_supported", "is_support_inf_nan", "npu_check_overflow",
           "set_device", "set_stream", "stream", "synchronize"]  # fmt: skip


def is_support_inf_nan() -> bool:
    """Whether sums overflow to infinity rather than to the largest number: since the 910B."""
    return is_bf16_supported()


def npu_check_overflow(grad: Tensor | float) -> bool:
    """Whether a gradient's sum is infinite or no number."""
    total = float(grad.float().sum()) if isinstance(grad, Tensor) else float(grad)
    return total in (float("inf"), float("-inf")) or total != total


def get_cann_version(module: str = "CANN") -> str:
    """The version of the opened install; "" where it says none."""
    versions = runtime.cann().install.versions
    return (versions and versions.toolkit) or ""
