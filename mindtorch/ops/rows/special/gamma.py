"""Rows of the gamma function's relatives: incomplete, and of several dimensions."""

from __future__ import annotations

from math import log, pi
from typing import Any

from ...._tensor.tensor import Tensor
from ...lacks import Refusal
from ...limits import reserve
from ...rules import pointwise
from ...samples import Arg, calls
from ...spec import Derivative, aten, composite, op
from .functions import _floating, by_scipy


def _slope(sign: int) -> Derivative:
    def density(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
        return grad * sign * aten.exp((self - 1) * aten.log(other) - other - aten.lgamma(self))

    return Derivative(density, ("grad", "self", "other"))


for _name, _kernel, _sign in (("igamma", "gammainc", 1), ("igammac", "gammaincc", -1)):
    op(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        infer=pointwise("float"),
        cpu=by_scipy(_kernel),
        grad={"other": _slope(_sign)},
        lacks={"bool whole complex": f"{_name}_cpu"},
        samples=calls(
            (Arg((3, 4), low=0.5, high=3, grad=False), Arg((3, 4), low=0.5, high=4)),
        ),
        tolerance="composite",
        inplace=True,
        absent={"npu": "CANN has no incomplete gamma function"},
    )


@composite(
    "mvlgamma(Tensor self, int p) -> Tensor",
    lacks={"bool": Refusal("The input tensor may not be a boolean tensor.")},
    samples=calls((Arg((3,), low=2, high=5), 3)),
    tolerance="composite",
    inplace=True,
)
def mvlgamma(self: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of `p` dimensions."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = _floating(self)
    reserve((*x.shape, p), x)
    offsets = [j / -2.0 for j in range(p)]
    total: Any = None
    for offset in offsets:
        part = aten.lgamma(x + offset)
        total = part if total is None else total + part
    return total + p * (p - 1) / 4 * log(pi)
