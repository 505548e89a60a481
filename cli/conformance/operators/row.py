"""Owns Spec, what one ACLNN operator computes, and SPECS, the table of them; runs nothing.

A row's reference is numpy in higher precision: floats come as float64, integers as they are. It is
written from a public document of the formula, never from a kernel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mindtorch.ops.samples import Sample

from ...judge.classes import Requirement, class_named, requirement

# What computes a row's results: header parameters by name, results in the order of `outs`.
Reference = Callable[..., Any]
# The default of a reference's parameter that has none.
MISSING: Final = inspect.Parameter.empty
# The family of rows outside of `rows`.
CUSTOM: Final = "custom"
# How far from half a step float32 may lead before a result is rounded to a step.
SLACK: Final = 0.01


@dataclass(frozen=True, slots=True)
class Spec:
    """One operator, its versions and in-place forms.

    `reference` takes header parameters by name (a trailing underscore avoids Python's words; one
    with a default may be absent from a version) and gives the results in the order of `outs`:
    header name -> dtype, or the name of what has that dtype or is the number of one (`a|b`: b where
    a sample gives no a). `rule` replaces fields of the class, with its `reason`, or names a rule of
    the table. `source` says where the formula is published. `names` are other operators of the same
    formula; `renamed` maps their parameter names to this row's. `casts` says what dtype a parameter
    has where the dtype under test is another: {"scalar": {"bfloat16": "float32"}}. `steps`: integer
    and 8-bit results are real values rounded to the nearest step; `slack` is how far from half a
    step the arithmetic before that may lead, which is float32 where nothing else is said. `dtypes`,
    where given, are those of the documents' list that these samples fit. `sparse`: most results are
    0 or alike by nature, so that guards against that do not apply. `formats`: the aclFormat of a
    parameter, or of one operator's (`aclnnMatmulWeightNz mat2`); what a sample gives as a matrix
    lies in the tiles of FRACTAL_NZ where that says so. `specials` False: NaN, infinities and signs
    of zero have no stated result there. `draws`, of an operator that draws, says how its result is
    distributed (see draws.py). `nearest`, where several answers are right (signs of vectors), gives
    the one to compare with from the reference's results and those that came; what the reference
    leaves NaN may differ from run to run. `extra` are arguments of samples that no header has:
    they say the size or the dtype of a result. `ignored` are parameters of the header that change
    no result, with reasons; `uncovered` those that no reference takes yet, and `constant` those
    that have one value in all samples: a fault in their handling passes.
    """

    name: str
    module: str
    reference: Reference
    outs: Mapping[str, str]
    samples: Callable[[], Sequence[Sample]]
    tolerance: str
    source: str
    rule: Mapping[str, Any] | str = field(default_factory=dict)
    names: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    fixed_shape: bool = True
    fixed_layout: bool = False
    formats: Mapping[str, str] = field(default_factory=dict)
    casts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    steps: bool = False
    slack: float = SLACK
    dtypes: tuple[str, ...] = ()
    sparse: bool = False
    specials: bool = True
    draws: Callable[..., Any] | None = None
    nearest: Callable[[Sequence[Any], Sequence[Any]], list[Any]] | None = None
    extra: tuple[str, ...] = ()
    ignored: Mapping[str, str] = field(default_factory=dict)
    uncovered: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The module or folder of `rows` that declares the row; "custom" outside of rows."""
        _, rows, rest = self.module.partition(f"{__package__}.rows.")
        return rest.partition(".")[0] if rows else CUSTOM

    def requirement(self) -> Requirement:
        """The class of the row, with its own numbers or those of a rule of the table."""
        if isinstance(self.rule, str):
            return requirement(self.tolerance, self.rule)
        if not self.rule:
            return class_named(self.tolerance)
        return replace(class_named(self.tolerance), **self.rule)

    @property
    def writes_first(self) -> bool:
        """Whether an in-place form follows: one result, of the first input's kind."""
        return list(self.outs.values()) == [next(iter(self.parameters()))]

    def inplace(self, name: str, target: str) -> Spec:
        """The row of the form that writes into its first input, which the header calls `target`."""
        first = next(iter(self.parameters()))
        return replace(self, name=name, outs={first: first}, renamed={target: first})

    def parameters(self) -> dict[str, Any]:
        """What the reference takes, by header name: the default, or MISSING. What begins with an
        underscore is its own."""
        parameters = inspect.signature(self.reference).parameters.items()
        return {n.removesuffix("_"): p.default for n, p in parameters if n[0] != "_"}


@dataclass(frozen=True, slots=True)
class Unspecified:
    """An operator without a public formula: what is known, and where from."""

    name: str
    known: str
    source: str


SPECS: Final[dict[str, Spec]] = {}
UNSPECIFIED: Final[dict[str, Unspecified]] = {}


class SpecError(ValueError):
    """A spec row that contradicts itself or a header; the message names row and parameter."""
