"""Owns calls by torch's older signatures, numbers before tensors: `p.add_(-lr, grad)`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from .._tensor.tensor import Tensor
from ..ops.spec import Op
from .argument_errors import explained

# What the numbers of an older call are, in their order.
_FACTORS = {
    **dict.fromkeys(("add", "sub"), ("alpha",)),
    **dict.fromkeys(("addcmul", "addcdiv"), ("value",)),
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), ("beta", "alpha")),
}
FORMS = frozenset(("function", "method", "inplace"))


def has_older(op: Op, form: str) -> bool:
    """Whether a form of an op takes numbers before its tensors too."""
    return op.name in _FACTORS and form in FORMS


def older_call(op: Op, form: str, values: Sequence[Any]) -> Any:
    """The call that an older one means; TypeError where there are other numbers or tensors.

    `addmm(beta, input, alpha, mat1, mat2)` is `addmm(input, mat1, mat2, beta=…, alpha=…)`.
    """
    names = _FACTORS[op.name]
    tensors = [v for v in values if isinstance(v, Tensor)]
    numbers = [v for v in values if isinstance(v, int | float | complex)]
    count = sum(not a.keyword_only for a in op.schema.args)
    name = op.base_name + "_" * (form == "inplace")
    if len(tensors) != count or not 0 < len(numbers) <= len(names):
        method = form != "function"
        raise explained("." * method + name, values[method:], {}) or TypeError(f"{name}(): numbers")
    warnings.warn(f"This overload of {name} is deprecated:", UserWarning, stacklevel=3)
    return op.entry(form)(*tensors, **dict(zip(names, numbers, strict=False)))
