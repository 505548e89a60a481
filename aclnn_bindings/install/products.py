"""Owns which chip a SoC name means and what documents say operators support there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

_DATA: Final = Path(__file__).parents[1] / "catalogs"
# SoC name (aclrtGetSocName) → product code of the operator documents. `Ascend910B` without a digit
# is 910A-class hardware (reported); 910B1…B4-1 are Atlas A2.
_SOCS: Final = (
    (re.compile(r"Ascend910B\d"), "910b"),
    (re.compile(r"Ascend910_?(93|C)"), "A3"),
    (re.compile(r"Ascend(950|910_95)"), "950"),
    (re.compile(r"Ascend910"), "910"),
    (re.compile(r"Ascend310P"), "310p"),
    (re.compile(r"Ascend310B"), "310b"),
)
# Folder of kernel binaries → product code (file lists of the kernels packages).
_KERNELS: Final[Mapping[str, str]] = {
    "ascend910": "910", "ascend910b": "910b", "ascend910_93": "A3", "ascend950": "950",
    "ascend910_95": "950", "ascend310p": "310p", "ascend310b": "310b",
}  # fmt: skip
# Only the 950 computes in these, also where a document names no product beside them.
_NARROW: Final = frozenset(
    ("HIFLOAT8", "FLOAT8_E5M2", "FLOAT8_E4M3FN", "FLOAT8_E8M0", "FLOAT4_E2M1", "FLOAT4_E1M2")
)
PRODUCTS: Final = ("950", "A3", "910b", "310b", "310p", "910")


@dataclass(frozen=True, slots=True)
class Support:
    """What documents say of one operator: products, and per parameter dtypes (of the product),
    formats and the least and most dimensions, each where it is listed."""

    op: str
    products: tuple[str, ...]
    dtypes: Mapping[str, tuple[str, ...]]
    formats: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranks: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def on(self, product: str | None) -> bool | None:
        """Whether `product` is listed; None when either is not known."""
        return product in self.products if product and self.products else None


def product_of(soc: str) -> str | None:
    """The product code of a SoC name such as `Ascend910B3`, or None."""
    return next((code for pattern, code in _SOCS if pattern.match(soc)), None)


def nondeterministic(op: str) -> bool:
    """Whether a document says that repeated launches of `op` may differ unless
    ACL_OPT_DETERMINISTIC is set."""
    row = _specs()["ops"].get(op)
    return bool(row) and (row.get("deterministic") == 0 or op in _specs()["nondeterministic"])


def kernels_of(folder: str) -> str | None:
    """The product code that a folder of kernel binaries such as `ascend910b` is for, or None."""
    return _KERNELS.get(folder)


def support(op: str, product: str | None = None) -> Support | None:
    """What the newest documents list for `op`, dtypes less those that `product` excludes."""
    row = _specs()["ops"].get(op)
    if row is None:
        return None
    dtypes = {
        name: _without(row, name, fact["dtypes"], product)
        for name, fact in row["params"].items()
        if "dtypes" in fact
    }
    facts = row["params"].items()
    formats = {n: tuple(f["formats"].split()) for n, f in facts if f.get("formats")}
    ranks = {n: tuple(f["rank"]) for n, f in facts if None not in f.get("rank", (None,))}
    return Support(op, tuple(row["products"].split()), dtypes, formats, ranks)


def dtypes_of(
    op: str, param: str, product: str | None, declared: Sequence[str] = ()
) -> tuple[str, ...]:
    """What `param` of `op` takes on `product`: as documents list it, else the dtypes `declared`
    by its header less those that documents exclude there."""
    row = _specs()["ops"].get(op)
    if row is None:
        return tuple(declared)
    index = row["params"].get(param, {}).get("dtypes")
    return _without(row, param, index, product) or _narrowed(row, param, list(declared), product)


def _without(row: Any, param: str, index: int | None, product: str | None) -> tuple[str, ...]:
    names = [] if index is None else _specs()["dtype_sets"][index].split()
    return _narrowed(row, param, names, product)


def _narrowed(row: Any, param: str, names: list[str], product: str | None) -> tuple[str, ...]:
    sets = _specs()["dtype_sets"]
    if product not in (None, "950"):
        names = [n for n in names if n not in _NARROW] or names
    for rule in row.get("exclusions", ()):
        if product not in _ruled(rule) or param not in rule.get("on", [param]):
            continue
        listed = sets[rule["not" if "not" in rule else "only"]].split()
        names = [n for n in names if (n in listed) is ("only" in rule)]
    return tuple(names)


def _ruled(rule: Any) -> set[str]:
    """The products of a rule; documents state what A3 and 910b take alone together."""
    products = set(rule["products"].split())
    return products | {"910b"} if "only" in rule and "A3" in products else products


@cache
def _specs() -> Any:
    """The documents' facts, and what hardware and clients show beyond them."""
    specs = json.loads((_DATA / "op_specs.json").read_text(encoding="utf-8"))
    rows = json.loads((_DATA / "field/limits.json").read_text(encoding="utf-8"))
    for row in rows["products"]:
        for op in row["ops"].split():
            specs["ops"][op]["products"] += " " + row["products"]
    specs["nondeterministic"] = {n for row in rows["nondeterministic"] for n in row["ops"].split()}
    for row in rows["dtypes"]:
        for op in row["ops"].split():
            _narrow_or_widen(specs, specs["ops"][op], row)
    return specs


def _narrow_or_widen(specs: Any, op: Any, row: Any) -> None:
    """`takes` adds a dtype to parameters, `only` leaves its products no other."""
    sets = specs["dtype_sets"]
    names = row["params"].split()
    if "only" in row:
        sets.append(row["only"])
        rule = {"products": row["products"], "only": len(sets) - 1, "on": names}
        op.setdefault("exclusions", []).append(rule)
        return
    for name in names:
        fact = op["params"][name]
        sets.append(f"{sets[fact['dtypes']]} {row['takes']}")
        fact["dtypes"] = len(sets) - 1
