"""Arithmetic of single elements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import const, spec, t, take
from ._defaults import ACCUMULATED, COMPOSITE, EXACT, EXACT_FINITE, FLOATS, FLOATS_64, TORCH_ROW
from ._ignored import follows


@spec("aclnnAddN aclnnSum", "out:tensors", samples=[
    take(tensors=[t(3, 65), t(3, 65), t(3, 65)]), take(tensors=[t(130)]),
    take(tensors=[t(7) for _ in range(9)])], **ACCUMULATED, rule={"accumulator": "output", "reason":
    "one addition after another, each rounded to the output's dtype"})  # fmt: skip
def add_n(tensors: list[Array]) -> Array:
    return sum(tensors, np.zeros(()))


@spec("aclnnAddV3", "out:other", samples=[take(self=2.5, other=t(3, 65), alpha=a)
                                          for a in (1.0, -0.5)],
      **{**TORCH_ROW, "tolerance": "composite"}, dtypes=FLOATS_64)  # fmt: skip
def add_v3(self: float, other: Array, alpha: float) -> Array:
    return self + alpha * other


@spec("aclnnRsub", "out:self", **TORCH_ROW, tolerance="composite", dtypes=FLOATS_64,
      samples=[take(self=t(3, 65), other=t(3, 65, high=3), alpha=a)
               for a in (1.0, -0.5)])  # fmt: skip
def rsub(self: Array, other: Array, alpha: float) -> Array:
    return other - alpha * self


spec("aclnnRsubs", "out:self", **TORCH_ROW, tolerance="composite", dtypes=FLOATS_64,
     samples=[take(self=t(3, 65), other=1.5, alpha=a) for a in (1.0, -0.5)])(rsub)  # fmt: skip


@spec("aclnnLogAddExp2", "out:self", **TORCH_ROW, tolerance="composite",
      samples=[take(self=t(3, 65, low=-9, high=9), other=t(3, 65, low=-9, high=9)),
               take(self=t(3, 1), other=t(5))])  # fmt: skip
def logaddexp2(self: Array, other: Array) -> Array:
    return np.logaddexp2(self, other)


@spec("aclnnGcd", "out:self", **EXACT, samples=[
    take(self=t(3, 65, dtype="int32", low=-90, high=90),
         other=t(3, 65, dtype="int32", low=-90, high=90)),
    take(self=const([0, 12, -18], "int32"), other=const([0, 18, 12], "int32"))])  # fmt: skip
def gcd(self: Array, other: Array) -> Array:
    return np.gcd(self, other)


@spec("aclnnSquare", "out:self", **TORCH_ROW, tolerance="rounded", fixed_shape=False,
      samples=[take(self=t(3, 65)), take(self=t(1025))])  # fmt: skip
def square(self: Array) -> Array:
    return self * self


@spec("aclnnClampTensor", "out:self", **TORCH_ROW, tolerance="exact", specials=False, samples=[
    take(self=t(3, 65), clipValueMin=t(3, 65, low=-1, high=-0.1),
         clipValueMax=t(3, 65, low=0.1, high=1)),
    take(self=t(3, 65), clipValueMin=t(65, low=-1, high=0), clipValueMax=t(3, 1, low=0, high=1)),
    ])  # fmt: skip
def clamp_tensor(self: Array, clipValueMin: Array, clipValueMax: Array) -> Array:
    return np.minimum(np.maximum(self, clipValueMin), clipValueMax)


@spec("aclnnXLogYScalarOther", "out:self", **TORCH_ROW, tolerance="composite", dtypes=FLOATS_64,
      samples=[take(self=const([0.0, 1.0, -2.5], "float32"), other=3.0),
               take(self=t(3, 65), other=0.5)])  # fmt: skip
def xlogy_scalar_other(self: Array, other: float) -> Array:
    return np.where(self == 0, 0.0, self * np.log(other))


@spec("aclnnXLogYScalarSelf", "out:other", **TORCH_ROW, tolerance="composite", dtypes=FLOATS_64,
      samples=[take(self=2.5, other=t(3, 65, low=0.1, high=9)),
               take(self=0.0, other=t(3, low=0.1, high=9))], sparse=True)  # fmt: skip
def xlogy_scalar_self(self: float, other: Array) -> Array:
    return 0 * other if self == 0 else self * np.log(other)


spec(
    "aclnnInplaceXLogYTensor",
    "selfRef:selfRef",
    **TORCH_ROW,
    tolerance="composite",
    dtypes=FLOATS_64,
    samples=[take(selfRef=t(3, 65), other=t(3, 65, low=0.1, high=9))],
)(lambda selfRef, other: np.where(selfRef == 0, 0.0, selfRef * np.log(other)))


@spec(
    "aclnnRemainderScalarTensor",
    "out:other",
    **TORCH_ROW,
    tolerance="composite",
    dtypes=FLOATS_64,
    samples=[take(self=7.0, other=t(3, 65, low=0.5, high=3))],
)
def remainder_scalar(self: float, other: Array) -> Array:
    return self - other * np.floor(self / other)


_RAMP: Final = const(np.arange(15.0).reshape(3, 5), "float32")


@spec("aclnnEqual", "out:bool", **EXACT, samples=[
    take(self=t(3, 65), other=t(3, 65)),
    take(self=const([1.0, 2.0], "float32"), other=const([1.0, 2.0], "float32")),
    *(take(self=replace(_RAMP, layout=one), other=replace(_RAMP, layout=two))
      for one, two in (("sliced", "contiguous"), ("contiguous", "transposed"))),
    *(take(self=const([0] * 4100 + [a], d), other=const([0] * 4100 + [b], d))
      for a, b, d in ((3, 3, "float32"), (3, 4, "float32"), (2**53, 2**53 + 1, "int64"))),
])  # fmt: skip
def equal(self: Array, other: Array) -> Array:
    return np.asarray([self.shape == other.shape and bool((self == other).all())])


@spec("aclnnComplex", "out:complex64", **EXACT,
      samples=[take(real=t(3, 65), imag=t(3, 65))], dtypes=("float32",))  # fmt: skip
def complex_of(real: Array, imag: Array) -> Array:
    result = np.empty(real.shape, np.complex128)
    result.real, result.imag = real, imag
    return result


@spec("aclnnPolar", "out:complex64", **TORCH_ROW, tolerance="composite", dtypes=("float32",),
      samples=[take(input=t(3, 65, low=0), angle=t(3, 65, low=-9, high=9))])  # fmt: skip
def polar(input: Array, angle: Array) -> Array:
    return input * np.cos(angle) + 1j * input * np.sin(angle)


@spec("aclnnReal", "out:float32", samples=[take(self=t(3, 65, dtype="complex64"))], **EXACT,
      dtypes=("complex64",))  # fmt: skip
def real(self: Array) -> Array:
    return self.real


@spec("aclnnMaskedScale", "out:self", tolerance="composite", sparse=True,
    source="torch_npu 2.x, npu_masked_scale: self mask scale", samples=[
        take(self=t(3, 64), mask=t(3, 64, dtype="uint8", low=0, high=1), scale=2.5)])  # fmt: skip
def masked_scale(self: Array, mask: Array, scale: float) -> Array:
    return self * mask * scale


# NaN and infinities in each of three tensors.
_NAN, _INF = float("nan"), float("inf")
_APART: Final = ([_NAN, 1.0, 2.0, -_INF, 0.5], [3.0, _NAN, 1.0, _INF, 7.0],
                 [1.0, 2.0, _NAN, 4.0, -_INF])  # fmt: skip
for _name, _pick in (("Max", np.maximum), ("Min", np.minimum)):
    spec(f"aclnn{_name}N", "out:tensors", **EXACT_FINITE,
         samples=[take(tensors=[t(3, 65), t(3, 65), t(3, 65)]), take(tensors=[t(7), t(7)]),
                  take(tensors=[const(v, "float32") for v in _APART])])(
        lambda tensors, _pick=_pick: _pick.reduce(tensors))  # fmt: skip
spec("aclnnXlog1py", "z:x", **COMPOSITE, samples=[
    take(x=t(3, 65), y=t(3, 65, low=-0.9, high=9)),
    take(x=const([0.0, 1.0], "float32"), y=const([-0.5, 2.0], "float32"))])(
    lambda x, y: np.where(x == 0, 0.0, x * np.log1p(y)))  # fmt: skip
spec("aclnnAngleV2", "out:float32", **{**COMPOSITE, "dtypes": ("float32",)}, samples=[
    take(x=t(3, 65)), take(x=t(3, 5, dtype="complex64"))], sparse=True)(
    lambda x: np.angle(x) if x.dtype.kind == "c"
    else np.where(x < 0, np.pi, np.where(np.isnan(x), x, 0.0)))  # fmt: skip
spec("aclnnBitwiseAndTensorOut", "out:self", **EXACT_FINITE, samples=[
    take(self=t(3, 65, dtype="int32", low=-90, high=90),
         other=t(3, 65, dtype="int32", low=-90, high=90))])(
    lambda self, other: self & other)  # fmt: skip


@spec("aclnnHeaviside", "out:input", tolerance="exact",
      source="torch 2.13, document of torch.heaviside", samples=[
          take(input=const([-1.0, 0.0, 2.0, 0.0], "float32"), values=t(4)),
          take(input=const([[-1.5, 0.0, 2.0]], "float32"), values=t(2, 1))])  # fmt: skip
def heaviside(input: Array, values: Array) -> Array:
    return np.heaviside(input, values)


@spec("aclnnAddRelu", "out:self", tolerance="composite",
      source="torch 2.13, torch._C._VariableFunctions._add_relu: relu(self + alpha other)",
      samples=[take(self=t(3, 65), other=t(3, 65), alpha=a) for a in (1.0, -2.0)])  # fmt: skip
def add_relu(self: Array, other: Array, alpha: float) -> Array:
    return np.maximum(self + alpha * other, 0)


_ROUND: Final[dict[str, Any]] = {**EXACT, "tolerance": "composite", "dtypes": ("float32",)}
spec("aclnnRoundDecimals", "out:self", **_ROUND,
     samples=[take(self=t(3, 65, low=-50, high=50), decimals=d) for d in (0, 1, -1)])(
    lambda self, decimals: np.round(self, decimals))  # fmt: skip


@spec("aclnnCast", "out:int32",
      constant="dtype",
      **EXACT, specials=False,
      dtypes=("float32", "float16", "int64", "uint8"),
    samples=[take(self=t(3, 65, low=0, high=90), dtype=3)])  # fmt: skip
def cast(self: Array, dtype: int) -> Array:
    """To int32 towards zero (C, 6.3.1.4)."""
    return np.trunc(self)


@spec("aclnnScale", "y:x",
      ignored=follows("scaleFromBlob"),
      constant="axis",
      tolerance="composite", dtypes=FLOATS,
      source="Caffe, Scale layer", samples=[
          take(x=t(2, 3, 5, 7), scale=t(*s), bias=b, axis=1, numAxes=n, scaleFromBlob=True)
          for s, b, n in (((3,), t(3), 1), ((3, 5), None, 2))])  # fmt: skip
def scale_layer(x: Array, scale: Array, bias: Array | None, axis: int, numAxes: int) -> Array:
    """The factors stand at the dimensions from `axis` on and repeat over the others."""
    tail = (1,) * (x.ndim - axis - numAxes)
    y = x * scale.reshape(scale.shape + tail)
    return y if bias is None else y + bias.reshape(bias.shape + tail)


@spec("aclnnInplaceAddV3", "other:other", tolerance="elementary",
      dtypes=("float32", "float16", "bfloat16"), renamed={"selfRef": "self", "other": "other"},
      source="torch 2.13, document of torch.add: a number plus alpha times a tensor", samples=[
          take(self=s, other=t(3, 5), alpha=a) for s, a in ((3.0, 2.0), (-1.5, 1.0))])  # fmt: skip
def number_added(self: float, other: Array, alpha: float) -> Array:
    return self + alpha * other
