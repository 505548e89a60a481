"""Owns what the atlas knows of one operator: from catalogs, documents, spec rows and clients."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from aclnn_bindings.install.products import PRODUCTS, support
from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.signature import OpSignature
from mindtorch.ops import OPS

from ....conformance.operators import rows as spec_rows
from ....conformance.operators.find import subject
from ....conformance.operators.row import SPECS, UNSPECIFIED
from ....conformance.run.subject import UnknownSubjectError

# What people call the products of operator documents.
NAMES = {"950": "Ascend 950", "A3": "Atlas A3 (910C)", "910b": "Atlas A2 (910B)",
         "310b": "310B", "310p": "310P", "910": "910A"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One operator. `signatures` by version, oldest first, say where it changed.

    `dtypes`: parameter -> product -> dtypes, of the newest documents. `state`: judged, unspecified
    or contract only; `formula`: text of the reference, or of the torch row that states it.
    `mutants`: of the simulator's, how many the cases of those rows killed, and how many they
    reached; None where none was drawn.
    """

    name: str
    versions: tuple[str, ...]
    signatures: tuple[tuple[str, str], ...]
    products: tuple[str, ...]
    documented: bool
    dtypes: Mapping[str, Mapping[str, tuple[str, ...]]]
    formats: Mapping[str, str]
    usage: Mapping[str, int]
    family: str
    state: str
    rule: str
    reason: str
    source: str
    formula: str
    rows: tuple[str, ...]
    simulator: bool
    mutants: tuple[int, int] | None

    @property
    def since(self) -> str:
        """The oldest known version that declares it."""
        return self.versions[0]


def entries() -> list[Entry]:
    """Every operator of every catalog, by name."""
    known = {version: catalog.load(version) for version in catalog.versions()}
    names = sorted({name for declared in known.values() for name in declared.ops})
    exported = _exported()
    return [_entry(name, known, exported) for name in names]


def find(name: str) -> Entry | list[str]:
    """The Entry of an operator, or the names nearest to one that no version declares."""
    known = {version: catalog.load(version) for version in catalog.versions()}
    if any(name in declared.ops for declared in known.values()):
        return _entry(name, known, _exported())
    names = {n for declared in known.values() for n in declared.ops}
    return get_close_matches(name, sorted(names), 3)


def _entry(name: str, known: Mapping[str, Any], exported: frozenset[str]) -> Entry:
    there = {v: d for v, d in known.items() if name in d.ops}
    signatures: list[tuple[str, str]] = []
    for version, declared in there.items():
        text = spelled(declared.ops[name])
        if not signatures or signatures[-1][1] != text:
            signatures.append((version, text))
    documented = support(name)
    products = tuple(p for p in PRODUCTS if documented is not None and p in documented.products)
    newest = list(there.values())[-1]
    family, state, rule, reason, source, formula = _judgement(name, newest)
    callers = tuple(
        sorted(n for n, op in OPS.items() if any(c.name == name for c in op.kernels.aclnn))
    )
    return Entry(
        name, tuple(there), tuple(signatures), products, documented is not None,
        _dtypes(name, products), _formats(name), _usage().get(name, {}), family, state, rule,
        reason, source, formula, callers, name in exported, _mutants(callers),
    )  # fmt: skip


def spelled(signature: OpSignature) -> str:
    """Phase 1 as C text, one parameter a line."""
    phase = signature.workspace
    lines = ",\n    ".join(f"{p.type} {p.name}".replace("* ", "*") for p in phase.params)
    return f"{phase.returns} {phase.name}(\n    {lines})"


def _judgement(name: str, declared: Any) -> tuple[str, str, str, str, str, str]:
    """(family, state, rule, its reason, source, formula)."""
    spec_rows.declare(name)
    if name in UNSPECIFIED:
        known = UNSPECIFIED[name]
        return "", "unspecified", "", known.known, known.source, ""
    try:
        judged: Any = subject(name, declared)
    except UnknownSubjectError:
        return "", "contract only", "", "", "", ""
    need = judged.requirement("")
    row = getattr(judged, "spec", None)
    if row is not None:
        return judged.family, "judged", need.text(), need.reason, row.source, _text(row.reference)
    return (judged.family, "judged", need.text(), need.reason,
            f"mindtorch's row {judged.op.name}, whose samples and reference it shares",
            judged.op.text)  # fmt: skip


def _text(reference: Any) -> str:
    """The reference's own lines."""
    try:
        return inspect.getsource(inspect.unwrap(reference))
    except (OSError, TypeError):
        return ""


def _dtypes(name: str, products: tuple[str, ...]) -> dict[str, dict[str, tuple[str, ...]]]:
    by_product: dict[str, dict[str, tuple[str, ...]]] = {}
    for product in products:
        facts = support(name, product)
        for param, dtypes in (facts.dtypes if facts is not None else {}).items():
            by_product.setdefault(param, {})[product] = dtypes
    return by_product


@cache
def _documents() -> Any:
    import aclnn_bindings

    path = files(aclnn_bindings) / "catalogs" / "op_specs.json"
    return json.loads(path.read_text("utf-8"))["ops"]


def _formats(name: str) -> dict[str, str]:
    params = _documents().get(name, {}).get("params", {})
    return {p: fact["formats"] for p, fact in params.items() if fact.get("formats")}


@cache
def _killed() -> dict[str, tuple[int, int]]:
    """Row → mutants killed and reached, as the mutation test counted them last."""
    counts: dict[str, tuple[int, int]] = {}
    stored = json.loads((files(__package__) / "mutants.json").read_text("utf-8"))
    for text, rows in stored.items():
        killed, reached = map(int, text.split(" of "))
        counts |= dict.fromkeys(rows.split(), (killed, reached))
    return counts


def _mutants(rows: tuple[str, ...]) -> tuple[int, int] | None:
    counts = [_killed()[row] for row in rows if row in _killed()]
    return (sum(c[0] for c in counts), sum(c[1] for c in counts)) if counts else None


@cache
def _counts() -> Any:
    return json.loads((files(__package__) / "usage.json").read_text("utf-8"))


@cache
def _usage() -> dict[str, dict[str, int]]:
    """Operator → client → uses, from client → uses → operators."""
    by_operator: dict[str, dict[str, int]] = {}
    for client, uses in _counts()["uses"].items():
        for count, names in uses.items():
            for name in names.split():
                by_operator.setdefault(name, {})[client] = int(count)
    return by_operator


def clients() -> Mapping[str, str]:
    """Client → what was counted there."""
    called: Mapping[str, str] = _counts()["clients"]
    return called


def _exported() -> frozenset[str]:
    """The operators of the bundled simulator; none where it is not built."""
    import aclnn_bindings
    from aclnn_bindings.errors import BindingError

    try:
        cann = aclnn_bindings.open(None, simulator=True)
        return frozenset(name for name in cann.declarations.ops if cann.has_op(name))
    except (BindingError, OSError):
        return frozenset()


def counts(entries: list[Entry]) -> dict[str, int]:
    """How many operators there are, and how many have a formula, are simulated, are called."""
    spec_rows.declare_all()
    return {
        "operators": len(entries), "judged": sum(e.state == "judged" for e in entries),
        "simulated": sum(e.simulator for e in entries),
        "called": sum(bool(e.rows) for e in entries),
        "rows": len(SPECS),
    }  # fmt: skip
