"""torch._dynamo.utils: questions about a compiler that is not here, and whether results agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mindtorch

from ..compiler.recorder import counters

__all__ = ["counters", "is_compile_supported", "same"]


def is_compile_supported(device_type: Any) -> bool:
    """False: calls stay eager."""
    return False


def same(
    ref: Any, res: Any, fp64_ref: Any = None, cos_similarity: bool = False, tol: float = 1e-4,
    equal_nan: bool = False, exact_dtype: bool = True, relax_numpy_equality: bool = False,
    ignore_non_fp: bool = False, **_: object,
) -> bool:  # fmt: skip
    """Whether two results agree, tensors within `tol`, in all parts of containers."""

    def again(a: Any, b: Any) -> bool:
        return same(
            a, b, None, cos_similarity, tol, equal_nan, exact_dtype, relax_numpy_equality,
            ignore_non_fp,
        )  # fmt: skip

    if isinstance(ref, list | tuple) and not isinstance(ref, mindtorch.Size):
        alike = isinstance(res, list | tuple) and len(ref) == len(res)
        return alike and all(map(again, ref, res))
    if isinstance(ref, Mapping):
        if not isinstance(res, Mapping) or set(ref) != set(res):
            raise AssertionError(f"keys mismatch {set(ref)} == {set(res)}")
        return all(again(ref[key], res[key]) for key in ref)
    if isinstance(ref, set):
        return ref == res
    if not isinstance(ref, mindtorch.Tensor):
        return bool(ref == res) if type(ref) is type(res) else False
    if not isinstance(res, mindtorch.Tensor):
        raise AssertionError(f"type mismatch {type(ref)} {type(res)}")
    return _same_tensors(ref, res, cos_similarity, tol, equal_nan, exact_dtype, ignore_non_fp)


def _same_tensors(
    ref: Any, res: Any, cos_similarity: bool, tol: float, equal_nan: bool, exact_dtype: bool,
    ignore_non_fp: bool,
) -> bool:  # fmt: skip
    if (exact_dtype and ref.dtype is not res.dtype) or ref.shape != res.shape:
        return False
    if ref.dtype is mindtorch.bool or not (ref.is_floating_point() or ref.is_complex()):
        return ignore_non_fp or bool(mindtorch.equal(ref, res))
    kind = mindtorch.promote_types(ref.dtype, mindtorch.float32)
    a, b = (t.detach().to(kind) for t in (ref, res))
    if cos_similarity:
        score = mindtorch.nn.functional.cosine_similarity(a.flatten(), b.flatten(), dim=0, eps=1e-6)
        return bool(score >= 0.99)
    return bool(mindtorch.allclose(a, b, atol=tol, rtol=tol, equal_nan=equal_nan))
