"""torch.nn.attention.varlen: attention of sequences of several lengths, packed."""

from __future__ import annotations

from typing import NamedTuple

import mindtorch

from ..._tensor.tensor import Tensor

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What `varlen_attn` gives beside its result: the logarithm of the sums of exponentials."""

    lse: bool = False


def varlen_attn(
    query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor | None,
    max_q: int, max_k: int, *, return_aux: AuxRequest | None = None, scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False,
    seqused_k: Tensor | None = None, block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """Attention [T, H, D] within each sequence; `cu_seq_q` [B + 1] has where they start.

    `window_size` is how many keys to the left and right of its own place a query sees, counted
    from the ends of both sequences; -1 is all, (-1, 0) is causal. With `return_aux` the logarithms
    [H, T] too. NotImplementedError for keys in pages (`block_table`).
    """
    if block_table is not None:
        raise NotImplementedError("varlen_attn: block_table: mindtorch has no caches in pages")
    heads, groups = query.shape[1], query.shape[1] // key.shape[1]
    if groups > 1 and not enable_gqa:
        raise ValueError(
            f"varlen_attn: {heads} heads of queries and {key.shape[1]} of keys need enable_gqa=True"
        )
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    ends_q, ends_k = cu_seq_q.tolist(), (cu_seq_q if cu_seq_k is None else cu_seq_k).tolist()
    used = None if seqused_k is None else seqused_k.tolist()
    results, sums = [], []
    for at in range(len(ends_q) - 1):
        start, stop = ends_k[at], ends_k[at + 1] if used is None else ends_k[at] + used[at]
        q = query[ends_q[at] : ends_q[at + 1]].transpose(0, 1)
        k, v = (t[start:stop].transpose(0, 1).repeat_interleave(groups, 0) for t in (key, value))
        scores = (q @ k.transpose(-1, -2)).float() * scale
        scores = scores.masked_fill(_unseen(scores, window_size), float("-inf"))
        weights = mindtorch.nan_to_num(scores.softmax(-1)) if scores.shape[-1] else scores
        results.append((weights.to(v.dtype) @ v).transpose(0, 1))
        sums.append(scores.logsumexp(-1))
    result = mindtorch.cat(results)
    return (result, mindtorch.cat(sums, -1)) if return_aux and return_aux.lse else result


def _unseen(scores: Tensor, window_size: tuple[int, int]) -> Tensor:
    """Which keys [Q, K] lie outside a query's window."""
    queries, keys = scores.shape[-2:]
    place = mindtorch.arange(queries, device=scores.device).unsqueeze(-1) + (keys - queries)
    distance = mindtorch.arange(keys, device=scores.device) - place
    left, right = window_size
    unseen = mindtorch.zeros_like(distance, dtype=mindtorch.bool)
    if left >= 0:
        unseen = unseen | (distance < -left)
    return unseen | (distance > right) if right >= 0 else unseen


def varlen_attn_out(
    out: Tensor, query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor,
    cu_seq_k: Tensor | None, max_q: int, max_k: int, *, return_aux: AuxRequest | None = None,
    scale: float | None = None, window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False,
    seqused_k: Tensor | None = None, block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """varlen_attn, written into `out`."""
    result = varlen_attn(
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, return_aux=return_aux, scale=scale,
        window_size=window_size, enable_gqa=enable_gqa, seqused_k=seqused_k,
        block_table=block_table, num_splits=num_splits,
    )  # fmt: skip
    if isinstance(result, tuple):
        return out.copy_(result[0]), result[1]
    return out.copy_(result)
