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
    import warnings
    from contextlib import nullcontext

    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will"
        " be removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context manager,"
        " with updated signature.",
        FutureWarning,
        stacklevel=2,
    )
    return nullcontext()


def can_use_flash_attention(params: object, debug: bool = False) -> bool:
    """False: there is no CUDA."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def is_flash_attention_available() -> bool:
    """False: there is no CUDA."""
    return False


is_ck_sdpa_available = is_flash_attention_available
fp16_bf16_reduction_math_sdp_allowed = is_flash_attention_available


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Accepted without effect: attention sums in float32."""


class SDPAParams:
    """What a choice of an attention kernel would be made by."""

    def __init__(
        self, query: object, key: object, value: object, attn_mask: object, dropout: float,
        is_causal: bool, enable_gqa: bool,
    ):  # fmt: skip
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def _preferred(backend: object = None) -> str:
    """The one library there is, whatever is preferred."""
    return "default"


preferred_linalg_library = preferred_blas_library = preferred_rocm_fa_library = _preferred
