"""What torch gives for gates over groups, norms and activations in steps, fused products."""

from __future__ import annotations

import torch
from test_references import F, t


def kept(a):
    tokens, groups = a["x"].shape[0], a["groupIndexOptional"]
    return (torch.arange(tokens) < (tokens if groups is None else int(groups.sum())))[:, None]


def gate(x, a):
    glu, line = x.chunk(2, -1)
    limit = a["clampLimit"]
    if limit > 0:
        glu, line = glu.clamp(max=limit), line.clamp(-limit, limit)
    y = F.silu(glu) * line
    return (y if a["weightOptional"] is None else y * t(a["weightOptional"])) * kept(a)


def gate_gradient(a):
    x = t(a["x"]).requires_grad_()
    gate(x, a).backward(t(a["gradY"]))
    if a["weightOptional"] is None:
        return x.grad, None
    # By the weight: what the gate gave before it, for which the sample has a stand-in.
    weight = t(a["weightOptional"]).requires_grad_()
    (weight * t(a["yOriginOptional"]) * kept(a)).backward(t(a["gradY"]))
    return x.grad, weight.grad


def gelu_steps(a):
    y = F.gelu(t(a["self"]), approximate=a["approximate"])
    scale = 1 if a["inputScaleOptional"] is None else t(a["inputScaleOptional"])
    if a["quantMode"] == "static":
        return y * scale + (0 if a["inputOffsetOptional"] is None else t(a["inputOffsetOptional"]))
    y = y * scale
    step = y.abs().amax(-1) / 127
    return y / step[:, None], step


ENDS = {"": lambda y, x: y, "add": torch.add, "mul": torch.mul, "relu": lambda y, x: F.relu(y),
        "gelu_erf": lambda y, x: F.gelu(y),
        "gelu_tanh": lambda y, x: F.gelu(y, approximate="tanh")}  # fmt: skip


def norm_steps(a):
    x = t(a["x"])
    y = F.rms_norm(x, x.shape[-1:], t(a["gamma"]), a["epsilon"])
    y = y if a["beta"] is None else y + t(a["beta"])
    y = y / t(a["scale"]) if a["divMode"] else y * t(a["scale"])
    rstd = (x.square().mean(-1, True) + a["epsilon"]).rsqrt()
    return y if a["offset"] is None else y + t(a["offset"]), rstd


def adam(a):
    """torch's own step, its moments uncorrected where the step is far enough along for that."""
    p, g, m, v = (t(a[n]).clone() for n in ("varRef", "grad", "mRef", "vRef"))
    # torch counts the step first; without correction, a step so late that there is none to make.
    step = torch.tensor(float(a["step"][0]) - 1 if a["biasCorrection"] else 1e6)
    word = torch.optim._functional.adamw if a["mode"] else torch.optim._functional.adam
    word([p], [g], [m], [v], [], [step], foreach=False, fused=False, amsgrad=False, lr=a["lr"],
         beta1=a["beta1"], beta2=a["beta2"], weight_decay=a["weightDecay"], eps=a["eps"],
         maximize=False)  # fmt: skip
    return p, m, v, t(a["sRef"]).lerp(p, 1 - a["emaDecay"])


def segments(a):
    """Backward through sums whose exponentials the sample holds."""
    y = t(a["gradSelf"])
    size = y.shape[-1]
    x = torch.zeros(y.shape[:-1], dtype=torch.float64)
    x[..., 1:] = y.diagonal(-1, -2, -1).log()
    x.requires_grad_()
    sums = torch.stack([torch.stack([x[..., j + 1 : i + 1].sum(-1) for j in range(size)], -1)
                        for i in range(size)], -2)  # fmt: skip
    sums.exp().tril().backward(t(a["gradOutput"]))
    return x.grad


def mhc_pre(a):
    x = t(a["x"])
    n, flat = x.shape[1], x.flatten(1)
    inverse = (flat.square().mean(-1, True) + a["normEps"]).rsqrt()
    gamma = 1 if a["gammaOptional"] is None else t(a["gammaOptional"]).flatten()
    mix = F.linear(flat * gamma, t(a["phi"]))
    pre, post, rest = (mix * inverse).split([n, n, n * n], -1)
    one, two, three = t(a["alpha"])
    b = t(a["bias"])
    pre = torch.sigmoid(pre * one + b[:n]) + a["hcEps"]
    post = 2 * torch.sigmoid(post * two + b[n : 2 * n])
    rest = (rest * three + b[2 * n :]).unflatten(-1, (n, n))
    return (pre[..., None] * x).sum(1), post, rest, inverse[:, 0], mix, pre


def sinkhorn(a):
    y = t(a["x"]).softmax(-1) + a["eps"]
    y = y / (y.sum(-2, True) + a["eps"])
    for _ in range(a["numIters"] - 1):
        y = y / (y.sum(-1, True) + a["eps"])
        y = y / (y.sum(-2, True) + a["eps"])
    return y


def clipped(a):
    x = t(a["x"])
    glu, line = (x[..., ::2], x[..., 1::2]) if a["interleaved"] else x.chunk(2, a["dim"])
    if a.get("clampMode"):
        return _first_rows(
            a, F.silu(glu).clamp(max=a["limit"]) * line.clamp(-a["limit"], a["limit"])
        )
    glu, line = glu.clamp(max=a["limit"]), line.clamp(-a["limit"], a["limit"])
    return _first_rows(a, glu * torch.sigmoid(a["alpha"] * glu) * (line + a["bias"]))


def _first_rows(a, y):
    """Rows of groups as they are, the rest cut off and filled up with 0."""
    if a["groupIndexOptional"] is None:
        return y
    kept = y[: int(t(a["groupIndexOptional"]).sum())]
    return torch.cat([kept, kept.new_zeros(len(y) - len(kept), *y.shape[1:])])


def layer_norm_steps(a):
    x = t(a["x1"]) + t(a["x2"]) + (0 if a["biasOptional"] is None else t(a["biasOptional"]))
    y = F.layer_norm(x, x.shape[-1:], t(a["gamma"]), t(a["beta"]), a["epsilon"])
    steps, scales = [], []
    for k in (1, 2):
        scale, zero = a[f"scales{k}Optional"], a[f"zeroPoints{k}Optional"]
        if a["quantMode"] == "dynamic":
            z = y if scale is None else y * t(scale)
            scales.append(z.abs().amax(-1) / 127 if k == 1 or scale is not None else None)
            steps.append(None if scales[-1] is None else z / scales[-1][:, None])
            continue
        scales.append(None)
        z = None if scale is None else torch.div(y, t(scale)) if a["divMode"] else y * t(scale)
        steps.append(z if z is None or zero is None else z + t(zero))
    return *steps, x, y, *scales


def batch_norm_steps(a):
    x = (t(a["input"]).double() - a["inputZeroPoint"]) * a["inputScale"]
    y = F.batch_norm(x, *(t(a[n]) for n in ("mean", "var", "weight", "bias")), eps=a["epsilon"])
    return y / a["outputScale"] + a["outputZeroPoint"]


def block_steps(a):
    parts = [[(c / s, s) for c in r.split(a["colBlockSize"], -1)
              for s in [c.abs().amax((-2, -1), True).div(127).clamp(min=a["minScale"])]]
             for r in t(a["x"]).split(a["rowBlockSize"], -2)]  # fmt: skip
    return tuple(
        torch.cat([torch.cat([p[k] for p in row], -1) for row in parts], -2) for k in (0, 1)
    )


def reduced_norm(a):
    def none(name):
        return 0 if a[name] is None else t(a[name])

    weight = (t(a["x2"]).double() + none("antiquantOffset")) * t(a["antiquantScale"])
    total = (t(a["x1"]) @ weight + none("bias")).reshape(a["residual"].shape) + t(a["residual"])
    return total, F.rms_norm(total, (6,), t(a["gamma"]), a["epsilon"])


GATED = {
    "aclnnAddLayerNormQuantV2": layer_norm_steps,
    "aclnnAddLayerNormQuant": lambda a: tuple(
        v for k, v in enumerate(layer_norm_steps(a)) if k != 3),
    "aclnnQuantizedBatchNorm": batch_norm_steps,
    "aclnnDynamicBlockQuant": block_steps,
    "aclnnInplaceWeightQuantMatmulAllReduceAddRmsNorm": reduced_norm,
    "aclnnSwigluGroup": lambda a: gate(t(a["x"]), a),
    "aclnnSwigluGroupGrad": gate_gradient,
    "aclnnClippedSwiglu": clipped,
    "aclnnClippedSwigluV2": clipped,
    "aclnnRmsNormQuantV3": norm_steps,
    "aclnnGeluQuant": gelu_steps,
    "aclnnFusedMatmul": lambda a: ENDS[a["fusedOpType"]](
        t(a["x1"]) @ t(a["x2"]) + (0 if a["bias"] is None else t(a["bias"])),
        None if a["x3"] is None else t(a["x3"])),
    "aclnnFusedQuantMatmul": lambda a: ENDS[a["fusedOpType"]](
        torch.einsum("ij,jk,i,k->ik", t(a["x1"]).double(), t(a["x2"]).double(), t(a["x1Scale"]),
                     t(a["x2Scale"])) + (0 if a["biasOptional"] is None else torch.outer(
                         t(a["x1Scale"]), t(a["x2Scale"]) * t(a["biasOptional"]))), None),
    "aclnnApplyFusedEmaAdam": adam,
    "aclnnExpSegsumBackward": segments,
    "aclnnMhcPre": mhc_pre,
    "aclnnMhcSinkhorn": sinkhorn,
}  # fmt: skip
