"""What torch gives for the rows of quantization, packing."""

import numpy as np
import torch

from .._arguments import t


def packed(a):
    words = t(a["weight"]).long().remainder(16).unflatten(-1, (-1, 8))
    total = sum(words[..., k] << 4 * k for k in range(8))
    return torch.where(total >= 1 << 31, total - (1 << 32), total)


def signs(a):
    bits = (np.append(a["self"], [-1] * (-a["self"].size % 8)) >= 0).reshape(-1, 8)
    return torch.tensor([sum(1 << i for i in range(8) if row[i]) for row in bits])


ORACLES = {
    "aclnnConvertWeightToINT4Pack": packed,
    "aclnnSignBitsPack": signs,
    "aclnnSignBitsUnpack": lambda a: torch.tensor(
        [1.0 if int(byte) >> i & 1 else -1.0 for byte in a["self"] for i in range(8)]
    ),
}
# Operator, arguments by header name, results by hand.
BY_HAND = [
    ("aclnnTransQuantParamV2", {"scale": [1.0]}, [[0x3F800000 | 1 << 46]]),
    (
        "aclnnTransQuantParamV3",
        {"scale": [1 + 2**-11, 1 + 3 * 2**-11], "offset": [-1.5, 300.0], "roundMode": 1},
        [[0x3F800000 | 1 << 46 | 0x1FE << 37, 0x3F804000 | 1 << 46 | 0xFF << 37]],
    ),
]
