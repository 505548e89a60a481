"""Owns autocast: which ops run in the lower precision, which in float32, and the casts.

Lists follow torch's documentation ("Automatic Mixed Precision", op-specific behaviour): the cpu
list for cpu tensors, the CUDA list for npu tensors. Rows that are in neither run in the dtype of
their inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd.grad_mode import LOCAL
from .._dtype import bfloat16, dtype, float16, float32
from .._tensor import Tensor
from ..ops.spec import Op, aten

LOWER = frozenset((
    "matmul", "mm", "mv", "bmm", "addmm", "addmv", "addbmm", "baddbmm", "linear", "convolution",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "scaled_dot_product_attention", "chain_matmul", "linalg_vecdot",
))  # fmt: skip
_LOSSES = (
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "nll_loss_forward", "nll_loss",
    "nll_loss2d_forward", "kl_div", "cosine_embedding_loss", "binary_cross_entropy_with_logits",
)  # fmt: skip
WIDER = {
    "cpu": frozenset((
        *_LOSSES, "avg_pool3d", "binary_cross_entropy", "prod", "quantile", "nanquantile", "trace",
        "grid_sampler_2d",
    )),
    "npu": frozenset((
        *_LOSSES, "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p",
        "reciprocal", "rsqrt", "sinh", "tan", "pow", "softplus", "native_layer_norm", "layer_norm",
        "native_group_norm", "group_norm", "norm", "linalg_vector_norm", "cosine_similarity",
        "logsumexp", "prod", "softmax", "_softmax", "log_softmax", "_log_softmax", "cumsum",
        "cumprod", "sum", "dist", "cdist", "renorm",
    )),
}  # fmt: skip


def wanted(op: Op, device: str) -> dtype | None:
    """The dtype that autocast wants for this op's floating inputs on a device type, or None."""
    found: dtype | None = (LOCAL.autocast or {}).get(device)
    if found is None:
        return None
    if op.base_name in LOWER:
        return found
    return float32 if op.base_name in WIDER.get(device, ()) else None


def recast(op: Op, args: Sequence[Any]) -> tuple[Any, ...] | None:
    """The arguments as autocast wants them; None where nothing changes."""
    first = _first(args)
    if first is None:
        return None
    target = wanted(op, first._geom.device.type)
    if target is None:
        return None
    made = tuple(_cast(a, target) for a in args)
    return made if any(a is not b for a, b in zip(made, args, strict=True)) else None


def _first(args: Sequence[Any]) -> Tensor | None:
    for value in args:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, tuple | list) and value and isinstance(value[0], Tensor):
            return value[0]
    return None


def _cast(value: Any, target: dtype) -> Any:
    if isinstance(value, Tensor):
        d = value._geom.dtype
        narrow = d is float16 or d is bfloat16 or d is float32
        return aten.to(value, target) if narrow and d is not target else value
    if isinstance(value, tuple | list) and value and isinstance(value[0], Tensor):
        made = tuple(_cast(v, target) for v in value)
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    return value
