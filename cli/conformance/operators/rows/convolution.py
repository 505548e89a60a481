"""Convolutions, causal ones with states too, and gradients."""

from __future__ import annotations

from itertools import product

import mindtorch as torch
import mindtorch.nn.functional as F
from mindtorch import Tensor

from ....spec import *
from ....spec.declaration import Overload
from ....spec.sizes import Role
from ..formulas import gradient, words
from ._defaults import TORCH_NN
from ._words import *

# --- causal convolutions with states --------------------------------------------------------------

_FUSED: Final = Rule("composite", "op-plugin document npu_fused_causal_conv1d; vLLM, "
                     "causal_conv1d_fn", specials=False,
                     nearest=lambda values, got: [_open(v, g) for v, g in
                                                  zip(values, got, strict=True)])  # fmt: skip


def _open(value: Array, got: Array) -> Array:
    """Rows of sequences that are passed over have no stated result."""
    return np.where(np.isnan(value), got, value)


def convolved(
    x: Array,
    weight: Array,
    states: Array,
    starts: Array | None,
    slots: Array | None,
    fresh: Array | None = None,
    accepted: Array | None = None,
    bias: Array | float = 0,
    pad: int = -1,
) -> tuple[Array, Array]:
    """Results and states: a sequence follows what its slot holds (zeros where it is fresh), from
    the last tokens that were accepted on; the ends of both together replace the slot's. Sequences
    whose slot is `pad` are passed over: NaN."""
    flat, states, past = x.reshape(-1, x.shape[-1]), states.copy(), len(weight) - 1
    y, length = np.full_like(flat, np.nan), states.shape[1]
    starts = np.arange(len(x) + 1) * x.shape[1] if starts is None else starts
    for b in range(len(starts) - 1):
        slot = b if slots is None else slots[b]
        if slot == pad:
            continue
        new = flat[starts[b] : starts[b + 1]]
        offset = length - past if accepted is None else accepted[b] - 1
        before = states[slot, : offset + past]
        if fresh is not None and fresh[b]:
            offset, before = 0, np.zeros((past, x.shape[-1]))
        joined = np.concatenate([before, new])
        tail = joined[-length:]
        states[slot, length - len(tail) :] = tail
        taps = [joined[offset + k :][: len(new)] for k in range(past + 1)]
        y[starts[b] : starts[b + 1]] = np.einsum("ktd,kd->td", np.array(taps), weight) + bias
    return y.reshape(x.shape), states


def _slots(rng: np.random.Generator, pattern: str, draw: Any) -> Array:
    """A slot for each sequence; `holes`: some are passed over."""
    count, many = draw["P"], draw["B"]
    order = np.arange(count) if pattern == "in_order" else rng.permutation(count)
    pad = draw["nullBlockId" if "nullBlockId" in draw.declaration.params else "padSlotId"]
    return np.where((np.arange(many) % 3 == 1) & (pattern == "holes"), pad, order[:many])


def _computed(rng: np.random.Generator, pattern: str, draw: Any) -> Array:
    """Tokens that were there before: none here and there, or fewer than the window's past."""
    many = rng.integers(3, 100, draw["B"])
    return {"many": many, "none": many * 0, "some": many * (np.arange(draw["B"]) % 2),
            "few": many % 3}[pattern]  # fmt: skip


def _sequences(names: dict[str, str], packed: bool) -> dict[str, Domain]:
    """Tokens, weights and states, by the names of a header."""
    x = tensor("T H", "f16 bf16")
    starts: Domain = parts("B", of="T", form="starts", dtype="i32")
    slots: Domain = content(_slots, "shuffled in_order holes", "i32", shape="B",
                            reads=("P", "B"))  # fmt: skip
    domains: dict[str, Domain] = {
        "x": x if packed else forms(packed=x, even=tensor("B S H", "f16 bf16")),
        "weight": tensor("K H", "x"), "convStates": inout(tensor("P K-1+M H", "x")),
        "queryStartLoc": starts if packed else optional(starts, iff="rank(x) == 2"),
        "cacheIndices": optional(slots),
    }  # fmt: skip
    return {names.get(n, n): d for n, d in domains.items()}


_SEQUENCES: Final[dict[str, Role | str]] = {
    "B": batch(3, 1, 2, 5), "T": tokens(8, 1, 3, 33, 130), "P": "B + Q", "Q": pages(2, 0, 5),
    "M": rows(1, 0, 3)}  # fmt: skip
_BLOCKS: Final = null("of prefix caching by blocks, which the simulator lacks")
_NO_EFFECT: Final = "documents: kept for older callers, without effect"
_FUSED_PARAMS: Final[dict[str, Domain]] = {
    **_sequences({}, packed=False), "initialStateMode": null(_NO_EFFECT), "bias": null(_NO_EFFECT),
    "numAcceptedTokens": optional(content(
        lambda rng, _pattern, draw: rng.integers(1, draw["M"] + 2, draw["B"]), "random", "i32",
        shape="B", reads=("M",))),
    "numComputedTokens": optional(content(_computed, "many none some few", "i32", shape="B")),
    "blockIdxFirstScheduledToken": _BLOCKS, "blockIdxLastScheduledToken": _BLOCKS,
    "initialStateIdx": _BLOCKS, "activationMode": only(0, _NO_EFFECT),
    "padSlotId": number(-1, -2), "runMode": ignored(_NO_EFFECT, choice(0, 1)),
    "maxQueryLen": ignored("tells how long sequences are at most", number(-1, "T")),
    "residualConnection": choice(0, 1), "blockSize": only(128, "of prefix caching by blocks"),
    "convMode": choice(0, 1),
}  # fmt: skip
# Documents: three taps, and channels by sixteen.
_FUSED_SIZES: Final = sizes(**_SEQUENCES, K=window(3), H=row(64, 80, 128, 272), S=seq(2, 1, 4))
_RESET: Final = require("convMode == 0 or given(numComputedTokens)")


@spec("aclnnFusedCausalConv1d", _FUSED, _FUSED_SIZES, _RESET, **_FUSED_PARAMS, y=out("x"))
def fused(
    x: Array,
    weight: Array,
    convStates: Array,
    queryStartLoc: Array | None,
    cacheIndices: Array | None,
    numAcceptedTokens: Array | None,
    numComputedTokens: Array | None,
    padSlotId: int,
    residualConnection: int,
    convMode: int,
) -> tuple[Array, ...]:
    fresh = None if numComputedTokens is None else numComputedTokens == 0
    y, states = convolved(x, weight, convStates, queryStartLoc, cacheIndices, fresh,
                          numAcceptedTokens, pad=padSlotId)  # fmt: skip
    if convMode and numComputedTokens is not None:  # what lacks a past gives nothing
        flat = y.reshape(-1, y.shape[-1])
        starts = queryStartLoc if queryStartLoc is not None else np.arange(len(x)) * x.shape[1]
        ends = starts[1:] if queryStartLoc is not None else starts + x.shape[1]
        for start, end, done in zip(starts, ends, numComputedTokens, strict=False):
            flat[start : min(end, start + max(0, len(weight) - 1 - done))] *= 0
    return states, y + x * residualConnection


@spec("aclnnInplaceFusedCausalConv1d", _FUSED, _FUSED_SIZES, _RESET,
      **_FUSED_PARAMS | {"x": inout(_FUSED_PARAMS["x"])})  # fmt: skip
def fused_inplace(
    x: Array,
    weight: Array,
    convStates: Array,
    queryStartLoc: Array | None,
    cacheIndices: Array | None,
    numAcceptedTokens: Array | None,
    numComputedTokens: Array | None,
    padSlotId: int,
    residualConnection: int,
    convMode: int,
) -> tuple[Array, ...]:
    states, y = fused(x, weight, convStates, queryStartLoc, cacheIndices, numAcceptedTokens,
                      numComputedTokens, padSlotId, residualConnection, convMode)  # fmt: skip
    return _open(y, x), states


_STATES: Final = Rule("gradient", "vLLM, causal_conv1d_fn and causal_conv1d_update", specials=False,
                      nearest=_FUSED.nearest)  # fmt: skip
_STATE_SIZES: Final = sizes(**_SEQUENCES, K=window(3, 2, 4), H=row(16, 1, 65, 128, 257))
_OPTIONAL: Final = {"convStates": "convStatesRef", "queryStartLoc": "queryStartLocOptional",
                    "cacheIndices": "cacheIndicesOptional"}  # fmt: skip
_ACTIVATION: Final = choice("silu", "none", "swish")
_BIAS: Final = optional(tensor("H", "x"))


def _activated(y: Array, activation: str) -> Array:
    return y if activation == "none" else y / (1 + np.exp(-y))


def _with_bias(params: dict[str, Domain]) -> dict[str, Domain]:
    """The parameters with the bias after the states, as headers have it."""
    first = dict(list(params.items())[:3])
    return first | {"biasOptional": _BIAS} | params


@spec("aclnnCausalConv1dFn", _STATES, _STATE_SIZES,
      **_with_bias(_sequences(_OPTIONAL, packed=True)),
      initialStateModeOptional=optional(index("B", into="2", dtype="i32")),
      blockIdxFirstScheduledTokenOptional=_BLOCKS, blockIdxLastScheduledTokenOptional=_BLOCKS,
      initialStateIdxOptional=_BLOCKS, numComputedTokensOptional=_BLOCKS,
      activation=_ACTIVATION, nullBlockId=number(-1, -2),
      blockSizeToAlign=only(0, "of prefix caching by blocks"), y=out("x"))  # fmt: skip
def causal_fn(
    x: Array, weight: Array, convStatesRef: Array, biasOptional: Array | None,
    queryStartLocOptional: Array, cacheIndicesOptional: Array | None,
    initialStateModeOptional: Array | None, activation: str, nullBlockId: int,
) -> tuple[Array, Array]:  # fmt: skip
    fresh = None if initialStateModeOptional is None else initialStateModeOptional == 0
    y, states = convolved(x, weight, convStatesRef, queryStartLocOptional, cacheIndicesOptional,
                          fresh, None, 0 if biasOptional is None else biasOptional,
                          nullBlockId)  # fmt: skip
    return states, _activated(y, activation)


@spec("aclnnCausalConv1dUpdate", _STATES, sizes({**_STATE_SIZES.roles, "S": seq(2, 1, 4)}),
      **_with_bias(_sequences(_OPTIONAL, packed=False)),
      numAcceptedTokensOptional=_FUSED_PARAMS["numAcceptedTokens"],
      blockIdxLastScheduledTokenOptional=_BLOCKS, initialStateIdxOptional=_BLOCKS,
      activation=_ACTIVATION, nullBlockId=number(-1, -2),
      maxQueryLen=_FUSED_PARAMS["maxQueryLen"], y=out("x"))  # fmt: skip
def causal_update(
    x: Array, weight: Array, convStatesRef: Array, biasOptional: Array | None,
    queryStartLocOptional: Array | None, cacheIndicesOptional: Array | None,
    numAcceptedTokensOptional: Array | None, activation: str, nullBlockId: int,
) -> tuple[Array, Array]:  # fmt: skip
    y, states = convolved(x, weight, convStatesRef, queryStartLocOptional, cacheIndicesOptional,
                          None, numAcceptedTokensOptional,
                          0 if biasOptional is None else biasOptional, nullBlockId)  # fmt: skip
    return states, _activated(y, activation)


def _causal(x: Tensor, weight: Tensor, maskOptional: Tensor | None) -> Tensor:
    """[S, B, H]: each channel by its own window of the past; masked places [B, S] are 0."""
    rows = F.pad(x.permute(1, 2, 0), (weight.shape[0] - 1, 0))
    y = F.conv1d(rows, weight.permute(1, 0).unsqueeze(1), None, 1, 0, 1, x.shape[2])
    y = y.permute(2, 0, 1)
    if maskOptional is None:
        return y
    return y * maskOptional.permute(1, 0).unsqueeze(-1).to(y.dtype)


# Documents: three taps.
# Whether a weight that is NaN meets the zeros before a sequence is not stated.
_MASKED: Final = Rule("gradient", "op-plugin document npu_masked_causal_conv1d; Gu, Dao: Mamba, "
                      "2023", specials=False)  # fmt: skip
_MASKED_SIZES: Final = sizes(K=window(3), S=seq(7, 1, 2, 33, 130), H=row(64, 1, 65, 257))
_SEEN: Final = optional(mask("B S"))
spec("aclnnMaskedCausalConv1d", _MASKED, _MASKED_SIZES, x=tensor("S B H", "f16 bf16"),
     weight=tensor("K H", "x"), maskOptional=_SEEN, out=out("x"))(words(_causal))  # fmt: skip
spec("aclnnMaskedCausalConv1dBackward", _MASKED, _MASKED_SIZES,
     gradY=tensor("S B H", "f16 bf16"), x=tensor("S B H", "gradY"),
     weight=tensor("K H", "gradY"), maskOptional=_SEEN, gradXOut=out("x"),
     gradWeightOut=out("weight"))(
    gradient(_causal, grad="gradY", of="x weight"))  # fmt: skip

# --- convolutions over space ----------------------------------------------------------------------

_GRADIENT: Final = Rule("gradient", TORCH_NN, sparse=True, numbers={
    "norm": 32.0, "reason": "a weight's gradient sums all samples and places in float32, in any "
    "order"})  # fmt: skip
# 0 keeps the dtype, 1 lets the product round float32: `modes.py` says by how much.
_CUBE: Final = choice(0, 1)


def conv(
    input: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    outputPadding: Sequence[int],
    groups: int,
) -> Tensor:
    bias = torch.zeros(weight.shape[1] * groups if transposed else weight.shape[0],
                       dtype=input.dtype)  # fmt: skip
    return torch.convolution(input, weight, bias, tuple(stride), tuple(padding), tuple(dilation),
                             bool(transposed), tuple(outputPadding), groups)  # fmt: skip


def convolution_backward(
    gradOutput: Array,
    input: Array,
    weight: Array | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    outputPadding: tuple[int, ...],
    groups: int,
    outputMask: Sequence[int],
) -> tuple[Array | None, ...]:
    backward = gradient(
        lambda input, weight: conv(input, weight, stride, padding, dilation, transposed,
                                   outputPadding, groups),
        grad="gradOutput", of="input weight")  # fmt: skip
    grads = backward(gradOutput=gradOutput, input=input, weight=weight)
    parts = (*grads, gradOutput.sum((0, *range(2, gradOutput.ndim))))
    return tuple(p if w else None for p, w in zip(parts, outputMask, strict=True))


def result_size(axis: int, size: str, taps: str) -> str:
    """The size that a convolution makes of a size."""
    reach = f"2*padding[{axis}] - dilation[{axis}]*({taps} - 1)"
    forward = f"({size} + {reach} - 1)//stride[{axis}] + 1"
    back = f"({size} - 1)*stride[{axis}] - ({reach}) + 1 + outputPadding[{axis}]"
    return f"{back} if transposed else {forward}"


_PLACES: Final = ("X", "Y", "Z")
_TAPS: Final = ("I", "J", "K")
_RESULT_SIZES: Final = {f"O{a}": result_size(a, x, k) for a, (x, k) in
                enumerate(zip(_PLACES, _TAPS, strict=True))}  # fmt: skip


def _over(name: str, rank: int) -> Overload:
    """The domains of a convolution over so many dims."""
    taps = " ".join(_TAPS[:rank])
    weight = by("transposed", {False: tensor(f"G*D C {taps}", "gradOutput"),
                               True: tensor(f"G*C D {taps}", "gradOutput")})  # fmt: skip
    return overload(
        name,
        gradOutput=tensor("B G*D " + " ".join(list(_RESULT_SIZES)[:rank])),
        input=tensor("B G*C " + " ".join(_PLACES[:rank]), "gradOutput"), weight=weight,
        stride=ints(str(rank), 1, 2, 3), padding=ints(str(rank), 0, 1, 2),
        dilation=ints(str(rank), 1, 2),
        outputPadding=by("transposed", {False: ints(str(rank), 0), True: ints(str(rank), 0, 1)}),
    )  # fmt: skip


_PLANE: Final = _over("plane", 2)
spec("aclnnConvolutionBackward", _GRADIENT,
     sizes(B=batch(2, 1, 5), G=group(1, 2, 4), C=channels(2, 1, 3, 9), D=channels(3, 1, 4, 17),
           X=space(7, 5, 8, 16), Y=space(6, 5, 9), Z=space(5, 6), I=window(3, 1, 2),
           J=window(3, 1, 5), K=window(2, 1, 3), **_RESULT_SIZES),
     require("O0 > 0", "len(stride) < 2 or O1 > 0", "len(stride) < 3 or O2 > 0"),
     # torch refuses an output padding that is not below stride or dilation.
     require("max(outputPadding) == 0 or min(stride) > 1 or min(dilation) > 1"),
     _PLANE, _over("line", 1), _over("volume", 3),
     **{n: _PLANE.params[n] for n in ("gradOutput", "input", "weight")}, biasSizes=dims("G*D"),
     **{n: _PLANE.params[n] for n in ("stride", "padding", "dilation")}, transposed=flag(),
     outputPadding=_PLANE.params["outputPadding"], groups=equals("G"),
     outputMask=array(*list(product((True, False), repeat=3))[:-1]), cubeMathType=_CUBE,
     gradInput=out("input"), gradWeight=out("input"),
     gradBias=out("input"))(convolution_backward)  # fmt: skip


@spec("aclnnConvDepthwise2d", Rule("gradient", TORCH_NN, sparse=True),
      sizes(C=channels(3, 1, 8, 17), M=group(1, 2), X=space(7, 5, 8, 17), Y=space(6, 5, 9, 33),
            I=window(3, 1, 2, 5), J=window(3, 1, 2)),
      require("X + 2*padding[0] > dilation[0]*(I - 1)",
              "Y + 2*padding[1] > dilation[1]*(J - 1)"),
      self=tensor("B C X Y"), weight=tensor("C*M 1 I J", "self"), kernelSize=dims("I J"),
      bias=optional(tensor("C*M", "self")), stride=ints("2", 1, 2, 3),
      padding=ints("2", 1, 0, 2), dilation=ints("2", 1, 2), out=out("self"),
      cubeMathType=_CUBE)  # fmt: skip
def depthwise(
    self: Array,
    weight: Array,
    bias: Array | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Array:
    convolve = words(lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, x.shape[1]))
    return convolve(x=self, w=weight, b=bias)


def _time_first(input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    y = F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return y.permute(2, 0, 1)


_TIME: Final = sizes(S=seq(9, 2, 17, 130), C=channels(4, 1, 8, 17), D=channels(5, 1, 3, 16),
                     K=window(3, 1, 2, 5))  # fmt: skip
_FITS: Final = require("S + 2*pad >= K")
spec("aclnnConvTbc", Rule("gradient", "torch 2.13, document of torch.conv_tbc",
                          specials=False), _TIME, _FITS,
     self=tensor("S B C", "f32 f16 bf16"), weight=tensor("K C D", "self"),
     bias=tensor("D", "self"), pad=integer(1, 0, 2), output=out("self"), cubeMathType=_CUBE)(
    words(lambda self, weight, bias, pad: _time_first(self, weight, bias, pad)))  # fmt: skip
spec("aclnnConvTbcBackward", Rule("gradient", "derivative of torch's conv_tbc",
                                  specials=False), _TIME, _FITS,
     self=tensor("S+2*pad-K+1 B D"), input=tensor("S B C", "self"),
     weight=tensor("K C D", "self"), bias=tensor("D", "self"), pad=integer(1, 0, 2),
     cubeMathType=_CUBE, gradInput=out("input"), gradWeight=out("weight"), gradBias=out("bias"))(
    gradient(_time_first, grad="self", of="input weight bias"))  # fmt: skip
