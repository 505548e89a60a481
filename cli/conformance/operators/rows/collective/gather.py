"""Products behind an all-gather, and a barrier."""

from __future__ import annotations

from .....spec import *
from ...group import OWN_GROUP
from .._functions import plus
from .._ignored import RANKS, SPEED
from .._words import *

_SOURCE: Final = "op-plugin documents npu_all_gather_base_mm, npu_mm_all_reduce_base"
_FLOAT_ONLY: Final = "of 8-bit operands, which this form is not judged with"
# Parameters that all operators of the family have alike, and those of 8-bit operands.
COMMON: Final[dict[str, Domain]] = {
    "group": only(OWN_GROUP, RANKS), "reduceOp": only("sum", "documents allow sum"),
    "commTurn": only(0, SPEED), "streamMode": only(1, "documents allow 1"),
    "commMode": only("", SPEED), "gatherIndex": only(0, "documents allow 0"),
    **{n: null(_FLOAT_ONLY) for n in ("x1Scale", "x2Scale", "quantScale")},
    "blockSize": only(0, "documents allow 0"), "groupSize": only(0, _FLOAT_ONLY),
}  # fmt: skip
# Documents ask for at least 256 where a product follows or precedes pieces of other ranks.
LONG: Final = sizes(M=rows(4, 1, 3, 33, 130), K=row(256, 257, 300, 1041), N=column(6, 1, 33, 130))
PRODUCT: Final[dict[str, Domain]] = {
    **COMMON, "x1": tensor("M K", "f16 bf16"), "x2": tensor("K N", "x1"),
    "bias": optional(tensor("N", "x1")),
}  # fmt: skip


def ordered(names: str, *domains: dict[str, Domain]) -> dict[str, Domain]:
    """The domains of header parameters, in the header's order; later ones replace earlier ones."""
    every = {n: d for each in domains for n, d in each.items()}
    return {n: every[n if n in every else n.removesuffix("Optional")] for n in names.split()}


@spec("aclnnAllGatherMatmulV2 aclnnAllGatherMatmul",
      Rule("gradient", _SOURCE, specials=False, cost="2*M*K*N"), LONG,
      **ordered("x1 x2 bias x1Scale x2Scale quantScale blockSize group gatherIndex commTurn "
                "streamMode groupSize commMode output gatherOut amaxOut", PRODUCT,
                {"output": out("x1"), "gatherOut": out("x1"),
                 "amaxOut": null(_FLOAT_ONLY)}))  # fmt: skip
def gathered(x1: Array, x2: Array, bias: Array | None) -> tuple[Array, Array]:
    return plus(x1 @ x2, bias), x1


@spec("aclnnDistributeBarrierV2 aclnnDistributeBarrier",
      Rule("exact", _SOURCE, specials=False),
      xRef=inout(tensor("*S", "f32 f16 bf16 bool i8 i16 i32 i64 u8 u16 u32 u64")),
      timeOut=null(RANKS), elasticInfo=null(RANKS), group=only(OWN_GROUP, RANKS),
      worldSize=only(1, RANKS))  # fmt: skip
def barrier(xRef: Array) -> Array:
    return xRef


@spec("aclnnAllGatherAdd", Rule("gradient", _SOURCE, specials=False),
      sizes({"*B": leading("240", "1", "7x33", "480")}, H=row(256, 1, 33, 512)),
      a=tensor("*B H", "f16"), b=tensor("*B H", "f16"), group=only(OWN_GROUP, RANKS),
      rankSize=only(1, RANKS), cOut=out("a"), gatherOutOut=out("a"))  # fmt: skip
def gathered_sum(a: Array, b: Array) -> tuple[Array, Array]:
    return a + b, a
