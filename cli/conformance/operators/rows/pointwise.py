"""Arithmetic of single elements."""

from __future__ import annotations

from functools import reduce
from math import prod

from ....spec import *
from ._defaults import TORCH
from ._words import *

_EVERY: Final = "normal special integer graded halfway opposed"
_ROW: Final = Rule("composite", TORCH, values=_EVERY)
_MOVE: Final = Rule("exact", TORCH)
# Of two zeros, which is the larger is not stated.
_EXTREME: Final = Rule("exact", TORCH, numbers="extremum",
                       values="normal special integer ties opposed nan infinite")  # fmt: skip
_FLOATS: Final = "f32 f16 bf16 f64"
_SELF: Final = out("self")
_PAIRS: Final = pin("*S=33x65 values=special", "each special value beside each")
_WHOLE_ALPHA: Final = require("alpha % 1 == 0 or floating(other)", refuses=None)


def _alpha(of: str) -> Domain:
    return scalar(of, 1, -0.5, 2, 0)


def _apart(dtype: str = "") -> Domain:
    """Of a shape that broadcasts to what the others have."""
    return tensor("*#S", dtype, ones="first last middle lower scalar")


@spec("aclnnAddN aclnnSum", Rule("accumulated", TORCH, {
    "accumulator": "output", "reason": "one addition after another, each rounded to the output's "
    "dtype"}, values=_EVERY), sizes(L=members(3, 1, 2, 9)), tensors=tensors("L", "*S"),
    out=out("tensors"))  # fmt: skip
def add_n(tensors: Sequence[Array]) -> Array:
    return reduce(np.add, tensors)


@spec("aclnnAddV3", _ROW, _WHOLE_ALPHA, self=scalar("other", 2.5, -3, 0, 1), other=tensor("*S"),
      alpha=_alpha("other"), out=out("other"))  # fmt: skip
def add_v3(self: float, other: Array, alpha: float) -> Array:
    return self + alpha * other


@spec("aclnnInplaceAddV3", Rule("elementary", "torch 2.13, document of torch.add: a number plus "
      "alpha times a tensor", values="normal integer graded"),
      selfRef=scalar("other", 2.5, -3, 0, 1), other=inout(tensor("*S", "f32 f16 bf16")),
      alpha=scalar("other", 1, 2, 4, 0))  # fmt: skip
def number_added(selfRef: float, other: Array, alpha: float) -> Array:
    return selfRef + alpha * other


# Beside operands of one dtype those of two, of which the wider holds the result.
_PROMOTED: Final = dtypes("""
self other out
f32  f32|f16|bf16 f32
f16  f16   f16
f16  f32   f32
bf16 bf16  bf16
f64  f64   f64
i32  i32   i32
i64  i64|i32 i64
""")


@spec("aclnnRsub", _ROW, _PROMOTED, _WHOLE_ALPHA, _PAIRS, self=_apart(), other=_apart("self"),
      alpha=_alpha("self"), out=_SELF)  # fmt: skip
def rsub(self: Array, other: Any, alpha: float) -> Array:
    return other - alpha * self


spec("aclnnRsubs", _ROW, self=tensor("*S", _FLOATS), other=scalar("self", 1.5, 0, -3),
     alpha=_alpha("self"), out=_SELF)(rsub)  # fmt: skip


@spec("aclnnLogAddExp2", replace(_ROW, values=f"{_EVERY} infinite"), _PAIRS,
      self=_apart("f32 f16 bf16"), other=_apart("self"), out=_SELF)  # fmt: skip
def logaddexp2(self: Array, other: Array) -> Array:
    return np.logaddexp2(self, other)


def _whole(dtype: str = "") -> Domain:
    return forms(small=tensor("*#S", dtype, -90, 90), all=_apart(dtype))


@spec("aclnnGcd", replace(_MOVE, values="normal halfway ties"), self=_whole("i32 i64 i16 i8 u8"),
      other=_whole("self"), out=_SELF)  # fmt: skip
def gcd(self: Array, other: Array) -> Array:
    return np.gcd(self, other)


@spec("aclnnSquare", Rule("rounded", TORCH), self=tensor("*S"), out=_SELF)
def square(self: Array) -> Array:
    return self * self


@spec("aclnnClampTensor", _EXTREME, require("given(clipValueMin) or given(clipValueMax)"),
      _PAIRS, self=_apart(), clipValueMin=forms(all=_apart("self"), none=None),
      clipValueMax=forms(all=_apart("self"), none=None), out=_SELF)  # fmt: skip
def clamp_tensor(self: Array, clipValueMin: Array | None, clipValueMax: Array | None) -> Array:
    """The upper bound counts where bounds cross."""
    raised = self if clipValueMin is None else np.maximum(self, clipValueMin)
    return raised if clipValueMax is None else np.minimum(raised, clipValueMax)


def _times_log(self: Any, other: Any) -> Any:
    """0 where the factor is 0, whatever the logarithm is, but for NaN."""
    return np.where((self == 0) & ~np.isnan(other), 0.0, self * np.log(other))


_SPARSE: Final = replace(_ROW, sparse=True)
spec("aclnnXLogYScalarOther", _SPARSE,
     pin("other=nan values=special", "zeros whose logarithm is NaN"),
      self=tensor("*S", _FLOATS),
     other=scalar("self", 3.0, 0.5, 1.0, 0.0, float("inf"), float("nan"), -1.0), out=_SELF)(
    _times_log)  # fmt: skip
spec("aclnnXLogYScalarSelf", _SPARSE,
     pin("self=0.0 values=special", "zeros whose logarithm is NaN"),
     self=scalar("other", 2.5, 0.0, -1.0, float("inf")),
     other=tensor("*S", "f32 f16 bf16"), out=out("other"))(_times_log)  # fmt: skip


@spec("aclnnInplaceXLogYTensor", _SPARSE, _PAIRS, selfRef=inout(tensor("*S", _FLOATS)),
      other=_apart("selfRef"))  # fmt: skip
def inplace_xlogy(selfRef: Array, other: Array) -> Array:
    return np.asarray(_times_log(selfRef, other))


@spec("aclnnXlog1py", _SPARSE, _PAIRS, x=_apart("f32 f16 bf16"),
      y=forms(all=_apart("x"), usual=tensor("*#S", "x", -0.9, 9)), z=out("x"))  # fmt: skip
def xlog1py(x: Array, y: Array) -> Array:
    return np.where((x == 0) & ~np.isnan(y), 0.0, x * np.log1p(y))


@spec("aclnnRemainderScalarTensor", _ROW, self=scalar("other", 7.0, -7.0, 0.0, 0.25),
      other=tensor("*S", _FLOATS), out=out("other"))  # fmt: skip
def remainder_scalar(self: float, other: Array) -> Array:
    """Of the divisor's sign."""
    return np.mod(self, other)


def ramp(_rng: Generator, pattern: str, draw: Draw) -> Array:
    """Whole numbers, zeros, or integers that floats do not tell from their neighbours."""
    shape = resolve("*S", draw)
    whole = np.asarray(np.arange(prod(shape)).reshape(shape) % 100)
    if pattern == "large" and draw.dtype("self", "") == "int64":
        return whole + 2**53
    return np.asarray(whole * (0.0 if pattern == "zero" else 1.0))


def compared(with_: str) -> Content:
    """The same elements, or one that differs, or zeros of the other sign."""

    def make(_rng: Generator, pattern: str, draw: Draw) -> Array:
        same = np.array(draw[with_].values())
        if pattern == "negative_zero":
            return np.where(same == 0, -0.0, same) if same.dtype.kind == "f" else same
        places = {"first": 0, "last": -1, "middle": same.size // 2}
        if pattern in places:
            same.reshape(-1)[places[pattern]] += 1
        return same

    return content(make, "same first last middle negative_zero", with_, shape="*S")


COMPARED: Final = sizes({"*S": row("3x5", "-", 1, 7, "2x3x4", 4101, "33x65")})


@spec("aclnnEqual", _MOVE, COMPARED, self=content(ramp, "ramp large zero", "", shape="*S"),
      other=forms(near=compared("self"), longer=tensor("2 *S", "self")),
      out=out("bool"))  # fmt: skip
def equal(self: Array, other: Array) -> Array:
    return np.asarray([self.shape == other.shape and bool((self == other).all())])


@spec("aclnnComplex", _MOVE, real=_apart("f32"),
      imag=_apart("real"), out=out("c64"))  # fmt: skip
def complex_of(real: Array, imag: Array) -> Array:
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.complex128)
    result.real, result.imag = real, imag
    return result


@spec("aclnnPolar", replace(_ROW, values="normal integer graded"),
      dtypes("input angle out\nf32 f32 c64\nf64 f64 c128"), input=_apart(),
      angle=forms(all=_apart("input"), turns=tensor("*#S", "input", -9, 9)),
      out=out("c64"))  # fmt: skip
def polar(input: Array, angle: Array) -> Array:
    return input * np.cos(angle) + 1j * input * np.sin(angle)


@spec("aclnnReal", _MOVE, dtypes("self out\nc64 f32\nc128 f64\nf32 f32"), self=tensor("*S"),
      out=out("f32"))  # fmt: skip
def real(self: Array) -> Array:
    return self.real


@spec("aclnnMaskedScale", Rule("composite", "torch_npu 2.x, npu_masked_scale: self mask scale",
                               sparse=True),
      dtypes("self mask\nf32|f16|bf16 u8|i8|f32"), self=tensor("*S"), mask=mask("*S", "u8"),
      scale=number(2.5, 1.0, -0.5, 0.0), out=_SELF)  # fmt: skip
def masked_scale(self: Array, mask: Array, scale: float) -> Array:
    return self * mask * scale


for _name, _pick in (("Max", np.maximum), ("Min", np.minimum)):
    spec(f"aclnn{_name}N", _EXTREME, sizes(L=members(3, 1, 2, 8)), _PAIRS,
         tensors=tensors("L", "*#S"), out=out("tensors"))(
        lambda tensors, _pick=_pick: reduce(_pick, tensors))  # fmt: skip


@spec("aclnnAngleV2", _SPARSE, dtypes("x out\nf32|c64 f32"), x=tensor("*S"), out=out("f32"))
def angle(x: Array) -> Array:
    """Of real numbers 0 or pi."""
    if x.dtype.kind == "c":
        return np.angle(x)
    return np.where(x < 0, np.pi, np.where(np.isnan(x), x, 0.0))


spec("aclnnBitwiseAndTensorOut", replace(_MOVE, values="normal special wide"),
     self=_apart("i32 i64 i16 i8 u8 bool"), other=_apart("self"), out=_SELF)(
    lambda self, other: self & other)  # fmt: skip


@spec("aclnnHeaviside", Rule("exact", "torch 2.13, document of torch.heaviside",
                             values="normal special ties"),
      _PAIRS, input=_apart(), values=_apart("input"), out=out("input"))  # fmt: skip
def heaviside(input: Array, values: Array) -> Array:
    """NaN is not above 0."""
    return np.where(input == 0, values, (input > 0).astype(input.dtype))


# Whether a sum that overflows an integer is cut before or after is not stated.
@spec("aclnnAddRelu", replace(_ROW, source="torch 2.13, torch._C._VariableFunctions._add_relu: "
      "relu(self + alpha other)", values=_EVERY.replace("halfway ", "")), _WHOLE_ALPHA, _PAIRS,
      self=_apart(), other=_apart("self"),
      alpha=_alpha("self"), out=_SELF)  # fmt: skip
def add_relu(self: Array, other: Array, alpha: float) -> Array:
    return np.maximum(self + alpha * other, 0)


@spec("aclnnRoundDecimals", replace(_ROW, values="normal mixed integer graded halves"),
      self=tensor("*S", "f32"), decimals=number(0, 1, -1, 2, 3), out=_SELF)  # fmt: skip
def round_decimals(self: Array, decimals: int) -> Array:
    """Halves go to the even digit."""
    return np.round(self, decimals)


# ACL's numbers of dtypes.
_CAST: Final = {0: "f32", 1: "f16", 27: "bf16", 11: "f64", 12: "bool", 3: "i32", 9: "i64",
                6: "i16", 2: "i8", 4: "u8"}  # fmt: skip


def _castable(code: int) -> Domain:
    """What fits: what a number beyond a type's range becomes is not stated."""
    if code in (0, 1, 27, 11, 12):
        return tensor("*S")
    return tensor("*S", "", 0 if code == 4 else -100, 100)


@spec("aclnnCast", replace(_MOVE, numbers="conversion"),
      self=by("dtype", {code: _castable(code) for code in _CAST}), dtype=choice(*_CAST),
      out=by("dtype", {code: out(name) for code, name in _CAST.items()}))  # fmt: skip
def cast(self: Array, dtype: int) -> Array:
    """To integers towards zero (C, 6.3.1.4)."""
    if dtype == 12:
        return self != 0
    return np.trunc(self) if self.dtype.kind == "f" and dtype in (2, 3, 4, 6, 9) else self


@spec("aclnnScale", Rule("composite", "Caffe, Scale layer"),
      sizes({"*B": row(2, "-", "2x3", 5), "*K": row("3x5", 4, 1, 65),
             "*N": row(7, "-", "4x3", 1, 130)}),
      x=tensor("*B *K *N", "f32 f16 bf16"), scale=tensor("*K", "x"),
      bias=optional(tensor("*K", "x")), axis=axis("K", "*B *K *N"),
      numAxes=equals("rank(scale)"), scaleFromBlob=ignored(
          "follows from the other arguments and from sizes", flag(True)),
      y=out("x"))  # fmt: skip
def scale_layer(x: Array, scale: Array, bias: Array | None, axis: int) -> Array:
    """The factors stand at the dimensions from `axis` on and repeat over the others."""
    tail = (1,) * (x.ndim - axis % x.ndim - scale.ndim)
    y = x * scale.reshape(scale.shape + tail)
    return y if bias is None else y + bias.reshape(bias.shape + tail)


# Of a float that an integer takes the whole part, of a bool whether it is zero; out of an integer's
# range no document says what comes.
@spec("aclnnInplaceCopy",
      Rule("exact", TORCH, sparse=True, values="normal integer opposed", specials=False),
      selfRef=inout(tensor("*S", "f32 f16 bf16 f64 i8 i16 i32 i64 bool")),
      src=forms(same=tensor("*#S", "f32 f16 bf16 i32 i64 bool"), alike=tensor("*S", "selfRef"),
                scalar=tensor("", "selfRef")))  # fmt: skip
def copy(selfRef: Array, src: Array) -> Array:
    return np.broadcast_to(src, selfRef.shape).astype(selfRef.dtype)
