"""Owns torch.backends.cuda's switches: kept; those of attention decide what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindtorch.ops.rows.nn import attention_kernels as _kernels

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


def _switch(kernel: str, name: str) -> tuple[Callable[[], bool], Callable[[bool], None]]:
    """Whether a kernel of attention may run, and its switch; RuntimeError for no bool."""

    def enabled() -> bool:
        return _kernels.ENABLED[kernel]

    def enable(enabled: bool) -> None:
        _refuse_no_bool(enabled, name, "%s" if name == "cudnn" else "")
        _kernels.enable(kernel, enabled)

    return enabled, enable


def _refuse_no_bool(value: object, name: str = "math", mark: str = "") -> None:
    if not isinstance(value, bool):
        kind = type(value).__name__
        raise RuntimeError(f"set_sdp_use_{name} expects a bool, but got {mark}{kind}")


flash_sdp_enabled, enable_flash_sdp = _switch("flash", "math")  # torch's texts name that one
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient", "math")
math_sdp_enabled, enable_math_sdp = _switch("math", "math")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn", "cudnn")


def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Any:  # fmt: skip
    """The former sdpa_kernel; FutureWarning."""
    import warnings

    from mindtorch.nn.attention import SDPBackend, sdpa_kernel

    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will"
        " be removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context manager,"
        " with updated signature.",
        FutureWarning,
        stacklevel=2,
    )
    enabled = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.MATH: enable_math,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    return sdpa_kernel([backend for backend, may_run in enabled.items() if may_run])


def can_use_flash_attention(params: object, debug: bool = False) -> bool:
    """False: there is no CUDA."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def is_flash_attention_available() -> bool:
    """False: there is no CUDA."""
    return False


is_ck_sdpa_available = is_flash_attention_available
_halves_reduced = False


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What was asked for; attention sums in float32 all the same."""
    return _halves_reduced


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Kept without effect; RuntimeError for no bool."""
    global _halves_reduced
    _refuse_no_bool(enabled)
    _halves_reduced = enabled


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
