"""What torch gives for the rows of pointwise."""

import functools

import torch
import torch.nn.functional as F

from ._arguments import t

# Of ACL's numbers of dtypes those that are rounded to in one way.
CODES = {2: torch.int8, 3: torch.int32, 4: torch.uint8, 6: torch.int16, 9: torch.int64,
         12: torch.bool}  # fmt: skip


ORACLES = {
    "aclnnInplaceCopy": lambda a: t(a["selfRef"]).copy_(t(a["src"])),
    "aclnnInplaceAddV3": lambda a: torch.add(
        torch.tensor(a["selfRef"]).double(), t(a["other"]), alpha=a["alpha"]
    ),
    "aclnnHeaviside": lambda a: torch.heaviside(t(a["input"]), t(a["values"])),
    "aclnnLogAddExp2": lambda a: torch.logaddexp2(t(a["self"]), t(a["other"])),
    "aclnnGcd": lambda a: torch.gcd(t(a["self"]), t(a["other"])),
    "aclnnPolar": lambda a: torch.polar(t(a["input"]), t(a["angle"])),
    "aclnnRoundDecimals": lambda a: torch.round(t(a["self"]), decimals=a["decimals"]),
    "aclnnAddRelu": lambda a: F.relu(torch.add(t(a["self"]), t(a["other"]), alpha=a["alpha"])),
    "aclnnAddN": lambda a: functools.reduce(torch.add, t(a["tensors"])),
    "aclnnAddV3": lambda a: torch.add(
        torch.tensor(a["self"]).double(), t(a["other"]), alpha=a["alpha"]
    ),
    "aclnnRsub": lambda a: torch.rsub(t(a["self"]), t(a["other"]), alpha=a["alpha"]),
    "aclnnSquare": lambda a: torch.square(t(a["self"])),
    "aclnnClampTensor": lambda a: torch.clamp(
        t(a["self"]), *(None if a[k] is None else t(a[k]) for k in ("clipValueMin", "clipValueMax"))
    ),
    "aclnnXLogYScalarOther": lambda a: torch.xlogy(t(a["self"]), a["other"]),
    "aclnnXLogYScalarSelf": lambda a: torch.xlogy(a["self"], t(a["other"])),
    "aclnnInplaceXLogYTensor": lambda a: torch.xlogy(t(a["selfRef"]), t(a["other"])),
    "aclnnRemainderScalarTensor": lambda a: torch.remainder(a["self"], t(a["other"])),
    "aclnnComplex": lambda a: torch.complex(t(a["real"]), t(a["imag"])),
    "aclnnReal": lambda a: torch.real(t(a["self"])),
    "aclnnMaskedScale": lambda a: t(a["self"]) * t(a["mask"]) * a["scale"],
    "aclnnMaxN": lambda a: functools.reduce(torch.maximum, t(a["tensors"])),
    "aclnnMinN": lambda a: functools.reduce(torch.minimum, t(a["tensors"])),
    "aclnnXlog1py": lambda a: torch.special.xlog1py(t(a["x"]), t(a["y"])),
    "aclnnAngleV2": lambda a: torch.angle(t(a["x"])),
    "aclnnBitwiseAndTensorOut": lambda a: torch.bitwise_and(t(a["self"]), t(a["other"])),
    "aclnnCast": lambda a: t(a["self"]).to(CODES.get(a["dtype"], torch.float64)).double(),
    "aclnnEqual": lambda a: torch.tensor([torch.equal(t(a["self"]), t(a["other"]))]),
}
