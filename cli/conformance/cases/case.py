"""Owns the name of one case: what is run, on what, how; and nothing of how it is judged.

A case's id is readable and complete: `add/inplace/s0/float16/transposed/odd`. With a seed it gives
the same inputs on any machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# What is compared. functional, out, inplace, method: npu = reference; meta: geometry; grad:
# derivatives; error: class and text; repeat, process, batch: see cases/invariants.py; contract-*:
# phase 1 of an ACLNN function.
LEVELS: Final = ("quick", "full", "exhaustive")
INVARIANTS: Final = ("repeat", "process", "batch")
FORMS: Final = ("functional", "out", "inplace", "method", "meta", "grad", "error", "random",
                *INVARIANTS)  # fmt: skip
CONTRACTS: Final = ("contract-call", "contract-null", "contract-dtype", "contract-rank",
                    "contract-leak")  # fmt: skip
# Launches over and over, compared bit by bit; see run/soak.py.
SOAK: Final = "soak"
# Work beside checking, dealt by the same schedulers: times of a workload (bench/item.py), what is
# wrong with a host's install (probe/item.py). Devices do not vote on them.
BENCH: Final = "bench"
PROBE: Final = "probe"
ITEMS: Final = (BENCH, PROBE)
LAYOUTS: Final = ("contiguous", "transposed", "sliced", "stepped", "expanded", "middle", "reversed",
                  "channels-last")  # fmt: skip
SHAPES: Final = ("sample", "empty", "scalar", "ones", "odd", "large", "rank8", "long", "tall",
                 "grown")  # fmt: skip
FILLS: Final = ("normal", "integer", "special", "sweep", "halves")


class CaseNameError(ValueError):
    """An id that names no case; the message shows the part and what is possible."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `sample` counts the row's samples; `dtype` "" keeps the sample's own.

    `detail` says more of a contract, a soak or work beside checking.

    A designed case has `factors` instead: what it differs in from the plain case of its row's
    space, such as `row=1025`; its id is `sum/functional/row=1025/values=special`.
    """

    op: str
    form: str
    sample: int = 0
    dtype: str = ""
    layout: str = "contiguous"
    shape: str = "sample"
    fill: str = "normal"
    detail: str = ""
    designed: bool = False
    factors: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        parts = [self.op, self.form]
        if self.designed:
            return "/".join([*parts, *([f"{k}={v}" for k, v in self.factors] or ["plain"])])
        if self.form not in (*CONTRACTS, SOAK, *ITEMS):
            parts.append(f"s{self.sample}")
        if self.dtype:
            parts.append(self.dtype)
        parts += [value for value, usual in (
            (self.layout, "contiguous"), (self.shape, "sample"), (self.fill, "normal"),
        ) if value != usual]  # fmt: skip
        return "/".join([*parts, self.detail] if self.detail else parts)


def parse(text: str) -> Case:
    """The case of an id; CaseNameError for a part that is no form, layout, shape, fill or dtype."""
    parts = text.split("/")
    if len(parts) < 2 or parts[1] not in (*FORMS, *CONTRACTS, SOAK, *ITEMS):
        raise CaseNameError(
            f"case {text!r}: expected OP/FORM/…, where FORM is one of {', '.join(FORMS)}"
        )
    if parts[1] in (SOAK, *ITEMS):
        return Case(parts[0], parts[1], detail="/".join(parts[2:]))
    if parts[1] not in CONTRACTS and (len(parts) == 2 or "=" in parts[2] or parts[2] == "plain"):
        return _designed(parts[0], parts[1], text)
    fields: dict[str, str | int] = {"op": parts[0], "form": parts[1]}
    if parts[1] in CONTRACTS:
        return Case(parts[0], parts[1], detail="/".join(parts[2:]))
    for part in parts[2:]:
        field, value = _field(part, text)
        if field in fields:
            raise CaseNameError(f"case {text!r}: {field} is given twice ({part!r})")
        fields[field] = value
    return Case(**fields)  # type: ignore[arg-type]


# A level may be an expression, with slashes of its own: `count=T//2`.
_FACTORS: Final = re.compile(r"/(?=[\w.*]+=|plain$)")


def _designed(op: str, form: str, text: str) -> Case:
    factors = []
    for part in _FACTORS.split(text.removeprefix(f"{op}/{form}").removeprefix("/")):
        name, sign, value = part.partition("=")
        if part in ("", "plain"):
            continue
        if not sign or not name or not value:
            raise CaseNameError(f"case {text!r}: {part!r} is no factor; expected NAME=LEVEL")
        factors.append((name, value))
    return designed(op, form, dict(factors))


def designed(op: str, form: str, factors: Mapping[str, str]) -> Case:
    """The designed case of these factors (those of the plain case left out)."""
    pairs = tuple(factors.items())
    return Case(op, form, dtype=factors.get("dtype", ""), designed=True, factors=pairs)


def _field(part: str, whole: str) -> tuple[str, str | int]:
    if part[:1] == "s" and part[1:].isdigit():
        return "sample", int(part[1:])
    for field, words in (("layout", LAYOUTS), ("shape", SHAPES), ("fill", FILLS)):
        if part in words:
            return field, part
    if part in DTYPES:
        return "dtype", part
    raise CaseNameError(
        f"case {whole!r}: {part!r} is no dtype, layout ({', '.join(LAYOUTS)}), "
        f"shape ({', '.join(SHAPES)}) or fill ({', '.join(FILLS)})"
    )


# mindtorch's dtypes, by ACL's name.
ACL_DTYPES: Final = {
    "BOOL": "bool", "UINT8": "uint8", "INT8": "int8", "INT16": "int16", "INT32": "int32",
    "INT64": "int64", "FLOAT16": "float16", "BFLOAT16": "bfloat16", "FLOAT": "float32",
    "DOUBLE": "float64", "COMPLEX64": "complex64", "COMPLEX128": "complex128",
}  # fmt: skip
DTYPES: Final = tuple(ACL_DTYPES.values())
FLOATS: Final = ("float32", "float16", "bfloat16", "float64")
