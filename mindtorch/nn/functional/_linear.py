"""Owns linear, bilinear, embedding, one_hot, dropout and distances of nn.functional."""

from __future__ import annotations

from typing import Any

import mindtorch
from mindtorch._tensor import Tensor

from .. import _aten as aten


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """input `[*, in]` @ weight.T `[in, out]` + bias `[out]`."""
    return aten.linear(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """input1 `[*, i]`, input2 `[*, j]`, weight `[o, i, j]` → `[*, o]`."""
    left = mindtorch.matmul(input1.unsqueeze(-2).unsqueeze(-2), weight).squeeze(-2)
    result = (left * input2.unsqueeze(-2)).sum(-1)
    return result if bias is None else result + bias


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of weight `[n, d]` at the indices; `max_norm` renormalizes those rows in place first."""
    padding_idx = _padding_index(padding_idx, weight.size(0), "Padding_idx", "num_embeddings")
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    return aten.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _padding_index(index: int | None, count: int, name: str, against: str) -> int:
    if index is None:
        return -1
    if not -count <= index < count:
        raise AssertionError(f"{name} must be within {against}")
    return index + count if index < 0 else index


def _renormalize(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    with mindtorch.no_grad():
        rows = index.reshape(-1).unique()
        picked = weight.index_select(0, rows)
        norms = picked.norm(norm_type, 1, keepdim=True)
        # torch divides by norm + 1e-7, so that a row at the bound stays below it.
        scale = mindtorch.where(
            norms > max_norm, max_norm / (norms + 1e-7), mindtorch.ones_like(norms)
        )
        weight.index_copy_(0, rows, picked * scale)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Any:
    """int64 indices → int64 `[*, num_classes]`; -1 takes the largest index + 1."""
    if tensor.dtype != mindtorch.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return mindtorch.zeros(
            (*tensor.shape, num_classes), dtype=tensor.dtype, device=tensor.device
        )
    if tensor.device.type != "meta":
        num_classes = _class_count(tensor, num_classes)
    classes = mindtorch.arange(num_classes, device=tensor.device)
    return (tensor.unsqueeze(-1) == classes).to(mindtorch.int64)


def _class_count(tensor: Tensor, num_classes: int) -> int:
    if int(tensor.min().item()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    largest = int(tensor.max().item())
    if num_classes == -1:
        return largest + 1
    if num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    if num_classes <= largest:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return num_classes


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Sums, means or maxima of bags of rows; bags are the rows of
    a 2-D input or start at `offsets`."""
    padding = _padding_index(padding_idx, weight.size(0), "padding_idx", "num_embeddings")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    flat, bags, count = _bags(input, offsets, include_last_offset)
    rows = embedding(flat, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    if padding_idx is not None:
        keep = (flat != padding).nonzero().reshape(-1)
        rows, bags = rows.index_select(0, keep), bags.index_select(0, keep)
    return _pooled(rows, bags, count, mode)


def _bags(input: Tensor, offsets: Tensor | None, last: bool) -> tuple[Any, Any, int]:
    """Gives (flat indices, bag of each, number of bags)."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        count, size = input.shape
        bags = mindtorch.arange(count, device=input.device).repeat_interleave(size)
        return input.reshape(-1), bags, count
    if input.dim() != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    starts = offsets[:-1] if last else offsets
    places = mindtorch.arange(input.numel(), device=input.device)
    bags = (places.unsqueeze(1) >= starts.unsqueeze(0)).sum(1) - 1
    return input, bags, starts.numel()


def _pooled(rows: Any, bags: Any, count: int, mode: str) -> Any:
    zeros = mindtorch.zeros((count, rows.size(1)), dtype=rows.dtype, device=rows.device)
    if mode == "max":
        sizes = (bags.unsqueeze(0) == mindtorch.arange(count, device=bags.device).unsqueeze(1)).sum(
            1
        )
        parts = rows.split(sizes.tolist())
        return mindtorch.stack(
            [part.max(0)[0] if part.size(0) else zeros[i] for i, part in enumerate(parts)]
        )
    total = zeros.index_add(0, bags, rows)
    if mode == "sum":
        return total
    ones = mindtorch.ones_like(bags).to(rows.dtype)
    sizes = mindtorch.zeros((count,), dtype=rows.dtype, device=rows.device).index_add(0, bags, ones)
    return total / sizes.clamp(min=1).unsqueeze(1)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Any:
    """x1 · x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`."""
    x1, x2 = mindtorch.broadcast_tensors(x1, x2)
    n1 = (x1 * x1).sum(dim, keepdim=True).sqrt().clamp(min=eps)
    n2 = (x2 * x2).sum(dim, keepdim=True).sqrt().clamp(min=eps)
    return ((x1 / n1) * (x2 / n2)).sum(dim)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """p-norm of x1 - x2 + eps along the last dim."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Any:
    """p-norms of the differences of every two rows of `[n, d]` → `[n (n - 1) / 2]`."""
    n = input.size(0)
    index = mindtorch.triu_indices(n, n, 1, device=input.device)
    return (input.index_select(0, index[0]) - input.index_select(0, index[1])).norm(p, 1)


def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None
) -> Any:
    """x / max(|x|_p, eps) along `dim`."""
    denominator = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denominator if out is None else mindtorch.div(input, denominator, out=out)
