"""Rows of the losses of classification and regression; margin losses stand in margins."""

from __future__ import annotations

import math

from ...._compat.warn_once import warn
from ...._tensor.recording import unrepeatable
from ...rules import result_type
from ...words import *
from .constants import refuse_gradients
from .reduction import get_enum, reduced, resolve_reduction


@composite(
    "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
    "int ignore_index=-100, bool? reduce=None, str reduction='mean', float "
    "label_smoothing=0.0) -> Tensor",
    samples=calls(
        (Arg((4, 3), low=-3, high=0), Arg((4,), "int64", 0, 2)),
        (
            Arg((2, 3, 4), low=-3, high=0),
            Arg((2, 4), "int64", 0, 2),
            Arg((3,), low=0.5, grad=False),
        ),
    ),
    tolerance="accumulated",
)
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """input `[N, C, *]` logits; target int64 `[N, *]` classes, or
    floating `[N, C, *]` probabilities."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if not isinstance(target, Tensor):
        kind = type(target).__name__
        raise TypeError(
            f"cross_entropy_loss(): argument 'target' (position 2) must be Tensor, not {kind}"
        )
    if label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    dim = 0 if input.dim() == 1 else 1
    if input.shape == target.shape:
        _check_probabilities(input, target, weight, ignore_index, dim)
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing, dim)
    logs = input.log_softmax(dim)
    loss = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    if label_smoothing <= 0.0:  # torch ignores what is below zero
        return loss
    smooth = _smooth(logs, target, weight, ignore_index, reduction, dim)
    return (1 - label_smoothing) * loss + smooth * (label_smoothing / input.size(dim))


def _along(weight: Tensor, dims: int, dim: int) -> Tensor:
    shape = [1] * dims
    shape[dim] = weight.size(0)
    return weight.reshape(shape)


def _smooth(
    logs: Tensor, target: Tensor, weight: Tensor | None, ignore: int, reduction: str, dim: int
) -> Tensor:
    """The part of label smoothing that is spread over all classes."""
    weighted = logs if weight is None else logs * _along(weight, logs.dim(), dim)
    ignored = target == ignore
    loss = (-weighted.sum(dim)).masked_fill(ignored, 0.0)
    if reduction != "mean":
        return loss.sum() if reduction == "sum" else loss
    if weight is None:
        return loss.sum() / (ignored.logical_not()).sum()
    picked = weight.index_select(0, target.masked_fill(ignored, 0).reshape(-1))
    return loss.sum() / picked.masked_fill(ignored.reshape(-1), 0.0).sum()


def _check_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, dim: int
) -> None:
    """RuntimeError for what targets that are probabilities refuse."""
    if not target.is_floating_point():
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            + scalar_name(target.dtype)
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if weight is not None and weight.shape != (input.size(dim),):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {input.size(dim)}"
            f" classes or no classes but got weight tensor of shape: {list(weight.shape)}"
        )


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, dim: int
) -> Tensor:
    classes = input.size(dim)
    if smoothing > 0.0:
        target = target * (1 - smoothing) + smoothing / classes
    terms = input.log_softmax(dim) * target
    if weight is not None:
        terms = terms * _along(weight, terms.dim(), dim)
    if reduction == "none":
        return -terms.sum(dim)
    total = -terms.sum()
    if reduction == "sum":
        return total
    mean: Tensor = total / max(input.numel() // max(classes, 1), 1)
    if mean._fn is not None:
        mean._fn.label = "DivBackward1"  # torch divides by a symbolic size
    return mean


@composite(
    "nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int "
    "ignore_index=-100, bool? reduce=None, str reduction='mean') -> Tensor",
    samples=calls(
        (Arg((4, 3), low=-3, high=0), Arg((4,), "int64", 0, 2)),
        (
            Arg((2, 3, 4), low=-3, high=0),
            Arg((2, 4), "int64", 0, 2),
            Arg((3,), low=0.5, grad=False),
        ),
    ),
    tolerance="accumulated",
)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-input[class], weighted; input `[N, C, *]` log-probabilities, target int64 `[N, *]`."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    code = get_enum(reduction)
    if input.dim() < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {input.dim()})")
    count = target.size(0) if target.dim() else 0
    if input.dim() != 1 and input.size(0) != count:
        raise ValueError(
            f"Expected input batch_size ({input.size(0)}) to match target batch_size ({count})."
        )
    if input.dim() == 1 and target.dim() == 1 and target.size(0) != 1:
        raise ValueError(
            f"For 1D input, 1D target must have size 1, but got target size: {target.size(0)}"
        )
    refuse_gradients(f"nll_loss{'' if input.dim() <= 2 else '2d'}_forward", weight=weight)
    if input.dim() <= 2:
        return aten.nll_loss_forward(input, target, weight, code, ignore_index)[0]
    expected = (input.size(0), *input.shape[2:])
    _check_spatial(input, target, weight, expected)
    if weight is not None:
        weight = weight.reshape(-1)
    flat = input.movedim(1, -1).reshape(-1, input.size(1))
    out = aten.nll_loss_forward(flat, target.reshape(-1), weight, code, ignore_index)[0]
    loss = out.reshape(expected) if code == 0 else out
    if loss.grad_fn is not None:
        loss._fn.label = "NllLoss2DBackward0"  # torch's own operator for images
    return loss


def _check_spatial(
    input: Tensor, target: Tensor, weight: Tensor | None, expected: tuple[int, ...]
) -> None:
    """torch's refusals of classes and weights for inputs with places, in its order."""
    fits = tuple(target.shape) == expected
    if not fits and input.dim() != 4:
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(target.shape)}")
    if target.dim() != 3 and input.dim() == 4:
        raise RuntimeError(
            "only batches of spatial targets supported (3D tensors) but got targets of dimension:"
            f" {target.dim()}"
        )
    if weight is not None and weight.numel() != input.size(1):
        raise RuntimeError("weight tensor should be defined either for all or no classes")
    if not fits:
        raise RuntimeError(
            f"size mismatch (got input: {list(input.shape)} , target: {list(target.shape)}"
        )


def _common_shape(input: Tensor, weight: Tensor) -> Any:
    """The shape of both; RuntimeError in torch's words, which call the weight the second."""
    return aten.broadcast_shapes(input.shape, weight.shape)


def _matched(input: Tensor, target: Tensor) -> tuple[Any, Any]:
    """Broadcasts the two, with torch's warning when their shapes differ."""
    if target.size() == input.size():
        return input, target
    unrepeatable()
    warn(
        f"Using a target size ({target.size()}) that is different to the input size "
        f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
    )
    both = aten.broadcast_tensors(input, target)
    return both[0], both[1]


def _pointwise(name: str, input: Tensor, target: Tensor, reduction: str, *more: float) -> Tensor:
    input, target = _matched(input, target)
    if input.dtype is not target.dtype and name != "huber_loss":
        common = result_type((input._geom, target._geom))
        input, target = aten.to(input, common), aten.to(target, common)
    return getattr(aten, name)(input, target, get_enum(reduction), *more)


@composite(
    "mse_loss.nn(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
    "reduction='mean', Tensor? weight=None) -> Tensor",
    samples=calls(
        (Arg((3, 4)), Arg((3, 4), low=-1)),
        Sample((Arg((3, 4)), Arg((3, 4), low=-1)), {"reduction": "sum"}),
        Sample((Arg((3, 4)), Arg((3, 4)), None, None, "no"), error=True),
    ),
    tolerance="accumulated",
    rule="loss",
)
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)²."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if weight is None:
        return _pointwise("mse_loss", input, target, reduction)
    input, target = _matched(input, target)
    difference = input - target
    return _weighted(difference * difference, weight, reduction)


def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Weighted reductions: `mean` divides by the sum of the
    weights (torch document of mse_loss)."""
    if weight is None:
        return reduced(loss, reduction)
    if weight.size() != loss.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if reduction != "mean":
        return reduced(loss, reduction)
    return loss.sum() / weight.sum()


@composite(
    "l1_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
    "reduction='mean', Tensor? weight=None) -> Tensor",
    autocast="float32",
    samples=calls(
        (Arg((3, 4)), Arg((3, 4), low=-1)),
        Sample((Arg((3, 4)), Arg((3, 4), low=-1)), {"reduction": "sum"}),
        Sample((Arg((3, 4)), Arg((3, 4)), None, None, "no"), error=True),
    ),
    tolerance="accumulated",
)
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    input, target = _matched(input, target)
    return _weighted((input - target).abs(), weight, reduction)


@composite(
    "smooth_l1_loss.nn(Tensor input, Tensor target, bool? size_average=None, bool? "
    "reduce=None, str reduction='mean', float beta=1.0) -> Tensor",
    samples=calls(
        (Arg((3, 4)), Arg((3, 4), low=-1)),
        Sample((Arg((3, 4)), Arg((3, 4), low=-1)), {"reduction": "sum"}),
        Sample((Arg((3, 4)), Arg((3, 4)), None, None, "no"), error=True),
    ),
    tolerance="accumulated",
    rule="loss",
)
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d² / (2 beta) where d = |input - target| < beta, else d - beta / 2."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return _pointwise("smooth_l1_loss", input, target, reduction, beta)


@composite(
    "huber_loss.nn(Tensor input, Tensor target, str reduction='mean', float delta=1.0, Tensor? "
    "weight=None) -> Tensor",
    samples=calls(
        (Arg((3, 4)), Arg((3, 4), low=-1)),
        (Arg((3, 4)), Arg((3, 4), low=-1), "none", 0.5),
    ),
    tolerance="accumulated",
    rule="loss",
)
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d² / 2 where d = |input - target| < delta, else delta (d - delta / 2)."""
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    get_enum(reduction)
    if weight is None:
        return _pointwise("huber_loss", input, target, reduction, delta)
    input, target = _matched(input, target)
    d = (input - target).abs()
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = aten.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta))
    return reduced(loss * weight, reduction)


@composite(
    "binary_cross_entropy.nn(Tensor input, Tensor target, Tensor? weight=None, bool? "
    "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
    samples=calls((Arg((3, 4), low=0.1, high=0.9), Arg((3, 4), low=0, high=1, grad=False))),
    tolerance="accumulated",
    rule="loss",
)
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(t log p + (1 - t) log(1 - p)), logs held at -100; input are probabilities."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    refuse_gradients("binary_cross_entropy", weight=weight)
    if weight is not None:
        weight = weight.expand(_common_shape(input, weight))
    return aten.binary_cross_entropy(input, target, weight, get_enum(reduction))


@composite(
    "binary_cross_entropy_with_logits.nn(Tensor input, Tensor target, Tensor? weight=None, bool? "
    "size_average=None, bool? reduce=None, str reduction='mean', Tensor? pos_weight=None) -> "
    "Tensor",
    samples=calls(
        (Arg((3, 4)), Arg((3, 4), low=0, high=1)),
        Sample(
            (Arg((3, 4)), Arg((3, 4), low=0, high=1)),
            {"pos_weight": Arg((4,), low=0.5, grad=False), "reduction": "none"},
        ),
    ),
    tolerance="accumulated",
)
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without its
    overflow; `pos_weight` scales positives."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    refuse_gradients("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    return aten.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight, get_enum(reduction)
    )


@composite(
    "kl_div(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
    "reduction='mean', bool log_target=False) -> Tensor",
    autocast="float32",
    samples=calls(
        Sample(
            (Arg((3, 4), low=-3, high=-0.1), Arg((3, 4), low=0.1, high=1)), {"reduction": "sum"}
        ),
        Sample(
            (Arg((3, 4), low=-3, high=-0.1), Arg((3, 4), low=-2, high=0)),
            {"reduction": "batchmean", "log_target": True},
        ),
    ),
    tolerance="accumulated",
)
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """t (log t - input), input in logs, target in logs with
    `log_target`; batchmean divides by N."""
    if size_average is not None or reduce is not None or reduction != "batchmean":
        reduction = resolve_reduction(size_average, reduce, reduction)
    if reduction == "mean":
        unrepeatable()
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
        )
    if any(t.dtype.category < dt.FLOAT for t in (input, target)):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        loss = target.exp() * (target - input)
    else:
        product = target * input
        loss = aten.xlogy(target, target) - product
    if reduction == "batchmean":
        total = loss.sum()
        return total / input.size(0) if input.dim() else total
    return reduced(loss, reduction)


@composite(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, bool? "
    "size_average=None, float eps=1e-08, bool? reduce=None, str reduction='mean') -> Tensor",
    autocast="float32",
    samples=calls(
        (Arg((3, 4)), Arg((3, 4), low=0.1, high=3)),
        (Arg((3, 4), low=0.1), Arg((3, 4), low=0.1, high=3), False, True),
    ),
    tolerance="accumulated",
)
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(x) - t x (or x - t log(x + eps)); `full` adds Stirling's term where t > 1."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if log_input:
        product = target * input
        loss = input.exp() - product
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


@composite(
    "gaussian_nll_loss(Tensor input, Tensor target, Tensor|Scalar var, bool full=False, float "
    "eps=1e-06, str reduction='mean') -> Tensor",
    samples=calls(
        (Arg((3, 4)), Arg((3, 4), low=-1), Arg((3, 4), low=0.5, high=2, grad=False), True)
    ),
    tolerance="accumulated",
)
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log var + (input - target)² / var) / 2, var held at eps; `full` adds log(2π) / 2."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    if isinstance(var, int | float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * aten.ones_like(input)
    elif not var.is_meta and bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif (
            input.ndim != var.ndim
            or sum(n for n, m in zip(var.shape, input.shape, strict=True) if n != m) != 1
        ):
            raise ValueError("var is of incorrect size")
    get_enum(reduction)
    # The floor is set outside autograd, so that the gradient still reaches var (torch document).
    var = var.clone()
    var.detach().clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)
