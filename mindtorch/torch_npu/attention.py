"""Owns torch_npu's attention for training, made of torch's functions; gradients follow.

Source: Ascend Extension for PyTorch, "Custom API reference" (torch_npu.npu_*), whose names,
defaults and order of results these keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import mindtorch

from .._tensor.tensor import Tensor
from ..nn import functional
from ..ops.rows.nn import flash

__all__ = ["npu_fusion_attention"]
_FAR: Final = 2147483647  # tokens before and after: no band
# Layouts of queries, keys and values: what puts them into [B, N, S, D].
_HEADS_APART: Final = {"BSH": (0, 2, 1, 3), "SBH": (1, 2, 0, 3)}
_ORDERS: Final = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3)}


def npu_fusion_attention(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str,
    pse: Tensor | None = None, padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None, scale: float = 1.0, keep_prob: float = 1.0,
    pre_tockens: int = _FAR, next_tockens: int = _FAR, inner_precise: int = 0,
    prefix: Sequence[int] | None = None, actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None, sparse_mode: int = 0,
    gen_mask_parallel: bool = True, sync: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """Attention of all heads: (output, softmax's maximum and sum `[B, N, S, 8]`, an empty tensor,
    seed, offset, numbers of the mask of dropout).

    `atten_mask` hides where True; `sparse_mode` 2 and 3 hide what comes later, from the first or to
    the last key. `TND` packs sequences whose ends `actual_seq_qlen` and `actual_seq_kvlen` tell.
    """
    if sparse_mode not in range(5) or prefix is not None or padding_mask is not None:
        raise NotImplementedError(
            "npu_fusion_attention: sparse_mode 0 to 4 is here, without prefix and padding_mask; "
            f"got sparse_mode={sparse_mode}"
        )
    band = (pre_tockens, next_tockens)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scores = q @ flash.repeated(k, q).transpose(-2, -1)
        scores = (scores if pse is None else scores + pse) * scale
        hidden = _hidden(scores, atten_mask, sparse_mode, band)
        if hidden is not None:
            scores = scores.masked_fill(hidden, mindtorch.finfo(scores.dtype).min)
        wide = scores.float()
        most = wide.amax(-1, keepdim=True)
        total = (wide - most).exp().sum(-1, keepdim=True)
        weights = functional.dropout(((wide - most).exp() / total).to(v.dtype), 1 - keep_prob)
        return weights @ flash.repeated(v, q), most, total

    if input_layout == "TND":
        return _packed(attend, (query, key, value), actual_seq_qlen, actual_seq_kvlen)
    q, k, v = (_heads_first(t, head_num, query, input_layout) for t in (query, key, value))
    if pse is None and _has_operator(q, k, v, keep_prob, atten_mask, sparse_mode, band):
        hidden = None if atten_mask is None else atten_mask.bool()
        numbers = 1 - keep_prob, scale, sparse_mode, inner_precise
        out, most, total = flash.scored(q, k, v, hidden, *numbers)
        return (_laid_out(out, input_layout), most, total, out.new_empty(0), 0, 0, 0)
    out, most, total = attend(q, k, v)
    rest = (most.expand(*most.shape[:-1], 8), total.expand(*total.shape[:-1], 8))
    return (_laid_out(out, input_layout), *rest, out.new_empty(0), 0, 0, 0)


def _has_operator(
    query: Tensor, key: Tensor, value: Tensor, keep: float, mask: Tensor | None, mode: int,
    band: tuple[int, int],
) -> bool:  # fmt: skip
    """Whether the device's operator takes heads `[B, N, S, D]` with such a mask, bands apart."""
    if mode in (2, 3):
        fits = mask is not None and mask.shape == (2048, 2048)
    else:
        whole = (*query.shape[:3], key.size(2))
        fits = mode == 0 and band == (_FAR, _FAR) and (mask is None or mask.dim() in (2, 4))
        fits = fits and (mask is None or tuple(mask.shape) == whole[4 - mask.dim() :])
    return fits and flash.runs(query, key, value, None, 1 - keep, False, None, True)


def _heads_first(t: Tensor, heads: int, query: Tensor, layout: str) -> Tensor:
    if layout in _HEADS_APART:
        width = query.size(-1) // heads
        t = t.unflatten(-1, (t.size(-1) // width, width))
        return t.permute(_HEADS_APART[layout])
    if layout not in _ORDERS:
        raise ValueError(f"npu_fusion_attention: input_layout is unknown: {layout}")
    return t.permute(_ORDERS[layout])


def _laid_out(out: Tensor, layout: str) -> Tensor:
    """[B, N, S, D] in the layout of the queries."""
    if layout in _HEADS_APART:
        back = (0, 2, 1, 3) if layout == "BSH" else (2, 0, 1, 3)
        return out.permute(back).flatten(2)
    return out.permute(_ORDERS[layout]).contiguous()


def _hidden(scores: Tensor, mask: Tensor | None, mode: int, band: tuple[int, int]) -> Tensor | None:
    """Where a query does not see a key."""
    rows, columns = scores.shape[-2:]
    if mask is None or (mode in (0, 1) and (mode == 1 or band == (_FAR, _FAR))):
        return None if mask is None else mask.bool()
    ahead = columns - rows if mode in (3, 4) else 0
    at = mindtorch.arange(rows, device=scores.device)[:, None] + ahead
    places = mindtorch.arange(columns, device=scores.device)
    if mode in (2, 3):
        return places > at
    outside = (places > at + band[1]) | (places < at - band[0])
    return outside if mode == 4 else outside | mask.bool()


def _packed(
    attend: Any, packed: Sequence[Tensor], ends: Sequence[int] | None,
    key_ends: Sequence[int] | None,
) -> tuple[Any, ...]:  # fmt: skip
    """Attention within each of the sequences that lie one behind the other, `[T, N, D]`."""
    if ends is None or key_ends is None:
        raise ValueError("npu_fusion_attention: TND needs actual_seq_qlen and actual_seq_kvlen")
    query, key, value = packed
    parts, start, key_start = [], 0, 0
    for end, key_end in zip(ends, key_ends, strict=True):
        sides = (query[start:end], key[key_start:key_end], value[key_start:key_end])
        parts.append(attend(*(t.transpose(0, 1)[None] for t in sides)))
        start, key_start = end, key_end
    out, most, total = (
        mindtorch.cat([p[i][0].transpose(0, 1) for p in parts]) for i in range(3)
    )  # fmt: skip
    rest = (t.expand(*t.shape[:-1], 8) for t in (most, total))
    return (out, *rest, out.new_empty(0), 0, 0, 0)
