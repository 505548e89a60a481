"""Owns finding a subject by its name: a torch row, a spec row, or what a row's call says."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from mindtorch.ops import OPS

from ...spec.errors import undeclared
from ...spec.row import ROWS
from ..run.rows import TorchRow
from ..run.subject import PREFIX, Subject, UnknownSubjectError
from . import rows
from .declared import DeclaredOperator
from .derived import derived
from .golden_files import golden_row
from .own import OwnOperator
from .row import SPECS, UNSPECIFIED, Spec, inplace


def subject(name: str, declarations: Any = None) -> Subject:
    """The subject called `name`; `declarations` are the install's, which ACLNN operators need.

    UnknownSubjectError for a name that nothing has, and for an operator whose formula no row
    states.
    """
    if name in OPS:
        return TorchRow(OPS[name])
    if not name.startswith(PREFIX) or declarations is None:
        near = ", ".join(get_close_matches(name, list(OPS), 3))
        raise UnknownSubjectError(f"{name}: no such operator" + (f"; near: {near}" if near else ""))
    signature = declarations.ops.get(name)
    if signature is None:
        raise UnknownSubjectError(undeclared(name, declarations.ops))
    if (row_of_golden := golden_row(signature)) is not None:
        return OwnOperator(signature, row_of_golden)
    rows.declare(name)
    if name in ROWS:
        return DeclaredOperator(signature, ROWS[name])
    row = row_of(name)
    if row is not None:
        return DeclaredOperator(signature, inplace(ROWS[row.name], name, signature.params[0].name))
    operator = derived(signature)
    if operator is None:
        why = UNSPECIFIED[name].known if name in UNSPECIFIED else "no row states its formula"
        raise UnknownSubjectError(f"{name}: {why}")
    return operator


def row_of(name: str) -> Spec | None:
    """The spec row of an operator, for an in-place form that of the operator that it is one of."""
    functional = name.replace("aclnnInplace", "aclnn", 1)
    rows.declare(name, functional)
    if name in SPECS:
        return SPECS[name]
    row = SPECS.get(functional)
    return row if row is not None and row.writes_first else None
