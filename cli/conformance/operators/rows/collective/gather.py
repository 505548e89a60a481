"""Products behind an all-gather, and a barrier."""

from __future__ import annotations

from typing import Any, Final

from .....judge.precision import Array
from ...spec import OWN_GROUP, f16, spec, t, take
from .._functions import plus
from .._ignored import one_rank, one_value
from .exchange import FLAT, bias

_ROW: Final[dict[str, Any]] = {
    "source": "op-plugin documents npu_all_gather_base_mm, npu_mm_all_reduce_base",
    "tolerance": "gradient",
    "specials": False,
}
HALVES: Final = ("float16", "bfloat16")
spec(
    "aclnnAllGatherMatmul aclnnAllGatherMatmulV2",
    "output:x1 gatherOut:x1",
    ignored=one_value("gatherIndex"),
    uncovered="x1Scale x2Scale quantScale blockSize groupSize amaxOut",
    **_ROW,
    dtypes=HALVES,
    samples=[
        take(
            **p,
            group=OWN_GROUP,
            gatherIndex=0,
            commTurn=0,
            streamMode=1,
            commMode="",
            bias=b,
            x1Scale=None,
            x2Scale=None,
            quantScale=None,
            blockSize=0,
            groupSize=0,
        )
        for p in FLAT
        for b in (None, bias(p))
    ],
)(lambda x1, x2, bias: (plus(x1 @ x2, bias), x1))


@spec(
    "aclnnDistributeBarrier aclnnDistributeBarrierV2",
    "xRef:xRef",
    ignored=one_rank("timeOut elasticInfo"),
    **{**_ROW, "tolerance": "exact"},
    samples=[take(xRef=t(4, 8), group=OWN_GROUP, worldSize=1)],
)
def barrier(xRef: Array) -> Array:
    return xRef


@spec("aclnnAllGatherAdd", "cOut:a gatherOutOut:a", **_ROW, samples=[
    take(a=f16(240, 256), b=f16(240, 256), group=OWN_GROUP, rankSize=1)])  # fmt: skip
def gathered_sum(a: Array, b: Array) -> tuple[Array, Array]:
    return a + b, a
