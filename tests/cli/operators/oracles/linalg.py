"""What torch gives for the rows of linalg."""

import torch
from mindtorch_npu.conformance.operators.row import SPECS

from ._arguments import autograd, t


def triangles(a):
    part, eye = t(a["A"]), torch.eye(a["A"].shape[-1])
    part = part.triu() if a["upper"] else part.tril()
    part = torch.where(eye.bool(), eye, part) if a["unitriangular"] else part
    return torch.linalg.inv(part.mT if a["transpose"] else part) @ t(a["self"])


def distances(a):
    flow = a["grad"]
    return autograd(lambda x: torch.cdist(x, t(a["x2"]), a["p"]), a["x1"], flow=flow)


def svd(a):
    """Signs of pairs, and what completes a basis, are free: taken from the row's own results."""
    mine = [t(v) for v in SPECS["aclnnSvd"].reference(**a)]
    theirs = torch.linalg.svd(t(a["input"]), full_matrices=a["fullMatrices"])
    k = theirs.S.shape[-1]
    sign = (mine[1][..., :k] * theirs.U[..., :k]).sum(-2, keepdim=True).sign()
    known = theirs.U[..., :k] * sign, theirs.Vh.mT[..., :k] * sign
    whole = [torch.cat([v, m[..., k:]], -1) for v, m in zip(known, mine[1:], strict=True)]
    for basis in mine[1:]:
        torch.testing.assert_close(basis.mT @ basis, torch.eye(basis.shape[-1]).double().expand(
            *basis.shape[:-2], -1, -1))  # fmt: skip
    return theirs.S, *whole


ORACLES = {
    "aclnnQr": lambda a: torch.linalg.qr(t(a["self"]), "reduced" if a["some"] else "complete"),
    "aclnnLinalgQr": lambda a: torch.linalg.qr(t(a["self"]), ("reduced", "complete")[a["mode"]]),
    "aclnnSvd": svd,
    "aclnnRenorm": lambda a: torch.renorm(t(a["self"]), a["p"], a["dim"], a["maxNorm"]),
    "aclnnCdist": lambda a: torch.cdist(t(a["x1"]), t(a["x2"]), a["p"]),
    "aclnnLinalgCross": lambda a: torch.linalg.cross(t(a["self"]), t(a["other"]), dim=a["dim"]),
    "aclnnInverse": lambda a: torch.linalg.inv(t(a["self"])),
    "aclnnLinalgCholesky": lambda a: torch.linalg.cholesky(t(a["self"]), upper=a["upper"]),
    "aclnnSlogdet": lambda a: torch.linalg.slogdet(t(a["self"])),
    "aclnnTriangularSolve": triangles,
    "aclnnLogdet": lambda a: torch.logdet(t(a["self"])),
    "aclnnCdistBackward": distances,
}
