"""What torch gives for the rows of attention, fused_inference."""

from .inference import inferred


def fused(a):
    out, log = inferred(a)
    return (out, log) if a["softmaxLseFlag"] else (out, None)


ORACLES = {"aclnnFusedInferAttentionScoreV5": fused}
