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


_MODES = ("none", "mean", "sum")


def nll(a):
    kind = _MODES[a["reduction"]]
    return F.nll_loss(t(a["self"]), t(a["target"]), t(a["weight"]), reduction=kind,
                      ignore_index=a["ignoreIndex"])  # fmt: skip


ORACLES = {
    "aclnnCtcLoss": ctc,
    "aclnnCtcLossBackward": ctc_back,
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
