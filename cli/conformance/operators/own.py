"""Owns operators whose reference a person gives: what they declare has to hold, and what nobody
declares is tried all the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aclnn_bindings.interface.signature import OpSignature
from aclnn_bindings.runtime.status import AclError

from ...judge.classes import Requirement
from ...spec.declaration import Declaration, Pin
from ...spec.row import Row
from ..cases.claims import Claims
from ..record.result import Result
from ..run.cann_words import one_line
from ..run.reference import ReferenceRefusesError
from ..run.subject import Law
from ..run.trial import Trial
from .declared import DeclaredOperator

# What a shape of several dims is where it has no elements.
_EMPTY: Mapping[str, str] = {"leading dims": "0", "shape": "0x3"}
# Values far from zero beside their differences: what one pass over a row loses.
_OFFSET = "offset"
_REFUSALS = range(161000, 162000)


class OwnOperator(DeclaredOperator):
    """One ACLNN operator with a reference of a person's own."""

    def __init__(self, signature: OpSignature, row: Row) -> None:
        super().__init__(signature, replace(row, declaration=_with_extremes(row.declaration)))

    def requirement(self, dtype: str) -> Requirement:
        """Which sign a zero has is a choice of numpy's too, and a promise of exact rows alone."""
        need = super().requirement(dtype)
        return need if need.tier == "T0" else replace(need, signed_zero=False)

    def claims(self, declarations: Any, soc: str) -> Claims:
        """What the reference declares, the operator must take; what was guessed, it may refuse."""
        base = super().claims(declarations, soc)
        dtypes = self.declaration.dtypes() or base.dtypes
        return replace(base, dtypes=dtypes, source="its reference", person=True,
                       assumed=self.row.inferred)  # fmt: skip

    def laws(self) -> Mapping[str, Law]:
        base = super().laws()
        return {**base, "functional": _forgiving(base["functional"])}


def _with_extremes(declaration: Declaration) -> Declaration:
    """With a call without elements, and sums of values that differ little."""
    empty = {name: _EMPTY[role.name] for name, role in declaration.used_sizes.items()
             if not isinstance(role, str) and role.name in _EMPTY}  # fmt: skip
    pins = tuple(Pin({name: level}, "no elements") for name, level in [*empty.items()][:1])
    fills = declaration.fills + ((_OFFSET,) if "graded" in declaration.fills else ())
    return replace(declaration, pins=(*declaration.pins, *pins), fills=fills)


def _forgiving(law: Law) -> Law:
    """The law where a refusal of tensors without elements is no failure: nobody declared them."""

    def run(trial: Trial) -> Result:
        try:
            return law(trial)
        except (ReferenceRefusesError, AclError) as error:
            if all(slot.array.size for slot in trial.recipe.slots):
                raise
            if isinstance(error, AclError) and error.code not in _REFUSALS:
                raise
            words = one_line(error) if isinstance(error, AclError) else str(error)
            return trial.result("SKIP", reason=f"tensors without elements are refused: {words}")

    return run
