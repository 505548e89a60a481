"""Gated activations whose results are quantized."""

from __future__ import annotations

from .....spec import *
from .._defaults import GATED_SOURCE
from .._functions import gelu, swiglu
from .._quantizers import dynamic
from .._words import *

_FOUR: Final = 29  # aclDataType
# No integers: a row of zeros has no factor that brings it to the largest step.
_GATED: Final = Rule("gradient", GATED_SOURCE, steps=True, values="normal opposed positive")
_SIZES: Final = sizes(T=tokens(8, 1, 3, 33, 130), G=group(1, 3, 8), H=row(32, 1, 8, 66, 257, 1026))
_GROUPED: Final = "given(groupIndexOptional) or G == 1"
_MODES: Final = choice("dynamic", "static")


@spec("aclnnSwiGluQuantV2 aclnnSwiGluQuant", _GATED, _SIZES,
      require(_GROUPED, "dstType != 29 or H % 2 == 0 and quantModeOptional == 'dynamic'",
              "quantModeOptional == 'dynamic' or "
              "rank(smoothScalesOptional) == rank(offsetsOptional) and (G == 1 or G != H)"),
      pin("G=3 groupIndexOptional=empty_middle quantModeOptional=static", "steps of groups"),
      x=tensor("T 2*H", "f16 bf16 f32"),
      smoothScalesOptional=by("quantModeOptional", {
          "dynamic": optional(tensor("G H", "f32", 0.5, 2)),
          "static": forms(columns=tensor("G H", "f32", 3, 40),
                          whole=tensor("G", "f32", 3, 40))}),
      offsetsOptional=by("quantModeOptional", {
          "dynamic": None,
          "static": forms(columns=tensor("G H", "f32", -9, 9),
                          whole=tensor("G", "f32", -9, 9))}),
      groupIndexOptional=optional(by("groupListType", {
          0: parts("G", of="T", form="ends", dtype="i32"), 1: parts("G", of="T", dtype="i32")})),
      activateLeft=flag(True), quantModeOptional=_MODES, groupListType=choice(0, 1),
      dstType=choice(2, 29), yOut=out("dstType"), scaleOut=out("f32"))  # fmt: skip
def swiglu_quant(
    x: Array, smoothScalesOptional: Array | None, activateLeft: bool,
    groupIndexOptional: Array | None,
    quantModeOptional: str, offsetsOptional: Array | None, groupListType: int = 0, dstType: int = 2,
) -> tuple[Array, Array | None]:  # fmt: skip
    """The second result is what a row is multiplied by: 127 (of four bits 7) over its largest, as
    the operator's documents have it from CANN 8.3 on (8.1 and 8.2 printed its reciprocal, and
    multiplied too). Groups end where groupIndex says, or have as many rows (groupListType 1).
    Static modes multiply by the scales and add offsets."""
    group = np.zeros(len(x), np.int64)
    if groupIndexOptional is not None:
        ends = np.cumsum(groupIndexOptional) if groupListType else groupIndexOptional
        group = np.searchsorted(ends, np.arange(len(x)), "right")
    y = swiglu(x, activateLeft)
    scale, offset = (None if p is None else p.reshape(len(p), -1)[group]
                     for p in (smoothScalesOptional, offsetsOptional))  # fmt: skip
    y = y if scale is None else y * scale
    if quantModeOptional == "static":
        return y + offset, None
    factor = (7 if dstType == _FOUR else 127) / np.abs(y).max(-1)
    return y * factor[..., None], factor


_COUNTS: Final = optional(parts("G", of="T"))


@spec("aclnnDequantSwigluQuantV2 aclnnDequantSwigluQuant",
      Rule("gradient", GATED_SOURCE, steps=True), _SIZES,
      require(_GROUPED, "swigluMode == 0 or activateLeft"),
      pin("G=3 groupIndexOptional=empty_middle biasOptional=given types=0", "groups"),
      dtypes("""x   biasOptional
                i32 i32|f32"""),
      x=tensor("T 2*H", "", -900, 900), weightScaleOptional=tensor("G 2*H", "f32", 0.001, 0.01),
      activationScaleOptional=tensor("T 1", "f32", 0.5, 2),
      biasOptional=optional(by("biasOptional.dtype", {
          "i32": tensor("G 2*H", "", -300, 300), "f32": tensor("G 2*H", "", -9, 9)})),
      quantScaleOptional=by("quantModeOptional", {"dynamic": tensor("G H", "f32", 0.5, 2),
                                                  "static": tensor("G H", "f32", 0.05, 0.2)}),
      quantOffsetOptional=by("quantModeOptional", {"dynamic": None,
                                                   "static": tensor("G H", "f32", -9, 9)}),
      groupIndexOptional=_COUNTS, activateLeft=flag(True), quantModeOptional=_MODES,
      dstType=only(2, "other types are of one product alone"),
      roundModeOptional=only("rint", "goes with int8"),
      activateDim=only(-1, "documents of the other version halve the last"),
      swigluMode=choice(0, 1, 2), clampLimit=number(7.0, 1.5), gluAlpha=number(1.702, 1.3),
      gluBias=number(1.0, 0.7), yOut=out("i8"), scaleOut=out("f32"))  # fmt: skip
def dequant_swiglu_quant(
    x: Array,
    weightScaleOptional: Array,
    activationScaleOptional: Array,
    biasOptional: Array | None,
    quantScaleOptional: Array,
    quantOffsetOptional: Array | None,
    groupIndexOptional: Array | None,
    activateLeft: bool,
    quantModeOptional: str,
    swigluMode: int = 0,
    clampLimit: float = 7.0,
    gluAlpha: float = 1.702,
    gluBias: float = 1.0,
) -> tuple[Array, Array | None]:
    """groupIndex counts rows of groups, which have scales of their own. A bias of integers counts
    products. swigluMode 1 takes neighbours as pairs, 2 halves; both hold their members within the
    limit (GPT-OSS)."""
    group = np.zeros(len(x), np.int64)
    if groupIndexOptional is not None:
        group = np.repeat(np.arange(len(groupIndexOptional)), groupIndexOptional)
    bias = 0 if biasOptional is None else np.atleast_2d(biasOptional)[group]
    whole = biasOptional is not None and biasOptional.dtype.kind == "i"
    y = (x + bias if whole else x) * weightScaleOptional[group] * activationScaleOptional
    y = y if whole else y + bias
    if swigluMode:
        a, b = (y[..., 0::2], y[..., 1::2]) if swigluMode == 1 else np.split(y, 2, -1)
        a, b = np.minimum(a, clampLimit), np.clip(b, -clampLimit, clampLimit)
        y = a / (1 + np.exp(-gluAlpha * a)) * (b + gluBias)
    else:
        y = swiglu(y, activateLeft)
    if quantModeOptional == "static":
        assert quantOffsetOptional is not None
        return y / quantScaleOptional[group] + quantOffsetOptional[group], None
    return dynamic(y, quantScaleOptional[group])


@spec("aclnnGeluQuant",
      Rule("gradient", "Hendrycks, Gimpel: Gaussian Error Linear Units, 2016; op-plugin test "
           "npu_gelu_quant", steps=True, specials=False),
      sizes({"*B": leading(5, "2x3", 1, 65)}, N=row(48, 1, 33, 257, 1026)),
      require("not given(inputOffsetOptional) or "
              "size(inputOffsetOptional) == size(inputScaleOptional)"),
      pin("inputScaleOptional=fine values=opposed", "where the two formulas differ by a step"),
      pin("inputScaleOptional=fine values=opposed approximate=tanh", "and the other formula"),
      self=tensor("*B N", "f32 f16 bf16"),
      inputScaleOptional=by("quantMode", {
          "static": forms(columns=tensor("N", "f32", 5, 40), one=tensor("1", "f32", 5, 40),
                          fine=tensor("1", "f32", 2400, 2600)),
          "dynamic": optional(tensor("N", "f32", 0.5, 2))}),
      inputOffsetOptional=by("quantMode", {
          "static": optional(forms(columns=tensor("N", "f32", -5, 5),
                                   one=tensor("1", "f32", -5, 5))),
          "dynamic": None}),
      approximate=choice("none", "tanh"), quantMode=choice("static", "dynamic"),
      roundMode=only("rint", "goes with int8"),
      dstType=only(2, "other types are of one product alone"), y=out("i8"),
      outScaleOptional=out("f32"))  # fmt: skip
def gelu_steps(
    self: Array, inputScaleOptional: Array | None, inputOffsetOptional: Array | None,
    approximate: str, quantMode: str,
) -> tuple[Array, Array | None]:  # fmt: skip
    y = gelu(self, approximate)
    if quantMode == "dynamic":
        return dynamic(y, inputScaleOptional)
    return y * inputScaleOptional + (
        0 if inputOffsetOptional is None else inputOffsetOptional
    ), None


@spec("aclnnSwigluGroupQuant",
      Rule("composite", "Shazeer: GLU Variants Improve Transformer, 2020; op-plugin document "
           "npu_swiglu_group_quant", steps=True, specials=False,
           values="normal opposed positive"),
      sizes(T=tokens(8, 1, 3, 33), G=group(2, 1, 3), H=row(8, 1, 33, 257)), require("T >= G"),
      x=tensor("T 2*H", "bf16"), weightOptional=tensor("T 1", "f32", 0.2, 2),
      groupIndexOptional=parts("G", of="T", patterns="even ones"),
      scaleOptional=null("of modes that are not declared here"),
      dstType=only(36, "of quantMode 3"),
      quantMode=only(3, "the others have no public formula"),
      blockSize=only(0, "of other modes"),
      roundScale=only(False, "of other modes"), clampLimit=only(0.0, "without a limit"),
      dstTypeMax=number(0.0, 240.0), outputOrigin=only(True, "the third result is compared"),
      yOut=out("dstType"), yScaleOut=out("f32"), yOriginOut=out("x"))  # fmt: skip
def gated_groups(
    x: Array, weightOptional: Array, groupIndexOptional: Array, dstTypeMax: float
) -> tuple[Array, Array, Array]:
    """Rows of a group share the scale of their peak, which becomes the type's largest number or
    the one that is named."""
    y = swiglu(x, True) * weightOptional
    which = np.repeat(np.arange(len(groupIndexOptional)), groupIndexOptional)
    peaks = np.array([np.abs(y[which == g]).max() for g in range(len(groupIndexOptional))])
    scale = peaks / (dstTypeMax or 448)
    return y / scale[which][:, None], scale, y
