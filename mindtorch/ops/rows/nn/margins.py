"""Rows of the margin, ranking, embedding and triplet losses, and of CTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from ...._tensor import dtype as dt
from ...._tensor.tensor import Tensor
from ...rules import scalar_name
from ...samples import Arg, Sample, calls
from ...spec import aten, composite
from .gates import logsigmoid
from .reduction import get_enum, reduced, resolve_reduction
from .similarity import pairwise_distance


@composite(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, bool? "
    "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
    surface="nn",
    samples=calls(
        (Arg((4,)), Arg((4,), low=-1), Arg((4,), values=(1, -1, 1, -1), grad=False), 0.3)
    ),
    tolerance="composite",
)
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -y (x1 - x2) + margin)."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@composite(
    "hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, bool? "
    "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
    surface="nn",
    samples=calls((Arg((4,)), Arg((4,), values=(1, -1, 1, -1), grad=False))),
    tolerance="composite",
)
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x where y = 1, max(0, margin - x) where y = -1."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    zeros = aten.zeros_like(input)
    margins = aten.where(target == 1, zeros, (margin - input).clamp_min(0))
    return reduced(margins + aten.where(target == -1, zeros, input), reduction)


@composite(
    "soft_margin_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
    "str reduction='mean') -> Tensor",
    surface="nn",
    samples=calls((Arg((4,)), Arg((4,), values=(1, -1, 1, -1), grad=False))),
    tolerance="composite",
)
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-x y))."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    return reduced(aten.log1p(aten.exp(-input * target)), reduction)


@composite(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, bool? "
    "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
    surface="nn",
    samples=calls(
        (Arg((3, 4)), Arg((3, 4), low=-1), Arg((3,), values=(1, -1, 1), grad=False), 0.1)
    ),
    tolerance="chained",
)
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where y = 1, max(0, cos - margin) where y = -1."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    dim = target.dim()
    if dim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if dim == 1 and not input1.dim() == input2.dim() == 2:
        raise RuntimeError(
            "1D target tensor expects 2D input tensors, but found inputs with sizes"
            f" {list(input1.shape)} and {list(input2.shape)}."
        )
    eps = 1e-12
    product = (input1 * input2).sum(dim)
    norm1 = (input1 * input1).sum(dim) + eps
    norm2 = (input2 * input2).sum(dim) + eps
    cosine = product / (norm1 * norm2).sqrt()
    zeros = aten.zeros_like(cosine)
    loss = aten.where(target == 1, 1 - cosine, zeros)
    return reduced(
        loss + aten.where(target == -1, (cosine - margin).clamp_min(0), zeros), reduction
    )


def _refuse_empty(input: Tensor) -> None:
    """RuntimeError in torch's words for what is no vector or matrix of classes."""
    if input.dim() > 2 or (input.dim() and not input.shape[-1]):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got:"
            f" {list(input.shape)}"
        )


def _refuse_targets(target: Tensor) -> None:
    if target.dtype is not dt.int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target.dtype)}")


@composite(
    "multi_margin_loss(Tensor input, Tensor target, int p=1, float margin=1.0, Tensor? "
    "weight=None, bool? size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
    unsupported={"bool whole half complex": "multi_margin_loss_cpu_kernel"},
    surface="nn",
    samples=calls((Arg((3, 4)), Arg((3,), "int64", 0, 3)), (Arg((4,)), Arg((), "int64", 0, 3), 2)),
    tolerance="composite",
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
) -> Tensor:
    """Sum over wrong classes of max(0, margin - x[y] + x[i])ᵖ / C; input `[N, C]`."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    _refuse_empty(input)
    single = input.dim() < 2
    rows = input.reshape(1, -1) if single else input
    if not (single and target.dim() == 0) and tuple(target.shape) != (rows.size(0),):
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input"
            f" samples (batch size). Expected target size [{rows.size(0)}], but got"
            f" {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    if weight is not None and tuple(weight.shape) != (rows.size(1),):
        raise RuntimeError(
            f"inconsistent weight size, expected {rows.size(1)} but got {list(weight.shape)}"
        )
    _refuse_targets(target)
    index = target.reshape(-1, 1)
    try:
        right = rows.gather(1, index)
    except RuntimeError as error:
        if "out of bounds" not in str(error):
            raise
        raise RuntimeError("target out of range") from None
    terms = aten.relu(margin - right + rows).pow(p)
    if weight is not None:
        terms = terms * weight.index_select(0, target.reshape(-1)).unsqueeze(1)
    wrong = aten.ones_like(rows).scatter(1, index, 0.0)
    loss = (terms * wrong).sum(1) / rows.size(1)
    return reduced(loss.squeeze(0) if single else loss, reduction)


@composite(
    "multilabel_margin_loss(Tensor input, Tensor target, bool? size_average=None, bool? "
    "reduce=None, str reduction='mean') -> Tensor",
    unsupported={"bool whole half complex": "multilabel_margin_loss_forward_out_frame"},
    surface="nn",
    samples=calls((Arg((2, 4)), Arg((2, 4), "int64", values=((0, 2, -1, 1), (3, -1, 0, 0))))),
    tolerance="composite",
)
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Hinge between every label and every other class; labels end at the first -1."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    single = input.dim() < 2
    rows = input.reshape(1, -1) if single else input
    _refuse_empty(input)
    if tuple(target.shape) != tuple(input.shape) and not (
        single and target.numel() == rows.size(1)
    ):
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    _refuse_targets(target)
    labels = target.reshape(1, -1) if single else target
    valid = (labels < 0).to(dt.int64).cumsum(1) == 0
    targets = labels.masked_fill(valid.logical_not(), 0)
    counts = aten.zeros_like(rows).scatter_add(1, targets, valid.to(rows.dtype))
    others = (counts == 0).to(rows.dtype)
    picked = rows.gather(1, targets)
    terms = aten.relu(1 - picked.unsqueeze(2) + rows.unsqueeze(1))
    terms = terms * valid.to(rows.dtype).unsqueeze(2) * others.unsqueeze(1)
    loss = terms.sum((1, 2)) / rows.size(1)
    return reduced(loss.squeeze(0) if single else loss, reduction)


@composite(
    "multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, bool? "
    "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
    surface="nn",
    samples=calls((Arg((3, 4)), Arg((3, 4), low=0, high=1, grad=False))),
    tolerance="composite",
)
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over classes of the binary cross entropy with logits."""
    if not input.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    reduction = resolve_reduction(size_average, reduce, reduction)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    loss = loss if weight is None else loss * weight
    return reduced(loss.sum(-1) / input.size(-1), reduction)


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
    "float p=2, float eps=1e-06, bool swap=False, bool? size_average=None, bool? reduce=None, "
    "str reduction='mean') -> Tensor",
    surface="nn",
    samples=calls((Arg((3, 4)), Arg((3, 4), low=-1), Arg((3, 4), high=1))),
    tolerance="chained",  # the difference of two distances may be far smaller than they are
)
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
) -> Tensor:
    """max(0, d(a, p) - d(a, n) + margin), d the p-norm."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")

    def distance(x: Tensor, y: Tensor) -> Tensor:
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


@composite(
    "triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, Tensor negative, *, "
    "Function? distance_function=None, float margin=1.0, bool swap=False, str "
    "reduction='mean') -> Tensor",
    surface="nn",
    samples=calls(
        Sample(
            (Arg((3, 4)), Arg((3, 4), low=-1), Arg((3, 4), high=1)), {"swap": True, "margin": 2.0}
        )
    ),
    tolerance="chained",
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
) -> Tensor:
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
        far = aten.minimum(far, distance(positive, negative))
    return reduced((near - far + margin).clamp_min(0), reduction)


@composite(
    "ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int "
    "blank=0, str reduction='mean', bool zero_infinity=False) -> Tensor",
    unsupported={"bool whole half complex": "ctc_loss_cpu"},
    surface="nn",
    # As torch's, the gradient holds for logs of probabilities only: no numbers agree with it.
    samples=calls(
        (
            Arg((5, 2, 4), low=-3, high=-0.5, grad=False),
            Arg((2, 2), "int64", 1, 3),
            (5, 5),
            (2, 1),
            0,
            "sum",
        )
    ),
    tolerance="composite",
)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
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
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if isinstance(lengths, Tensor) and lengths.dtype.category != dt.INTEGER:
            raise RuntimeError(f"{name} must be integral")
    times, sizes = _ints(input_lengths), _ints(target_lengths)
    _check_ctc(log_probs, targets, times, sizes, blank)
    loss = _ctc_losses(log_probs, _ctc_labels(targets, sizes), times, blank)
    if zero_infinity:
        loss = aten.where(loss == float("inf"), aten.zeros_like(loss), loss)
    if reduction != "mean":
        return reduced(loss, reduction)
    lengths = aten.tensor(sizes, device=loss.device).to(loss.dtype).clamp(min=1)
    return (loss / lengths).mean()


def _check_ctc(
    logs: Tensor, targets: Tensor, times: list[int], sizes: list[int], blank: int
) -> None:
    steps, batch, labels = logs.shape
    if not 0 <= blank < labels:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", times), ("target_lengths", sizes)):
        if len(lengths) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    for name, lengths in (("target_lengths", sizes), ("input_lengths", times)):
        if any(n < 0 for n in lengths):
            raise RuntimeError(
                f"Expected {name} to have value at least 0, but got value"
                f" {next(n for n in lengths if n < 0)} {where}"
            )
    if any(time > steps for time in times):
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value"
            f" {next(t for t in times if t > steps)} {where}"
        )
    flat = targets.dim() == 1
    shape, longest = tuple(targets.shape), max(sizes, default=0)
    first = sum(sizes) if flat else batch
    if targets.dim() not in (1, 2) or shape[0] != first or (not flat and shape[1] < longest):
        size = f"at least {longest}" if shape[0] == first else f"{first}"
        at = int(shape[0] == first)
        raise RuntimeError(
            f"Expected tensor to have size {size} at dimension {at}, but got size {shape[at]} for"
            f" argument #2 'targets' {where}"
        )


def _ints(lengths: Tensor | Sequence[int]) -> list[int]:
    values = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return [int(v) for v in values] if isinstance(values, Sequence) else [int(values)]


def _ctc_labels(targets: Tensor, sizes: list[int]) -> list[list[int]]:
    """The labels of each sequence."""
    values = targets.tolist()
    if targets.dim() == 2:
        return [row[:size] for row, size in zip(values, sizes, strict=True)]
    ends = list(accumulate(sizes))
    return [values[end - size : end] for end, size in zip(ends, sizes, strict=True)]


# Stands for log 0: finite, so that the gradients of logsumexp stay finite.
_LOW = -1e30


def _ctc_states(
    labels: list[list[int]], blank: int
) -> tuple[list[list[int]], list[list[float]], list[list[float]]]:
    """Per sequence: each state's symbol, what skipping to it adds, what ending in it adds."""
    states = 2 * max(map(len, labels), default=0) + 1
    symbols, skips, ends = [], [], []
    for row in labels:
        own = [blank] * states
        own[1 : 2 * len(row) : 2] = row
        symbols.append(own)
        skips.append([0.0 if i > 1 and own[i] not in (blank, own[i - 2]) else _LOW
                      for i in range(states)])  # fmt: skip
        ends.append([0.0 if i in (2 * len(row), 2 * len(row) - 1) else _LOW
                     for i in range(states)])  # fmt: skip
    return symbols, skips, ends


def _ctc_losses(logs: Tensor, labels: list[list[int]], times: list[int], blank: int) -> Tensor:
    """-log of the probability of all paths of each sequence, by the forward recursion."""
    symbols, skips, ends = _ctc_states(labels, blank)
    where, kind = logs.device, logs.dtype
    steps, batch, states = max(times, default=0), len(times), len(symbols[0]) if symbols else 1
    skip, end = (aten.tensor(rows, device=where).to(kind) for rows in (skips, ends))
    index = aten.tensor(symbols, device=where).reshape(1, batch, states)
    emitted = logs[:steps].gather(2, index.expand(steps, batch, states))
    going = [[[t < time] for time in times] for t in range(steps)]
    active = aten.tensor(going, dtype=dt.bool, device=where).reshape(steps, batch, 1)
    alpha = aten.full((batch, states), _LOW, dtype=kind, device=where)
    alpha[:, :2] = 0.0
    floor = aten.full((batch, 2), _LOW, dtype=kind, device=where)
    even = min(times, default=0) == steps
    for t in range(steps):
        if t:
            padded = aten.cat([floor, alpha], 1)
            ways = aten.stack([alpha, padded[:, 1:-1], padded[:, :-2] + skip])
            moved = aten.logsumexp(ways, 0) + emitted[t]
        else:
            moved = alpha + emitted[0]
        alpha = moved if even else aten.where(active[t], moved, alpha)
    # torch gives every input the gradient that a log_softmax before it takes back out again.
    mass = (aten.exp(logs[:steps]) * active).sum((0, 2))
    total = -aten.logsumexp(alpha + end, 1) + (mass - mass.detach())
    return aten.where(total > 1e29, aten.full_like(total, float("inf")), total)
