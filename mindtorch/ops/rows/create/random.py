"""Rows that draw on a device from a Philox seed and offset; on cpu `_random` draws itself."""

from __future__ import annotations

from ...._tensor.geometry import contiguous
from ...words import *


def _out(size: tuple[int, ...], *rest: Any) -> Geometry:
    dtype, device = rest[-2:]
    return contiguous(tuple(size), dtype, device)


_DRAWS = "draws have no expected values: the tests of random compare their distribution and state"
_TAIL = "Scalar seed, Scalar offset, ScalarType dtype, Device device) -> Tensor"

op(
    f"_uniform(int[] size, float low, float high, {_TAIL}",
    infer=_out,
    aclnn=call("aclnnInplaceUniform", "out", "low", "high", "seed", "offset"),
    grad={},
    tolerance="random",
    unsampled=_DRAWS,
)
op(
    f"_normal(int[] size, float mean, float std, {_TAIL}",
    infer=_out,
    aclnn=call("aclnnInplaceNormal", "out", "mean", "std", "seed", "offset"),
    grad={},
    tolerance="random",
    unsampled=_DRAWS,
)
op(
    f"_integers(int[] size, int low, int high, {_TAIL}",
    infer=_out,
    aclnn=call("aclnnInplaceRandom", "out", "low", "high", "seed", "offset"),
    grad={},
    tolerance="random",
    unsampled=_DRAWS,
)
op(
    f"_permutation(int[] size, {_TAIL}",
    infer=_out,
    aclnn=call("aclnnRandperm", lambda a: a["size"][0], "seed", "offset", "out"),
    grad={},
    tolerance="random",
    unsampled=_DRAWS,
)
