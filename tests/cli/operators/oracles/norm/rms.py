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
# Operator, arguments by header name, results by hand.
BY_HAND = [
    (
        "aclnnRmsNormGrad",
        {"dy": [[1.0, 0.0]], "x": [[3.0, 4.0]], "rstd": [[0.5]], "gamma": [1.0, 1.0]},
        [[[0.5 - 3 * 0.125 * 3 / 2, -4 * 0.125 * 3 / 2]], [1.5, 0.0]],
    ),
]
