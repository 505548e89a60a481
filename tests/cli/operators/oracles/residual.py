"""What torch gives for the rows of residual."""

import torch
import torch.nn.functional as F

from ._arguments import t
from ._functions import autograd


def streams(x, res, out, post):
    mixed = x if res is None else (res[..., None] * x[..., None, :]).sum(-3)
    return post[..., None] * out[..., None, :] + mixed


def mhc_pre(a):
    x = t(a["x"])
    n, flat = x.shape[-2], x.flatten(-2)
    inverse = (flat.square().mean(-1, True) + a["normEps"]).rsqrt()
    gamma = 1 if a["gammaOptional"] is None else t(a["gammaOptional"]).flatten()
    mix = F.linear(flat * gamma, t(a["phi"]))
    pre, post, rest = (mix * inverse).split([n, n, n * n], -1)
    one, two, three = t(a["alpha"])
    b = t(a["bias"])
    pre = torch.sigmoid(pre * one + b[:n]) + a["hcEps"]
    post = 2 * torch.sigmoid(post * two + b[n : 2 * n])
    rest = (rest * three + b[2 * n :]).unflatten(-1, (n, n))
    return (pre[..., None] * x).sum(-2), post, rest, inverse[..., 0], mix, pre


def sinkhorn(a):
    y = t(a["x"]).softmax(-1) + a["eps"]
    y = y / (y.sum(-2, True) + a["eps"])
    for _ in range(a["numIters"] - 1):
        y = y / (y.sum(-1, True) + a["eps"])
        y = y / (y.sum(-2, True) + a["eps"])
    return y


def sinkhorn_grad(a):
    """Through the same divisions, of logits whose softmax the first norms are."""
    rounds = len(a["sumOut"]) // 2
    logits = (t(a["normOut"])[0].movedim(-1, 0) - 1e-6).log()

    def forward(x):
        y = x.softmax(-1) + 1e-6
        for axis in (-2, *(-1, -2) * (rounds - 1)):
            y = y / (y.sum(axis, keepdim=True) + 1e-6)
        return y

    return autograd(forward, logits.numpy(), flow=a["gradOutput"])


ORACLES = {
    "aclnnMhcPost": lambda a: streams(
        *(None if a[n] is None else t(a[n]) for n in ("x", "hRes", "hOut", "hPost"))
    ),
    "aclnnMhcPostBackward": lambda a: autograd(
        streams, *(a[n] for n in ("x", "hRes", "hOut", "hPost")), flow=a["gradOutput"]
    ),
    "aclnnMhcPre": mhc_pre,
    "aclnnMhcSinkhorn": sinkhorn,
    "aclnnMhcSinkhornBackward": sinkhorn_grad,
}
