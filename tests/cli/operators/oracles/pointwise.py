"""What torch gives for the rows of pointwise."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ._arguments import t

ORACLES = {
    "aclnnScale": lambda a: (
        torch.einsum("abcd,b->abcd", t(a["x"]), t(a["scale"])) + t(a["bias"])[:, None, None]
        if a["numAxes"] == 1
        else torch.einsum("abcd,bc->abcd", t(a["x"]), t(a["scale"]))
    ),
    "aclnnInplaceAddV3": lambda a: torch.add(a["self"], t(a["other"]), alpha=a["alpha"]),
    "aclnnHeaviside": lambda a: torch.heaviside(t(a["input"]), t(a["values"])),
    "aclnnLogAddExp2": lambda a: torch.logaddexp2(t(a["self"]), t(a["other"])),
    "aclnnGcd": lambda a: torch.gcd(t(a["self"]), t(a["other"])),
    "aclnnPolar": lambda a: torch.polar(t(a["input"]), t(a["angle"])),
    "aclnnRoundDecimals": lambda a: torch.round(t(a["self"]), decimals=a["decimals"]),
    "aclnnAddRelu": lambda a: F.relu(torch.add(t(a["self"]), t(a["other"]), alpha=a["alpha"])),
    "aclnnAddN": lambda a: torch.stack(t(a["tensors"])).sum(0),
    "aclnnAddV3": lambda a: torch.add(
        torch.tensor(a["self"]).double(), t(a["other"]), alpha=a["alpha"]
    ),
    "aclnnRsub": lambda a: torch.rsub(t(a["self"]), t(a["other"]), alpha=a["alpha"]),
    "aclnnSquare": lambda a: torch.square(t(a["self"])),
    "aclnnClampTensor": lambda a: torch.clamp(
        t(a["self"]), t(a["clipValueMin"]), t(a["clipValueMax"])
    ),
    "aclnnXLogYScalarOther": lambda a: torch.xlogy(t(a["self"]), a["other"]),
    "aclnnXLogYScalarSelf": lambda a: torch.xlogy(a["self"], t(a["other"])),
    "aclnnInplaceXLogYTensor": lambda a: torch.xlogy(t(a["selfRef"]), t(a["other"])),
    "aclnnRemainderScalarTensor": lambda a: torch.remainder(a["self"], t(a["other"])),
    "aclnnComplex": lambda a: torch.complex(t(a["real"]), t(a["imag"])),
    "aclnnReal": lambda a: torch.real(t(a["self"])),
    "aclnnMaskedScale": lambda a: t(a["self"]) * t(a["mask"]) * a["scale"],
    "aclnnMaxN": lambda a: torch.stack(t(a["tensors"])).amax(0),
    "aclnnMinN": lambda a: torch.stack(t(a["tensors"])).amin(0),
    "aclnnXlog1py": lambda a: torch.special.xlog1py(t(a["x"]), t(a["y"])),
    "aclnnAngleV2": lambda a: torch.angle(t(a["x"])),
    "aclnnBitwiseAndTensorOut": lambda a: torch.bitwise_and(t(a["self"]), t(a["other"])),
    "aclnnCast": lambda a: t(a["self"]).to(torch.int32).double(),
    "aclnnEqual": lambda a: torch.tensor([torch.equal(t(a["self"]), t(a["other"]))]),
}
