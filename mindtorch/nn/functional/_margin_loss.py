"""Owns the margin, ranking, embedding and triplet losses and CTC; compositions of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch
from mindtorch._tensor import Tensor

from .._reduction import chosen, get_enum, reduced
from ._activation import logsigmoid
from ._linear import pairwise_distance


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """max(0, -y (x1 - x2) + margin)."""
    reduction = chosen(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """x where y = 1, max(0, margin - x) where y = -1."""
    reduction = chosen(size_average, reduce, reduction)
    zeros = mindtorch.zeros_like(input)
    margins = mindtorch.where(target == 1, zeros, (margin - input).clamp_min(0))
    return reduced(margins + mindtorch.where(target == -1, zeros, input), reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """log(1 + exp(-y x))."""
    reduction = chosen(size_average, reduce, reduction)
    return reduced(mindtorch.log1p(mindtorch.exp(-target * input)), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """1 - cos where y = 1, max(0, cos - margin) where y = -1."""
    reduction = chosen(size_average, reduce, reduction)
    dim = target.dim()
    eps = 1e-12
    product = (input1 * input2).sum(dim)
    norm1 = (input1 * input1).sum(dim) + eps
    norm2 = (input2 * input2).sum(dim) + eps
    cosine = product / (norm1 * norm2).sqrt()
    zeros = mindtorch.zeros_like(cosine)
    loss = mindtorch.where(target == 1, 1 - cosine, zeros)
    return reduced(
        loss + mindtorch.where(target == -1, (cosine - margin).clamp_min(0), zeros), reduction
    )


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Sum over wrong classes of max(0, margin - x[y] + x[i])ᵖ / C; input `[N, C]`."""
    reduction = chosen(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    single = input.dim() == 1
    rows = input.unsqueeze(0) if single else input
    index = target.reshape(-1, 1)
    terms = (margin - rows.gather(1, index) + rows).clamp_min(0).pow(p)
    if weight is not None:
        terms = terms * weight.index_select(0, target.reshape(-1)).unsqueeze(1)
    wrong = mindtorch.ones_like(rows).scatter(1, index, 0.0)
    loss = (terms * wrong).sum(1) / rows.size(1)
    return reduced(loss.squeeze(0) if single else loss, reduction)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Hinge between every label and every other class; labels end at the first -1."""
    reduction = chosen(size_average, reduce, reduction)
    single = input.dim() == 1
    rows = input.unsqueeze(0) if single else input
    labels = target.unsqueeze(0) if single else target
    valid = (labels < 0).to(mindtorch.int64).cumsum(1) == 0
    kept = labels.masked_fill(valid.logical_not(), 0)
    counts = mindtorch.zeros_like(rows).scatter_add(1, kept, valid.to(rows.dtype))
    others = (counts == 0).to(rows.dtype)
    picked = rows.gather(1, kept)
    terms = (1 - picked.unsqueeze(2) + rows.unsqueeze(1)).clamp_min(0)
    terms = terms * valid.to(rows.dtype).unsqueeze(2) * others.unsqueeze(1)
    loss = terms.sum((1, 2)) / rows.size(1)
    return reduced(loss.squeeze(0) if single else loss, reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Mean over classes of the binary cross entropy with logits."""
    reduction = chosen(size_average, reduce, reduction)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    loss = loss if weight is None else loss * weight
    return reduced(loss.sum(-1) / input.size(-1), reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """max(0, d(a, p) - d(a, n) + margin), d the p-norm."""
    reduction = chosen(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")

    def distance(x: Tensor, y: Tensor) -> Any:
        return pairwise_distance(x, y, p, eps)

    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=distance,
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """max(0, d(a, p) - d(a, n) + margin) for any distance; `swap`
    takes the nearer of d(a, n), d(p, n)."""
    get_enum(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = pairwise_distance if distance_function is None else distance_function
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, "
            f"and negative {negative.dim()}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = mindtorch.minimum(far, distance(positive, negative))
    return reduced((near - far + margin).clamp_min(0), reduction)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Connectionist temporal classification; log_probs `[T, N,
    C]`, targets `[N, S]` or concatenated."""
    get_enum(reduction)
    if log_probs.dim() == 2:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0)
        one = ctc_loss(
            log_probs, targets, [_ints(input_lengths)[0]], [_ints(target_lengths)[0]], blank,
            reduction, zero_infinity,
        )  # fmt: skip
        return one.squeeze(0) if reduction == "none" else one
    times, sizes = _ints(input_lengths), _ints(target_lengths)
    losses, start = [], 0
    for n, (steps, size) in enumerate(zip(times, sizes, strict=True)):
        labels = targets[n, :size] if targets.dim() == 2 else targets[start : start + size]
        start += size
        losses.append(_ctc_one(log_probs[:steps, n], labels, blank))
    loss = mindtorch.stack(losses)
    if zero_infinity:
        loss = mindtorch.where(loss == float("inf"), mindtorch.zeros_like(loss), loss)
    if reduction != "mean":
        return reduced(loss, reduction)
    lengths = mindtorch.tensor(sizes, device=loss.device).to(loss.dtype).clamp(min=1)
    return (loss / lengths).mean()


def _ints(lengths: Any) -> list[int]:
    values = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return [int(v) for v in values] if isinstance(values, list | tuple) else [int(values)]


def _ctc_one(logs: Any, labels: Any, blank: int) -> Any:
    """-log of the probability of all paths of one sequence, by the forward recursion."""
    symbols = [blank]
    for label in labels.tolist():
        symbols += [int(label), blank]
    states = len(symbols)
    index = mindtorch.tensor(symbols, device=logs.device)
    low = -1e30  # stands for log 0: finite, so that the gradients of logsumexp stay finite
    emitted = logs.index_select(1, index)
    skips = [
        0.0 if i > 1 and symbols[i] != blank and symbols[i] != symbols[i - 2] else low
        for i in range(states)
    ]
    skip = mindtorch.tensor(skips, device=logs.device).to(logs.dtype)
    start = [0.0 if i < 2 else low for i in range(states)]
    alpha = mindtorch.tensor(start, device=logs.device).to(logs.dtype)
    alpha = alpha + emitted[0]
    floor = mindtorch.full((2,), low, dtype=logs.dtype, device=logs.device)
    for t in range(1, logs.size(0)):
        padded = mindtorch.cat([floor, alpha])
        ways = mindtorch.stack([alpha, padded[1:-1], padded[:-2] + skip])
        alpha = mindtorch.logsumexp(ways, 0) + emitted[t]
    total = -mindtorch.logsumexp(alpha[-2:], 0)
    return mindtorch.where(total > 1e29, mindtorch.full_like(total, float("inf")), total)
