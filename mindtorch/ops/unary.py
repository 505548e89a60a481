"""Rows of pointwise functions of one tensor, one line each."""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi, sqrt
from typing import Any

import numpy as np

from .._dtype import FLOAT, finfo, float64
from .rules import pointwise, preserved
from .samples import FLOATS, unary
from .spec import aten, call, op


def special(name: str) -> Callable[..., Any]:
    """A function of scipy.special, which is imported when first called."""

    def run(x: Any) -> Any:
        from scipy import special as functions

        return getattr(functions, name)(x)

    return run


def _lgamma(x: Any) -> Any:
    found = special("gammaln")(x)
    return np.where(np.isinf(x), np.inf, found).astype(found.dtype)


def _c(value: Any) -> Any:
    return aten.conj_of(value)


def elementary(
    name: str,
    cpu: Callable[..., Any],
    aclnn: str,
    grad: Callable[..., Any],
    low: float = -2.0,
    high: float = 2.0,
    tolerance: str = "elementary",
) -> None:
    """A row whose integer input becomes the default dtype; samples from [low, high)."""
    op(
        f"{name}(Tensor self) -> Tensor",
        infer=pointwise("float"),
        cpu=cpu,
        aclnn=call(aclnn, "self", "out"),
        grad={"self": grad},
        samples=unary(low, high, (*FLOATS, "int64")),
        tolerance=tolerance,
        inplace=True,
    )


def _rsqrt(x: Any) -> Any:
    return np.reciprocal(np.sqrt(x))


def _sigmoid(x: Any) -> Any:
    return np.reciprocal(np.exp(np.negative(x)) + x.dtype.type(1))


def _sinc(x: Any) -> Any:
    return np.sinc(x).astype(x.dtype)


def _sinc_grad(grad: Any, self: Any) -> Any:
    x = aten.mul(self, pi)
    slope = aten.div(aten.sub(aten.mul(aten.cos(x), x), aten.sin(x)), aten.mul(x, self))
    return aten.mul(grad, aten.where(aten.eq(self, 0), 0.0, slope))


def _one_minus_square(x: Any) -> Any:
    return aten.rsub(aten.mul(x, x), 1)


_TWO_OVER_ROOT_PI = 2 / sqrt(pi)

elementary("exp", np.exp, "aclnnExp", lambda grad, result: aten.mul(grad, _c(result)))
elementary(
    "exp2", np.exp2, "aclnnExp2", lambda grad, result: aten.mul(grad, aten.mul(_c(result), log(2)))
)
elementary(
    "expm1", np.expm1, "aclnnExpm1", lambda grad, result: aten.mul(grad, aten.add(_c(result), 1))
)
elementary("log", np.log, "aclnnLog", lambda grad, self: aten.div(grad, _c(self)), 0.1, 4)
elementary(
    "log2", np.log2, "aclnnLog2", lambda grad, self: aten.div(grad, aten.mul(_c(self), log(2))),
    0.1, 4,
)  # fmt: skip
elementary(
    "log10", np.log10, "aclnnLog10",
    lambda grad, self: aten.div(grad, aten.mul(_c(self), log(10))), 0.1, 4,
)  # fmt: skip
elementary(
    "log1p", np.log1p, "aclnnLog1p", lambda grad, self: aten.div(grad, aten.add(_c(self), 1)),
    -0.9, 4,
)  # fmt: skip
elementary(
    "sqrt", np.sqrt, "aclnnSqrt",
    lambda grad, result: aten.div(grad, aten.mul(_c(result), 2)), 0.1, 4, "rounded",
)  # fmt: skip
elementary(
    "rsqrt", _rsqrt, "aclnnRsqrt",
    lambda grad, result: aten.mul(grad, aten.mul(aten.pow(_c(result), 3), -0.5)), 0.1, 4,
)  # fmt: skip
elementary(
    "reciprocal", lambda x: np.divide(x.dtype.type(1), x), "aclnnReciprocal",
    lambda grad, result: aten.mul(grad, aten.neg(aten.mul(_c(result), _c(result)))), 0.5, 3,
    "rounded",
)  # fmt: skip
elementary("sin", np.sin, "aclnnSin", lambda grad, self: aten.mul(grad, _c(aten.cos(self))))
elementary(
    "cos", np.cos, "aclnnCos", lambda grad, self: aten.mul(grad, aten.neg(_c(aten.sin(self))))
)
elementary(
    "tan", np.tan, "aclnnTan",
    lambda grad, result: aten.mul(grad, aten.add(aten.mul(_c(result), _c(result)), 1)), -1.2, 1.2,
)  # fmt: skip
elementary(
    "asin", np.arcsin, "aclnnAsin",
    lambda grad, self: aten.mul(grad, aten.rsqrt(_one_minus_square(_c(self)))), -0.9, 0.9,
)  # fmt: skip
elementary(
    "acos", np.arccos, "aclnnAcos",
    lambda grad, self: aten.mul(grad, aten.neg(aten.rsqrt(_one_minus_square(_c(self))))),
    -0.9, 0.9,
)  # fmt: skip
elementary(
    "atan", np.arctan, "aclnnAtan",
    lambda grad, self: aten.div(grad, aten.add(aten.mul(_c(self), _c(self)), 1)),
)  # fmt: skip
elementary("sinh", np.sinh, "aclnnSinh", lambda grad, self: aten.mul(grad, _c(aten.cosh(self))))
elementary("cosh", np.cosh, "aclnnCosh", lambda grad, self: aten.mul(grad, _c(aten.sinh(self))))
elementary(
    "tanh", np.tanh, "aclnnTanh",
    lambda grad, result: aten.tanh_backward(grad, _c(result)),
)  # fmt: skip
elementary(
    "asinh", np.arcsinh, "aclnnAsinh",
    lambda grad, self: aten.mul(grad, aten.rsqrt(aten.add(aten.mul(_c(self), _c(self)), 1))),
)  # fmt: skip
elementary(
    "acosh", np.arccosh, "aclnnAcosh",
    lambda grad, self: aten.mul(grad, aten.rsqrt(aten.sub(aten.mul(_c(self), _c(self)), 1))),
    1.1, 4,
)  # fmt: skip
elementary(
    "atanh", np.arctanh, "aclnnAtanh",
    lambda grad, self: aten.div(grad, _one_minus_square(_c(self))), -0.9, 0.9,
)  # fmt: skip
elementary(
    "sigmoid", _sigmoid, "aclnnSigmoid",
    lambda grad, result: aten.sigmoid_backward(grad, _c(result)),
)  # fmt: skip
elementary(
    "erf", special("erf"), "aclnnErf",
    lambda grad, self: aten.mul(
        grad, aten.mul(aten.exp(aten.neg(aten.mul(self, self))), _TWO_OVER_ROOT_PI)
    ),
)  # fmt: skip
elementary(
    "erfc", special("erfc"), "aclnnErfc",
    lambda grad, self: aten.mul(
        grad, aten.mul(aten.exp(aten.neg(aten.mul(self, self))), -_TWO_OVER_ROOT_PI)
    ),
)  # fmt: skip
elementary(
    "erfinv", special("erfinv"), "aclnnErfinv",
    lambda grad, result: aten.mul(
        grad, aten.mul(aten.exp(aten.mul(result, result)), sqrt(pi) / 2)
    ),
    -0.9, 0.9,
)  # fmt: skip
elementary(
    "lgamma", _lgamma, "aclnnLgamma",
    lambda grad, self: aten.mul(grad, aten.digamma(self)), 0.5, 4,
)  # fmt: skip
elementary(
    "digamma", special("digamma"), "aclnnDigamma",
    lambda grad, self: aten.mul(grad, aten.polygamma(1, self)), 0.5, 4, "composite",
)  # fmt: skip
elementary("sinc", _sinc, "aclnnSinc", _sinc_grad, 0.2, 2)


def _polygamma(n: int, self: Any) -> Any:
    from scipy.special import polygamma

    return polygamma(n, self).astype(self.dtype)


op(
    "polygamma(int n, Tensor self) -> Tensor",
    infer=lambda n, self: pointwise_float(self),
    cpu=_polygamma,
    grad={"self": lambda grad, n, self: aten.mul(grad, aten.polygamma(n + 1, self))},
    tolerance="composite",
    surface="function",
)


def pointwise_float(self: Any) -> Any:
    """The Geometry of a float result of one tensor."""
    from .. import _dtype as dt

    return preserved(self, None if self.dtype.category >= dt.FLOAT else dt.get_default_dtype())


op(
    "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    infer=pointwise(),
    cpu=lambda grad, y: grad * (y.dtype.type(1) - y * y),
    aclnn=call("aclnnTanhBackward", "grad_output", "output", "out"),
    grad={
        "grad_output": lambda grad, output: aten.tanh_backward(grad, output),
        "output": lambda grad, grad_output, output: aten.mul(
            aten.mul(grad, grad_output), aten.mul(output, -2)
        ),
    },
    surface="none",
)
op(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    infer=pointwise(),
    cpu=lambda grad, y: grad * (y.dtype.type(1) - y) * y,
    aclnn=call("aclnnSigmoidBackward", "grad_output", "output", "out"),
    grad={
        "grad_output": lambda grad, output: aten.sigmoid_backward(grad, output),
        "output": lambda grad, grad_output, output: aten.mul(
            aten.mul(grad, grad_output), aten.rsub(aten.mul(output, 2), 1)
        ),
    },
    surface="none",
)


def step(name: str, cpu: Callable[..., Any], aclnn: str) -> None:
    """A row of a function that is flat nearly everywhere and leaves integers as they are."""
    op(
        f"{name}(Tensor self) -> Tensor",
        infer=pointwise(),
        cpu=cpu,
        aclnn=call(aclnn, "self", "out"),
        grad={"self": lambda grad: aten.zeros_like(grad)},
        samples=unary(dtypes=FLOATS),
        tolerance="exact",
        inplace=True,
    )


def _whole(rounding: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: x.copy() if x.dtype.kind in "iub" else rounding(x)


def _sign(x: Any) -> Any:
    """-1, 0 or 1; NaN gives 0, as in torch."""
    if x.dtype.kind in "ub":
        return np.minimum(x, 1).astype(x.dtype)
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


step("ceil", _whole(np.ceil), "aclnnCeil")
step("floor", _whole(np.floor), "aclnnFloor")
step("trunc", _whole(np.trunc), "aclnnTrunc")
step("sign", lambda x: _sign(x), "aclnnSign")


def _frac(x: Any) -> Any:
    return x - np.trunc(x)


op(
    "frac(Tensor self) -> Tensor",
    infer=pointwise(),
    cpu=_frac,
    aclnn=call("aclnnFrac", "self", "out"),
    grad={"self": lambda grad: grad},
    samples=unary(),
    tolerance="rounded",
    inplace=True,
)


def _round(x: Any, decimals: int) -> Any:
    if x.dtype.kind in "iub":
        return x.copy()
    if not decimals:
        return np.rint(x)
    scale = x.dtype.type(10.0 ** abs(decimals))
    return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale


op(
    "round(Tensor self, *, int decimals=0) -> Tensor",
    infer=pointwise(),
    cpu=_round,
    aclnn=(
        call("aclnnRound", "self", "out", when=lambda a: a["decimals"] == 0),
        call("aclnnRoundDecimals", "self", "decimals", "out"),
    ),
    grad={"self": lambda grad: aten.zeros_like(grad)},
    samples=unary(dtypes=FLOATS),
    tolerance="exact",
    inplace=True,
)
op(
    "abs(Tensor self) -> Tensor",
    infer=pointwise("real"),
    cpu=np.abs,
    aclnn=call("aclnnAbs", "self", "out"),
    grad={"self": lambda grad, self: aten.mul(grad, aten.sgn(self))},
    samples=unary(dtypes=(*FLOATS, "int64", "int8")),
    tolerance="exact",
    inplace=True,
)


def _sgn(x: Any) -> Any:
    if x.dtype.kind != "c":
        return _sign(x)
    size = np.abs(x)
    return np.where(size == 0, x, x / np.where(size == 0, 1, size))


op(
    "sgn(Tensor self) -> Tensor",
    infer=pointwise(),
    cpu=_sgn,
    aclnn=call("aclnnSign", "self", "out"),
    grad={"self": lambda grad: aten.zeros_like(grad)},
    samples=unary(dtypes=FLOATS),
    tolerance="exact",
    inplace=True,
)


def test(name: str, cpu: Callable[..., Any], aclnn: tuple[Any, ...], **fields: Any) -> None:
    """A row whose result is bool."""
    op(
        f"{name}(Tensor self) -> Tensor",
        infer=pointwise("bool"),
        cpu=cpu,
        aclnn=aclnn,
        grad={},
        samples=unary(dtypes=(*FLOATS, "int64", "bool")),
        tolerance="exact",
        **fields,
    )


def _when_float(kernel: Callable[..., Any], otherwise: bool) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        return kernel(x) if x.dtype.kind in "fcV" else np.full(x.shape, otherwise)

    return run


test(
    "isnan",
    _when_float(np.isnan, False),
    (call("aclnnNeTensor", "self", "self", "out"),),
)


def _floating(a: dict[str, Any]) -> bool:
    return bool(a["self"].dtype.category >= FLOAT)


for _name, _cpu, _aclnn, _otherwise in (
    ("isfinite", np.isfinite, "aclnnIsFinite", "aclnnInplaceOne"),
    ("isinf", np.isinf, "aclnnIsInf", "aclnnInplaceZero"),
    ("isposinf", np.isposinf, "aclnnIsPosInf", "aclnnInplaceZero"),
    ("isneginf", np.isneginf, "aclnnIsNegInf", "aclnnInplaceZero"),
):
    test(
        _name,
        _when_float(_cpu, _name == "isfinite"),
        (call(_aclnn, "self", "out", when=_floating), call(_otherwise, "out")),
    )
test("signbit", lambda x: np.signbit(x) if x.dtype != bool else np.zeros(x.shape, bool),
     (call("aclnnSignbit", "self", "out"),))  # fmt: skip
test("logical_not", np.logical_not, (call("aclnnLogicalNot", "self", "out"),), inplace=True)


def _invert(x: Any) -> Any:
    if x.dtype.kind in "fc":
        raise RuntimeError("\"bitwise_not_cpu\" not implemented for 'Float'")
    return np.invert(x)


op(
    "bitwise_not(Tensor self) -> Tensor",
    infer=pointwise(),
    cpu=_invert,
    aclnn=call("aclnnBitwiseNot", "self", "out"),
    grad={},
    samples=unary(dtypes=("int64", "int32", "int16", "int8", "uint8", "bool")),
    tolerance="exact",
    inplace=True,
)


def _nan_to_num(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    if x.dtype.kind in "iub":
        return x.copy()
    limits = np.finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    return np.nan_to_num(x, copy=True, nan=nan or 0.0, posinf=high, neginf=low)


op(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    infer=pointwise(),
    cpu=_nan_to_num,
    compute="raw",
    aclnn=call(
        "aclnnNanToNum",
        "self",
        lambda a: a["nan"] or 0.0,
        lambda a: _bound(a, "posinf"),
        lambda a: _bound(a, "neginf"),
        "out",
        # The bounds travel as float, which does not hold float64's.
        when=lambda a: a["self"].dtype is not float64,
    ),
    grad={"self": lambda grad, self: aten.mul(grad, aten.to(aten.isfinite(self), grad.dtype))},
    samples=unary(dtypes=("float32", "float16", "int64")),
    tolerance="exact",
    inplace=True,
)


def _bound(a: dict[str, Any], name: str) -> float:
    if a[name] is not None:
        return float(a[name])
    if a["self"].dtype.category < FLOAT:
        return 0.0
    limits: Any = finfo(a["self"].dtype)
    return float(limits.max if name == "posinf" else limits.min)
