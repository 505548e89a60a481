"""What torch gives for the rows of norm, quantized."""

import torch
import torch.nn.functional as F

from .._arguments import t
from .._functions import MX_DTYPES, autograd, by_largest, shared, single


def rms_quant_v3(a):
    x = t(a["x"])
    y = F.rms_norm(x, x.shape[-1:], t(a["gamma"]), a["epsilon"])
    y = y if a["beta"] is None else y + t(a["beta"])
    y = y / t(a["scale"]) if a["divMode"] else y * t(a["scale"])
    rstd = (x.square().mean(-1, True) + a["epsilon"]).rsqrt()
    return y if a["offset"] is None else y + t(a["offset"]), rstd


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
    return *steps, x if a["additionalOutput"] else None, y, *scales


def batch_norm_steps(a):
    x = (t(a["input"]).double() - a["inputZeroPoint"]) * a["inputScale"]
    y = F.batch_norm(x, *(t(a[n]) for n in ("mean", "var", "weight", "bias")), eps=a["epsilon"])
    return y / a["outputScale"] + a["outputZeroPoint"]


def norm(x, a):
    y = F.rms_norm(x, x.shape[-1:], t(a["gamma"]), a["epsilon"])
    y = y if a["beta"] is None else y + t(a["beta"])
    return (
        *shared(single(y), -1, MX_DTYPES[a["dstType"]], a["scaleAlg"]),
        ((x * x).mean(-1, True) + a["epsilon"]).rsqrt(),
    )


def added(a):
    x = t(a["x1"]) + t(a["x2"])
    y, scale, rstd = norm(x, a)
    return y, x, scale, rstd


def normed(a):
    y = rms(t(a["x1"]) + t(a["x2"]), t(a["gamma"]), a["epsilon"])
    return y if a.get("betaOptional") is None else y + t(a["betaOptional"])


def normed_dynamic(a):
    y, total = normed(a), t(a["x1"]) + t(a["x2"])
    smooth = [a[f"smoothScale{n}Optional"] for n in (1, 2)]
    steps = [by_largest(y if s is None else y * t(s)) for s in smooth]
    mask = a.get("outputMask") or (True, smooth[1] is not None)
    second = steps[1] if mask[1] else (None, None)
    return steps[0][0], second[0], total, steps[0][1], second[1]


def adapted(a):
    x = t(a["x"])
    own = [None if a[n] is None else t(a[n]) for n in ("weightOptional", "biasOptional")]
    scale, shift = (t(a[n]).reshape(*x.shape[:-2], 1, x.shape[-1]) for n in ("scale", "shift"))
    y = F.layer_norm(x, x.shape[-1:], *own, a["epsilon"]) * (1 + scale) + shift
    return by_largest(y if a["smoothScalesOptional"] is None else y * t(a["smoothScalesOptional"]))


def rms_grad(a):
    """The statistic is what was kept: its square is one over the mean square and a constant."""
    rstd = t(a["rstd"])[..., None]
    extra = rstd**-2 - t(a["x"]).square().mean(-1, keepdim=True)

    def norm(x, gamma):
        return x * (x.square().mean(-1, keepdim=True) + extra).rsqrt() * gamma

    dx, dgamma = autograd(norm, a["x"], a["gamma"], flow=a["dy"])
    y = dx / t(a["scalesX"]) if a["divMode"] else dx * t(a["scalesX"])
    return y if a["offsetXOptional"] is None else y + t(a["offsetXOptional"]), dgamma


def rms(x, gamma, eps):
    return F.rms_norm(x, gamma.shape, gamma, eps)


def added_norm_steps(a):
    y, power = normed(a), -1 if a["divMode"] else 1
    first, second = (
        None if a[n] is None else y * t(a[n]) ** power + (0 if a[z] is None else t(a[z]))
        for n, z in (
            ("scales1", "zeroPoints1Optional"), ("scales2Optional", "zeroPoints2Optional"))
    )  # fmt: skip
    return first, second, t(a["x1"]) + t(a["x2"])


def rms_dynamic_quant(a):
    y = rms(t(a["x"]), t(a["gamma"]), a["epsilon"])
    y = y if a["betaOptional"] is None else y + t(a["betaOptional"])
    return by_largest(y if a["smoothScalesOptional"] is None else y * t(a["smoothScalesOptional"]))


ORACLES = {
    "aclnnAddLayerNormQuantV2": layer_norm_steps,
    "aclnnAddLayerNormQuant": lambda a: tuple(
        v for k, v in enumerate(layer_norm_steps(a)) if k != 3
    ),
    "aclnnQuantizedBatchNorm": batch_norm_steps,
    "aclnnRmsNormQuantV3": rms_quant_v3,
    "aclnnRmsNormDynamicMxQuant": lambda a: norm(t(a["x"]), a),
    "aclnnAddRmsNormDynamicMxQuant": added,
    "aclnnAdaLayerNormQuant": adapted,
    "aclnnAddRmsNormQuantV2": added_norm_steps,
    "aclnnAddRmsNormDynamicQuantV2": normed_dynamic,
    "aclnnRmsNormGradQuant": rms_grad,
    "aclnnAddRmsNormQuant": added_norm_steps,
    "aclnnRmsNormDynamicQuant": rms_dynamic_quant,
    "aclnnRmsNormQuant": lambda a: (
        (rms(t(a["x"]), t(a["gamma"]), a["epsilon"]) + t(a["beta"])) * t(a["scale"])
        + t(a["offset"])
    ),
    "aclnnAddRmsNormDynamicQuant": normed_dynamic,
}
