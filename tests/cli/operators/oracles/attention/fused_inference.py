"""What torch gives for the rows of attention, fused_inference."""

from __future__ import annotations

from .inference import inferred


def fused(a):
    out, log = inferred(a)
    return (out, log) if a["softmaxLseFlag"] else (out, None)


ORACLES = {
    **{f"aclnnFusedInferAttentionScore{v}": fused for v in ("", "V2", "V3", "V4", "V5")},
}
