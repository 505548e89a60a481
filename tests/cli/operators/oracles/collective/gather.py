"""What torch gives for the rows of collective, gather."""

import torch

from .._arguments import t
from .exchange import product

ORACLES = {
    "aclnnAllGatherMatmulV2": lambda a: (product("bias")(a), t(a["x1"])),
    "aclnnDistributeBarrierV2": lambda a: t(a["xRef"]),
    "aclnnAllGatherAdd": lambda a: (torch.add(t(a["a"]), t(a["b"])), t(a["a"])),
}
