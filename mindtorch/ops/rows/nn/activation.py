"""Rows of the activations of torch.nn; softmax stands in nn_softmax, relu in pointwise."""

from __future__ import annotations

from math import pi, sqrt

from ...._compat.unsupported_dtypes import Refusal, UnsupportedDtypes
from ...choice import choose
from ...complex_parts import below_double
from ...rules import Pointwise, pointwise
from ...samples import FLOATS, unary
from ...spec import SHORT_FLOATS, Derivative, in_dtypes
from ...words import *
from ..pointwise.unary import rest_of, sigmoid, special
from .norm_grads import wide
from .slopes import FLOATING, Slope, slope, slope_row, slope_samples, where

COMPLEX = tuple(d for d in dt.ALL if d.category == dt.COMPLEX)


def activation(
    text: str,
    cpu: Callable[..., Any],
    aclnn: object,
    grad: Callable[..., Any] | Derivative,
    settings: tuple[Any, ...] = (),
    oracle: Callable[..., Any] | None = None,
    tolerance: str = "elementary",
    rule: str = "",
    autocast: str = "",
    surface: str = "none",
    kernel: str = "",
    out: str = "",
    known: tuple[Dtype, ...] = FLOATING,
    unsupported: UnsupportedDtypes | None = None,
    lower: Callable[..., Any] | None = None,
    check: Callable[..., None] = lambda *_: None,
    refuses: Callable[..., Callable[..., None] | None] | None = None,
) -> None:
    """A row of one tensor and its settings; dtypes other than `known` are refused.

    `kernel` is what torch calls it in that refusal, by default the row's name with `_cpu`.
    `check` refuses settings, whatever the device.
    """
    name = text.partition("(")[0]
    inputs = unary(-4.0, 4.0, FLOATS)

    def samples() -> list[Sample]:
        return [*inputs(), *(Sample((Arg((3, 4), low=-4.0, high=4.0), *s)) for s in settings)]

    class ActivationRule(Pointwise):
        def __call__(self, *args: Any) -> Geometry:
            check(*args[1:])
            return super().__call__(*args)

    op(
        text,
        infer=ActivationRule(only=(kernel or f"{name}_cpu", known)),
        cpu=cpu,
        aclnn=aclnn,
        lower=lower,
        grad={"self": grad},
        unsupported=unsupported or {},
        refuses=refuses,
        samples=samples,
        oracle=oracle,
        tolerance=tolerance,
        rule=rule,
        autocast=autocast,
        out=out,
        surface=surface,
    )


def _softplus(x: Array, beta: Number, threshold: Number) -> Array:
    scaled = x * x.dtype.type(beta)
    return choose(scaled > threshold, x, np.log1p(np.exp(scaled)) / x.dtype.type(beta))


_erf = special("erf")


def _gelu(x: Array, approximate: str) -> Array:
    t = x.dtype.type
    if approximate == "tanh":
        inner = t(sqrt(2 / pi)) * (x + t(0.044715) * x * x * x)
        return t(0.5) * x * (t(1) + np.tanh(inner))
    return (x * t(0.5) * (t(1) + _erf(x * t(sqrt(0.5))))).astype(x.dtype)


def _approximated(approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")


def _gelu_slope(x: Array, approximate: str) -> Array:
    t = x.dtype.type
    if approximate == "tanh":
        root = t(sqrt(2 / pi))
        tanh = np.tanh(root * (x + t(0.044715) * x * x * x))
        slope = root * (t(1) + t(3 * 0.044715) * x * x)
        return t(0.5) * (t(1) + tanh + x * (t(1) - tanh * tanh) * slope)
    share = t(0.5) * (t(1) + _erf(x * t(sqrt(0.5))))
    return (share + x * np.exp(x * x * t(-0.5)) * t(1 / sqrt(2 * pi))).astype(x.dtype)


def _tanh_parts(x: Tensor) -> tuple[Any, Any, Any]:
    """The hyperbolic tangent in gelu, the slope of what it is taken of, and of itself there."""
    square = x * x
    root = sqrt(2 / pi)
    tanh = aten.tanh(x * (square * 0.044715 + 1) * root)
    return tanh, (square * (3 * 0.044715) + 1) * root, 1 - tanh * tanh


def _gelu_backward(grad_output: Tensor, self: Tensor, approximate: str = "none") -> Tensor:
    if approximate == "none":
        share = (aten.erf(self * sqrt(0.5)) + 1) * 0.5
        bell = aten.exp(self * self * -0.5)
        return grad_output * (share + self * bell * (1 / sqrt(2 * pi)))
    tanh, slope, bent = _tanh_parts(self)
    return grad_output * ((tanh + 1) * 0.5 + bent * slope * (self * 0.5))


def _gelu_curved(grad: Tensor, grad_output: Tensor, self: Tensor, approximate: str) -> Tensor:
    self = wide(self)  # the second slope is a difference of like numbers
    square = self * self
    if approximate == "none":
        curve = aten.exp(square * -0.5) * (2 - square) * (1 / sqrt(2 * pi))
        return grad * grad_output * curve
    tanh, slope, bent = _tanh_parts(self)
    bow = square * (3 * 0.044715 * sqrt(2 / pi))
    return grad * grad_output * (bent * (slope - self * tanh * slope * slope + bow))


op(
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    infer=Slope("GeluBackwardKernelImpl", slope=_approximated),
    cpu=lambda grad, x, approximate: grad * _gelu_slope(x, approximate),
    aclnn=call("aclnnGeluBackwardV2", when=in_dtypes("self", *SHORT_FLOATS)),
    lower=_gelu_backward,
    grad={
        "grad_output": lambda grad, self, approximate: aten.gelu_backward(
            grad, self, approximate=approximate
        ),
        "self": _gelu_curved,
    },
    samples=slope_samples({}, {"approximate": "tanh"}),
    tolerance="composite",
    rule="activation_backward",
)  # fmt: skip


def _gelu_grad(grad: Tensor, self: Tensor, approximate: str) -> Tensor:
    return aten.gelu_backward(grad, self, approximate=approximate)


def _gelu_double(self: Tensor, approximate: str) -> Tensor:
    if approximate == "tanh":
        inner = (self * self * self * 0.044715 + self) * sqrt(2 / pi)
        return self * 0.5 * (aten.tanh(inner) + 1)
    return self * 0.5 * aten.erfc(self * -sqrt(0.5))


activation(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    _gelu,
    call(
        "aclnnGeluV2", "self", lambda a: int(a["approximate"] == "tanh"), "out", when=below_double()
    ),
    _gelu_grad,
    lower=_gelu_double,
    tolerance="composite",
    rule="activation",
    surface="nn",
    kernel="GeluKernelImpl",
    check=_approximated,
)


def _silu_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    share = aten.sigmoid(self)
    return grad_output * (share * (self * (1 - share) + 1))


def _silu_curved(grad: Tensor, grad_output: Tensor, self: Tensor) -> Tensor:
    self = wide(self)
    share = aten.sigmoid(self)
    rest = 1 - share
    return grad * grad_output * (share * rest * (self * (rest - share) + 2))


def _silu_slope(x: Array) -> Array:
    one = x.dtype.type(1)
    share = sigmoid(x)
    return share * (x * (one - share) + one)


slope_row("silu", _silu_slope, _silu_backward, _silu_curved, (*FLOATING, *COMPLEX))


def _silu_grad(grad: Tensor, self: Tensor) -> Tensor:
    if aten._recording():
        share = aten.sigmoid(self)
        bent = self * rest_of(share)
        watched = aten._watched()
        factor = aten._asked_recorded("add.Scalar", aten.add, (bent, 1.0)) if watched else bent + 1
        return grad * share * factor
    if self.dtype in COMPLEX:
        return _silu_backward(grad, self)
    return aten.silu_backward(grad, self)


activation(
    "silu(Tensor self) -> Tensor",
    lambda x: x * sigmoid(x),
    call("aclnnSilu", "self", "out", when=in_dtypes("self", *SHORT_FLOATS)),
    _silu_grad,
    lower=lambda self: self * aten.sigmoid(self),
    known=(*FLOATING, *COMPLEX),
    rule="activation",
)


def _mish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    tanh = aten.tanh(aten.softplus(self, 1, 20))
    bent = self * aten.sigmoid(self) * (1 - tanh * tanh)
    return grad_output * (tanh + bent)


def _mish_curved(grad: Tensor, grad_output: Tensor, self: Tensor) -> Tensor:
    self = wide(self)
    tanh, share = aten.tanh(aten.softplus(self, 1, 20)), aten.sigmoid(self)
    bent = 2 + self * (1 - share) - 2 * self * share * tanh
    return grad * grad_output * (share * (1 - tanh * tanh) * bent)


def _mish_slope(x: Array) -> Array:
    one = x.dtype.type(1)
    tanh = np.tanh(_softplus(x, 1, 20))
    return tanh + x * sigmoid(x) * (one - tanh * tanh)


slope_row("mish", _mish_slope, _mish_backward, _mish_curved)


def _mish_grad(grad: Tensor, self: Tensor) -> Tensor:
    if not aten._recording():
        return aten.mish_backward(grad, self)
    share, tanh = aten.sigmoid(self), aten.tanh(aten.log1p(aten.exp(self)))
    rest = rest_of(tanh * tanh)
    return grad * (tanh + self * share * rest)


activation(
    "mish(Tensor self) -> Tensor",
    lambda x: x * np.tanh(_softplus(x, 1, 20)),
    call("aclnnMish", "self", "out", when=below_double()),
    _mish_grad,
    rule="activation",
    lower=lambda self: self * aten.tanh(aten.softplus(self)),
)


def _times(grad: object, factor: Any) -> Any:
    return grad * factor


activation(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    lambda x, slope: choose(x > 0, x, x * x.dtype.type(slope)),
    call("aclnnLeakyRelu", "self", "negative_slope", "out", when=below_double()),
    slope(
        "leaky_relu",
        lambda grad, x, slope: choose(x > 0, grad, grad * x.dtype.type(slope)),
        lambda grad, self, negative_slope: aten.straight(
            aten.where(self > 0, grad, _times(grad, negative_slope)), self
        ),
        ("aclnnLeakyReluBackward", "grad_output", "self", "negative_slope", False, "out"),
        {"negative_slope": (0.01, 0.3)},
        lambda f: lambda grad, self, negative_slope: f(grad, self, negative_slope, False),
    ),
    settings=((0.3,),),
    lower=lambda self, slope: aten.where(self > 0, self, self * slope),
)


def _elu(x: Array, alpha: Number, scale: Number, input_scale: Number) -> Array:
    t = x.dtype.type
    return choose(x > 0, x * t(scale), np.expm1(x * t(input_scale)) * t(alpha * scale))


def _elu_slope(grad: Array, x: Array, alpha: Number, scale: Number, input_scale: Number) -> Array:
    t = x.dtype.type
    low = np.exp(x * t(input_scale)) * t(alpha * scale * input_scale)
    return choose(x > 0, grad * t(scale), grad * low)


def _elu_grad(
    grad: Tensor, self: Tensor, alpha: Number, scale: Number, input_scale: Number
) -> Tensor:
    low = aten.exp(self * input_scale) * (alpha * scale * input_scale)
    return aten.where(self > 0, _times(grad, scale), grad * low)


activation(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    _elu,
    call("aclnnElu", "self", "alpha", "scale", "input_scale", "out", when=below_double()),
    slope(
        "elu",
        _elu_slope,
        _elu_grad,
        ("aclnnEluBackward", "grad_output", "alpha", "scale", "input_scale", False, "self", "out"),
        {"alpha": (1, 1.5), "scale": (1, 1.1), "input_scale": (1, 0.5)},
        lambda f: lambda grad, self, *settings: f(grad, *settings, False, self),
    ),
    settings=((0.7,), (1.5, 1.1, 0.5)),
    oracle=lambda torch: torch.ops.aten.elu,
    rule="activation",
    lower=lambda self, alpha, scale, input_scale: aten.where(
        self > 0, self * scale, aten.expm1(self * input_scale) * (alpha * scale)
    ),
)


def _hardtanh(x: Array, low: float, high: float) -> Array:
    return np.clip(x, x.dtype.type(low), x.dtype.type(high))


def _no_limits_below_zero(
    args: tuple[Any, ...], outs: tuple[Any, ...]
) -> Callable[..., None] | None:
    """A check of the limits of unsigned numbers."""
    if args[0].dtype.np.kind != "u":
        return None

    def check(self: Tensor, low: float, high: float) -> None:
        if low < 0 or high < 0:
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")

    return check


activation(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    _hardtanh,
    call("aclnnHardtanh", "self", "min_val", "max_val", "out"),
    slope(
        "hardtanh",
        lambda grad, x, low, high: where(grad, (x > low) & (x < high)),
        lambda grad, self, min_val, max_val: aten.straight(
            aten.where(aten.logical_and(self > min_val, self < max_val), grad, 0), self
        ),
        ("aclnnHardtanhBackward", "grad_output", "self", "min_val", "max_val", "out"),
        {"min_val": (-1, 0.0), "max_val": (1, 2.0)},
    ),
    settings=((0.0, 2.0),),
    refuses=_no_limits_below_zero,
    known=tuple(d for d in dt.ALL if d.category in (dt.INTEGER, dt.FLOAT)),
    unsupported={"bool": Refusal("Bool inputs not supported for hardtanh")},
    rule="extremum",
)


def _hardswish(x: Array) -> Array:
    t = x.dtype.type
    return x * np.clip(x + t(3), t(0), t(6)) / t(6)


def _hardswish_slope(grad: Array, x: Array) -> Array:
    t = x.dtype.type
    return where(choose(x >= 3, grad, grad * (x / t(3) + t(0.5))), ~(x <= -3))


activation(
    "hardswish(Tensor self) -> Tensor",
    _hardswish,
    call("aclnnHardswish", "self", "out", when=below_double()),
    slope(
        "hardswish",
        _hardswish_slope,
        lambda grad, self: aten.where(
            self <= -3,
            0,
            aten.where(self >= 3, grad, grad * (self / 3 + 0.5)),
        ),
        ("aclnnHardswishBackward", "grad_output", "self", "out"),
    ),
    rule="activation",
    lower=lambda self: aten.clamp(self + 3, 0, 6) / 6 * self,
)
activation(
    "hardsigmoid(Tensor self) -> Tensor",
    lambda x: np.clip(x + x.dtype.type(3), x.dtype.type(0), x.dtype.type(6)) / x.dtype.type(6),
    call("aclnnHardsigmoid", "self", "out", when=below_double()),
    lambda grad, self: aten.where(aten.abs(self) < 3, grad * (1 / 6), 0),
    # torch's own has no second derivative; this says the same with one.
    oracle=lambda torch: lambda x: (x + 3).clamp(0, 6) / 6,
    rule="activation",
    lower=lambda self: aten.clamp(self + 3, 0, 6) / 6,
)
activation(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    _softplus,
    call("aclnnSoftplus", "self", "beta", "threshold", "out", when=below_double()),
    slope(
        "softplus",
        lambda grad, x, beta, threshold: choose(
            x * x.dtype.type(beta) > threshold, grad, grad * sigmoid(x * x.dtype.type(beta))
        ),
        lambda grad, self, beta, threshold: aten.where(
            self * beta > threshold, grad, grad * aten.sigmoid(self * beta)
        ),
        ("aclnnSoftplusBackward", "grad_output", "self", "beta", "threshold", "out"),
        {"beta": (1, 2), "threshold": (20, 1)},
    ),
    settings=((2, 1),),
    autocast="float32 on npu",
    surface="nn",
    rule="activation",
    lower=lambda self, beta, threshold: aten.where(
        self * beta > threshold,
        self,
        aten.log1p(aten.exp(aten.clamp(self * beta, None, threshold))) / beta,
    ),
)
activation(
    "log_sigmoid(Tensor self) -> Tensor",
    lambda x: np.minimum(x, x.dtype.type(0)) - np.log1p(np.exp(-np.abs(x))),
    call("aclnnLogSigmoid", "self", "out", when=below_double()),
    lambda grad, self: grad * aten.sigmoid(-self),
    rule="activation",
    lower=lambda self: aten.clamp(self, None, 0) - aten.log1p(aten.exp(aten.neg(aten.abs(self)))),
)
activation(
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    lambda x, lambd: np.where(
        np.abs(x) > lambd, x - np.copysign(x.dtype.type(lambd), x), x * x.dtype.type(0)
    ),
    call("aclnnSoftshrink", "self", "lambd", "out", when=below_double()),
    slope(
        "softshrink",
        lambda grad, x, lambd: where(grad, np.abs(x) > lambd),
        lambda grad, self, lambd: aten.straight(aten.where(aten.abs(self) > lambd, grad, 0), self),
        ("aclnnSoftshrinkBackward", "grad_output", "self", "lambd", "out"),
        {"lambd": (0.5, 1.0)},
    ),
    kernel="softshrink_check",
    lower=lambda self, lambd: aten.where(
        aten.abs(self) > lambd, self - aten.sign(self) * lambd, self * 0
    ),
)
activation(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    lambda x, lambd: choose(np.abs(x) <= lambd, x.dtype.type(0), x),
    call("aclnnHardshrink", "self", "lambd", "out", when=below_double()),
    slope(
        "hardshrink",
        lambda grad, x, lambd: where(grad, np.abs(x) > lambd),
        lambda grad, self, lambd: aten.straight(aten.where(aten.abs(self) > lambd, grad, 0), self),
        ("aclnnHardshrinkBackward", "grad_output", "self", "lambd", "out"),
        {"lambd": (0.5, 1.0)},
    ),
    out="found",
    surface="both nn",
    lower=lambda self, lambd: aten.where(aten.abs(self) <= lambd, 0, self),
)


def _threshold(x: Array, threshold: float, value: float) -> Array:
    if x.dtype.kind in "iu":
        # Negative numbers wrap around in unsigned types (c10::Scalar::to).
        least, most = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
        if not (-most if x.dtype.kind == "u" else least) <= value <= most:
            kind = "int" if x.dtype == np.int32 else f"{x.dtype.name}_t"
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        value = int(value) % (most + 1) if x.dtype.kind == "u" else int(value)
    return choose(x <= threshold, x.dtype.type(value), x)


op(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    infer=pointwise(only=("threshold_cpu", (*dt.INTEGERS, *FLOATING))),
    cpu=_threshold,
    aclnn=call("aclnnThreshold", when=below_double()),
    lower=lambda self, threshold, value: aten.where(self <= threshold, value, self),
    grad={
        "self": lambda grad, self, threshold: aten.straight(
            aten.where(self > threshold, grad, 0), self
        )
    },
    samples=lambda: [Sample((Arg((3, 4), d), 0.5, -7.0)) for d in FLOATS],
    oracle=lambda torch: torch.ops.aten.threshold,
    tolerance="exact",
    surface="function",
)


op(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    infer=pointwise(),
    cpu=lambda x, weight: choose(x > 0, x, x * weight),
    lower=lambda self, weight: aten.where(self > 0, self, self * weight),
    grad={
        "self": lambda grad, self, weight: aten.straight(
            aten.where(self > 0, grad, grad * weight), self
        ),
        "weight": lambda grad, self: aten.where(self > 0, 0, grad * self),
    },
    unsupported={"bool whole complex": "prelu_cpu"},
    samples=lambda: [
        *(Sample((Arg((3, 4), d), Arg((1, 4), d))) for d in FLOATS),
        Sample((Arg((2, 3, 4)), Arg((1, 3, 1)))),
    ],
    tolerance="composite",  # a 0-d weight of another dtype is rounded first
)
