"""Owns what a check is about: a torch row or an ACLNN operator, behind one protocol.

The engine, the judge, the journal and the reports know a `Subject` only; `operators.find` finds
one by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from mindtorch.ops import Op
from mindtorch.ops.samples import Sample

from ...judge.classes import Requirement
from ...spec.declaration import Declaration
from ..cases.claims import Claims
from ..record.result import Result

# What must hold for a case: a Trial's Result.
Law = Callable[[Any], Result]
PREFIX: Final = "acl"


class Subject(Protocol):
    """What can be checked. `calls` are the ACLNN functions that a case of it runs.

    `forms` are those beside functional (see cases.case.FORMS); `fixed_layout`: it reads storage
    itself, so that another layout or shape asks another question; `fixed_shape`: its attributes
    fit the samples' sizes only; `specials`: NaN, infinities and signed zeros have a stated result;
    `shares_row` names the row whose samples and reference are its own, "" for none; `declaration`
    says what it may be given, where its row declares that. `sparse`: most results are 0 or alike
    by nature; `steps`: results are rounded to a step; `open_results`: several answers are right;
    `op` is the row of mindtorch that it is or that calls it.
    """

    name: str
    family: str
    tolerance: str
    calls: tuple[str, ...]
    forms: tuple[str, ...]
    differentiable: bool
    fixed_layout: bool
    fixed_shape: bool
    specials: bool
    shares_row: str
    sparse: bool
    steps: bool
    open_results: bool

    @property
    def op(self) -> Op | None: ...

    @property
    def declaration(self) -> Declaration | None: ...

    def samples(self) -> list[Sample]: ...
    def requirement(self, dtype: str) -> Requirement: ...
    def claims(self, declarations: Any, soc: str) -> Claims: ...
    def laws(self) -> Mapping[str, Law]: ...


class UnknownSubjectError(LookupError):
    """No row and no operator has the name; the message shows the nearest ones."""
