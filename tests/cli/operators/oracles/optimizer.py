"""What torch gives for the rows of optimizer."""

import torch

from ._arguments import t


def fused_ema_adam(a):
    """torch's own step, its moments uncorrected where the step is far enough along for that."""
    p, g, m, v = (t(a[n]).clone() for n in ("varRef", "grad", "mRef", "vRef"))
    # torch counts the step first; without correction, a step so late that there is none to make.
    step = torch.tensor(float(a["step"][0]) - 1 if a["biasCorrection"] else 1e6)
    word = torch.optim._functional.adamw if a["mode"] else torch.optim._functional.adam
    word([p], [g], [m], [v], [], [step], foreach=False, fused=False, amsgrad=False, lr=a["lr"],
         beta1=a["beta1"], beta2=a["beta2"], weight_decay=a["weightDecay"], eps=a["eps"],
         maximize=False)  # fmt: skip
    return p, m, v, t(a["sRef"]).lerp(p, 1 - a["emaDecay"])


def first_adam_step(a):
    """torch's first step, its rate and epsilon rid of their own correction of the moments. Nesterov
    momentum decays the mean twice."""
    p, m, v, g = (t(a[n]).clone() for n in ("varRef", "m", "v", "grad"))
    one, two, p1, p2, lr, eps = (float(a[n][0]) for n in (
        "beta1", "beta2", "beta1Power", "beta2Power", "lr", "epsilon"))  # fmt: skip
    if a["useNesterov"]:
        m = m.lerp(g, 1 - one)
    unbiased = (1 - two) ** 0.5
    torch.optim._functional.adam(
        [p], [g], [m], [v], [], [torch.tensor(0.0)], foreach=False, fused=False, amsgrad=False,
        beta1=one, beta2=two, lr=lr * (1 - p2) ** 0.5 / (1 - p1) * (1 - one) / unbiased,
        weight_decay=0.0, eps=eps / unbiased, maximize=False)  # fmt: skip
    return p


def adam_w(a):
    """torch's own step, where the powers are those of a step."""
    one = {k: float(a[k][0]) for k in ("beta1", "beta2", "beta1Power", "beta2Power")}
    steps = [n for n in range(3) if one["beta1"] ** n == one["beta1Power"]
             and one["beta2"] ** n == one["beta2Power"]]  # fmt: skip
    if not steps or a["maxGradNormOptional"] is not None:
        return None
    var = torch.nn.Parameter(t(a["varRef"]))
    one = {k: float(a[k][0]) for k in ("lr", "beta1", "beta2", "eps", "weightDecay")}
    optimizer = torch.optim.AdamW([var], one["lr"], (one["beta1"], one["beta2"]), one["eps"],
                                  one["weightDecay"], maximize=a["maximize"],
                                  foreach=False)  # fmt: skip
    optimizer.state[var] = {"step": torch.tensor(float(steps[0])), "exp_avg": t(a["mRef"]),
                            "exp_avg_sq": t(a["vRef"])}  # fmt: skip
    var.grad = t(a["grad"])
    optimizer.step()
    return var, optimizer.state[var]["exp_avg"], optimizer.state[var]["exp_avg_sq"]


def fused_adamw(a):
    if a["foundInfOptional"] is not None and a["foundInfOptional"].any():
        return [*t(a["paramsRef"]), *t(a["expAvgsRef"]), *t(a["expAvgSqsRef"])]
    p, m, v, g = (t([x.copy() for x in a[k]]) for k in
                  ("paramsRef", "expAvgsRef", "expAvgSqsRef", "grads"))  # fmt: skip
    top = t([x.copy() for x in a["maxExpAvgSqsRef"] or []])
    if a["gradScaleOptional"] is not None:
        g = [x / t(a["gradScaleOptional"]) for x in g]
    # torch counts the step first.
    steps = [torch.tensor(s.item() - 1) for s in a["stateSteps"]]
    torch.optim._functional.adamw(
        p, g, m, v, top, steps, amsgrad=a["amsgrad"], beta1=a["beta1"], beta2=a["beta2"],
        lr=a["lr"], weight_decay=a["weightDecay"], eps=a["eps"], maximize=a["maximize"],
        foreach=False, fused=False, capturable=False, differentiable=False,
        has_complex=False)  # fmt: skip
    return [*p, *m, *v, *top]


def sgd(a):
    p, g, b = ([x.clone() for x in t(a[k])] for k in (
        "paramsRef", "gradsRef", "momentumBufferListOptionalRef"))  # fmt: skip
    if a["gradScaleOptional"] is not None:
        g = [x / t(a["gradScaleOptional"]) for x in g]
    kept = [None] * len(p) if a["isFirstStep"] else b
    torch.optim._functional.sgd(
        p, g, kept, has_sparse_grad=False, foreach=False, fused=False,
        weight_decay=a["weightDecay"], momentum=a["momentum"], lr=a["lr"],
        dampening=a["dampening"], nesterov=a["nesterov"], maximize=a["maximize"])  # fmt: skip
    return [*p, *g, *kept]


ORACLES = {
    "aclnnApplyFusedEmaAdam": fused_ema_adam,
    "aclnnApplyAdam": first_adam_step,
    "aclnnApplyAdamW": adam_w,
    "aclnnFusedAdamw": fused_adamw,
    "aclnnFusedSgd": sgd,
}
