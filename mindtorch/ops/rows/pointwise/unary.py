"""Rows of pointwise functions of one tensor, one line each."""

from __future__ import annotations

from functools import cache
from math import inf, log, pi, sqrt
from typing import cast

from ...._compat.unsupported_dtypes import Refusal, UnsupportedDtypes
from ...._tensor.dtype import (
    ALL,
    COMPLEX,
    FLOAT,
    INTEGER,
    STORED,
    UNSIGNED,
    complex128,
    finfo,
    float64,
    from_numpy_dtype,
)
from ...._tensor.subclass import DOOR
from ... import complex_functions
from ...complex_parts import below_double, is_real, is_real_below_double
from ...rules import (
    ANY_NUMBERS,
    WHOLE,
    Pointwise,
    pointwise,
    preserved,
    refuse_dtype,
)
from ...samples import FLOATS, unary
from ...spec import NoNumbers
from ...words import *


def special(name: str) -> Callable[..., Any]:
    """A function of scipy.special, which is imported when first called."""

    return lambda x: scipy_special(name)(x)


@cache
def scipy_special(name: str) -> Callable[..., Any]:
    """scipy.special's function of a name: an import statement costs what a small array does."""
    from scipy import special as functions

    return cast("Callable[..., Any]", getattr(functions, name))


def _lgamma(x: Array) -> Array:
    result = special("gammaln")(x)
    # Near zero it is -log|x|, which overflows nowhere; the library gives infinity for subnormals.
    result = np.where((x != 0) & (np.abs(x) < 1e-30), -np.log(np.abs(x)), result)
    return np.where(np.isinf(x), np.inf, result).astype(result.dtype)


def _erfinv(x: Array) -> Array:
    # Beyond its domain the library is a hundred times slower, and gives NaN.
    return np.copysign(special("erfinv")(np.where(np.abs(x) <= 1, x, x.dtype.type(np.nan))), x)


def _erfinv_double(x: Tensor) -> Tensor:
    """By three of Halley's steps from a formula with three digits (Winitzki, "A handy approximation
    for the error function and its inverse", 2008)."""
    a, size = 0.147, aten.abs(x)
    rest = aten.log1p(-(size * size))
    middle = rest * 0.5 + 2 / (pi * a)
    y = aten.sqrt(aten.clamp_min(aten.sqrt(middle * middle - rest / a) - middle, 0))
    for _ in range(3):
        # Near 1, erf has few digits left of the tail.
        missing = aten.where(size < 0.5, aten.erf(y) - size, (1 - size) - aten.erfc(y))
        step = missing * aten.exp(y * y) / _TWO_OVER_ROOT_PI
        y = y - step / (y * step + 1)
    return aten.copysign(aten.where(size == 1, size * inf, y), x)


def _c(value: Tensor) -> Tensor:
    return aten.conj_of(value)


def _plain(by_parts: object, double: object) -> NoNumbers | None:
    if double:
        return is_real_below_double
    return is_real if by_parts else None


def _by_dtype(
    by_parts: Callable[[Tensor], Tensor], double: Callable[[Tensor], Tensor] | None
) -> Callable[[Tensor], Tensor]:
    if double is None:
        return by_parts
    return lambda self: by_parts(self) if self.is_complex() else double(self)


def elementary(
    name: str,
    cpu: Callable[..., Any],
    aclnn: str,
    grad: Callable[..., Any],
    low: float = -2.0,
    high: float = 2.0,
    tolerance: str = "elementary",
    rule: str = "",
    autocast: str = "",
    surface: str = "both",
    unsupported: UnsupportedDtypes | None = None,
    double: Callable[[Tensor], Tensor] | None = None,
) -> None:
    """A row whose integer input becomes the default dtype; samples from [low, high).

    What `complex_functions` has a formula of, CANN's operator has for real numbers alone; what
    `double` has one of, for no float64.
    """
    by_parts = getattr(complex_functions, name, None)
    op(
        f"{name}(Tensor self) -> Tensor",
        infer=pointwise("float"),
        cpu=cpu,
        aclnn=call(aclnn, "self", "out", when=_plain(by_parts, double)),
        lower=double if by_parts is None else _by_dtype(by_parts, double),
        grad={"self": grad},
        unsupported=unsupported or {},
        samples=unary(low, high, (*FLOATS, "int64")),
        tolerance=tolerance,
        rule=rule,
        autocast=autocast,
        surface=surface,
        inplace=True,
    )


def _half(x: Tensor) -> Tensor:
    result: Tensor = aten.clamp(x, -750) * 0.5
    return result


def _rsqrt(x: Array) -> Array:
    return np.reciprocal(np.sqrt(x))


def rest_of(share: Tensor) -> Tensor:
    """1 - `share`, by the operators that torch has for a number on the left."""
    if aten._watched():
        blank = aten._asked("empty_like", (share,), {"memory_format": DOOR["preserve_format"]})
    else:
        blank = aten.empty_like(share)
    return blank.fill_(1.0).sub_(share)


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), of relative accuracy in both tails."""
    return np.reciprocal(np.exp(np.negative(x)) + x.dtype.type(1))


def _log1p(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.log1p(x)
    # The library loses the real part of what is near zero, and overflows early.
    a, b = x.real.astype(np.float64), x.imag.astype(np.float64)
    size = np.hypot(1 + a, b)
    near = (size > 0.5) & (size < 2)
    real = np.where(near, 0.5 * np.log1p(a * (a + 2) + b * b), np.log(size))
    result = np.empty(x.shape, x.dtype)
    result.real, result.imag = real, np.arctan2(b, 1 + a)
    return result


def _sgn_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """Of a number on the unit circle: what is across it, over the number's size."""
    if not self.is_complex():
        return aten.zeros_like(grad)
    along = aten.real(aten.conj_of(result) * grad)
    size = aten.abs(self)
    return aten.where(size == 0, 0.0, (grad - result * along) / size)


def _acosh_grad(grad: Tensor, self: Tensor) -> Tensor:
    if self.is_complex():  # the root of a product is no product of roots left of zero
        return grad * _c(aten.rsqrt(self + 1) * aten.rsqrt(self - 1))
    return grad * aten.rsqrt(self * self - 1)


def _sinc(x: Array) -> Array:
    return np.sinc(x).astype(x.dtype)


def _sinc_grad(grad: Tensor, self: Tensor) -> Tensor:
    x = self * pi
    slope = (aten.cos(x) * x - aten.sin(x)) / (x * self)
    return grad * aten.conj_of(aten.where(x * self == 0, 0.0, slope))


def _one_minus_square(x: Any) -> Any:
    return 1 - x * x


_TWO_OVER_ROOT_PI = 2 / sqrt(pi)

elementary(
    "exp",
    np.exp,
    "aclnnExp",
    lambda grad, result: grad * _c(result),
    autocast="float32 on npu",
    rule="exponential",
)
elementary(
    "exp2",
    np.exp2,
    "aclnnExp2",
    lambda grad, result: grad * (_c(result) * log(2)),
    rule="exponential",
)
elementary(
    "expm1",
    np.expm1,
    "aclnnExpm1",
    lambda grad, result: grad * (_c(result) + 1),
    autocast="float32 on npu",
    rule="exponential",
    # At -750, where the result is -1 to the last bit, no factor is 0 or infinite.
    double=lambda x: aten.exp(_half(x)) * aten.sinh(_half(x)) * 2,
)
elementary(
    "log",
    np.log,
    "aclnnLog",
    lambda grad, self: grad / _c(self),
    0.1,
    4,
    autocast="float32 on npu",
    rule="exponential",
)
elementary(
    "log2", np.log2, "aclnnLog2", lambda grad, self: grad / (_c(self) * log(2)),
    0.1, 4,
    autocast="float32 on npu", rule="exponential",
)  # fmt: skip
elementary(
    "log10", np.log10, "aclnnLog10",
    lambda grad, self: grad / (_c(self) * log(10)), 0.1, 4,
    autocast="float32 on npu", rule="exponential", double=lambda x: aten.log(x) / log(10),
)  # fmt: skip
elementary(
    "log1p", _log1p, "aclnnLog1p", lambda grad, self: grad / (_c(self) + 1),
    -0.9, 4,
    autocast="float32 on npu", rule="log1p",
)  # fmt: skip
elementary(
    "sqrt", np.sqrt, "aclnnSqrt",
    lambda grad, result: grad / (_c(result) * 2), 0.1, 4, "rounded", rule="root",
)  # fmt: skip
elementary(
    "rsqrt", _rsqrt, "aclnnRsqrt",
    lambda grad, result: (lambda cube: grad * -0.5 * cube)(aten.pow(_c(result), 3)), 0.1, 4,
    autocast="float32 on npu", rule="inverse_root",
)  # fmt: skip
elementary(
    "reciprocal", lambda x: np.divide(x.dtype.type(1), x), "aclnnReciprocal",
    lambda grad, result: grad * -(_c(result) * _c(result)), 0.5, 3,
    "rounded",
    autocast="float32 on npu", rule="quotient",
)  # fmt: skip
elementary(
    "sin", np.sin, "aclnnSin", lambda grad, self: grad * _c(aten.cos(self)), rule="trigonometric"
)
elementary(
    "cos", np.cos, "aclnnCos", lambda grad, self: grad * -_c(aten.sin(self)), rule="trigonometric"
)
elementary(
    "tan", np.tan, "aclnnTan",
    lambda grad, result: grad * (_c(result) * _c(result) + 1), -1.2, 1.2,
    autocast="float32 on npu", rule="tangent",
)  # fmt: skip
elementary(
    "asin", np.arcsin, "aclnnAsin",
    lambda grad, self: grad * aten.rsqrt(_one_minus_square(_c(self))), -0.9, 0.9,
    autocast="float32 on npu", rule="trigonometric",
)  # fmt: skip
elementary(
    "acos", np.arccos, "aclnnAcos",
    lambda grad, self: grad * -aten.rsqrt(_one_minus_square(_c(self))),
    -0.9, 0.9,
    autocast="float32 on npu", rule="trigonometric",
)  # fmt: skip
elementary(
    "atan", np.arctan, "aclnnAtan",
    lambda grad, self: grad / (_c(self) * _c(self) + 1), rule="arctangent",
)  # fmt: skip
elementary(
    "sinh",
    np.sinh,
    "aclnnSinh",
    lambda grad, self: grad * _c(aten.cosh(self)),
    autocast="float32 on npu",
    rule="trigonometric",
)
elementary(
    "cosh",
    np.cosh,
    "aclnnCosh",
    lambda grad, self: grad * _c(aten.sinh(self)),
    autocast="float32 on npu",
    rule="trigonometric",
)
elementary(
    "tanh", np.tanh, "aclnnTanh",
    lambda grad, result: aten.tanh_backward(grad, _c(result)), surface="both nn", rule="arctangent",
    # Beyond 20 it is 1 to the last bit.
    double=lambda x: aten.sinh(aten.clamp(x, -20, 20)) / aten.cosh(aten.clamp(x, -20, 20)),
)  # fmt: skip
elementary(
    "asinh", np.arcsinh, "aclnnAsinh",
    lambda grad, self: grad * _c(aten.rsqrt(self * self + 1)), rule="trigonometric",
)  # fmt: skip
elementary(
    "acosh", np.arccosh, "aclnnAcosh",
    _acosh_grad,
    1.1, 4, rule="trigonometric",
)  # fmt: skip
elementary(
    "atanh", np.arctanh, "aclnnAtanh",
    lambda grad, self: grad / _one_minus_square(_c(self)), -0.9, 0.9, rule="arctangent",
)  # fmt: skip
elementary(
    "sigmoid", sigmoid, "aclnnSigmoid",
    lambda grad, result: aten.sigmoid_backward(grad, _c(result)),
    surface="both nn", rule="activation",
)  # fmt: skip
elementary(
    "erf", special("erf"), "aclnnErf",
    lambda grad, self: grad * (aten.exp(-(self * self)) * _TWO_OVER_ROOT_PI), rule="power",
    unsupported={"complex": "erf_vml_cpu"},
)  # fmt: skip
elementary(
    "erfc", special("erfc"), "aclnnErfc",
    lambda grad, self: grad * (aten.exp(-(self * self)) * -_TWO_OVER_ROOT_PI), rule="erfc",
    unsupported={"complex": "erfc_vml_cpu"},
)  # fmt: skip
elementary(
    "erfinv", _erfinv, "aclnnErfinv",
    lambda grad, result: grad * (aten.exp(result * result) * (sqrt(pi) / 2)),
    -0.9, 0.9,
    autocast="float32 on npu", rule="unbounded", unsupported={"complex": "erfinv_vml_cpu"},
    double=_erfinv_double,
)  # fmt: skip
elementary(
    "lgamma", _lgamma, "aclnnLgamma",
    lambda grad, self: grad * aten.digamma(self), 0.5, 4, rule="unbounded",
    unsupported={"complex": "lgamma_vml_cpu"},
)  # fmt: skip
elementary(
    "digamma", special("digamma"), "aclnnDigamma",
    lambda grad, self: grad * aten.polygamma(1, self), 0.5, 4, "composite", rule="unbounded",
    unsupported={"complex": "digamma"},
)  # fmt: skip
elementary("sinc", _sinc, "aclnnSinc", _sinc_grad, 0.2, 2, rule="unbounded")


def pointwise_float(self: Geometry) -> Geometry:
    """The Geometry of a float result of one tensor."""
    from ...._tensor import dtype as dt

    return preserved(self, None if self.dtype.category >= dt.FLOAT else dt.get_default_dtype())


op(
    "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    infer=pointwise(),
    cpu=lambda grad, y: grad * (y.dtype.type(1) - y * y),
    aclnn=call("aclnnTanhBackward", when=lambda a: a["output"].dtype.category != COMPLEX),
    lower=lambda grad, output: grad * (1 - output * output),
    grad={
        "grad_output": lambda grad, output: aten.tanh_backward(grad, output),
        "output": lambda grad, grad_output, output: grad * grad_output * (output * -2),
    },
    unsupported={"bool whole": "tanh_backward_cpu"},
    samples=calls((Arg((3, 4)), Arg((3, 4), low=-0.9, high=0.9))),
    rule="squash_backward",
)
op(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    infer=pointwise(),
    cpu=lambda grad, y: grad * (y.dtype.type(1) - y) * y,
    aclnn=call("aclnnSigmoidBackward"),
    grad={
        "grad_output": lambda grad, output: aten.sigmoid_backward(grad, output),
        "output": lambda grad, grad_output, output: grad * grad_output * (1 - output * 2),
    },
    unsupported={"bool whole": "sigmoid_backward_cpu"},
    samples=calls((Arg((3, 4)), Arg((3, 4), low=0.1, high=0.9))),
    rule="squash_backward",
)


class _Rounding(Pointwise):
    """Pointwise, but for bool and for complex numbers, which no order rounds."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def __call__(self, *args: Any) -> Geometry:
        dtype = args[0].dtype
        if dtype.category == COMPLEX and self.name not in ("round", "frac"):
            raise NotImplementedError(f"{self.name} is not supported for complex inputs")
        whole = self.name != "frac" and not any(args[1:])  # decimals are for fractions alone
        known = [d for d in ALL if d.category == FLOAT or (whole and d.category == INTEGER)]
        known += UNSIGNED * whole
        refuse_dtype(dtype, f"{self.name}{'_vml' if whole else ''}_cpu", known)
        return super().__call__(*args)


class _Sign(Pointwise):
    """Pointwise, but for complex numbers."""

    def __call__(self, *args: Any) -> Geometry:
        if args[0].dtype.category == COMPLEX:
            raise NotImplementedError(
                "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use"
                " torch.sgn instead."
            )
        return super().__call__(*args)


def _takes(a: dict[str, Any]) -> bool:
    """What CANN's roundings take: their documents list no integers."""
    return bool(a["self"].dtype.category >= FLOAT)


def _truncates(a: dict[str, Any]) -> bool:
    return _takes(a) and a["self"].dtype is not float64


def _rounded(self: Tensor) -> Tensor:
    """Of integers; and trunc of float64, which aclnnTrunc's document does not list."""
    if self.dtype.category < FLOAT:
        return aten.clone(self)
    return aten.where(self < 0, aten.ceil(self), aten.floor(self))


def step(name: str, cpu: Callable[..., Any], aclnn: str) -> None:
    """A row of a function that is flat nearly everywhere and leaves integers as they are."""
    signs = name == "sign"
    takes = _truncates if name == "trunc" else _takes
    op(
        f"{name}(Tensor self) -> Tensor",
        infer=_Sign() if signs else _Rounding(name),
        cpu=cpu,
        aclnn=call(aclnn, "self", "out", when=None if signs else takes),
        lower=None if signs else _rounded,
        grad={"self": lambda grad: aten.zeros_like(grad)},
        samples=unary(dtypes=FLOATS),
        tolerance="exact",
        out="found",
        inplace=True,
    )


def _whole(rounding: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: x.copy() if x.dtype.kind in "iub" else rounding(x)


def _sign(x: Array) -> Array:
    """-1, 0 or 1; NaN gives 0, as in torch."""
    if x.dtype.kind in "ub":
        return np.minimum(x, 1).astype(x.dtype)
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


step("ceil", _whole(np.ceil), "aclnnCeil")
step("floor", _whole(np.floor), "aclnnFloor")
step("trunc", _whole(np.trunc), "aclnnTrunc")
step("sign", lambda x: _sign(x), "aclnnSign")


def _frac(x: Array) -> Array:
    return x - np.trunc(x)


op(
    "frac(Tensor self) -> Tensor",
    infer=_Rounding("frac"),
    cpu=_frac,
    aclnn=call("aclnnFrac", when=below_double()),
    lower=lambda self: self - aten.trunc(self),
    grad={"self": lambda grad: grad},
    samples=unary(),
    tolerance="rounded",
    out="found",
    inplace=True,
)


def _round(x: Array, decimals: int) -> Array:
    if x.dtype.kind in "iub":
        return x.copy()
    if not decimals:
        return np.rint(x)
    scale = x.dtype.type(10.0 ** abs(decimals))
    return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale


op(
    "round(Tensor self, *, int decimals=0) -> Tensor",
    infer=_Rounding("round"),
    cpu=_round,
    aclnn=(
        call("aclnnRound", "self", "out", when=lambda a: a["decimals"] == 0),
        call("aclnnRoundDecimals"),
    ),
    grad={"self": lambda grad: aten.zeros_like(grad)},
    samples=unary(dtypes=FLOATS),
    tolerance="exact",
    out="found",
    inplace=True,
)


def _size(self: Tensor) -> Tensor:
    """|z| of complex128, which aclnnAbs's document does not list, by the larger part."""
    parts = aten.abs(aten.view_as_real(self))
    larger, smaller = aten.amax(parts, -1), aten.amin(parts, -1)
    share = smaller / aten.where(larger == 0, 1.0, larger)
    result: Tensor = larger * aten.sqrt(share * share + 1)
    return aten.where(larger == float("inf"), larger, result)


op(
    "abs(Tensor self) -> Tensor",
    infer=pointwise(
        "real",
        only=("abs_cpu", (*ANY_NUMBERS, dt.complex32, *(d for d in STORED if d.is_floating_point))),
    ),
    cpu=np.abs,
    aclnn=call("aclnnAbs", when=lambda a: a["self"].dtype is not complex128),
    lower=_size,
    grad={"self": lambda grad, self: grad * aten.sgn(self)},
    samples=unary(dtypes=(*FLOATS, "int64", "int8")),
    tolerance="exact",
    rule="modulus",
    out="found",
    inplace=True,
)


def _sgn(x: Array) -> Array:
    if x.dtype.kind != "c":
        return _sign(x)
    size = np.abs(x)
    return np.where(size == 0, x, x / np.where(size == 0, 1, size))


op(
    "sgn(Tensor self) -> Tensor",
    infer=pointwise(),
    cpu=_sgn,
    aclnn=call("aclnnSign"),
    grad={"self": _sgn_grad},
    samples=unary(dtypes=(*FLOATS, "int64", "complex64")),
    tolerance="rounded",
    rule="modulus",
    out="found",
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
    def run(x: Array) -> Array:
        return kernel(x) if x.dtype.kind in "fcV" else np.full(x.shape, otherwise)

    return run


test(
    "isnan",
    _when_float(np.isnan, False),
    (call("aclnnNeTensor", "self", "self", "out"),),
)


def _floating(a: dict[str, Any]) -> bool:
    return bool(a["self"].dtype.category == FLOAT)


def _of_both_parts(name: str) -> Callable[[Tensor], Tensor]:
    """What asks of complex numbers' parts: all are finite, or one is infinite."""

    def lower(self: Tensor) -> Tensor:
        parts = getattr(aten, name)(aten.view_as_real(self))
        together: Tensor = (aten.all if name == "isfinite" else aten.any)(parts, -1)
        return together

    return lower


_ONLY_BOOL = "{name} does not support non-boolean outputs."
_ONE_SIDED: dict[str, dict[str, Any]] = {
    name: {
        "out": _ONLY_BOOL,
        "unsupported": {"complex": Refusal(f"{name} does not support complex inputs.")},
    }
    for name in ("isposinf", "isneginf")
}
for _name, _cpu, _aclnn, _otherwise in (
    ("isfinite", np.isfinite, "aclnnIsFinite", "aclnnInplaceOne"),
    ("isinf", np.isinf, "aclnnIsInf", "aclnnInplaceZero"),
    ("isposinf", np.isposinf, "aclnnIsPosInf", "aclnnInplaceZero"),
    ("isneginf", np.isneginf, "aclnnIsNegInf", "aclnnInplaceZero"),
):
    test(
        _name,
        _when_float(_cpu, _name == "isfinite"),
        (call(_aclnn, "self", "out", when=_floating), call(_otherwise, "out", when=is_real)),
        lower=_of_both_parts(_name) if _name in ("isfinite", "isinf") else None,
        **_ONE_SIDED.get(_name, {}),
    )
test("signbit", lambda x: np.signbit(x) if x.dtype != bool else np.zeros(x.shape, bool),
     (call("aclnnSignbit", "self", "out"),), out=_ONLY_BOOL,
     unsupported={"complex": Refusal("signbit is not implemented for complex tensors.",
                               NotImplementedError)})  # fmt: skip
test("logical_not", np.logical_not, (call("aclnnLogicalNot", "self", "out", when=is_real),),
     lower=lambda self: aten.eq(self, 0), inplace=True, casts_inplace=True)  # fmt: skip


op(
    "bitwise_not(Tensor self) -> Tensor",
    infer=pointwise(only=("bitwise_not_cpu", WHOLE)),
    cpu=np.invert,
    aclnn=call("aclnnBitwiseNot"),
    grad={},
    samples=unary(dtypes=("int64", "int32", "int16", "int8", "uint8", "bool")),
    tolerance="exact",
    out="found",
    inplace=True,
)


def _nan_to_num(x: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    if x.dtype.kind in "iub":
        return x.copy()
    limits: Any = finfo(from_numpy_dtype(x.dtype))
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    if x.dtype.name == "bfloat16":  # numpy takes it for no float
        return _nan_to_num(x.astype(np.float32), nan, high, low).astype(x.dtype)
    return np.nan_to_num(x, copy=True, nan=nan or 0.0, posinf=high, neginf=low)


def _nan_to_num_lower(
    self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    if self.is_complex():
        parts = aten.view_as_real(aten.resolve_conj(self))
        return aten.view_as_complex(_nan_to_num_lower(parts, nan, posinf, neginf))
    limits: Any = finfo(self.dtype)
    high, low = (limits.max if posinf is None else posinf, limits.min if neginf is None else neginf)
    result = aten.masked_fill(self, aten.isnan(self), nan or 0.0)
    result = aten.masked_fill(result, aten.eq(self, float("inf")), high)
    return aten.masked_fill(result, aten.eq(self, float("-inf")), low)


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
        when=is_real_below_double,
    ),
    lower=_nan_to_num_lower,
    grad={"self": lambda grad, self: grad * aten.to(aten.isfinite(self), grad.dtype)},
    samples=unary(dtypes=("float32", "float64", "float16", "int64")),
    tolerance="exact",
    out="{name}: dtype of out: {Got} should be same as input: {Want}",
    inplace=True,
)


def _bound(a: dict[str, Any], name: str) -> float:
    if a[name] is not None:
        return float(a[name])
    if a["self"].dtype.category < FLOAT:
        return 0.0
    limits: Any = finfo(a["self"].dtype)
    return float(limits.max if name == "posinf" else limits.min)


composite(
    "deg2rad(Tensor self) -> Tensor",
    lambda self: self * (pi / 180),
    unsupported={"complex": Refusal("deg2rad is not supported for complex tensors.")},
    samples=unary(-200, 200),
    inplace=True,
)
composite(
    "rad2deg(Tensor self) -> Tensor",
    lambda self: self * (180 / pi),
    unsupported={"complex": Refusal("rad2deg is not supported for complex tensors.")},
    samples=unary(),
    inplace=True,
)
