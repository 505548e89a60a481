"""Rows of the logarithm of odds and of its gradient."""

from __future__ import annotations

from math import nan

from ...._tensor.subclass import DOOR
from ...rules import pointwise
from ...spec import SHORT_FLOATS, in_dtypes
from ...words import *
from .unary import pointwise_float, rest_of

_FLOATING = tuple(d for d in dt.ALL if d.category == dt.FLOAT)


def _logit(self: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), x clamped to [eps, 1 - eps] where `eps` is given."""
    x = aten.to(self, pointwise_float(self._geom).dtype)
    if eps is not None:  # of an eps above 1/2 the lower bound wins, unlike in clamp
        x = aten.where(x < eps, eps, aten.clamp(x, None, 1 - eps))
    return aten.log(x / (1 - x))


def _logit_cpu(x: Array, eps: float | None) -> Array:
    """In the dtype of `x`, halves too: every step of torch's kernel rounds."""
    t = x.dtype.type
    if eps is not None:
        x = np.where(x < t(eps), t(eps), np.minimum(x, t(1 - eps)))
    return np.log(x / (t(1) - x))


def _logit_slope(self: Tensor, eps: float | None) -> tuple[Tensor, float]:
    """Where the slope is not 1 / (x (1 - x)), and what it is there."""
    low = 0.0 if eps is None else eps
    outside = aten.logical_or(self < low, self > 1 - low)
    return outside, nan if eps is None else 0.0


def _logit_backward(grad_output: Tensor, self: Tensor, eps: float | None = None) -> Tensor:
    return aten.masked_fill(grad_output / (self * (1 - self)), *_logit_slope(self, eps))


def _logit_curved(grad: Tensor, grad_output: Tensor, self: Tensor, eps: float | None) -> Tensor:
    share = self * (1 - self)
    curve = grad * grad_output * (2 * self - 1) / (share * share)
    return aten.masked_fill(curve, *_logit_slope(self, eps))


def _edge(self: Tensor, eps: float | None) -> Tensor:
    """The slope where there is none, as a tensor without dims."""
    if aten._watched():
        kind = {"dtype": self.dtype, "layout": DOOR["strided"], "device": self.device}
        name = "zeros" if eps is not None else "empty.memory_format"
        edge: Tensor = aten._asked(name, ([],), kind)
    else:
        edge = aten.zeros((), dtype=self.dtype, device=self.device)
    return edge.fill_(nan) if eps is None else edge


def _logit_grad(grad: Tensor, self: Tensor, eps: float | None) -> Tensor:
    if not aten._recording():
        return aten.logit_backward(grad, self, eps)
    outside = _edge(self, eps)
    slope = grad / (self * rest_of(self))
    low = 0.0 if eps is None else eps
    below = self <= 1.0 - low
    return aten.where(aten.logical_and(self >= low, below), slope, outside)


def _logit_backward_cpu(grad: Array, x: Array, eps: float | None) -> Array:
    t = x.dtype.type
    low = t(0 if eps is None else eps)
    outside = (x < low) | (x > t(1) - low)
    return np.where(outside, t(nan if eps is None else 0), grad / (x * (t(1) - x)))


# CANN's operators leave x as it is where eps is negative, as torch_npu calls them without one.
def _no_clamp(args: dict[str, Any]) -> float:
    return -1.0 if args["eps"] is None else float(args["eps"])


op(
    "logit(Tensor self, float? eps=None) -> Tensor",
    infer=pointwise("float"),
    cpu=_logit_cpu,
    compute="raw",
    aclnn=call("aclnnLogit", "self", _no_clamp, "out", when=in_dtypes("self", *SHORT_FLOATS)),
    lower=_logit,
    grad={"self": _logit_grad},
    unsupported={"complex": "logit_cpu"},
    samples=calls((Arg((3, 4), low=0.1, high=0.9),), (Arg((3,), "float64", 0, 1), 0.1)),
    inplace=True,
    tolerance="composite",
    rule="cancelling",
)
op(
    "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
    infer=pointwise(only=("logit_backward_cpu", _FLOATING)),
    cpu=_logit_backward_cpu,
    aclnn=call(
        "aclnnLogitGrad", "self", "grad_output", _no_clamp, "out",
        when=in_dtypes("self", *SHORT_FLOATS),
    ),
    lower=_logit_backward,
    grad={
        "grad_output": lambda grad, self, eps: aten.logit_backward(grad, self, eps),
        "self": _logit_curved,
    },
    samples=calls(
        (Arg((3, 4)), Arg((3, 4), low=0.1, high=0.9)),
        (Arg((3,), "float64"), Arg((3,), "float64", 0.2, 0.8), 0.1),
    ),
    tolerance="composite",
    rule="activation_backward",
)  # fmt: skip
