"""Owns which space a row has; rows without one are checked on their samples."""

from __future__ import annotations

from functools import cache
from typing import Final

from mindtorch.ops import OPS, Op
from mindtorch.ops.rules import Pointwise

from .along import ALONG
from .creation import CREATED, CREATION
from .decompose import DECOMPOSE, DECOMPOSED
from .index import INDEX, INDEXED
from .join import JOIN, JOINED
from .layers import LAYERED, LAYERS
from .matrix import MATRIX
from .pointwise import POINTWISE
from .random import RANDOM, RANDOM_KINDS
from .space import Space

_MATRIX: Final = frozenset(("mm", "bmm", "addmm", "baddbmm", "matmul", "linear"))
_ALONG: Final = frozenset((
    "sum", "mean", "amax", "amin", "max", "min", "max.dim", "min.dim", "argmax", "argmin", "all",
    "any", "var", "std", "prod", "prod.dim", "linalg_vector_norm", "logsumexp", "cumsum", "cumprod",
    "cummax", "cummin", "sort", "topk", "kthvalue", "_softmax", "_log_softmax", "softmax",
    "log_softmax", "_softmax_backward_data", "_log_softmax_backward_data", "flip", "roll", "tril",
    "triu", "nansum", "count_nonzero",
))  # fmt: skip
_TENSORS: Final = frozenset(("Tensor", "Tensor|Scalar", "Scalar", "Number", "str", "int", "float",
                             "bool"))  # fmt: skip


@cache
def space_of(name: str) -> Space | None:
    """The space of row `name`; None where only its samples say what to call it with."""
    if name not in OPS:
        return None
    for names, space in (
        (_MATRIX, MATRIX), (_ALONG, ALONG), (INDEXED, INDEX), (JOINED, JOIN), (LAYERED, LAYERS),
        (CREATED, CREATION), (DECOMPOSED, DECOMPOSE), (frozenset(RANDOM_KINDS), RANDOM),
    ):  # fmt: skip
        if name in names:
            return space
    return POINTWISE if _is_pointwise(OPS[name]) else None


def _is_pointwise(op: Op) -> bool:
    inside = op.family == "pointwise" or isinstance(op.infer, Pointwise)
    plain = all(a.type in _TENSORS for a in op.schema.args) and not op.is_view
    known = op.testing.samples is not None or op.name.endswith("_backward")
    first = any(a.type == "Tensor" for a in op.schema.args)
    one = [r.type for r in op.schema.returns] == ["Tensor"] and not op.schema.returns[0].list
    return inside and plain and known and first and one
