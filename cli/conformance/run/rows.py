"""Owns mindtorch's rows as subjects: npu = reference in every form that torch gives an op."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mindtorch.ops import Op
from mindtorch.ops.samples import Sample
from mindtorch.ops.spec import MISSING

from ...judge.classes import Requirement, requirement
from ...spec.declaration import Declaration
from ..cases.claims import Claims, claims
from .laws import LAWS
from .subject import Law


class TorchRow:
    """A row of mindtorch as a subject: npu = reference in every form that torch gives the op."""

    specials = True
    shares_row = ""
    sparse = steps = open_results = False

    def __init__(self, op: Op) -> None:
        self.op, self.name, self.tolerance = op, op.name, op.testing.tolerance
        self.family = op.family
        self.calls = tuple(call.name for call in op.kernels.aclnn)
        self.forms = _forms_of(op)
        # A row without `grad` refuses backward, as torch does for such an operator.
        self.declaration: Declaration | None = None
        self.differentiable = op.body is not None or (op.grad is not MISSING and bool(op.grad))
        self.fixed_layout = op.testing.layout_bound
        self.fixed_shape = op.testing.fixed_shape

    def samples(self) -> list[Sample]:
        return list(self.op.testing.samples()) if self.op.testing.samples is not None else []

    def requirement(self, dtype: str) -> Requirement:
        return requirement(self.tolerance, self.op.testing.rule, dtype)

    def claims(self, declarations: Any, soc: str) -> Claims:
        return claims(self.op, declarations, soc)

    def laws(self) -> Mapping[str, Law]:
        return LAWS


def _forms_of(op: Op) -> tuple[str, ...]:
    forms = ["meta"]
    tensor_results = bool(op.schema.returns) and all(
        r.type == "Tensor" and not r.list for r in op.schema.returns
    )
    if tensor_results and not op.is_view and op.body is None and "function" in op.places:
        forms.append("out")
    if op.writes.inplace:
        forms.append("inplace")
    if "method" in op.places and op.text.partition("(")[2].startswith("Tensor"):
        forms.append("method")
    return tuple(forms)
