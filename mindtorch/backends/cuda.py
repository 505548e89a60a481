"""Owns torch.backends.cuda's switches: kept, without effect."""

from __future__ import annotations

from typing import Any

from . import Switches

matmul = Switches(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    fp32_precision="ieee",
)


def is_built() -> bool:
    """False."""
    return False


def flash_sdp_enabled() -> bool:
    """False: attention is composed of ops."""
    return False


mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled


def math_sdp_enabled() -> bool:
    """True: attention is composed of ops."""
    return True


def enable_flash_sdp(enabled: bool) -> None:
    """Accepted without effect."""


enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = enable_flash_sdp


def sdp_kernel(**_: object) -> Any:
    """A context that chooses an attention kernel; accepted without effect."""
    from contextlib import nullcontext

    return nullcontext()
