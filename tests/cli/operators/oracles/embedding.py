"""What torch gives for the rows of embedding."""

import torch
import torch.nn.functional as F

from ._arguments import t

MODES = ("sum", "mean", "max")


def bags(a):
    flat = a["indices"].ndim == 1
    return F.embedding_bag(
        t(a["indices"]), t(a["weight"]), t(a["offsets"]) if flat else None, mode=MODES[a["mode"]],
        per_sample_weights=None if a["perSampleWeights"] is None else t(a["perSampleWeights"]),
        include_last_offset=flat and a["includeLastOffset"],
        padding_idx=a["paddingIdx"] if a["paddingIdx"] >= 0 else None)  # fmt: skip


ORACLES = {
    "aclnnEmbeddingBag": bags,
    "aclnnEmbeddingRenorm": lambda a: torch.embedding_renorm_(
        t(a["selfRef"]), t(a["indices"]), a["maxNorm"], a["normType"]
    ),
}
