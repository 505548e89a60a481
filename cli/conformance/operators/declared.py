"""Owns operators whose row is a declaration of `mindtorch_npu.spec`: its domains give the calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from aclnn_bindings.interface.signature import Kind, OpSignature
from mindtorch.ops.samples import Sample

from ...spec.declaration import Declaration
from ...spec.domains import Beside, By
from ...spec.errors import DeclarationError, near
from ...spec.row import Row
from ..cases.case import Case
from ..cases.claims import Claims
from ..cases.declared import as_array, plain_case, sample_of
from ..cases.recipe import Recipe
from ..cases.values import WORDS
from .operator import Operator
from .row import dtype_rule, spec_of
from .rules import check

_ARRAYS = (Kind.INT_ARRAY, Kind.BOOL_ARRAY, Kind.FLOAT_ARRAY)


class DeclaredOperator(Operator):
    """One ACLNN operator with a declared row."""

    declaration: Declaration

    def __init__(self, signature: OpSignature, row: Row) -> None:
        self.row = row
        known = row.renamed.get(signature.name, {})
        arrays = (p.name for p in signature.params if p.kind in _ARRAYS)
        self.arrays = {known.get(n, n) for n in arrays}
        names = [known.get(p.name, p.name) for p in signature.params]
        bind(row, signature.name, names)
        missing = {n for n, d in row.declaration.inputs.items() if not isinstance(d, Beside)}
        missing -= set(names)
        self.declaration = row.declaration.without(missing) if missing else row.declaration
        super().__init__(signature, spec_of(row, signature.name))
        self.forms = ()

    def samples(self) -> list[Sample]:
        """The plain call: what contracts and reports show."""
        return [self.sample(plain_case(self.name, self.declaration), 0)]

    def sample(self, case: Case, seed: int) -> Sample:
        """The call of a designed case."""
        draw = sample_of(self.declaration, case, seed)
        arguments = {n: as_array(v) if n in self.arrays else v for n, v in draw.kwargs.items()}
        return Sample((), arguments)

    def _rule(self, result: str, recipe: Recipe) -> str:
        domain = self.declaration.params[result]
        if not isinstance(domain, By):
            return super()._rule(result, recipe)
        return dtype_rule(domain.options[recipe.kwargs[domain.param]], result, self.row)

    def claims(self, declarations: Any, soc: str) -> Claims:
        """Dtypes that the declaration and the install claim."""
        base_claims = super().claims(declarations, soc)
        return replace(base_claims, dtypes=self.declaration.dtypes(base_claims.dtypes))

    def _stated(self, samples: Sequence[Sample]) -> tuple[str, ...]:
        return self.declaration.dtypes() or super()._stated(samples)


def bind(row: Row, name: str, header: list[str]) -> None:
    """DeclarationError where a row does not fit the header of one of its operators."""
    check(row)
    for word in row.declaration.fills:
        if word not in WORDS:
            raise DeclarationError(f"{name}: no values are called {word!r}{near(word, WORDS)}; "
                                   f"there are {', '.join(WORDS)}")  # fmt: skip
    names = [n for n in header if n in row.declaration.params]
    if name == row.declaration.name:
        row.declaration.bind(header)
    elif extra := [n for n in header if n not in names]:
        raise DeclarationError(f"{name}: no domain for the header's {extra[0]!r}; it shares the "
                               f"row of {row.declaration.name}")  # fmt: skip
