"""Owns which rule an operator must meet: the table classes.toml, read once; refuses silence.

Every entry has a reason and a source; one without is an error when the table is read.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import inf
from typing import Any, Final

from .formats import FORMATS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TIERS: Final = ("T0", "T1", "ratio", "norm", "T2", "T3", "T4")
MEANING: Final = {
    "T0": "bit for bit",
    "T1": "units in the last place",
    "ratio": "componentwise ratio, aware of length and cancellation",
    "norm": "error against the largest element, in units of rounding",
    "T2": "torch.testing.assert_close defaults",
    "T3": "the ecosystem's published rules, both versions",
    "T4": "error ratio against the CPU in the same precision",
    "none": "no golden value",
}


class ClassTableError(ValueError):
    """classes.toml is wrong; the message names the entry and the field."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one operator must meet. `tier` may offer two, such as `T1|ratio`: either is enough."""

    name: str
    tier: str
    ulp: tuple[float, float, float]
    ratio: float
    magnitude: str
    reason: str
    source: str
    accumulator: str = "float32"
    norm: float = 0.0
    steps: tuple[float, float] = (inf, inf)
    accumulate: float = 0.0
    signed_zero: bool = False
    one_sign: float = 1.0

    @property
    def tiers(self) -> tuple[str, ...]:
        return tuple(self.tier.split("|"))

    def ulp_of(self, dtype: str) -> float:
        """The bound in ULP for results of a float format."""
        digits = FORMATS[dtype].digits
        return self.ulp[0 if digits <= 11 else 1 if digits <= 24 else 2]

    def text(self) -> str:
        """The rule in one line, with its numbers."""
        parts = []
        for tier in self.tiers:
            if tier == "T1":
                parts.append("T1: ≤ {:g} / {:g} / {:g} ULP (16-bit, float32, float64)".format(
                    *self.ulp))  # fmt: skip
            elif tier == "ratio":
                scale = "the operator" if self.magnitude == "self" else self.magnitude
                parts.append(
                    f"ratio: |e| ≤ {self.ratio:g} (u_out |g| + u_acc f(|x|)), f = {scale}"
                    + (
                        f", {self.ratio * self.one_sign:g} where nothing cancels"
                        if self.one_sign > 1
                        else ""
                    )
                )
            elif tier == "norm":
                more = f" + {self.accumulate:g} u_acc" if self.accumulate else ""
                parts.append(f"norm: max |e| ≤ ({self.norm:g} u_out{more}) max |g|")
            else:
                parts.append(f"{tier}: {MEANING[tier]}")
        if self.tiers[-1] == "ratio":
            parts[-1] += f", u_acc of {self.accumulator}"
        return " or ".join(parts)


@cache
def _tables() -> tuple[dict[str, Requirement], dict[str, dict[str, Any]]]:
    data = tomllib.loads((files(__package__) / "classes.toml").read_text("utf-8"))
    requirements = {name: _requirement(name, entry) for name, entry in data["class"].items()}
    for name, entry in data["rule"].items():
        _complete(name, entry)
        if entry.get("class", "exact") not in requirements:
            raise ClassTableError(f"classes.toml: [{name}] class {entry['class']!r} is no class")
    return requirements, data["rule"]


def _complete(name: str, entry: dict[str, Any]) -> None:
    for field in ("reason", "source"):
        if not entry.get(field):
            raise ClassTableError(f"classes.toml: [{name}] has no {field}; every rule states one")
    for tier in str(entry.get("tier", "T0")).split("|"):
        if tier not in MEANING:
            raise ClassTableError(f"classes.toml: [{name}] tier {tier!r} is none of {[*MEANING]}")


def _requirement(name: str, entry: dict[str, Any]) -> Requirement:
    _complete(name, entry)
    a, b, c = entry["ulp"]
    return Requirement(
        name, entry["tier"], (a, b, c), entry.get("ratio", 4.0), entry.get("magnitude", ""),
        entry["reason"], entry["source"], norm=entry.get("norm", 0.0),
        steps=tuple(entry.get("steps", (inf, inf))),
        accumulate=entry.get("accumulate", 0.0),
        one_sign=entry.get("one_sign", 1.0),
        signed_zero=entry.get("signed_zero", False),
    )  # fmt: skip


@cache
def requirement(tolerance: str, rule: str = "", dtype: str = "") -> Requirement:
    """What a row of class `tolerance` and rule `rule` must meet for inputs of `dtype`.

    ClassTableError for a rule that the table lacks.
    """
    classes, rules = _tables()
    if rule and rule not in rules:
        raise ClassTableError(f"rule {rule!r} is none of {sorted(rules)}")
    entry = rules[rule] if rule else {}
    if not dtype.startswith(entry.get("only", "")):
        entry = {}
    base = classes.get(entry.get("class", tolerance), classes["composite"])
    if dtype.startswith("complex") and tolerance != "exact":
        base = replace(base, signed_zero=False)
    known = {k: v for k, v in entry.items() if k in Requirement.__slots__}
    if "ulp" in known:
        known["ulp"] = tuple(known["ulp"])
    return replace(base, **known)


def class_named(name: str) -> Requirement:
    """A class of the table itself; KeyError for an unknown one."""
    return _tables()[0][name]


def rules() -> tuple[str, ...]:
    """The names that rows may give as their rule, in the table's order."""
    return tuple(_tables()[1])


def classes() -> list[Requirement]:
    """Every class, in the table's order."""
    return list(_tables()[0].values())
