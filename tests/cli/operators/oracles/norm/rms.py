"""What torch gives for the rows of norm, rms."""

import torch.nn.functional as F

from .._arguments import t

ORACLES = {
    "aclnnRmsNorm": lambda a: F.rms_norm(t(a["x"]), a["gamma"].shape, t(a["gamma"]), a["epsilon"]),
    "aclnnGemmaRmsNorm": lambda a: F.rms_norm(
        t(a["x"]), a["gamma"].shape, 1 + t(a["gamma"]), a["epsilon"]
    ),
    "aclnnAddRmsNorm": lambda a: F.rms_norm(
        t(a["x1"]) + t(a["x2"]), a["gamma"].shape, t(a["gamma"]), a["epsilon"]
    ),
}
