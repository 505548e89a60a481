"""Rows of attention, and of dropout by packed bits, as CANN has them: one launch each.

Operators, arguments and conditions are those of torch_npu's adapter (op-plugin 517f2e7d,
`opapi/ScaledDotProductAttentionKernelNpuOpApi.cpp`, `FlashAttentionKernelNpuOpApi.cpp` and
`NativeDropoutKernelNpuOpApi.cpp`), dtypes those of the operators' documents.
"""

from __future__ import annotations

import math

from ...._tensor.geometry import contiguous
from ...rules import HALVES, broadcast_in_place, preserved
from ...spec import SHORT_FLOATS, Derivative, in_dtypes
from ...words import *

FLOATS = (dt.float32, *HALVES)
_FAR = 2147483647  # tokens before and after: no band
_COMPRESSED = 2048  # sides of the mask of what comes later, beside which its size is not asked
_MOST_HEADS, _DEEPEST, _UNIT = 2048, 512, 4


def _bits_of(numel: int, p: float, seed: int, offset: int, kind: Dtype, device: Any) -> Geometry:
    return contiguous((-(-numel // 128) * 16,), dt.uint8, device)


op(
    "_keep_bits(int numel, float p, Scalar seed, Scalar offset, ScalarType kind, Device device)"
    " -> Tensor",
    infer=_bits_of,
    aclnn=call("aclnnDropoutGenMaskV2", lambda a: (a["numel"],), "p", "seed", "offset", "kind",
               "out"),
    absent={"cpu": "bits of a device's own generator"},
    grad={},
    tolerance="random",
    surface="none",
    unsampled="draws have no expected values: the tests of random compare their distribution",
)  # fmt: skip


def _by_elements(self: Tensor, bits: Tensor, p: float) -> Tensor:
    places = aten.arange(0, 8, dtype=dt.uint8, device=self.device)
    ones = aten.flatten(aten.bitwise_and(aten.unsqueeze(bits, -1) >> places, 1))
    ones = aten.reshape(aten.narrow(ones, 0, 0, self.numel()), tuple(self.shape))
    return self * aten.to(ones, self.dtype) * (1 / (1 - p))


op(
    "_drop(Tensor self, Tensor bits, float p) -> Tensor",
    infer=lambda self, bits, p: preserved(self),
    aclnn=call("aclnnDropoutDoMask", "self", "bits", "p", "out",
               when=in_dtypes("self", *SHORT_FLOATS)),
    lower=_by_elements,
    grad={"self": lambda grad, bits, p: aten._drop(grad, bits, p)},
    inplace=True,
    surface="none",
    unsampled="reads bits that _keep_bits gave: dropout is held against its distribution",
)  # fmt: skip


def runs(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float,
    causal: bool, scale: float | None, shared: bool,
) -> bool:  # fmt: skip
    """Whether the operator takes the call; `shared`: keys may have fewer heads than queries."""
    sizes = [tuple(t.shape) for t in (query, key, value)]
    if query.device.type != "npu" or query.dtype not in FLOATS or aten._watched():
        return False
    if dropout_p and not (dropout_p < 1 and aten._draws_bits(query)):
        return False
    if any(len(size) != 4 or not all(size) or size[3] > _DEEPEST for size in sizes):
        return False
    if query.dtype is dt.float32 and any(size[3] % _UNIT for size in sizes):
        return False
    (batch, heads, rows, depth), (_, fewer, columns, _), _ = sizes
    if sizes[1] != (batch, fewer, columns, depth) or sizes[2][:3] != sizes[1][:3]:
        return False
    if heads > _MOST_HEADS or heads % fewer or (fewer not in (1, heads) and not shared):
        return False
    if mask is None:
        return True
    whole = (batch, heads, rows, columns)[4 - mask.dim() :] if 2 <= mask.dim() <= 4 else ()
    return (
        mask.dtype is dt.bool and not causal
        and bool(whole) and all(n in (1, m) for n, m in zip(mask.shape, whole, strict=True))
    )  # fmt: skip


def attended(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float,
    causal: bool, scale: float | None,
) -> Tensor:  # fmt: skip
    """Attention where `runs`; `mask` is true where a query sees a key."""
    batch, heads, rows, depth = query.shape
    columns = key.size(2)
    hidden, mode = None, 0
    if mask is not None:
        hidden = aten.logical_not(mask)
        if tuple(mask.shape[-2:]) != (rows, columns) or mask.dim() == 3:
            hidden = aten.expand(hidden, (batch, heads, rows, columns))
    elif causal:
        mode = 2 if max(rows, columns) > _COMPRESSED else 0
        sides = (_COMPRESSED, _COMPRESSED) if mode else (rows, columns)
        hidden = aten.triu(aten.ones(sides, dtype=dt.bool, device=query.device), 1)
    factor = 1.0 / math.sqrt(depth) if scale is None else scale
    precise = 2 if mask is not None and rows > 1 else 0  # 2: rows that see nothing are zeros
    return scored(query, key, value, hidden, dropout_p, factor, mode, precise)[0]


def scored(
    query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None, dropout_p: float,
    scale: float, mode: int, precise: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Attention and its statistics, the maximum and sum of each row `[B, N, S, 8]`; modes 2 and 3
    hide what comes later, beside a mask of 2048 by 2048."""
    n = query.size(0) * query.size(1) * query.size(2) * key.size(2)
    bits = aten._draw_bits(query, n, dropout_p) if dropout_p else None
    keep = 1.0 - dropout_p
    results = aten._flash_attention(
        query, key, value, hidden, bits, float(scale), keep, mode, precise
    )
    return results[0], results[1], results[2]


def _weights(query: Tensor, key: Tensor, hidden: Tensor | None, scale: float, mode: int) -> Tensor:
    scores = aten.matmul(query, aten.transpose(repeated(key, query), -2, -1)) * scale
    if mode > 1:
        rows, columns = scores.shape[-2:]
        later = aten.ones((rows, columns), dtype=dt.bool, device=query.device)
        hidden = aten.triu(later, 1 + (columns - rows if mode == 3 else 0))
    if hidden is None:
        return aten.softmax(scores, -1)
    return masked_softmax(scores, aten.logical_not(hidden))


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of the last dim; zeros, and no gradient, in rows with nothing to attend to."""
    broadcast_in_place(scores.shape, mask.shape)
    least = float("-inf")
    away = mask.logical_not() if mask.dtype == dt.bool else mask == least
    idle = away.all(-1, keepdim=True)
    if mask.dtype == dt.bool:
        scores = scores.masked_fill(away.logical_and(idle.logical_not()), least)
    else:
        scores = scores + mask.masked_fill(idle, 0.0)
    return scores.softmax(-1).masked_fill(idle, 0.0)


def repeated(t: Tensor, query: Tensor) -> Tensor:
    """Heads of keys or values, each as often as queries share it."""
    each = query.size(1) // t.size(1)
    return t if each == 1 else aten.repeat_interleave(t, each, 1)


def _dropped(t: Tensor, bits: Tensor | None, keep: float) -> Tensor:
    return t if bits is None else aten._drop(t, bits, 1.0 - keep)


def _walk(
    query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None, bits: Tensor | None,
    scale: float, keep: float, mode: int, precise: int,
) -> tuple[Tensor, ...]:  # fmt: skip
    weights = _dropped(_weights(query, key, hidden, scale, mode), bits, keep)
    rows = aten.zeros((*query.shape[:3], 8), dtype=dt.float32, device=query.device)
    rest = aten.empty((0,), dtype=query.dtype, device=query.device)
    return aten.matmul(weights, repeated(value, query)), rows, aten.clone(rows), rest


def _walk_back(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None,
    bits: Tensor | None, most: Any, total: Any, rest: Any, result: Any, scale: float, keep: float,
    mode: int, precise: int,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradients, made again of the operands: those of them have gradients too."""
    weights = _weights(query, key, hidden, scale, mode)
    by_weights = aten.matmul(grad, aten.transpose(repeated(value, query), -2, -1))
    slopes = weights * _dropped(by_weights, bits, keep)
    scores = (slopes - weights * aten.sum(slopes, (-1,), keepdim=True)) * scale
    by_key = aten.matmul(aten.transpose(scores, -2, -1), query)
    by_value = aten.matmul(aten.transpose(_dropped(weights, bits, keep), -2, -1), grad)
    to_key, to_value = (
        t if t.size(1) == key.size(1)
        else aten.sum(aten.unflatten(t, 1, (key.size(1), -1)), (2,))
        for t in (by_key, by_value)
    )  # fmt: skip
    none = aten.empty((0,), dtype=query.dtype, device=query.device)
    return aten.matmul(scores, repeated(key, query)), to_key, to_value, none


_OPERANDS = "Tensor query, Tensor key, Tensor value"
_MASKS = "Tensor? hidden, Tensor? bits"
_NUMBERS = "float scale, float keep, int mode, int precise"
_NAMES = ("query", "key", "value", "hidden", "bits", "scale", "keep", "mode", "precise")
_TAIL = (
    None, "scale", "keep", _FAR, lambda a: 0 if a["mode"] > 1 else _FAR,
    lambda a: a["query"].shape[1], lambda a: "BNSD", "precise", "mode",
)  # fmt: skip


def _results(query: Geometry, key: Geometry, value: Geometry, *rest: Any) -> tuple[Geometry, ...]:
    rows = query.fresh((*query.shape[:3], 8), dt.float32)
    same = query.shape[3] == value.shape[3] and query.strides[3] == 1
    out = preserved(query) if same else query.fresh((*query.shape[:3], value.shape[3]))
    return out, rows, rows, query.fresh((0,))


def _derivative(grad: Tensor, *values: Any) -> tuple[Tensor, ...]:
    query, key, value, hidden, bits, scale, keep, mode, precise, out, most, total, rest = values
    recorded = aten._recorded(grad, query, key, value)
    back = _walk_back if recorded else aten._flash_attention_backward
    args = (query, key, value, hidden, bits, most, total, rest, out, scale, keep, mode, precise)
    return tuple(back(grad, *args)[:3])


op(
    f"_flash_attention({_OPERANDS}, {_MASKS}, {_NUMBERS})"
    " -> (Tensor out, Tensor most, Tensor total, Tensor rest)",
    infer=_results,
    aclnn=call("aclnnFlashAttentionScore", "query", "key", "value", None, "bits", None, "hidden",
               *_TAIL, "most", "total", "rest", "out"),
    lower=_walk,
    grad={
        ("query", "key", "value"): Derivative(
            _derivative, ("grad_out", *_NAMES, "out", "most", "total", "rest")
        )
    },
    unsampled="what it keeps has no gradient: scaled_dot_product_attention runs it on npu",
    surface="none",
    fixed_shape=True,
)  # fmt: skip
op(
    f"_flash_attention_backward(Tensor grad, {_OPERANDS}, {_MASKS}, Tensor most, Tensor total,"
    f" Tensor rest, Tensor out, {_NUMBERS})"
    " -> (Tensor to_query, Tensor to_key, Tensor to_value, Tensor none)",
    infer=lambda grad, query, key, value, *rest: (
        preserved(query), preserved(key), preserved(value), query.fresh((0,))
    ),
    aclnn=call("aclnnFlashAttentionScoreGrad", "query", "key", "value", "grad", None, "bits", None,
               "hidden", "most", "total", "rest", "out", *_TAIL, "to_query", "to_key", "to_value",
               "none"),
    lower=_walk_back,
    unsampled="reads what _flash_attention gave: gradients of it run it",
    surface="none",
    fixed_shape=True,
)  # fmt: skip
