"""Rows of the margin, ranking, embedding and triplet losses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...._compat.unsupported_dtypes import halves_elsewhere
from ...words import *
from .constants import refuse_gradients
from .gates import logsigmoid
from .reduction import get_enum, reduced, resolve_reduction
from .similarity import pairwise_distance


@composite(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, bool? "
    "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
    autocast="float32",
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
    apart = input1 - input2
    return reduced((-target * apart + margin).clamp_min(0), reduction)


@composite(
    "hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, bool? "
    "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
    autocast="float32",
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
    far = (margin - input).clamp_min(0)
    margins = aten.where(target != 1, far, zeros)
    return reduced(margins + aten.where(target != -1, input, zeros), reduction)


@composite(
    "soft_margin_loss.nn(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
    "str reduction='mean') -> Tensor",
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
    refuse_gradients("soft_margin_loss", target=target)
    return aten.soft_margin_loss(input, target, get_enum(reduction))


@composite(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, bool? "
    "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
    autocast="float32",
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
    if dim == 0 and not input1.dim() == input2.dim() == 1:
        raise RuntimeError(
            "0D target tensor expects 1D input tensors, but found inputs with sizes"
            f" {list(input1.shape)} and {list(input2.shape)}."
        )
    eps = 1e-12
    product = (input1 * input2).sum(dim)
    norm1 = (input1 * input1).sum(dim) + eps
    norm2 = (input2 * input2).sum(dim) + eps
    cosine = product / (norm1 * norm2).sqrt()
    zeros = aten.zeros_like(cosine)
    near, far = 1 - cosine, (cosine - margin).clamp_min(0)
    loss = aten.where(target == 1, near, zeros)
    return reduced(loss + aten.where(target == -1, far, zeros), reduction)


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


@contextmanager
def _refused_labels(text: str) -> Iterator[None]:
    """RuntimeError of this text for a label that is no class."""
    try:
        yield
    except RuntimeError as error:
        if "out of bounds" not in str(error):
            raise
        raise RuntimeError(text) from None


def _slopes(weight: Tensor | None, target: Tensor, index: Tensor, like: Tensor) -> Tensor:
    """What each class's hinge counts, `[N, C]`: nothing of the right one."""
    wrong = aten.ones_like(like).scatter(1, index, 0.0) / like.size(1)
    return wrong if weight is None else wrong * weight.index_select(0, target).unsqueeze(1)


def _hinges(self: Tensor, target: Tensor, weight: Tensor | None, p: int, margin: float) -> Tensor:
    index = target.unsqueeze(1)
    terms = aten.relu(margin - self.gather(1, index) + self).pow(p)
    return (terms * _slopes(weight, target, index, self.detach())).sum(1)


def _hinges_grad(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, p: int, margin: float
) -> Tensor:
    """Every class that is too near takes, and the right one gives."""
    index = target.unsqueeze(1)
    over = aten.relu(margin - self.gather(1, index) + self)
    slope = 2 * over if p == 2 else aten.to(over > 0, self.dtype)
    slope = slope * _slopes(weight, target, index, self.detach()) * grad.unsqueeze(1)
    return slope.scatter_add(1, index, -slope.sum(1, True))


op(
    "_multi_margin(Tensor self, Tensor target, Tensor? weight, int p, Scalar margin) -> Tensor",
    infer=lambda self, *_: self.fresh((self.shape[0],)),
    bounds=lambda self, *_: [(1, 0, self.shape[1])],
    lower=_hinges,
    grad={"self": _hinges_grad},
    unsampled="multi_margin_loss is held against torch",
    tolerance="composite",
)


@composite(
    "multi_margin_loss(Tensor input, Tensor target, int p=1, float margin=1.0, Tensor? "
    "weight=None, bool? size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
    autocast="float32",
    unsupported=halves_elsewhere("bool whole complex", "multi_margin_loss_cpu_kernel"),
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
    refuse_gradients("multi_margin_loss", weight=weight)
    _refuse_targets(target)
    with _refused_labels("target out of range"):
        loss = aten._multi_margin(rows, target.reshape(-1), weight, p, margin)
    return reduced(loss.reshape(target.shape), reduction)


def _labelled(self: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Labels with 0 past their end, and what each one's hinge against a class counts."""
    valid = (labels < 0).to(dt.int64).cumsum(1) == 0
    targets = labels.masked_fill(valid.logical_not(), 0)
    counts = aten.zeros_like(self).scatter_add(1, targets, valid.to(self.dtype))
    others = (counts == 0).to(self.dtype) / self.size(1)
    return targets, valid.to(self.dtype).unsqueeze(2) * others.unsqueeze(1)


def _label_hinges(self: Tensor, target: Tensor) -> Tensor:
    targets, shares = _labelled(self.detach(), target)
    terms = aten.relu(1 - self.gather(1, targets).unsqueeze(2) + self.unsqueeze(1))
    return (terms * shares).sum((1, 2))


def _label_slopes(grad: Tensor, self: Tensor, target: Tensor) -> Tensor:
    targets, shares = _labelled(self, target)
    over = 1 - self.gather(1, targets).unsqueeze(2) + self.unsqueeze(1)
    slope = aten.where(over > 0, shares, 0.0) * grad[:, None, None]
    return slope.sum(1).scatter_add(1, targets, -slope.sum(2))


op(
    "_multilabel_margin(Tensor self, Tensor target) -> Tensor",
    infer=lambda self, target: self.fresh((self.shape[0],)),
    bounds=lambda self, *_: [(1, -1, self.shape[1])],
    lower=_label_hinges,
    grad={"self": lambda grad, self, target: aten._multilabel_margin_backward(grad, self, target)},
    unsampled="multilabel_margin_loss is held against torch",
    tolerance="composite",
)

op(
    "_multilabel_margin_backward(Tensor grad, Tensor self, Tensor target) -> Tensor",
    infer=lambda grad, self, target: self.fresh(self.shape),
    lower=_label_slopes,
    grad={
        "grad": lambda grad, self, target: aten.sum(
            grad * aten._multilabel_margin_backward(aten.ones_like(grad[:, 0]), self, target), (1,)
        ),
        "self": lambda grad: aten.zeros_like(grad),
    },
    unsampled="multilabel_margin_loss is held against torch",
    tolerance="composite",
)


@composite(
    "multilabel_margin_loss(Tensor input, Tensor target, bool? size_average=None, bool? "
    "reduce=None, str reduction='mean') -> Tensor",
    autocast="float32",
    unsupported=halves_elsewhere("bool whole complex", "multilabel_margin_loss_forward_out_frame"),
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
    with _refused_labels("argument #2 'target' is out of range"):
        loss = aten._multilabel_margin(rows, labels)
    return reduced(loss.squeeze(0) if single else loss, reduction)


@composite(
    "multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, bool? "
    "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
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
    if size_average is not None or reduce is not None:
        reduction = resolve_reduction(size_average, reduce, reduction)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    loss = loss if weight is None else loss * weight
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return reduced(loss.sum(input.dim() - 1) / input.size(-1), reduction)


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
    "float p=2, float eps=1e-06, bool swap=False, bool? size_average=None, bool? reduce=None, "
    "str reduction='mean') -> Tensor",
    autocast="float32",
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
