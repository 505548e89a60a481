"""Losses of classes: likelihood, cross entropy, margins, CTC."""

from __future__ import annotations

from .....spec import *
from .._words import *

TORCH: Final = "torch 2.13, documents of torch.nn.functional losses"
_LOSS: Final = Rule("composite", TORCH)
_LOSS_GRAD: Final = Rule("gradient", TORCH, sparse=True)

# --- connectionist temporal classification --------------------------------------------------------

_CTC: Final = "Graves et al.: Connectionist Temporal Classification, 2006; torch 2.13, ctc_loss"
_CTC_SIZES: Final = sizes(T=seq(5, 1, 17, 33), C=channels(4, 2, 17), S=seq(2, 1, 4, 7))


def _log_p(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Log probabilities [T, B, C] that sum to 1; a loss assumes that."""
    x = rng.standard_normal((draw["T"], draw["B"], draw["C"])) * (4 if pattern == "peaked" else 1)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def _label_counts(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    full = np.full(draw["B"], draw["S"])
    return rng.integers(0, draw["S"] + 1, draw["B"]) if pattern == "ragged" else full


def _step_counts(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    full = np.full(draw["B"], draw["T"])
    return rng.integers((draw["T"] + 1) // 2, full + 1) if pattern == "ragged" else full


def _labels(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Labels without the blank; no short path reads as one that is repeated."""
    others = rng.integers(0, draw["C"] - 1, (draw["B"], draw["S"]))
    others = others[:, :1].repeat(draw["S"], 1) if pattern == "repeated" else others
    return (draw["blank"] + 1 + others) % draw["C"]


def _joined(lengths: str) -> Content:
    """The labels of all samples one after the other."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
        counts = draw[lengths].values()
        every = _labels(rng, pattern, draw)
        return np.concatenate([row[:n] for row, n in zip(every, counts, strict=True)])

    return content(make, "random repeated", reads=(lengths,))


def _sequences(lengths: str) -> dict[str, Domain]:
    return {
        "logProbs": content(_log_p, "random peaked", "f32", shape="T B C"),
        "targets": forms(rows=content(_labels, "random repeated", shape="B S"),
                         joined=_joined(lengths)),
        "inputLengths": content(_step_counts, "full ragged", shape="B"),
        lengths: content(_label_counts, "full ragged", shape="B"),
    }  # fmt: skip


def _split(targets: Array, lengths: Sequence[int]) -> list[tuple[int, ...]]:
    parts = targets if targets.ndim == 2 else np.split(targets, np.cumsum(lengths)[:-1])
    return [tuple(int(c) for c in part[:n]) for part, n in zip(parts, lengths, strict=True)]


def _prefixes(probs: Array, places: list[int]) -> Array:
    """[T, 2S + 1]: the share of what reaches a place of the target, blanks between, at a step."""
    step = np.eye(len(places)) + np.eye(len(places), k=1)
    for s in range(3, len(places), 2):
        step[s - 2, s] = places[s] != places[s - 2]
    alpha = [np.where(np.arange(len(places)) < 2, probs[0, places], 0.0)]
    for at in range(1, len(probs)):
        alpha.append(alpha[-1] @ step * probs[at, places])
    return np.stack(alpha)


def _places(labels: tuple[int, ...], blank: int) -> list[int]:
    return [blank, *(c for label in labels for c in (label, blank))]


def _anything_beyond(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """What lies beyond a sample's own lengths is nobody's."""
    return [values[0], np.where(np.isnan(values[1]), got[1], values[1])]


@spec("aclnnCtcLoss", Rule("gradient", _CTC, specials=False, sparse=True, values="normal",
      nearest=_anything_beyond), _CTC_SIZES, both("T < S"), **_sequences("targetlengths"),
      blank=number(0, "C-1"), zeroInfinity=flag(), negLogLikelihoodOut=out("logProbs"),
      logAlphaOut=out("logProbs"))  # fmt: skip
def ctc_loss(
    logProbs: Array, targets: Array, inputLengths: Sequence[int], targetlengths: Sequence[int],
    blank: int, zeroInfinity: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """All paths that end at the last label or the blank after it. NaN is what a sample does not
    have."""
    losses = []
    alphas = np.full((len(inputLengths), len(logProbs), 2 * max(targetlengths) + 1), np.nan)
    for n, labels in enumerate(_split(targets, targetlengths)):
        places = _places(labels, blank)
        alpha = _prefixes(np.exp(logProbs[: inputLengths[n], n]), places)
        with np.errstate(divide="ignore"):
            losses.append(-np.log(alpha[-1, -2:].sum()))
            alphas[n, : len(alpha), : len(places)] = np.log(alpha)
    loss = np.array(losses)
    return np.where(np.isinf(loss) & zeroInfinity, 0.0, loss), alphas


def _forward(draw: Draw) -> tuple[Array, Array]:
    names = ("logProbs", "targets", "inputLengths", "targetLengths")
    log_p, targets, steps, lengths = (draw[n].values() for n in names)
    log_p = log_p.astype(np.float32).astype(np.float64)
    return ctc_loss(log_p, targets, tuple(steps), tuple(lengths), draw["blank"], False)


def _forward_loss(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    return _forward(draw)[0]


def _forward_alphas(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    return np.nan_to_num(_forward(draw)[1], nan=0.0, neginf=-np.inf)


_SAVED_LOGARITHMS: Final[dict[str, Any]] = {
    "norm": 256.0, "reason": "what the forward pass saved are logarithms in float32: those of "
    "33 peaked steps are some hundreds, and their exponentials 2^8 units off",
}  # fmt: skip


@spec("aclnnCtcLossBackward", Rule("gradient", _CTC, _SAVED_LOGARITHMS, specials=False,
      sparse=True, values="normal"), _CTC_SIZES, both("T < S"), gradOut=tensor("B", "f32"),
      **_sequences("targetLengths"), negLogLikelihood=content(_forward_loss, "saved", "f32"),
      logAlpha=content(_forward_alphas, "saved", "f32"), blank=number(0, "C-1"),
      zeroInfinity=only(True, "of an infinite loss nothing else is a number"),
      out=out("logProbs"))  # fmt: skip
def ctc_backward(
    gradOut: Array, logProbs: Array, targets: Array, inputLengths: Sequence[int],
    targetLengths: Sequence[int], blank: int, negLogLikelihood: Array | None = None,
    logAlpha: Array | None = None,
) -> Array:  # fmt: skip
    """A class's probability less its share of the paths that read as the target; what the forward
    pass saved is computed again."""
    result = np.zeros_like(logProbs)
    for n, labels in enumerate(_split(targets, targetLengths)):
        probs, places = np.exp(logProbs[: inputLengths[n], n]), _places(labels, blank)
        alpha = _prefixes(probs, places)
        beta = _prefixes(probs[::-1], places[::-1])[::-1, ::-1]
        through = np.divide(alpha * beta, probs[:, places])
        share = np.zeros(probs.shape)
        for s, place in enumerate(places):
            share[:, place] += through[:, s]
        if alpha[-1, -2:].sum() > 0:  # of an infinite loss, zeroInfinity leaves nothing
            result[: len(probs), n] = probs - share / share.sum(-1, keepdims=True)
    return result * gradOut[:, None]


# --- classes that are spread over devices ---------------------------------------------------------

_MEGATRON: Final = ("Shoeybi et al.: Megatron-LM, 2019, section 3; op-plugin documents "
                    "npu_fused_linear_online_max_sum and npu_cross_entropy_loss")  # fmt: skip
_PARTED: Final = Rule("gradient", _MEGATRON, specials=False)
# Masks hold eight tokens to a byte.
_VOCABULARY: Final = sizes(T=tokens(8, 16, 24, 128, 1032), C=column(7, 1, 16, 129, 1032),
                           K=column(16, 1, 33, 257))  # fmt: skip


def _global_labels(shape: str, dtype: str) -> Content:
    """Labels of all devices, those before and behind this one's too."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
        first, count = draw["vocabStartIndex"], draw["C"]
        if pattern == "edges":
            ends = (max(first - 1, 0), first, first + count - 1, first + count)
            return np.resize(ends, draw[shape])
        low = first if pattern == "here" else 0
        high = first + count + (0 if pattern == "here" else 10)
        return rng.integers(low, high, draw[shape])

    return content(make, "anywhere edges here", dtype, shape=shape, reads=("vocabStartIndex", "C"))


@spec("aclnnFusedLinearOnlineMaxSum", _PARTED, _VOCABULARY, dtypes("""
      input target
      f16|bf16 i64|i32"""), input=tensor("T K", "f16 bf16"), weight=tensor("C K", "input"),
      target=_global_labels("T", "i64"), vocabStartIndex=number(10, 0),
      vocabEndIndex=equals("vocabStartIndex + C - 1"), logitsMaxLocalOut=out("f32"),
      sumExpLogitsLocalOut=out("f32"), predictedLogitsLocalOut=out("f32"),
      targetMaskOut=out("u8"), maskedTargetOut=out("target"),
      vocabParallelLogitsOutOptional=out("input"))  # fmt: skip
def online_max_sum(
    input: Array, weight: Array, target: Array, vocabStartIndex: int, vocabEndIndex: int
) -> tuple[Array, ...]:
    """Both ends of the range are here: a label of another device is masked, eight to a byte."""
    logits = np.einsum("td,cd->tc", input, weight)
    top = np.max(logits, 1)
    here = (target >= vocabStartIndex) & (target <= vocabEndIndex)
    local = np.where(here, target - vocabStartIndex, 0)
    target_logit = np.where(here, np.take_along_axis(logits, local[:, None], 1)[:, 0] - top, 0)
    total = np.exp(logits - top[:, None]).sum(1)
    return top, total, target_logit, np.packbits(~here), local, logits


_FEATURES: Final = ("f16", "bf16", "f32")


# Exponentials of what lies beyond the stated maxima would overflow.
@spec("aclnnFusedCrossEntropyLossWithMaxSum",
      replace(_PARTED, values="normal integer opposed positive"),
      sizes(B=rows, C=column(7, 1, 33, 1032)), logitsMax=tensor("B", "f32", 1, 3),
      sumExpLogits=tensor("B", "f32", 1, 5), predictedLogits=tensor("B", "f32", -3, 0),
      labelSmoothing=only(0.0, "documents allow one value"),
      inputOptional=null("reserved"), weightOptional=null("reserved"),
      vocabParallelLogitsOptional=optional(forms(
          **{d: tensor("B C", d) for d in _FEATURES})),
      lossOut=out("f32"), softMaxOutOptional=out("f32"))  # fmt: skip
def loss_of_parts(
    logitsMax: Array, sumExpLogits: Array, predictedLogits: Array,
    vocabParallelLogitsOptional: Array | None,
) -> tuple[Array, Array | None]:  # fmt: skip
    loss = np.log(sumExpLogits) - predictedLogits
    if vocabParallelLogitsOptional is None:
        return loss, None
    return loss, np.exp(vocabParallelLogitsOptional - logitsMax[:, None]) / sumExpLogits[:, None]


def _elsewhere(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Bits of tokens whose label another device has."""
    count = draw["T"]
    return np.packbits(rng.integers(0, 2, count) if pattern == "random" else np.ones(count, int))


@spec("aclnnFusedLinearCrossEntropyLossGrad", _PARTED, _VOCABULARY,
      dtypes("""
      grad input weight
      f32  f16   f16
      f32  bf16  bf16"""), overload("sums"),
      overload("softmax", logitsMaxOptional=null("the softmax has them"),
               sumExpLogitsOptional=null("the softmax has them"),
               softmaxOptional=tensor("T C", "f32", 0, 0.3)),
      grad=tensor("T", "f32"), input=tensor("T K"), weight=tensor("C K", "input"),
      targetMask=content(_elsewhere, "random all", "u8", shape="T//8"),
      maskedTarget=index("T", into="C"), labelSmoothing=only(0.0, "documents allow one value"),
      logitsMaxOptional=tensor("T", "f32", 2, 9), sumExpLogitsOptional=tensor("T", "f32", 3, 9),
      softmaxOptional=null("it follows from the sums"), inputGradOut=out("input"),
      weightGradOut=out("weight"))  # fmt: skip
def cross_entropy_grads(
    grad: Array, input: Array, weight: Array, targetMask: Array, maskedTarget: Array,
    logitsMaxOptional: Array | None, sumExpLogitsOptional: Array | None,
    softmaxOptional: Array | None,
) -> tuple[Array, Array]:  # fmt: skip
    """Probabilities less one at the label, where it belongs to this device."""
    if logitsMaxOptional is not None and sumExpLogitsOptional is not None:
        p = np.exp(input @ weight.T - logitsMaxOptional[:, None]) / sumExpLogitsOptional[:, None]
    else:
        p = np.array(softmaxOptional)
    here = 1 - np.unpackbits(targetMask)[: len(p)].astype(np.float64)
    p[np.arange(len(p)), maskedTarget] -= here
    p *= grad[:, None]
    return p @ weight, p.T @ input


@spec("aclnnCrossEntropySumExpAndIndexLogit", _PARTED, sizes(T=tokens, C=column(7, 1, 33, 1032)),
      vocabParallelLogits=tensor("T C", "f32"), target=_global_labels("T", "i32"),
      globalLogitsMax=tensor("T", "f32", 2, 3), vocabStartIndex=number(5, 0, 2),
      vocabEndIndex=equals("vocabStartIndex + C"), predictedLogitsOut=out("f32"),
      sumExpLogitsOut=out("f32"), expLogitsOut=out("f32"), targetOffsetOut=out("target"),
      targetMaskOut=out("bool"))  # fmt: skip
def parted_sums(
    vocabParallelLogits: Array, target: Array, globalLogitsMax: Array, vocabStartIndex: int,
    vocabEndIndex: int,
) -> tuple[Array, ...]:  # fmt: skip
    """A label of another device has offset 0, a mask, and no logit."""
    shifted = vocabParallelLogits - globalLogitsMax[:, None]
    away = (target < vocabStartIndex) | (target >= vocabEndIndex)
    offset = np.where(away, 0, target - vocabStartIndex)
    shifted_target = np.where(away, 0, shifted[np.arange(len(target)), offset])
    e = np.exp(shifted)
    return shifted_target, e.sum(1), e, offset, away


# --- likelihoods ----------------------------------------------------------------------------------


def _classes(shape: str) -> Content:
    """Classes, some of them to be ignored."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
        dims, count = tuple(draw[s] for s in shape.split()), draw["C"]
        classes = rng.integers(0, count, dims)
        if pattern == "edges":
            classes = np.where(rng.integers(0, 2, dims) == 1, 0, count - 1)
        elif pattern == "ignored":
            classes = np.where(rng.integers(0, 3, dims) == 0, draw["ignoreIndex"], classes)
        return classes

    return content(make, "random edges ignored", shape=shape, reads=("C", "ignoreIndex"))


_ROWS: Final = sizes(B=rows(5, 1, 130, 1030), C=column(4, 1, 7, 33, 1032, 4100))
_PIXELS: Final = sizes(H=space, W=space, C=channels(5, 1, 17, 65))
_IGNORED: Final = number(-100, 2, 0)


def _likelihood(pixels: str) -> dict[str, Domain]:
    return {"self": tensor(f"B C {pixels}"), "target": _classes(f"B {pixels}"),
            "weight": tensor("C", "self", 0.5, 2), "reduction": choice(1, 0, 2),
            "ignoreIndex": _IGNORED, "out": out("self"), "totalWeightOut": out("self")}  # fmt: skip


_TYPES: Final = dtypes("""
    self     target
    f32|f16|bf16 i64|i32""")


def nll(
    self: Array, target: Array, weight: Array, reduction: int, ignoreIndex: int
) -> tuple[Array, Array]:
    """The loss and the weight it was divided by."""
    picked = np.where(target == ignoreIndex, 0, target)
    share = np.where(target == ignoreIndex, 0.0, weight[picked])
    likelihood = np.take_along_axis(self, np.expand_dims(picked, 1), 1).squeeze(1)
    loss = -np.where(target == ignoreIndex, 0.0, likelihood) * share
    total = share.sum()
    if reduction == 0:
        return loss, np.zeros(())
    return (loss.sum() / total if reduction == 1 else loss.sum()), total


spec("aclnnNLLLoss", _LOSS, _ROWS, _TYPES, **_likelihood(""))(nll)
spec("aclnnNLLLoss2d", _LOSS, _PIXELS, _TYPES, **_likelihood("H W"))(nll)


def _likelihood_back(pixels: str) -> dict[str, Domain]:
    return {"gradOutput": by("reduction", {1: tensor(""), 0: tensor(f"B {pixels}"), 2: tensor("")}),
            "self": tensor(f"B C {pixels}", "gradOutput"), "target": _classes(f"B {pixels}"),
            "weight": tensor("C", "gradOutput", 0.5, 2), "reduction": choice(1, 0, 2),
            "ignoreIndex": _IGNORED, "totalWeight": tensor("1", "gradOutput", 3, 9),
            "out": out("self")}  # fmt: skip


_BACK_TYPES: Final = dtypes("""
    gradOutput   target
    f32|f16|bf16 i64|i32""")


def nll_backward(
    gradOutput: Array,
    self: Array,
    target: Array,
    weight: Array,
    reduction: int,
    ignoreIndex: int,
    totalWeight: Array,
) -> Array:
    picked = np.where(target == ignoreIndex, 0, target)
    share = np.where(target == ignoreIndex, 0.0, weight[picked])
    flow = gradOutput / totalWeight.reshape(()) if reduction == 1 else gradOutput
    flow = np.where(target == ignoreIndex, 0.0, -flow * share)
    result = np.zeros_like(self)
    np.put_along_axis(result, np.expand_dims(picked, 1), np.expand_dims(flow, 1), 1)
    return result


spec("aclnnNLLLossBackward", _LOSS_GRAD, _ROWS, _BACK_TYPES, **_likelihood_back(""))(
    nll_backward)  # fmt: skip
spec("aclnnNLLLoss2dBackward", _LOSS_GRAD, _PIXELS, _BACK_TYPES, **_likelihood_back("H W"))(
    nll_backward)  # fmt: skip


def _log_softmax(x: Array) -> Array:
    shifted = x - x.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


_MODES: Final = {"none": 0, "mean": 1, "sum": 2}
_REDUCTION: Final = choice("mean", "none", "sum")
_SMOOTHING: Final = number(0.0, 0.1, 0.5)
_WEIGHTS: Final = optional(tensor("C", "f32", 0.3, 2))
_ZLOSS: Final = "documents: z-loss is not supported yet"


@spec("aclnnCrossEntropyLoss", Rule("composite", "torch 2.13, document of CrossEntropyLoss with "
      "label_smoothing"), _ROWS, dtypes("""
      input        target
      f32|f16|bf16 i64|i32"""), input=tensor("B C"), target=_classes("B"),
      weightOptional=_WEIGHTS, reductionOptional=_REDUCTION, ignoreIndex=_IGNORED,
      labelSmoothing=_SMOOTHING, lseSquareScaleForZloss=only(0.0, _ZLOSS),
      returnZloss=only(False, _ZLOSS), lossOut=out("input"), logProbOut=out("input"),
      zlossOut=out("input"), lseForZlossOut=out("input"))  # fmt: skip
def cross_entropy(
    input: Array,
    target: Array,
    weightOptional: Array | None,
    reductionOptional: str,
    ignoreIndex: int,
    labelSmoothing: float,
) -> tuple[Array, Array, Array, Array]:
    log = _log_softmax(input)
    count = input.shape[1]
    weight = np.ones(count) if weightOptional is None else weightOptional
    loss, _ = nll(log, target, weight, _MODES[reductionOptional], ignoreIndex)
    if labelSmoothing:
        valid = target != ignoreIndex
        each = np.where(valid, -(log * weight).sum(1), 0.0)
        smooth = {"none": each, "sum": each.sum(), "mean": each.sum() / weight[target[valid]].sum()}
        part = labelSmoothing / count
        loss = (1 - labelSmoothing) * loss + part * smooth[reductionOptional]
    return loss, log, np.zeros((0,)), np.zeros((0,))


@spec("aclnnCrossEntropyLossGrad", Rule("gradient", "derivative of torch's cross_entropy",
      sparse=True), _ROWS,
      gradLoss=by("reductionOptional", {"mean": tensor(""), "none": tensor("B"),
                                        "sum": tensor("")}),
      logProb=tensor("B C", "gradLoss", -5, -0.2), target=_classes("B"),
      weightOptional=_WEIGHTS, gradZlossOptional=null(_ZLOSS),
      lseForZlossOptional=null(_ZLOSS), reductionOptional=_REDUCTION, ignoreIndex=_IGNORED,
      labelSmoothing=_SMOOTHING, lseSquareScaleForZloss=only(0.0, _ZLOSS),
      out=out("gradLoss"))  # fmt: skip
def cross_entropy_grad(
    gradLoss: Array, logProb: Array, target: Array, weightOptional: Array | None,
    reductionOptional: str, ignoreIndex: int, labelSmoothing: float,
) -> Array:  # fmt: skip
    """Each row: what flows in times the sum of class weights' (softmax - one hot), smoothed over
    the classes; ignored rows are 0."""
    count = logProb.shape[1]
    valid = target != ignoreIndex
    picked = np.where(valid, target, 0)
    weight = np.ones(count) if weightOptional is None else weightOptional
    label_weight = weight[picked] * valid
    flow = np.broadcast_to(gradLoss, target.shape)
    flow = flow / label_weight.sum() if reductionOptional == "mean" else flow
    flow = np.where(valid, flow, 0.0)
    smoothed = np.tile(labelSmoothing / count * weight, (len(target), 1))
    smoothed[np.arange(len(target)), picked] += (1 - labelSmoothing) * label_weight
    return flow[:, None] * (smoothed.sum(1, keepdims=True) * np.exp(logProb) - smoothed)


@spec("aclnnSoftmaxCrossEntropyWithLogits", Rule("composite", "TensorFlow, "
      "tf.nn.softmax_cross_entropy_with_logits"), sizes(C=column(9, 1, 33, 1032, 4100)),
      features=tensor("B C"), labels=tensor("B C", "features", 0, 0.3), loss=out("features"),
      backprop=out("features"))  # fmt: skip
def softmax_cross_entropy(features: Array, labels: Array) -> tuple[Array, Array]:
    log = _log_softmax(features)
    return -(labels * log).sum(1), np.exp(log) - labels


def _lists(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Rows that list classes, none twice, up to a -1."""
    count = draw["C"]
    lists = rng.permuted(np.tile(np.arange(count), (draw["B"], 1)), axis=1)
    ends = {"nowhere": count, "first": 0}.get(pattern)
    for row, end in zip(lists, rng.integers(0, count, draw["B"]), strict=True):
        stop = end if ends is None else ends
        row[stop : stop + 1] = -1
    return lists


# torch's formula has max(0, NaN), its kernels add what is above 0: what NaN gives is not stated.
@spec("aclnnMultilabelMarginLoss", Rule("composite", "torch 2.13, document of "
      "MultiLabelMarginLoss", specials=False), sizes(B=rows(5, 1, 33), C=column(
          5, 1, 33, 257, 1025)), _TYPES, self=tensor("B C"),
      target=content(_lists, "anywhere nowhere first", shape="B C"), reduction=choice(1, 0, 2),
      out=out("self"), isTarget=out("self"))  # fmt: skip
def multilabel_margin(self: Array, target: Array, reduction: int) -> tuple[Array, Array]:
    marked = np.zeros_like(self)
    each = np.zeros(self.shape[0])
    for row, (x, label) in enumerate(zip(self, target, strict=True)):
        stop = np.flatnonzero(label < 0)
        labels = label[: stop[0]] if stop.size else label
        marked[row, labels] = 1
        others = np.setdiff1d(np.arange(x.size), labels)
        each[row] = np.maximum(0, 1 - (x[labels][:, None] - x[others][None])).sum() / x.size
    return (each, each.mean(), each.sum())[reduction], marked
