"""Rows of the gradients of losses of a pair of tensors: one call each, differentiable in turn."""

from __future__ import annotations

from math import prod

from ...._compat.unsupported_dtypes import Refusal, UnsupportedDtypes
from ...rules import broadcast, elementwise_strides, result_type
from ...samples import FLOATS
from ...spec import SHORT_FLOATS, Derivative, in_dtypes
from ...words import *

NONE, MEAN, SUM = 0, 1, 2


def pair_rule(self: Geometry, target: Geometry, reduction: int, *rest: Any) -> Geometry:
    """The geometry of a loss of two tensors."""
    shape = broadcast(self.shape, target.shape)
    dtype = result_type((self, target))
    if reduction == NONE:
        return self.fresh(shape, dtype, elementwise_strides(shape, [self, target]))
    return self.fresh((), dtype)


def reduced_array(loss: Array, reduction: int) -> Array:
    if reduction == NONE:
        return loss
    total = loss.sum(dtype=loss.dtype)  # of nothing the mean is NaN, without numpy's warning
    return np.asarray(total if reduction == SUM else total / loss.dtype.type(loss.size))


def lowered(loss: Tensor, reduction: int) -> Tensor:
    if reduction == NONE:
        return loss
    # A mean of nothing is NaN, and a sum in float16 would end at 65,504.
    return aten.sum(loss) if reduction == SUM else aten.mean(loss)


def spread(grad: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    """The gradient of each element's loss."""
    if reduction != MEAN:
        return grad
    return grad * (1.0 / max(prod(broadcast(self.shape, target.shape)), 1))


def gradient_row(
    name: str,
    cpu: Callable[..., Array],
    slope: Callable[..., Tensor],
    curve: Callable[..., Any],
    operator: str = "",
    setting: str = "",
    antisymmetric: bool = True,
    factor: float = 1.0,
    unsupported: UnsupportedDtypes | None = None,
) -> None:
    """The row of a loss's gradient by its input.

    `cpu(self, target, setting)`, a new array, times `factor` is each element's derivative in numpy,
    `slope` the same by other rows, `curve` the second derivative. `antisymmetric` losses are
    functions of self - target.
    """
    row = f"{name}_backward"

    def each(grad: Array, self: Array, target: Array, reduction: int, *more: float) -> Array:
        share = factor / max(np.broadcast(self, target).size, 1) if reduction == MEAN else factor
        slopes = cpu(self, target, *more)
        if share != 1.0:
            slopes *= self.dtype.type(share)
        into = slopes if slopes.shape and slopes.dtype == grad.dtype else None
        slopes = np.multiply(slopes, grad, into)
        return slopes.astype(np.result_type(self, target), copy=False)  # of whole numbers: whole

    def lower(grad: Tensor, self: Tensor, target: Tensor, reduction: int, *more: float) -> Tensor:
        return spread(grad, self, target, reduction) * slope(self, target, *more)

    def curved(grad: Tensor, outer: Tensor, *rest: Any) -> Tensor:
        self, target, reduction, *more = rest
        return spread(grad * outer, self, target, reduction) * curve(self, target, *more)

    pair = ("self", "target", "reduction", *([setting] if setting else []))
    grads = {
        "grad_output": Derivative(lambda *args: getattr(aten, row)(*args), ("grad", *pair)),
        "self": Derivative(curved, ("grad", "grad_output", *pair)),
    }
    if antisymmetric:
        reads = ("grad", "grad_output", *pair)
        grads["target"] = Derivative(lambda *args: -curved(*args), reads)
    op(
        f"{row}(Tensor grad_output, Tensor self, Tensor target, int reduction"
        + (f", float {setting})" if setting else ")")
        + " -> Tensor",
        infer=lambda grad, self, target, reduction, *rest: pair_rule(self, target, NONE),
        cpu=each,
        aclnn=call(
            operator, "grad_output", *pair, "out", when=in_dtypes("self", *SHORT_FLOATS)
        ) if operator else (),
        lower=lower,
        grad=grads,
        unsupported=unsupported
        or {"bool complex": f"{name.removesuffix('_loss')}_backward_cpu_out"},
        # A setting below 1 is 0 in whole numbers, by which torch divides: the process ends.
        samples=lambda: [
            Sample((
                Arg((3, 4) if reduction == NONE else (), d), Arg((3, 4), d, 0.2, 1.7),
                Arg((3, 4), d, -1.5, -0.2, grad=antisymmetric), reduction, *([1.5] * bool(setting)),
            ))
            for d in FLOATS
            for reduction in (NONE, MEAN, SUM)
        ],
        tolerance="composite",
        rule="activation_backward",
        surface="none",
    )  # fmt: skip


def _clipped(d: Array, limit: float) -> Array:
    return np.clip(d, d.dtype.type(-limit), d.dtype.type(limit))


def _smooth(self: Array, target: Array, beta: float) -> Array:
    d = self - target
    limit = d.dtype.type(beta)  # 0 of a fraction in whole numbers
    return _clipped(d / limit, 1.0) if limit else np.sign(d)


def _smooth_slope(self: Tensor, target: Tensor, beta: float) -> Tensor:
    d = self - target
    return aten.clamp(d / beta, -1, 1) if beta else aten.sign(d)


def _inside(self: Tensor, target: Tensor, limit: float, slope: float) -> Tensor:
    """`slope` where the two are closer than `limit`, 0 elsewhere."""
    return (aten.abs(self - target) < limit).to(self.dtype) * slope


gradient_row(
    "mse_loss",
    lambda self, target: self - target,
    lambda self, target: (self - target) * 2,
    lambda self, target: 2,
    "aclnnMseLossBackward",
    factor=2.0,
)
gradient_row(
    "smooth_l1_loss",
    _smooth,
    _smooth_slope,
    lambda self, target, beta: _inside(self, target, beta, 1 / beta if beta else 0.0),
    "aclnnSmoothL1LossBackward",
    setting="beta",
)
gradient_row(
    "huber_loss",
    lambda self, target, delta: _clipped(self - target, delta),
    lambda self, target, delta: aten.clamp(self - target, -delta, delta),
    lambda self, target, delta: _inside(self, target, delta, 1.0),
    setting="delta",
    unsupported={"bool whole complex": "huber_backward_cpu_out"},
)


def _soft_margin(self: Array, target: Array) -> Array:
    z = np.exp(-self * target)
    return -target * z / (1 + z)


def _soft_margin_slope(self: Tensor, target: Tensor) -> Tensor:
    z = aten.exp(-self * target)
    return -target * z / (1 + z)


def _soft_margin_curve(self: Tensor, target: Tensor) -> Tensor:
    z = aten.sigmoid(self * target)
    return target * target * (z * (1 - z))


gradient_row(
    "soft_margin_loss",
    _soft_margin,
    _soft_margin_slope,
    _soft_margin_curve,
    "aclnnSoftMarginLossBackward",
    antisymmetric=False,
    unsupported={
        "bool": Refusal(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to"
            " invert a mask, use the `~` or `logical_not()` operator instead."
        ),
        "whole": Refusal("result type Float can't be cast to the desired output type {dtype}"),
    },
)


def _bce_slope(self: Tensor, target: Tensor) -> Tensor:
    share = self * (1 - self)
    # The floor is torch's: no division by zero at 0 and 1.
    return (self - target) / aten.where(share < 1e-12, 1e-12, share)


def _bce_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int
) -> Tensor:
    each = spread(grad_output, self, target, reduction)
    return (each if weight is None else each * weight) * _bce_slope(self, target)


def _bce_backward_cpu(
    grad: Array, self: Array, target: Array, weight: Array | None, reduction: int
) -> Array:
    t = self.dtype.type
    share = np.maximum(self * (t(1) - self), t(1e-12))
    each = grad * (self - target) / share
    each = each if weight is None else each * weight
    return each / t(max(self.size, 1)) if reduction == MEAN else each


def _bce_curved(
    grad: Tensor,
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
) -> Tensor:
    each = spread(grad * grad_output, self, target, reduction)
    each = each if weight is None else each * weight
    share = self * (1 - self)
    share = aten.where(share < 1e-12, 1e-12, share)
    return each * (self * self - 2 * self * target + target) / (share * share)


op(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target,"
    " Tensor? weight=None, int reduction=1) -> Tensor",
    infer=lambda grad, self, *rest: self.fresh(),
    cpu=_bce_backward_cpu,
    aclnn=call("aclnnBinaryCrossEntropyBackward", when=in_dtypes("self", *SHORT_FLOATS)),
    lower=_bce_backward,
    grad={
        "grad_output": lambda grad, self, target, weight, reduction: (
            aten.binary_cross_entropy_backward(grad, self, target, weight, reduction)
        ),
        "self": _bce_curved,
        "target": lambda grad, grad_output, self, target, weight, reduction: -_bce_backward(
            grad * grad_output, self, self - 1, weight, reduction
        ),
    },
    unsupported={"bool whole complex": "binary_cross_entropy_backward"},
    samples=lambda: [
        Sample((
            Arg((3, 4) if reduction == NONE else (), d), Arg((3, 4), d, 0.1, 0.9),
            Arg((3, 4), d, 0.0, 1.0),
            Arg((3, 4), d, 0.5, 2.0, grad=False) if reduction else None, reduction,
        ))
        for d in FLOATS
        for reduction in (NONE, MEAN, SUM)
    ],
    tolerance="composite",
    rule="activation_backward",
)  # fmt: skip
