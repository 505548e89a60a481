"""What torch gives for the rows of matmul, dense."""

import torch

from .._arguments import t


def unread(a, addend, weight):
    """What a product is added to: nothing where its weight is 0."""
    return t(a[addend]) if a[weight] else torch.zeros(())


ORACLES = {
    "aclnnAddbmm": lambda a: torch.addbmm(
        t(a["self"]), t(a["batch1"]), t(a["batch2"]), beta=a["beta"], alpha=a["alpha"]
    ),
    "aclnnAddmv": lambda a: torch.addmv(
        t(a["self"]), t(a["mat"]), t(a["vec"]), beta=a["beta"], alpha=a["alpha"]
    ),
    "aclnnAddr": lambda a: torch.addr(
        t(a["self"]), t(a["vec1"]), t(a["vec2"]), beta=a["betaOptional"], alpha=a["alphaOptional"]
    ),
    "aclnnMv": lambda a: torch.mv(t(a["self"]), t(a["vec"])),
    "aclnnDot": lambda a: torch.dot(t(a["self"]), t(a["tensor"])),
    "aclnnGer": lambda a: torch.outer(t(a["self"]), t(a["vec2"])),
    "aclnnMatmulWeightNz": lambda a: t(a["self"]) @ t(a["mat2"]),
    "aclnnBatchMatMulWeightNz": lambda a: t(a["self"]) @ t(a["mat2"]),
    "aclnnGemm": lambda a: (
        a["alpha"]
        * (
            (t(a["A"]).T if a["transA"] else t(a["A"]))
            @ (t(a["B"]).T if a["transB"] else t(a["B"]))
        )
        + a["beta"] * unread(a, "C", "beta")
    ),
    "aclnnEinsum": lambda a: torch.einsum(a["equation"].replace(" ", ""), *t(a["tensors"])),
    "aclnnAddmmWeightNz": lambda a: torch.addmm(
        t(a["self"]), t(a["mat1"]), t(a["mat2"]), beta=a["beta"], alpha=a["alpha"]
    ),
}
