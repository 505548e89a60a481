"""Rows of pointwise arithmetic."""

from __future__ import annotations

from ...choice import choose
from ...complex_parts import below_double
from ...rules import Pointwise, pointwise
from ...samples import binary, unary
from ...spec import scalar
from ...words import *


def _add(self: Array, other: Array, alpha: Number, into: Array | None = None) -> Array:
    if alpha != 1:
        other = np.multiply(other, _like(alpha, other))
    return np.add(self, other, into)


def _sub(self: Array, other: Array, alpha: Number, into: Array | None = None) -> Array:
    if alpha != 1:
        other = np.multiply(other, _like(alpha, other))
    return np.subtract(self, other, into)


def _like(number: Number, array: Array) -> Array:
    return np.asarray(number).astype(array.dtype)


def times(grad: Tensor, alpha: int) -> Tensor:
    """`grad * conj(alpha)`, and `grad` itself where alpha is 1."""
    return grad if alpha == 1 else grad * aten.conj_of(alpha)


op(
    "add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    summary="Sum `self + alpha * other`.",
    infer=pointwise(alpha=2),
    cpu=_add,
    cpu_plain=np.add,
    aclnn=(call("aclnnAdds", when=scalar("other")), call("aclnnAdd")),
    grad={
        "self": lambda grad: grad,
        "other": lambda grad, alpha: times(grad, alpha),
    },
    samples=binary(),
    tolerance="rounded",
    rule="sum",
    number_first=True,
    inplace=True,
)


def refuse_bools(self: Any, other: Any) -> None:
    """RuntimeError in torch's words where a bool tensor or number takes part in a difference."""
    bools = [v.__class__ is bool or getattr(v, "dtype", None) is dt.bool for v in (self, other)]
    if all(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or"
            " `logical_xor()` operator instead."
        )
    if any(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying"
            " to invert a mask, use the `~` or `logical_not()` operator instead."
        )


class _Subtraction(Pointwise):
    """Pointwise, but for bool on either side."""

    def __call__(self, *args: Any) -> Geometry:
        refuse_bools(*args[:2])
        return super().__call__(*args)


op(
    "sub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    summary="Difference `self - alpha * other`.",
    infer=_Subtraction(alpha=2),
    cpu=_sub,
    cpu_plain=np.subtract,
    aclnn=(call("aclnnSubs", when=scalar("other")), call("aclnnSub")),
    grad={
        "self": lambda grad: grad,
        "other": lambda grad, alpha: times(-grad, alpha),
    },
    samples=binary(),
    tolerance="rounded",
    rule="sum",
    number_first=True,
    inplace=True,
)

op(
    "mul(Tensor self, Tensor|Scalar other) -> Tensor",
    summary="Product of the elements.",
    infer=pointwise(),
    cpu=np.multiply,
    aclnn=(call("aclnnMuls", when=scalar("other")), call("aclnnMul")),
    grad={
        "self": lambda grad, other: grad * aten.conj_of(other),
        "other": lambda grad, self: grad * aten.conj_of(self),
    },
    samples=binary(),
    tolerance="rounded",
    number_first=True,
    exact_scalar=True,
    inplace=True,
)

op(
    "div(Tensor self, Tensor|Scalar other) -> Tensor",
    summary="Quotient `self / other`; `rounding_mode` rounds it.",
    infer=pointwise("float"),
    cpu=np.true_divide,
    aclnn=(call("aclnnDivs", when=scalar("other")), call("aclnnDiv")),
    grad={
        "self": lambda grad, other: grad / aten.conj_of(other),
        "other": lambda grad, self, other: -grad * aten.conj_of(self / other / other),
    },
    samples=binary(0.5, 2.5),
    tolerance="rounded",
    rule="quotient",
    number_first=True,
    exact_scalar=True,
    surface="both",
    inplace=True,
)


class _Negation(Pointwise):
    """Pointwise, but for bool."""

    def __call__(self, *args: Any) -> Geometry:
        if args[0].dtype is dt.bool:
            raise RuntimeError(
                "Negation, the `-` operator, on a bool tensor is not supported. If you are trying"
                " to invert a mask, use the `~` or `logical_not()` operator instead."
            )
        return super().__call__(*args)


op(
    "neg(Tensor self) -> Tensor",
    infer=_Negation(),
    cpu=np.negative,
    aclnn=call("aclnnNeg"),
    grad={"self": lambda grad: -grad},
    samples=unary(),
    tolerance="exact",
    out="found",
    inplace=True,
)


def _relu(self: Array) -> Array:
    return choose(~(self < 0), self, np.zeros((), self.dtype))


class _Relu(Pointwise):
    """Pointwise, but for bool and complex numbers."""

    def __call__(self, *args: Any) -> Geometry:
        if args[0].dtype is dt.bool:
            raise RuntimeError("Boolean inputs not supported for relu")
        if args[0].dtype.category == dt.COMPLEX:
            raise NotImplementedError("clamp is not supported for complex types")
        return super().__call__(*args)


op(
    "relu(Tensor self) -> Tensor",
    infer=_Relu(),
    cpu=_relu,
    aclnn=call("aclnnRelu", when=below_double()),
    lower=lambda self: aten.clamp(self, 0),
    grad={"self": lambda grad, result: aten.threshold_backward(grad, result, 0)},
    samples=unary(),
    tolerance="exact",
    inplace=True,
)


def _threshold_backward(grad: Array, self: Array, threshold: int) -> Array:
    return choose(~(self <= threshold), grad, np.zeros((), grad.dtype))


op(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    infer=pointwise(),
    cpu=_threshold_backward,
    aclnn=call("aclnnThresholdBackward", when=below_double()),
    lower=lambda grad, self, threshold: aten.where(self <= threshold, 0, grad),
    grad={
        "grad_output": lambda grad, self, threshold: aten.threshold_backward(grad, self, threshold),
        "self": lambda grad, self: aten.zeros_like(self),
    },
    unsupported={"bool complex": "threshold_cpu"},
    tolerance="exact",
    samples=calls((Arg((3, 4)), Arg((3, 4), low=-1), 0.5)),
)
