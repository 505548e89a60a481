"""Owns which of torch's attention kernels a call would run on cpu, and the switches that tell.

mindtorch has one way to compute attention. The choice shows all the same: in the layout of the
result, in the name of its node, and in what is refused.
"""

from __future__ import annotations

from ...._compat.warn_once import warn
from ...._tensor import dtype as dt
from ...._tensor.recording import unrepeatable
from ...._tensor.tensor import Tensor
from ...rules import c_name
from ...spec import OPS

# By the names of torch's switches, in the order that torch lists kernels.
ENABLED = dict.fromkeys(("cudnn", "flash", "mem_efficient", "math", "overrideable"), True)
PRIORITY = [1, 2, 0, 3, 4]  # their numbers in torch.nn.attention.SDPBackend
_DTYPES = (dt.float32, dt.float64, dt.bfloat16, dt.float16)


def enable(kernel: str, enabled: bool) -> None:
    """Turn one of torch's kernels on or off; programs recorded under other switches are dropped."""
    ENABLED[kernel] = enabled
    for name in ("scaled_dot_product_attention", "multi_head_attention_forward"):
        for table in OPS[name].cache.get("programs", ()):
            table.clear()


def runs_fused(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float
) -> bool:
    """Whether torch's fused kernel takes the call; RuntimeError where every kernel is turned off.

    It alone has a mask and is causal.
    """
    if not (ENABLED["flash"] or ENABLED["math"]):
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to"
            " turning off both the math kernel and the fused kernels."
        )
    if not ENABLED["flash"]:
        return False
    reason = _reason(query, key, value, mask, dropout_p)
    if reason is not None and not ENABLED["math"]:
        unrepeatable()
        for text in ("Flash attention kernel not used because: ", reason):
            if text:
                warn(text, UserWarning)
        raise RuntimeError("No available kernel.  Aborting execution.")
    return reason is None


def _reason(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float
) -> str | None:
    """Why the fused kernel does not take a call, as torch says it; None where it does.

    sdp_utils_cpp.cpp has the conditions and their order.
    """
    operands = {"Query": query, "Key": key, "Value": value}
    dims = [t.dim() for t in operands.values()]
    if query.dtype not in _DTYPES:
        q, k, v = (c_name(t.dtype) for t in operands.values())
        return (
            "Expected query, key and value to all be of dtype: {Float, Double, BFloat16, Half}. Got"
            f" Query dtype: {q}, Key dtype: {k}, and Value dtype: {v} instead. "
        )
    if dropout_p > 0.0:
        return "Both fused kernels do not support non-zero dropout. "
    if dims != [4, 4, 4]:
        texts = ", ".join(f"{name} dim: {t.dim()}" for name, t in operands.items())
        return (
            "All fused kernels requires query, key and value to be 4 dimensional, but got"
            f" {texts} instead. "
        )
    if not query.shape[:2] == key.shape[:2] == value.shape[:2]:
        what = "num_heads" if query.size(0) == key.size(0) == value.size(0) else "batch_size"
        return (
            f"For dense input, both fused kernels require query, key and value to have the same"
            f" {what}. Query.sizes(): {list(query.shape)}, Key sizes(): {list(key.shape)}, Value"
            f" sizes(): {list(value.shape)} instead. To broadcast dense inputs, try using unsqueeze"
            " and expand_to before passing them into the kernel. "
        )
    if mask is not None and (mask.requires_grad or not _fits(mask, query, key)):
        shapes = "2d - ({Q_seq_len, 1}  x {KV_seq_len, 1}); 4d - ({Batch, 1} x {Num_heads, 1} x"
        shapes += " {Q_seq_len, 1}  x {KV_seq_len, 1}) "
        text = "Please use the following attn mask shapes: " + shapes
        return "" if mask.requires_grad else text
    if len({t.size(-1) for t in operands.values()}) > 1:
        texts = ", ".join(f"{name}.size(-1): {t.size(-1)}" for name, t in operands.items())
        return (
            f"Flash attention requires q,k,v to have the same last dimension. Got {texts} instead. "
        )
    if any(t.stride(-1) != 1 for t in operands.values()):
        texts = ", ".join(f"{name}.stride(-1): {t.stride(-1)}" for name, t in operands.items())
        return (
            "All fused kernels require the last dimension of the input to have stride 1. Got"
            f" {texts} "
        )
    return None


def _fits(mask: Tensor, query: Tensor, key: Tensor) -> bool:
    """Whether the mask has one of the shapes that the fused kernel takes."""
    whole = (query.size(0), query.size(1), query.size(2), key.size(2))
    sizes = whole if mask.dim() == 4 else whole[2:]
    return mask.dim() == len(sizes) and all(
        n in (1, size) for n, size in zip(mask.shape, sizes, strict=True)
    )
