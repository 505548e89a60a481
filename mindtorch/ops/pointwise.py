"""Rows of pointwise arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtype as dt
from .rules import Pointwise, pointwise
from .samples import binary, unary
from .spec import aten, call, op, scalar


def _add(self: Any, other: Any, alpha: Any, into: Any = None) -> Any:
    if alpha != 1:
        other = np.multiply(other, _like(alpha, other))
    return np.add(self, other, into)


def _sub(self: Any, other: Any, alpha: Any, into: Any = None) -> Any:
    if self.dtype == bool:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or"
            " `logical_xor()` operator instead."
        )
    if alpha != 1:
        other = np.multiply(other, _like(alpha, other))
    return np.subtract(self, other, into)


def _like(number: Any, array: Any) -> Any:
    return np.asarray(number).astype(array.dtype)


def times(grad: Any, alpha: Any) -> Any:
    """`grad * alpha`, and `grad` itself where alpha is 1."""
    return grad if alpha == 1 else aten.mul(grad, alpha)


op(
    "add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    infer=pointwise(alpha=2),
    cpu=_add,
    aclnn=(
        call("aclnnAdds", "self", "other", "alpha", "out", when=scalar("other")),
        call("aclnnAdd", "self", "other", "alpha", "out"),
    ),
    grad={
        "self": lambda grad: grad,
        "other": lambda grad, alpha: times(grad, alpha),
    },
    samples=binary(),
    tolerance="rounded",
    inplace=True,
)

op(
    "sub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    infer=pointwise(alpha=2),
    cpu=_sub,
    aclnn=(
        call("aclnnSubs", "self", "other", "alpha", "out", when=scalar("other")),
        call("aclnnSub", "self", "other", "alpha", "out"),
    ),
    grad={
        "self": lambda grad: grad,
        "other": lambda grad, alpha: times(aten.neg(grad), alpha),
    },
    samples=binary(),
    tolerance="rounded",
    inplace=True,
)

op(
    "mul(Tensor self, Tensor|Scalar other) -> Tensor",
    infer=pointwise(),
    cpu=np.multiply,
    aclnn=(
        call("aclnnMuls", "self", "other", "out", when=scalar("other")),
        call("aclnnMul", "self", "other", "out"),
    ),
    grad={
        "self": lambda grad, other: aten.mul(grad, aten.conj_of(other)),
        "other": lambda grad, self: aten.mul(grad, aten.conj_of(self)),
    },
    samples=binary(),
    tolerance="rounded",
    inplace=True,
)

op(
    "div(Tensor self, Tensor|Scalar other) -> Tensor",
    infer=pointwise("float"),
    cpu=np.true_divide,
    aclnn=(
        call("aclnnDivs", "self", "other", "out", when=scalar("other")),
        call("aclnnDiv", "self", "other", "out"),
    ),
    grad={
        "self": lambda grad, other: aten.div(grad, aten.conj_of(other)),
        "other": lambda grad, self, other: aten.mul(
            aten.neg(grad), aten.conj_of(aten.div(aten.div(self, other), other))
        ),
    },
    samples=binary(0.5, 2.5),
    tolerance="rounded",
    surface="none",
    inplace=True,
)


class _Negation(Pointwise):
    """Pointwise, but for bool."""

    def __call__(self, *args: Any) -> Any:
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
    aclnn=call("aclnnNeg", "self", "out"),
    grad={"self": lambda grad: aten.neg(grad)},
    samples=unary(),
    tolerance="exact",
    inplace=True,
)


def _relu(self: Any) -> Any:
    return np.maximum(self, np.zeros((), self.dtype))


op(
    "relu(Tensor self) -> Tensor",
    infer=pointwise(),
    cpu=_relu,
    aclnn=call("aclnnRelu", "self", "out"),
    grad={"self": lambda grad, result: aten.threshold_backward(grad, result, 0)},
    samples=unary(),
    tolerance="exact",
    inplace=True,
)


def _threshold_backward(grad: Any, self: Any, threshold: Any) -> Any:
    return np.where(self <= threshold, np.zeros((), grad.dtype), grad)


op(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    infer=pointwise(),
    cpu=_threshold_backward,
    aclnn=call("aclnnThresholdBackward", "grad_output", "self", "threshold", "out"),
    grad={
        "grad_output": lambda grad, self, threshold: aten.threshold_backward(grad, self, threshold)
    },
    tolerance="exact",
    surface="none",
)
