"""Rows of the losses that are kernels of their own: nll, squared, smooth, Huber, binary."""

from __future__ import annotations

from math import nextafter

from ...complex_parts import below_double
from ...rules import broadcast_in_place
from ...spec import SHORT_FLOATS, Derivative, in_dtypes
from ...words import *
from .loss_grads import MEAN, NONE, SUM, lowered, pair_rule, reduced_array, spread
from .pool import flat


def _nll_rule(
    self: Geometry, target: Geometry, weight: Geometry | None, reduction: int, ignore_index: int
) -> tuple[Geometry, Geometry]:
    if self.ndim not in (1, 2):
        raise RuntimeError("input tensor should be 1D or 2D")
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dtype not in (dt.int64, dt.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.legacy}"
        )
    if self.ndim == 2 and self.shape[0] != (target.shape[0] if target.ndim else 1):
        raise RuntimeError(
            f"size mismatch (got input: {list(self.shape)}, target: {list(target.shape)})"
        )
    if weight is not None and weight.shape != (self.shape[-1],):
        raise RuntimeError(
            "weight tensor should be defined either for all "
            f"{self.shape[-1]} classes or no classes but got weight tensor of shape: "
            f"{list(weight.shape)}"
        )
    if weight is not None and weight.dtype is not self.dtype:
        raise RuntimeError(
            f"expected scalar type {self.dtype.legacy} but found {weight.dtype.legacy}"
        )
    rows = self.shape[:1] if reduction == NONE and self.ndim == 2 else ()
    return self.fresh(rows), self.fresh(())


def _nll(
    self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int
) -> tuple[Array, ...]:
    rows = self.reshape(-1, self.shape[-1])
    labels = np.atleast_1d(target)
    if weight is None and _all_count(labels, rows.shape[1], ignore_index):
        losses = -rows[np.arange(len(labels)), labels]
        total = self.dtype.type(0 if reduction == NONE else len(labels))
        if reduction == NONE:
            return losses.reshape(self.shape[:-1]), np.asarray(total)
        loss = losses.sum(dtype=self.dtype)
        return np.asarray(loss / total if reduction == MEAN else loss), np.asarray(total)
    keep = labels != ignore_index
    _check_labels(labels[keep], rows.shape[1])
    index = np.where(keep, labels, 0)
    weights = np.ones(index.shape, self.dtype) if weight is None else weight[index]
    weights = np.where(keep, weights, self.dtype.type(0))
    losses = -rows[np.arange(len(index)), index] * weights
    losses = np.where(keep, losses, self.dtype.type(0))
    total = weights.sum(dtype=self.dtype)
    if reduction == NONE:
        return losses.reshape(self.shape[:-1]), np.zeros((), self.dtype)
    loss_sum = losses.sum(dtype=self.dtype)
    return np.asarray(loss_sum / total if reduction == MEAN else loss_sum), np.asarray(total)


def _all_count(labels: Array, classes: int, ignore_index: int) -> bool:
    """Whether every label is a class, and none is ignored: most batches."""
    if labels.dtype.itemsize != 8 or not labels.size or 0 <= ignore_index < classes:
        return False
    return bool(labels.view(np.uint64).max() < classes)  # of a negative one: above all


def _check_labels(labels: Array, classes: int) -> None:
    bad = labels[(labels < 0) | (labels >= classes)]
    if bad.size:
        raise IndexError(f"Target {bad[0]} is out of bounds.")


def _nll_grad(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    return aten.nll_loss_backward(
        grad_output, self, target, weight, reduction, ignore_index, total_weight
    )


def _ones(self: Tensor) -> Tensor:
    return aten.ones((self.shape[-1],), dtype=self.dtype, device=self.device)


def _nll_parts(target: Tensor, weight: Tensor, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Of each row the class that counts, `[N, 1]`, and its weight, 0 where it is ignored `[N]`."""
    labels = aten.reshape(aten.to(target, dt.int64), (-1,))
    ignored = labels == ignore_index
    places = aten.masked_fill(labels, ignored, 0)
    weights = aten.where(ignored, 0, aten.index_select(weight, 0, places))
    return aten.unsqueeze(places, 1), weights


def _nll_double(
    self: Tensor, target: Tensor, weight: Tensor, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    places, weights = _nll_parts(target, weight, ignore_index)
    rows = aten.reshape(self, (-1, self.shape[-1]))
    picked = aten.squeeze(aten.gather(rows, 1, places), 1)
    losses = aten.where(weights == 0, 0, aten.neg(picked) * weights)
    if reduction == NONE:
        return aten.reshape(losses, self.shape[:-1]), aten.zeros_like(aten.sum(weights))
    total = aten.sum(weights)
    return (aten.sum(losses) / total if reduction == MEAN else aten.sum(losses)), total


def _nll_samples() -> list[Sample]:
    x, y = Arg((4, 3), "float64"), Arg((4,), "int64", values=(0, 2, 1, 2))
    weight = Arg((3,), "float64", 0.5, 2.0, grad=False)
    samples = [Sample((x, y, None, reduction, -100)) for reduction in (NONE, MEAN, SUM)]
    samples += [Sample((x, y, weight, reduction, 2)) for reduction in (NONE, MEAN, SUM)]
    samples += [Sample((Arg((4, 3), d), y, None, MEAN, -100)) for d in ("float32",)]
    return [*samples, Sample((Arg((3,)), Arg((), "int64", values=1), None, MEAN, -100))]


op(
    "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index)"
    " -> (Tensor output, Tensor total_weight)",
    infer=_nll_rule,
    bounds=lambda self, *rest: [(1, 0, self.shape[-1], rest[-1])],
    cpu=_nll,
    # CANN wants a weight (aclnnNLLLoss document): without one, ones are made.
    lower=lambda self, target, weight, *rest: aten._nll_loss_weighted(
        self, target, _ones(self) if weight is None else weight, *rest
    ),
    grad={"self": _nll_grad},
    unsupported={"bool whole complex": "nll_loss_out_frame"},
    samples=_nll_samples,
    surface="none",
    autocast="float32",
    rule="loss",
)
op(
    "_nll_loss_weighted(Tensor self, Tensor target, Tensor weight, int reduction, int ignore_index)"
    " -> (Tensor output, Tensor total_weight)",
    infer=_nll_rule,
    cpu=_nll,
    aclnn=call("aclnnNLLLoss", when=below_double("self")),
    lower=_nll_double,
    unsupported={"bool whole complex": "nll_loss_out_frame"},
    samples=calls(
        (
            Arg((4, 3), low=-3, high=0),
            Arg((4,), "int64", 0, 2),
            Arg((3,), low=0.5, grad=False),
            1,
            -100,
        )
    ),
    fixed_shape=True,
    rule="loss",
)


def _nll_backward(
    grad: Array,
    self: Array,
    target: Array,
    weight: Array | None,
    reduction: int,
    ignore: int,
    total: Array,
) -> Array:
    out = np.zeros((np.atleast_1d(target).size, self.shape[-1]), self.dtype)
    labels = np.atleast_1d(target)
    keep = labels != ignore
    index = np.where(keep, labels, 0)
    weights = np.ones(index.shape, self.dtype) if weight is None else weight[index]
    flow = np.where(keep, weights, self.dtype.type(0)) * np.atleast_1d(grad)
    if reduction == MEAN:
        flow = flow / total
    out[np.arange(len(index)), index] = -flow
    return out.reshape(self.shape)


def _pick(
    grad: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore: int, total: Tensor
) -> Tensor:
    """The adjoint of nll_loss_backward: nll_loss itself, on fixed weights."""
    picked = aten.nll_loss_forward(grad, target, weight, NONE if reduction == NONE else SUM, ignore)
    return picked[0] / total if reduction == MEAN else picked[0]


def _nll_backward_double(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor, reduction: int, ignore: int,
    total: Tensor,
) -> Tensor:  # fmt: skip
    places, weights = _nll_parts(target, weight, ignore)
    slopes = aten.unsqueeze(aten.neg(weights) * (grad / total if reduction == MEAN else grad), 1)
    zeros = aten.zeros((places.shape[0], self.shape[-1]), dtype=self.dtype, device=self.device)
    return aten.reshape(aten.scatter_src(zeros, 1, places, slopes), self.shape)


_BACKWARD = (
    "(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction,"
    " int ignore_index, Tensor total_weight) -> Tensor"
)
op(
    "nll_loss_backward" + _BACKWARD,
    infer=lambda grad_output, self, *rest: self.fresh(),
    cpu=_nll_backward,
    lower=lambda grad_output, self, target, weight, *rest: aten._nll_loss_backward_weighted(
        grad_output, self, target, _ones(self) if weight is None else weight, *rest
    ),
    grad={
        "grad_output": lambda grad, target, weight, reduction, ignore_index, total_weight: _pick(
            grad, target, weight, reduction, ignore_index, total_weight
        ),
        "self": flat,
    },
    unsupported={"bool whole complex": "nll_loss_backward_out_frame"},
    surface="none",
    samples=calls(
        (
            Arg(()),
            Arg((4, 3), grad=False),
            Arg((4,), "int64", 0, 2),
            None,
            1,
            -100,
            Arg((), values=4.0, grad=False),
        )
    ),
    fixed_shape=True,
    rule="loss",
)
op(
    "_nll_loss_backward_weighted" + _BACKWARD,
    infer=lambda grad_output, self, *rest: self.fresh(),
    cpu=_nll_backward,
    aclnn=call(
        "aclnnNLLLossBackward",
        "grad_output",
        "self",
        "target",
        "weight",
        "reduction",
        "ignore_index",
        "total_weight",
        "out",
        when=below_double(),
    ),
    lower=_nll_backward_double,
    unsupported={"bool whole complex": "nll_loss_backward_out_frame"},
    surface="none",
    samples=calls(
        (
            Arg(()),
            Arg((4, 3), grad=False),
            Arg((4,), "int64", 0, 2),
            Arg((3,), low=0.5, grad=False),
            1,
            -100,
            Arg((), values=4.0, grad=False),
        )
    ),
    fixed_shape=True,
    rule="loss",
)


def pair_loss(
    name: str,
    cpu: Callable[..., Any],
    aclnn: object,
    setting: str = "",
    kind: str = "float",
    values: tuple[Any, ...] = (),
    lower: Callable[..., Any] | None = None,
    autocast: str = "",
) -> None:
    """A row of a loss of input - target, whose gradient is a row of loss_grads."""
    text = f", {kind} {setting}=1.0" if setting else ""
    reads = ("needs", "grad", "self", "target", "reduction", *([setting] if setting else []))

    def gradients(needs: tuple[bool, ...], *args: Any) -> tuple[Tensor | None, Tensor | None]:
        by_input = getattr(aten, f"{name}_backward")(*args)
        return by_input if needs[0] else None, -by_input if needs[1] else None

    op(
        f"{name}(Tensor self, Tensor target, int reduction=1{text}) -> Tensor",
        infer=pair_rule,
        cpu=lambda self, target, reduction, *more: reduced_array(
            cpu(self - target, *more), reduction
        ),
        aclnn=aclnn,
        lower=lower,
        grad={("self", "target"): Derivative(gradients, reads)},
        unsupported={"bool whole complex": f"{name.removesuffix('_loss')}_cpu"},
        samples=lambda: [
            Sample((Arg((3, 4), d), Arg((3, 4), d, -1.0, 3.0), reduction, *values))
            for d in ("float32", "float64")
            for reduction in (NONE, MEAN, SUM)
        ],
        autocast=autocast,
        oracle=lambda torch: getattr(torch.ops.aten, name),
        tolerance="composite",
        rule="loss",
        surface="none",
    )


pair_loss(
    "mse_loss",
    lambda d: d * d,
    call("aclnnMseLoss", "self", "target", "reduction", "out", when=below_double()),
    lower=lambda self, target, reduction: lowered(aten.square(self - target), reduction),
    autocast="float32",
)


def _smooth_lower(self: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    d = aten.abs(self - target)
    near = d * d * (0.5 / beta) if beta else d
    return lowered(aten.where(d < beta, near, d - 0.5 * beta), reduction)


def _smooth(d: Array, beta: float) -> Array:
    size = np.abs(d)
    t = d.dtype.type
    return np.where(size < beta, t(0.5) * d * d / t(beta), size - t(0.5 * beta))


pair_loss(
    "smooth_l1_loss",
    _smooth,
    call("aclnnSmoothL1Loss", "self", "target", "reduction", "beta", "out", when=below_double()),
    lower=_smooth_lower,
    setting="beta",
    values=(0.7,),
    autocast="float32",
)


def _huber(d: Array, delta: float) -> Array:
    t = d.dtype.type
    size = np.abs(d)
    near = np.minimum(size, t(delta))  # near (size - near / 2) is the one and the other
    size -= t(0.5) * near
    size *= near
    return size


def _huber_lower(self: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    d = self - target
    size = aten.abs(d)
    far = (size - 0.5 * delta) * delta
    return lowered(aten.where(size <= delta, d * d * 0.5, far), reduction)


pair_loss(
    "huber_loss",
    _huber,
    (),
    setting="delta",
    values=(0.7,),
    lower=_huber_lower,
    autocast="float32",
)


def _soft_margin_rule(self: Geometry, target: Geometry, reduction: int) -> Geometry:
    """torch computes in place in the negated input."""
    broadcast_in_place(self.shape, target.shape)
    if not self.dtype.is_floating_point:
        raise RuntimeError(
            "result type Float can't be cast to the desired output type " + scalar_name(self.dtype)
        )
    return self.fresh(self.shape) if reduction == NONE else self.fresh(())


op(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    autocast="float32",
    infer=_soft_margin_rule,
    cpu=lambda self, target, reduction: reduced_array(np.log1p(np.exp(-self * target)), reduction),
    aclnn=call("aclnnSoftMarginLoss", when=in_dtypes("self", *SHORT_FLOATS)),
    lower=lambda self, target, reduction: lowered(
        aten.log1p(aten.exp(-self * target)), reduction
    ),
    grad={
        "self": lambda grad, self, target, reduction: aten.soft_margin_loss_backward(
            grad, self, target, reduction
        ),
        "target": lambda grad, self, target, reduction: aten.soft_margin_loss_backward(
            grad, target, self, reduction
        ),
    },
    samples=lambda: [
        Sample((Arg((3, 4), d), Arg((3, 4), d, grad=False), reduction))
        for d in ("float32", "float64")
        for reduction in (NONE, MEAN, SUM)
    ],
    oracle=lambda torch: torch.ops.aten.soft_margin_loss,
    tolerance="composite",
    rule="loss",
    surface="none",
)  # fmt: skip


def _bce_rule(
    self: Geometry, target: Geometry, weight: Geometry | None, reduction: int
) -> Geometry:
    if target.dtype is not self.dtype:
        raise RuntimeError(
            f"Found dtype {scalar_name(target.dtype)} but expected {scalar_name(self.dtype)}"
        )
    return self.fresh(self.shape if reduction == NONE else ())


def _bce(self: Array, target: Array, weight: Array | None, reduction: int) -> Array:
    if not ((self >= 0) & (self <= 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")
    if not ((target >= 0) & (target <= 1)).all():
        raise RuntimeError("all elements of target should be between 0 and 1")
    floor = self.dtype.type(-100)
    one = self.dtype.type(1)
    logs = np.maximum(np.log(self), floor), np.maximum(np.log1p(-self), floor)
    loss = (target - one) * logs[1] - target * logs[0]
    return reduced_array(loss if weight is None else loss * weight, reduction)


def _bce_double(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    true, false = (aten.clamp(t, -100) for t in (aten.log(self), aten.log1p(-self)))
    loss = (target - 1) * false - target * true
    return lowered(loss if weight is None else loss * weight, reduction)


def _bce_grad_target(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor, reduction: int
) -> Tensor:
    each = spread(grad, self, target, reduction)
    each = each if weight is None else each * weight
    return each * (aten.log1p(-self) - aten.log(self))


op(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1)"
    " -> Tensor",
    infer=_bce_rule,
    bounds=lambda *_: [(at, 0, nextafter(1, 2)) for at in (0, 1)],
    cpu=_bce,
    aclnn=call("aclnnBinaryCrossEntropy", when=in_dtypes("self", *SHORT_FLOATS)),
    lower=_bce_double,
    grad={
        "self": lambda grad, self, target, weight, reduction: aten.binary_cross_entropy_backward(
            grad, self, target, weight, reduction
        ),
        "target": _bce_grad_target,
    },
    unsupported={"bool whole complex": "binary_cross_entropy"},
    samples=lambda: [
        Sample(
            (
                Arg((3, 4), d, 0.1, 0.9),
                Arg((3, 4), d, 0.0, 1.0),
                Arg((3, 4), d, 0.5, 2.0, grad=False) if reduction else None,
                reduction,
            )
        )
        for d in ("float32", "float64")
        for reduction in (NONE, MEAN, SUM)
    ],
    oracle=lambda torch: torch.ops.aten.binary_cross_entropy,
    tolerance="composite",
    rule="loss",
    surface="none",
    autocast="float32 on cpu",
)
