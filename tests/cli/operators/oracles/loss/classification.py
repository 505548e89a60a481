"""What torch gives for the rows of loss, classification."""

import torch
import torch.nn.functional as F

from .._arguments import autograd, t


def sequences(a):
    lengths = a["targetlengths"] if "targetlengths" in a else a["targetLengths"]
    return t(a["logProbs"]), t(a["targets"]), a["inputLengths"], lengths


def ctc(a):
    nll, alpha = torch.ops.aten._ctc_loss(*sequences(a), a["blank"], a["zeroInfinity"])
    nll = nll.where(torch.isfinite(nll) | (not a["zeroInfinity"]), 0)
    states = 2 * torch.tensor(a["targetlengths"]) + 1  # torch leaves the rest as it was
    mine = torch.arange(alpha.shape[2]) < states[:, None, None]
    mine = (
        mine & (torch.arange(alpha.shape[1]) < torch.tensor(a["inputLengths"])[:, None])[..., None]
    )
    return nll, alpha.where(mine, torch.nan)


def ctc_back(a):
    own = sequences(a)
    nll, alpha = torch.ops.aten._ctc_loss(*own, a["blank"], True)
    return torch.ops.aten._ctc_loss_backward(t(a["gradOut"]), *own, nll, alpha, a["blank"], True)


def part_of_vocabulary(a):
    logits = t(a["input"]) @ t(a["weight"]).T
    target, first = t(a["target"]), a["vocabStartIndex"]
    here = (target >= first) & (target <= a["vocabEndIndex"])
    local = torch.where(here, target - first, 0)
    top = logits.amax(1)
    own = logits.gather(1, local[:, None])[:, 0] - top
    weights = 2 ** torch.arange(7, -1, -1)
    byte = ((~here).unflatten(0, (-1, 8)) * weights).sum(-1)
    return (top, (logits.logsumexp(1) - top).exp(), torch.where(here, own, 0), byte, local,
            logits)  # fmt: skip


def losses_of_parts(a):
    total, logits = t(a["sumExpLogits"]), t(a["vocabParallelLogitsOptional"])
    loss = total.log() - t(a["predictedLogits"])
    if logits is None:
        return loss, None
    return loss, (logits - t(a["logitsMax"])[:, None]).exp() / total[:, None]


def cross_entropy_grad(a):
    logits = t(a["logProb"]).clone()
    logits.requires_grad_()
    # Rows of logarithms that do not sum to 1: nll of them, whose log_softmax' derivative takes the
    # given ones as its result.
    weight = torch.ones(logits.shape[1], dtype=torch.float64)
    if a["weightOptional"] is not None:
        weight = t(a["weightOptional"])
    target, mean = t(a["target"]), a["reductionOptional"] == "mean"
    hard = F.nll_loss(logits, target, weight, reduction="none", ignore_index=a["ignoreIndex"])
    kept = target != a["ignoreIndex"]
    label = target.where(kept, 0)
    spread = -(logits * weight).mean(1) * kept
    loss = (1 - a["labelSmoothing"]) * hard + a["labelSmoothing"] * spread
    if mean:
        loss = loss.sum() / (weight[label] * kept).sum()
    elif a["reductionOptional"] == "sum":
        loss = loss.sum()
    flow = torch.autograd.grad(loss, logits, t(a["gradLoss"]))[0]
    return torch.ops.aten._log_softmax_backward_data(flow, t(a["logProb"]), 1, torch.float64)


def bits(words, count):
    return (t(words).int()[:, None] >> torch.arange(7, -1, -1) & 1).flatten()[:count].double()


def cross_entropy_grads(a):
    x, w, g = t(a["input"]), t(a["weight"]), t(a["grad"])
    if a["softmaxOptional"] is not None:
        p = t(a["softmaxOptional"])
    else:
        p = (x @ w.T - t(a["logitsMaxOptional"])[:, None]).exp()
        p = p / t(a["sumExpLogitsOptional"])[:, None]
    own = F.one_hot(t(a["maskedTarget"]), len(w)) * (1 - bits(a["targetMask"], len(x)))[:, None]
    flow = (p - own) * g[:, None]
    return autograd(lambda u, v: u @ v.T, a["input"], a["weight"], flow=flow.numpy())


def parted_sums(a):
    logits, target = t(a["vocabParallelLogits"]), t(a["target"]).long()
    shifted = logits - t(a["globalLogitsMax"])[:, None]
    own = (target >= a["vocabStartIndex"]) & (target < a["vocabEndIndex"])
    offset = (target - a["vocabStartIndex"]) * own
    predicted = shifted.gather(1, offset[:, None])[:, 0] * own
    return predicted, shifted.exp().sum(1), shifted.exp(), offset, ~own


_MODES = ("none", "mean", "sum")


def nll(a):
    kind = _MODES[a["reduction"]]
    return F.nll_loss(t(a["self"]), t(a["target"]), t(a["weight"]), reduction=kind,
                      ignore_index=a["ignoreIndex"])  # fmt: skip


ORACLES = {
    "aclnnCtcLoss": ctc,
    "aclnnCtcLossBackward": ctc_back,
    "aclnnFusedLinearOnlineMaxSum": part_of_vocabulary,
    "aclnnFusedCrossEntropyLossWithMaxSum": losses_of_parts,
    "aclnnCrossEntropyLossGrad": cross_entropy_grad,
    "aclnnFusedLinearCrossEntropyLossGrad": cross_entropy_grads,
    "aclnnCrossEntropySumExpAndIndexLogit": parted_sums,
    "aclnnNLLLoss": nll,
    "aclnnNLLLoss2d": nll,
    "aclnnCrossEntropyLoss": lambda a: F.cross_entropy(
        t(a["input"]),
        t(a["target"]),
        t(a["weightOptional"]),
        reduction=a["reductionOptional"],
        ignore_index=a["ignoreIndex"],
        label_smoothing=a["labelSmoothing"],
    ),
    "aclnnMultilabelMarginLoss": lambda a: F.multilabel_margin_loss(
        t(a["self"]), t(a["target"]), reduction=_MODES[a["reduction"]]
    ),
    "aclnnSoftmaxCrossEntropyWithLogits": lambda a: F.cross_entropy(
        t(a["features"]), t(a["labels"]), reduction="none"
    ),
    "aclnnNLLLossBackward": lambda a: (
        autograd(
            lambda x: F.nll_loss(
                x,
                t(a["target"]),
                t(a["weight"]),
                reduction=("none", "mean", "sum")[a["reduction"]],
                ignore_index=a["ignoreIndex"],
            ),
            a["self"],
            flow=a["gradOutput"],
        )
        if a["reduction"] != 1
        else None
    ),
}
