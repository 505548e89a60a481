"""Owns calls by torch's older signatures, numbers before tensors: `p.add_(-lr, grad)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tensor.tensor import Tensor
from ..ops.spec import Op
from .argument_errors import OLDER_FACTORS, explained
from .argument_parser import FunctionSignature
from .signatures import signatures_of
from .warn_once import warn_once

FORMS = frozenset(("function", "method", "inplace"))


def has_older(op: Op, form: str) -> bool:
    """Whether a form of an op takes numbers before its tensors too."""
    return op.name in OLDER_FACTORS and form in FORMS


def older_call(op: Op, form: str, values: Sequence[Any]) -> Any:
    """The call that an older one means; TypeError where there are other numbers or tensors.

    `addmm(beta, input, alpha, mat1, mat2)` is `addmm(input, mat1, mat2, beta=…, alpha=…)`.
    """
    names = OLDER_FACTORS[op.name]
    count = sum(not a.keyword_only for a in op.schema.args)
    name = op.base_name + "_" * (form == "inplace")
    full = "." * (form != "function") + name
    tensors: list[Tensor | complex] = [v for v in values if isinstance(v, Tensor)]
    numbers = [v for v in values if isinstance(v, int | float | complex)]
    if len(tensors) == 1 and len(numbers) == 2 and count == 2:
        tensors.append(numbers.pop())  # numbers stand for tensors in sums
    if len(tensors) != count or not 0 < len(numbers) <= len(names):
        raise explained(full, values[form != "function" :], {}) or TypeError(f"{name}(): numbers")
    _warn(name, signatures_of(full), names[: len(numbers)])
    return op.entry(form)(*tensors, **dict(zip(names, numbers, strict=False)))


def _warn(name: str, signatures: Sequence[FunctionSignature], factors: Sequence[str]) -> None:
    visible = [s for s in signatures if not s.hidden]
    tensors = [p.text for p in visible[0].params if not p.keyword_only]
    numbers = [f"Number {f}" for f in factors]
    if tensors[0] == "Tensor input":  # between the factors of a product, before a lone one
        numbers.insert(int(factors[0] == "beta"), tensors.pop(0))
    older = [*numbers, *tensors]
    older += ["*", "Tensor out = None"] * ("out" in [p.name for p in visible[0].params])
    newer = "".join(f"\n\t{name}{s.text}" for s in visible)
    warn_once(
        f"This overload of {name} is deprecated:\n\t{name}({', '.join(older)})\nConsider using one"
        f" of the following signatures instead:{newer}",
        "This overload of",
    )
