"""Quantisation by exponents that 32 elements share (MX): alone, after norms and gates, and back."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ....judge.precision import Array, numpy_dtype
from ..spec import given, spec, t, take
from .gates import swiglu

_OCP: Final = ("OCP Microscaling Formats (MX) Specification 1.0, section 6.3; op-plugin document "
               "npu_dynamic_dual_level_mx_quant for the order of scales")  # fmt: skip
_MX: Final[dict[str, Any]] = {"family": "quantisation", "source": _OCP, "tolerance": "composite",
                              "steps": True, "specials": False, "fixed_shape": True}  # fmt: skip
_BLOCK: Final = 32
# aclDataType, and the exponent and value of the largest number.
_E5M2, _E4M3, _BF16, _FLOAT = 35, 36, 27, 0
_LARGEST: Final = {_E5M2: (15, 57344.0), _E4M3: (8, 448.0)}
_SMALL: Final = {_E5M2: "float8_e5m2", _E4M3: "float8_e4m3fn"}


def _padded(x: Array, axis: int, multiple: int) -> Array:
    pads = [(0, 0)] * x.ndim
    pads[axis] = (0, -x.shape[axis] % multiple)
    return np.pad(x, pads)


def shared_exponent(peak: Array, to: int, algorithm: int) -> Array:
    """Exponents of the powers of two for blocks of these peaks.

    Algorithm 0 takes the peak's own exponent less the type's largest; 1 takes the least that
    brings the peak within the type's values.
    """
    top, largest = _LARGEST[to]
    if algorithm == 1:
        mantissa, exponent = np.frexp(peak / largest)
        exponent = np.where(mantissa == 0.5, exponent - 1, exponent)
    else:
        exponent = np.frexp(peak)[1] - 1 - top
    return np.where(peak == 0, -127, np.clip(exponent, -127, 127))


def microscaled(x: Array, axis: int, to: int, algorithm: int = 0) -> tuple[Array, Array]:
    """(elements of the small type before rounding, scales [..., pairs of blocks, ..., 2])."""
    axis %= x.ndim
    wide = _padded(x, axis, 2 * _BLOCK)
    cut = (*wide.shape[:axis], wide.shape[axis] // _BLOCK, _BLOCK, *wide.shape[axis + 1 :])
    exponent = shared_exponent(np.abs(wide.reshape(cut)).max(axis + 1), to, algorithm)
    each = np.repeat(exponent, _BLOCK, axis).take(np.arange(x.shape[axis]), axis)
    limit = _LARGEST[to][1]
    pairs = exponent.reshape(*exponent.shape[:axis], -1, 2, *exponent.shape[axis + 1 :])
    scales = np.ldexp(1.0, np.moveaxis(pairs, axis + 1, -1))
    return np.clip(np.ldexp(x, -each), -limit, limit), scales


_WIDE: Final[dict[str, Any]] = {"low": -70, "high": 70}
_PLAIN: Final[dict[str, Any]] = {"roundModeOptional": "rint", "blocksize": _BLOCK,
                                 "dstTypeMax": 0.0, "maxLowBound": 0.0}  # fmt: skip


@spec("aclnnDynamicMxQuant aclnnDynamicMxQuantV2 aclnnDynamicMxQuantV3",
      "yOut:dstType mxscaleOut:float8_e8m0fnu", **_MX, samples=[
          take(x=t(*shape, **_WIDE), axis=axis, dstType=to, scaleAlg=how, **_PLAIN)
          for shape, axis in (((3, 80), -1), ((80, 3), 0), ((2, 33, 4), 1), ((5, 64), 1))
          for to in _SMALL for how in (0, 1)])  # fmt: skip
def dynamic(x: Array, axis: int, dstType: int, scaleAlg: int) -> tuple[Array, Array]:
    return microscaled(x, axis, dstType, scaleAlg)


@spec("aclnnDynamicMxQuantWithDualAxis aclnnDynamicMxQuantWithDualAxisV2",
      "y1Out:dstType mxscale1Out:float8_e8m0fnu y2Out:dstType mxscale2Out:float8_e8m0fnu", **_MX,
      samples=[take(x=t(*shape, dtype="float16", **_WIDE), dstType=to, scaleAlg=0, **_PLAIN)
               for shape in ((4, 64), (2, 70, 36)) for to in _SMALL])  # fmt: skip
def both_axes(x: Array, dstType: int, scaleAlg: int) -> tuple[Array, Array, Array, Array]:
    return *microscaled(x, -1, dstType, scaleAlg), *microscaled(x, -2, dstType, scaleAlg)


def _restored(x: Array, mxscale: Array, axis: int) -> Array:
    axis %= x.ndim
    flat = np.moveaxis(mxscale, -1, axis + 1)
    flat = flat.reshape(*flat.shape[:axis], -1, *flat.shape[axis + 2 :])
    return x * np.repeat(flat, _BLOCK, axis).take(np.arange(x.shape[axis]), axis)


def _stored(*shape: int, axis: int, to: int) -> dict[str, Any]:
    """A quantised tensor with its scales, as the forward operator gives them."""
    drawn = t(*shape, **_WIDE).array().astype(np.float64)
    y, scale = microscaled(drawn, axis, to)
    small = _SMALL[to]
    return {"x": given(y.astype(numpy_dtype(small)).astype(np.float64), small),
            "mxscale": given(scale, "float8_e8m0fnu"), "axis": axis}  # fmt: skip


@spec("aclnnAntiMxQuant", "y:dstType", **{**_MX, "steps": False, "tolerance": "rounded"},
      samples=[take(**_stored(*shape, axis=axis, to=to), dstType=kind)
               for shape, axis in (((3, 80), -1), ((80, 3), 0)) for to in _SMALL
               for kind in (_FLOAT, _BF16)])  # fmt: skip
def restored(x: Array, mxscale: Array, axis: int) -> Array:
    return _restored(x, mxscale, axis)


def squares(x: Array, to: int, algorithm: int = 0) -> tuple[Array, Array, Array]:
    """Squares of 32 by 32 in the last two dims share an exponent, which lies in both orders."""
    rows, columns = x.shape[-2:]
    wide = _padded(_padded(x, -1, _BLOCK), -2, _BLOCK)
    m, n = wide.shape[-2] // _BLOCK, wide.shape[-1] // _BLOCK
    cut = wide.reshape(*x.shape[:-2], m, _BLOCK, n, _BLOCK)
    exponent = shared_exponent(np.abs(cut).max((-3, -1)), to, algorithm)
    across = np.repeat(exponent, _BLOCK, -2)[..., :rows, :]
    down = np.repeat(exponent, _BLOCK, -1)[..., :columns]
    each = np.repeat(across, _BLOCK, -1)[..., :columns]

    def paired(e: Array, axis: int) -> Array:
        pads = [(0, 0)] * e.ndim
        pads[axis] = (0, e.shape[axis] % 2)
        even = np.pad(e, pads, constant_values=-127)
        axis %= e.ndim
        pairs = even.reshape(*e.shape[:axis], -1, 2, *e.shape[axis + 1 :])
        return np.ldexp(1.0, np.moveaxis(pairs, axis + 1, -1))

    limit = _LARGEST[to][1]
    return np.clip(np.ldexp(x, -each), -limit, limit), paired(across, -1), paired(down, -2)


_SQUARE_OUTS: Final = "yOut:dstType scale1Out:float8_e8m0fnu scale2Out:float8_e8m0fnu"


@spec("aclnnDynamicBlockMxQuant", _SQUARE_OUTS, **_MX,
      samples=[take(x=t(*shape, dtype="float16", **_WIDE), dstType=to, scaleAlg=a, **_PLAIN)
               for shape, a in (((40, 70), 0), ((2, 64, 33), 0), ((40, 70), 1)) for to in _SMALL],
      )  # fmt: skip
def by_squares(x: Array, dstType: int, scaleAlg: int) -> tuple[Array, Array, Array]:
    return squares(x, dstType, scaleAlg)


_LINES: Final = "where a group's scales begin is read from op-plugin's test of the operator"


def grouped(x: Array, ends: Array, to: int, algorithm: int = 0) -> tuple[Array, Array]:
    """Blocks along rows begin anew in each group; group g's scales begin at line rows / 64 + g."""
    values, begin = np.zeros(x.shape), 0
    scales = np.full((len(x) // (2 * _BLOCK) + len(ends), x.shape[1], 2), 2.0**-127)
    for g, end in enumerate(ends):
        if end > begin:
            values[begin:end], part = microscaled(x[begin:end], 0, to, algorithm)
            scales[begin // (2 * _BLOCK) + g :][: len(part)] = part
        begin = end
    return values, scales


@spec("aclnnGroupedDynamicMxQuant aclnnGroupedDynamicMxQuantV2",
      "y:dstType mxscale:float8_e8m0fnu", **{**_MX, "source": f"{_OCP}; {_LINES}"},
      samples=[take(x=t(130, 5, dtype="float16", **_WIDE), roundMode="rint", dstType=to,
                    groupIndex=given(ends, "int32"), blocksize=_BLOCK, scaleAlg=0, dstTypeMax=0.0)
               for ends in ([40, 130], [64, 64, 130]) for to in _SMALL])  # fmt: skip
def by_groups(x: Array, groupIndex: Array, dstType: int, scaleAlg: int = 0) -> tuple[Array, Array]:
    return grouped(x, groupIndex, dstType, scaleAlg)


def _single(y: Array) -> Array:
    """As float32, in which kernels compute: a peak beside a power of two decides on the scale."""
    return y.astype(np.float32).astype(np.float64)


def _normed(x: Array, gamma: Array, beta: Array | None, epsilon: float) -> tuple[Array, Array]:
    rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
    return x * rstd * gamma + (0 if beta is None else beta), rstd


_NORM: Final[dict[str, Any]] = {
    **_MX, "dtypes": ("float16", "bfloat16"),
    "source": f"Zhang, Sennrich: Root Mean Square Layer Normalization, 2019; {_OCP}"}  # fmt: skip


def _norm(**more: Any) -> list[Any]:
    return [take(x=t(3, n, dtype="float16"), gamma=t(n, dtype="float16", low=0.5),
                 beta=t(n, dtype="float16") if beta else None, epsilon=1e-6, scaleAlg=0,
                 roundMode="rint", dstType=to, outputRstd=True, **more)
            for n, beta in ((64, False), (96, True)) for to in _SMALL]  # fmt: skip


@spec("aclnnRmsNormDynamicMxQuant",
      "yOut:dstType mxscaleOut:float8_e8m0fnu rstdOut:float32", **_NORM, samples=_norm(),
      )  # fmt: skip
def norm(
    x: Array, gamma: Array, beta: Array | None, epsilon: float, dstType: int, scaleAlg: int
) -> tuple[Array, Array, Array]:
    y, rstd = _normed(x, gamma, beta, epsilon)
    return *microscaled(_single(y), -1, dstType, scaleAlg), rstd


@spec("aclnnAddRmsNormDynamicMxQuant",
      "yOut:dstType xOut:x1 mxscaleOut:float8_e8m0fnu rstdOut:float32", **_NORM,
      samples=[take(x1=s.kwargs["x"], x2=t(*s.kwargs["x"].shape, dtype="float16", low=-1),
                    **{k: v for k, v in s.kwargs.items() if k != "x"}) for s in _norm()],
      )  # fmt: skip
def add_norm(
    x1: Array, x2: Array, gamma: Array, beta: Array | None, epsilon: float, dstType: int,
    scaleAlg: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    y, rstd = _normed(x1 + x2, gamma, beta, epsilon)
    small, scale = microscaled(_single(y), -1, dstType, scaleAlg)
    return small, x1 + x2, scale, rstd


@spec("aclnnGroupedDynamicMxQuantWithDualAxis",
      "y1Out:dstDtype y1ScaleOut:float8_e8m0fnu y2Out:dstDtype y2ScaleOut:float8_e8m0fnu",
      **{**_MX, "source": f"{_OCP}; {_LINES}"}, samples=[
          take(x=t(130, 40, dtype="float16", **_WIDE), groupIndex=given([40, 130], "int64"),
               roundModeOptional="rint", scaleAlg=0, dstDtype=to, maxDtypeValue=0.0)
          for to in _SMALL])  # fmt: skip
def both_by_groups(
    x: Array, groupIndex: Array, dstDtype: int, scaleAlg: int
) -> tuple[Array, Array, Array, Array]:
    return *microscaled(x, -1, dstDtype, scaleAlg), *grouped(x, groupIndex, dstDtype, scaleAlg)


_GATED: Final[dict[str, Any]] = {
    **_NORM, "source": f"Shazeer: GLU Variants Improve Transformer, 2020; {_OCP}"}  # fmt: skip
_GATES: Final[dict[str, Any]] = {"roundModeOptional": "rint", "maxDtypeValue": 0.0}


@spec("aclnnSwigluMxQuant", "yOut:dstType mxscaleOut:float8_e8m0fnu", **_GATED, samples=[
    take(x=t(3, n, dtype="float16"), activateDim=-1, activateLeft=left, swigluMode=0, groupMode=0,
         clampLimit=7.0, gluAlpha=1.702, gluBias=1.0, axis=-1, dstType=to, scaleAlg=how, **_GATES)
    for n, left, how in ((128, True, 0), (128, False, 1), (144, True, 1))
    for to in _SMALL])  # fmt: skip
def gated(x: Array, activateLeft: bool, dstType: int, scaleAlg: int) -> tuple[Array, Array]:
    return microscaled(_single(swiglu(x, activateLeft)), -1, dstType, scaleAlg)


_ENDS: Final = (None, given([40, 130], "int64"))


def _both(
    y: Array, ends: Array | None, to: int, algorithm: int
) -> tuple[Array, Array, Array, Array]:
    y = _single(y)
    columns = grouped(y, ends, to, algorithm) if ends is not None else (
        microscaled(y, -2, to, algorithm))  # fmt: skip
    return *microscaled(y, -1, to, algorithm), *columns


@spec("aclnnSwigluMxQuantWithDualAxis",
      "y1Out:dstType mxscale1Out:float8_e8m0fnu y2Out:dstType mxscale2Out:float8_e8m0fnu",
      **_GATED, samples=[
          take(x=t(130, 128, dtype="float16"), groupIndexOptional=ends, activateLeft=left,
               dstType=to, scaleAlg=0, **_GATES)
          for ends in _ENDS for to, left in zip(_SMALL, (True, False), strict=True)])  # fmt: skip
def gated_both(
    x: Array, groupIndexOptional: Array | None, activateLeft: bool, dstType: int, scaleAlg: int
) -> tuple[Array, Array, Array, Array]:
    return _both(swiglu(x, activateLeft), groupIndexOptional, dstType, scaleAlg)


def swiglu_gradient(x: Array, grad: Array, left: bool) -> Array:
    """silu'(g) = s (1 + g (1 - s)) for s = sigmoid(g); the other half gets silu(g)."""
    a, b = np.split(x, 2, -1)
    gate, value = (a, b) if left else (b, a)
    s = 1 / (1 + np.exp(-gate))
    parts = grad * value * s * (1 + gate * (1 - s)), grad * gate * s
    return np.concatenate(parts if left else parts[::-1], -1)


@spec("aclnnSwigluBackwardMxQuantWithDualAxis",
      "y1Out:dstDtype mxscale1Out:float8_e8m0fnu y2Out:dstDtype mxscale2Out:float8_e8m0fnu",
      **_GATED, samples=[
          take(x=t(130, 128, dtype="float16"), yGrad=t(130, 64, dtype="float16", low=-1),
               groupIndexOptional=ends, activateLeft=left, dstDtype=_E4M3, scaleAlg=how, **_GATES)
          for ends, left, how in zip(_ENDS, (True, False), (0, 1), strict=True)])  # fmt: skip
def gated_back(
    x: Array, yGrad: Array, groupIndexOptional: Array | None, activateLeft: bool, dstDtype: int,
    scaleAlg: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    dx = swiglu_gradient(x, yGrad, activateLeft)
    return _both(dx, groupIndexOptional, dstDtype, scaleAlg)
