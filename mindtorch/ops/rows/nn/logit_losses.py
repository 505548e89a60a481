"""Rows of binary cross entropy of logits and its gradient, with weights of elements and classes."""

from __future__ import annotations

from ...rules import broadcast, broadcast_in_place, elementwise_strides
from ...spec import SHORT_FLOATS, NoNumbers
from ...words import *
from ..pointwise.unary import sigmoid
from .loss_grads import MEAN, NONE, SUM, lowered, reduced_array, spread

_NAME = "binary_cross_entropy_with_logits"
_TENSORS = "Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None"
_ARGUMENTS = ("self", "target", "weight", "pos_weight", "reduction", "out")


def _of_one_dtype(args: dict[str, Any]) -> bool:
    """CANN's operators take one of their dtypes for all tensors, and no 0-d input."""
    tensors = [args[n] for n in ("self", "target", "weight", "pos_weight") if args[n] is not None]
    dtypes = {str(t.dtype).removeprefix("torch.") for t in tensors}
    return len(dtypes) == 1 and dtypes <= set(SHORT_FLOATS) and args["self"].ndim > 0


def _rule(
    self: Geometry,
    target: Geometry,
    weight: Geometry | None,
    pos_weight: Geometry | None,
    reduction: int,
) -> Geometry:
    # torch's kernel computes in place in 1 - target.
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            f"result type {scalar_name(self.dtype)} can't be cast to the desired output type"
            f" {scalar_name(target.dtype)}"
        )
    # torch multiplies pos_weight by the target, the loss by weight in place.
    if pos_weight is not None:
        broadcast_in_place(target.shape, broadcast(pos_weight.shape, target.shape))
    if weight is not None:
        broadcast_in_place(target.shape, weight.shape)
    if reduction == NONE:
        return self.fresh(self.shape, target.dtype, elementwise_strides(self.shape, [self, target]))
    return self.fresh((), target.dtype)


_FEW, _BLOCK = 1 << 9, 1 << 14  # elements that one function takes sooner; that stay in cache


def _softplus(x: Array) -> Array:
    """log(1 + e^x), of many elements by blocks."""
    if x.size <= _FEW:
        return np.logaddexp(x, x.dtype.type(0))
    flat = x.reshape(-1)
    built = np.empty(flat.shape, flat.dtype)
    for at in range(0, flat.size, _BLOCK):
        _softplus_into(built[at : at + _BLOCK], flat[at : at + _BLOCK])
    return built.reshape(x.shape)


def _softplus_into(out: Array, x: Array) -> None:
    """The larger of x and 0, and log(1 + e) of e = e^-|x| as log(u) e / (u - 1) for the rounded
    u = 1 + e (Kahan), or e where u is 1: steps that numpy vectorises."""
    one = x.dtype.type(1)
    small = np.abs(x)
    np.exp(np.negative(small, small), small)
    whole = small + one
    step = whole - one
    tiny = step == 0
    np.divide(small, step, step)
    np.multiply(np.log(whole, whole), step, whole)
    np.copyto(whole, small, where=tiny)
    np.add(np.maximum(x, x.dtype.type(0)), whole, out)


def _bce_logits(
    self: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: int
) -> Array:
    one = self.dtype.type(1)
    logs = _softplus(-self)
    if pos_weight is not None:
        logs = logs * ((pos_weight - one) * target + one)
    loss = (one - target) * self + logs
    return reduced_array(loss if weight is None else loss * weight, reduction)


def _bce_logits_lower(
    self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Tensor:
    logs = aten.log_sigmoid(self)
    if pos_weight is not None:
        logs = logs * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * self - logs
    return lowered(loss if weight is None else loss * weight, reduction)


def _slope(
    self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None
) -> Tensor:
    positive = target if pos_weight is None else pos_weight * target
    slope = aten.sigmoid(self) * (positive + 1 - target) - positive
    return slope if weight is None else slope * weight


def _curve(
    self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None
) -> Tensor:
    share = aten.sigmoid(self)
    curve = share * (1 - share)
    if pos_weight is not None:
        curve = curve * (pos_weight * target + 1 - target)
    return curve if weight is None else curve * weight


def _bce_logits_grad_target(
    grad: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    reduction: int,
) -> Tensor:
    each = spread(grad, self, target, reduction)
    each = each if weight is None else each * weight
    if pos_weight is None:
        return each * -self
    return each * (aten.log_sigmoid(-self) - pos_weight * aten.log_sigmoid(self))


op(
    f"{_NAME}({_TENSORS}, int reduction=0) -> Tensor",
    infer=_rule,
    cpu=_bce_logits,
    aclnn=call("aclnnBinaryCrossEntropyWithLogits", *_ARGUMENTS, when=NoNumbers(_of_one_dtype)),
    lower=_bce_logits_lower,
    grad={
        "self": lambda grad, self, target, weight, pos_weight, reduction: (
            aten.binary_cross_entropy_with_logits_backward(
                grad, self, target, weight, pos_weight, reduction
            )
        ),
        "target": _bce_logits_grad_target,
    },
    unsupported={"bool whole complex": "log_sigmoid_cpu"},
    samples=lambda: _samples(()),
    oracle=lambda torch: torch.ops.aten.binary_cross_entropy_with_logits,
    tolerance="composite",
    autocast="float32",
    rule="loss",
    surface="function",
)


def _by_target(self: Tensor, weight: Tensor | None, pos_weight: Tensor | None) -> Tensor:
    """The mixed second derivative: of the gradient by the input, by the target."""
    share = aten.sigmoid(self)
    slope = -aten.ones_like(self) if pos_weight is None else share * (pos_weight - 1) - pos_weight
    return slope if weight is None else slope * weight


def _backward_cpu(
    grad: Array,
    self: Array,
    target: Array,
    weight: Array | None,
    pos_weight: Array | None,
    reduction: int,
) -> Array:
    one = self.dtype.type(1)
    positive = target if pos_weight is None else pos_weight * target
    slope = sigmoid(self) * (positive + one - target) - positive
    each = grad * self.dtype.type(1.0 / max(self.size, 1) if reduction == MEAN else 1.0)
    return each * (slope if weight is None else slope * weight)


def _samples(first: tuple[Any, ...]) -> list[Sample]:
    """Calls with no weights, and with those that every reduction may have."""
    weights = (None, None), (Arg((4,), low=0.5, grad=False), Arg((3, 1), low=0.5, grad=False))
    return [
        Sample((
            *((Arg((3, 4) if reduction == NONE else (), d),) if first else ()),
            Arg((3, 4), d, -3.0, 3.0), Arg((3, 4), d, 0.0, 1.0), *pair, reduction,
        ))
        for d, pair in (("float32", weights[0]), ("float32", weights[1]), ("float64", weights[0]))
        for reduction in (NONE, MEAN, SUM)
    ]  # fmt: skip


op(
    f"{_NAME}_backward(Tensor grad_output, {_TENSORS}, int reduction=1) -> Tensor",
    infer=lambda grad, self, *rest: self.fresh(),
    cpu=_backward_cpu,
    aclnn=call(
        "aclnnBinaryCrossEntropyWithLogitsBackward", "grad_output", *_ARGUMENTS,
        when=NoNumbers(_of_one_dtype),
    ),
    lower=lambda grad, self, target, weight, pos_weight, reduction: spread(
        grad, self, target, reduction
    ) * _slope(self, target, weight, pos_weight),
    grad={
        "grad_output": lambda grad, self, target, weight, pos_weight, reduction: (
            aten.binary_cross_entropy_with_logits_backward(
                grad, self, target, weight, pos_weight, reduction
            )
        ),
        "self": lambda grad, grad_output, self, target, weight, pos_weight, reduction: spread(
            grad * grad_output, self, target, reduction
        ) * _curve(self, target, weight, pos_weight),
        "target": lambda grad, grad_output, self, target, weight, pos_weight, reduction: spread(
            grad * grad_output, self, target, reduction
        ) * _by_target(self, weight, pos_weight),
    },
    unsupported={"bool whole complex": "sigmoid_cpu"},
    samples=lambda: _samples((1,)),
    tolerance="composite",
    rule="activation_backward",
    surface="none",
)  # fmt: skip
