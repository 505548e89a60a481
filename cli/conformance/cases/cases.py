"""Owns which cases an op gets at a level; driven only by what its row declares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mindtorch.ops import OPS

from ...judge.formats import FORMATS

if TYPE_CHECKING:
    from ..run.subject import Subject

from . import declared, invariants
from .case import DTYPES, LAYOUTS, Case
from .design import design
from .inputs import main_dtype, tensors_of
from .layouts import REPEATED
from .shapes import sizes_of
from .spaces.table import space_of
from .supported_dtypes import takes

_QUICK_LAYOUTS: Final = ("transposed", "sliced", "stepped", "expanded")
_QUICK_EDGES: Final = ("empty", "scalar", "ones", "odd", "long", "tall", "grown")
_EDGES: Final = (*_QUICK_EDGES, "rank8", "large")


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """What is asked for: a level, and what the axes are restricted to (empty: everything);
    `deterministic`: whether results depend on what they may not, and nothing else."""

    level: str = "quick"
    dtypes: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    deterministic: bool = False

    @property
    def narrow(self) -> bool:
        """Whether any axis is restricted."""
        return bool(self.dtypes or self.layouts or self.forms or self.deterministic)

    def takes(self, case: Case, main: str) -> bool:
        """Whether a case survives the restrictions; `main` is its sample's dtype."""
        return (
            (not self.dtypes or (case.dtype or main) in self.dtypes)
            and (
                not self.layouts
                or case.layout in self.layouts
                or dict(case.factors).get("layout") in self.layouts
            )
            and (not self.forms or case.form in self.forms)
        )


def cases(op: Subject, claimed: tuple[str, ...], plan: CaseFilter) -> list[Case]:
    """The cases of an op, without doubles, in a stable order.

    `claimed` are the dtypes that the signature and SoC of the install at hand claim.
    """
    known = op.samples()
    mains = [main_dtype(tensors_of(s)) for s in known]
    good = [i for i, s in enumerate(known) if not s.error]
    unique: dict[Case, None] = {}
    if plan.deterministic:
        every = invariants.cases_of(op, claimed, plan.level)
        return [c for c in every if plan.takes(c, mains[c.sample] if mains else "")]
    for case in _all(op, claimed, plan.level, good):
        if plan.takes(case, mains[case.sample]):
            unique[case] = None
    for i, sample in enumerate(known):
        if sample.error and plan.takes(Case(op.name, "error", i), mains[i]):
            unique[Case(op.name, "error", i)] = None
    for case in _designed(op, claimed, plan.level):
        if plan.takes(case, ""):
            unique[case] = None
    return list(unique)


def _designed(op: Subject, claimed: tuple[str, ...], level: str) -> Iterator[Case]:
    if op.declaration is not None:
        yield from declared.design(op.name, op.declaration, claimed, level)
    if space_of(op.name) is not None:
        row = OPS[op.name]
        yield from design(row, takes(row, claimed or DTYPES), level)


def _all(op: Subject, claimed: tuple[str, ...], level: str, good: list[int]) -> Iterator[Case]:
    if not good or op.declaration is not None:
        return
    first = good[0]
    if space_of(op.name) is not None:
        yield from (Case(op.name, "functional", i) for i in good)
        yield from (Case(op.name, "meta", i) for i in good)
        yield from _gradients(op, claimed, level, good)
        return
    yield from (Case(op.name, "functional", i) for i in good)
    if "meta" in op.forms:
        yield from (Case(op.name, "meta", i) for i in good)
    yield from _dtypes(op, claimed, level, good)
    if not op.fixed_layout:
        yield from _layouts(op, claimed, level, good)
    if not op.fixed_layout and not op.fixed_shape:
        yield from _shapes(op, claimed, level, first)
    yield from _forms(op, claimed, level, good)
    yield from _fills(op, claimed, level, good)
    yield from _gradients(op, claimed, level, good)


def _floats(claimed: tuple[str, ...]) -> list[str]:
    return [d for d in claimed if d in FORMATS]


def _dtypes(op: Subject, claimed: tuple[str, ...], level: str, good: list[int]) -> Iterator[Case]:
    """Every dtype of each sample; not of one that shows what other dtypes go together with."""
    mains = {i: main_dtype(tensors_of(op.samples()[i])) for i in good}
    swept = [
        i for i in good if i == good[0] or mains[i] in claimed or mains[good[0]] not in claimed
    ]
    only = [s.dtypes or claimed for s in op.samples()]
    for dtype in claimed:
        yield from (Case(op.name, "functional", i, dtype)
                    for i in (swept if level != "quick" else good[:1])
                    if dtype in only[i])  # fmt: skip


def _layouts(op: Subject, claimed: tuple[str, ...], level: str, good: list[int]) -> Iterator[Case]:
    if level == "quick":
        for layout in _QUICK_LAYOUTS:
            yield Case(op.name, "functional", good[0], layout=layout)
            if "meta" in op.forms:
                yield Case(op.name, "meta", good[0], layout=layout)
        return
    for layout in LAYOUTS[1:]:
        if op.open_results and layout in REPEATED:
            continue  # of equal rows any basis is right
        for i in good:
            yield Case(op.name, "functional", i, layout=layout)
            if "meta" in op.forms:
                yield Case(op.name, "meta", i, layout=layout)
        yield from (Case(op.name, "functional", good[0], d, layout) for d in claimed)


def _shapes(op: Subject, claimed: tuple[str, ...], level: str, first: int) -> Iterator[Case]:
    tensors = tensors_of(op.samples()[first])
    if not tensors:
        return
    uniform = all(t.shape == tensors[0].shape and t.values is None for t in tensors)
    for edge in _QUICK_EDGES if level == "quick" else _EDGES:
        if edge in ("scalar", "rank8") and not uniform:
            continue
        if edge not in ("scalar", "rank8") and not sizes_of(tensors):
            continue
        yield Case(op.name, "functional", first, shape=edge)
        if level != "quick":
            yield from (Case(op.name, "functional", first, d, shape=edge) for d in claimed)
            if "meta" in op.forms:
                yield Case(op.name, "meta", first, shape=edge)
    if level == "quick" and sizes_of(tensors):
        yield from (Case(op.name, "functional", first, d, shape="odd")
                    for d in ("float16", "bfloat16") if d in claimed)  # fmt: skip


def _forms(op: Subject, claimed: tuple[str, ...], level: str, good: list[int]) -> Iterator[Case]:
    selection = good[:1] if level == "quick" else good
    edges = ("sample",) if level == "quick" or op.fixed_shape else ("sample", "odd")
    for form in op.forms:
        if form == "meta":
            continue
        for i in selection:
            yield from (Case(op.name, form, i, shape=edge) for edge in edges)
        if form != "method" and not op.fixed_layout:
            yield Case(op.name, form, good[0], layout="sliced")
            yield Case(op.name, form, good[0], layout="stepped")
        if level != "quick":
            yield from (Case(op.name, form, good[0], d) for d in claimed)


def _fills(op: Subject, claimed: tuple[str, ...], level: str, good: list[int]) -> Iterator[Case]:
    first = good[0]
    tensors = tensors_of(op.samples()[first])
    if not any(t.dtype in FORMATS for t in tensors):
        return
    kind = op.tolerance
    shape = "sample" if op.fixed_shape or op.fixed_layout else "odd"
    if kind in ("accumulated", "rounded"):
        for dtype in _floats(claimed):
            yield Case(op.name, "functional", first, dtype, shape=shape, fill="integer")
    if kind in ("exact", "rounded", "elementary") and op.specials:
        dtypes = _floats(claimed) if level != "quick" else [d for d in ("float32", "float16")
                                                            if d in claimed]  # fmt: skip
        yield from (Case(op.name, "functional", first, d, shape=shape, fill="special")
                    for d in dtypes)  # fmt: skip
    if op.steps:
        yield from (Case(op.name, "functional", i, fill="halves") for i in good)
    if level == "exhaustive" and len(tensors) == 1 and kind in ("exact", "rounded", "elementary"):
        yield from (Case(op.name, "functional", first, d, fill="sweep")
                    for d in ("float16", "bfloat16") if d in claimed)  # fmt: skip


def _gradients(
    op: Subject, claimed: tuple[str, ...], level: str, good: list[int]
) -> Iterator[Case]:
    if not op.differentiable:
        return
    selection = good[:2] if level == "quick" else good
    yield from (Case(op.name, "grad", i) for i in selection)
    if level != "quick":
        yield from (Case(op.name, "grad", good[0], d) for d in _floats(claimed))
        # What is made of several kernels may have no derivative where rows or columns are equal.
        apart = op.tolerance in ("composite", "chained")
        layouts = [n for n in LAYOUTS[1:] if not (apart and n in REPEATED)]
        if not op.fixed_layout:
            yield from (Case(op.name, "grad", good[0], layout=layout) for layout in layouts)
