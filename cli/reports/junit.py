"""Owns JUnit XML: one suite per operator, one test per case, as CI systems read it."""

from __future__ import annotations

from xml.etree import ElementTree as Tree

from ..conformance.journal import Record, place_words, repro
from ..conformance.result import Result

_BROKEN = frozenset(("CRASH", "HANG", "POISONED", "OOM", "ERROR"))


def xml(record: Record) -> str:
    """The record as JUnit XML."""
    by_op: dict[str, list[Result]] = {}
    for result in record.results.values():
        by_op.setdefault(result.op, []).append(result)
    root = Tree.Element("testsuites", name="mindtorch-npu check")
    total = [_suite(root, op, found, record) for op, found in by_op.items()]
    for i, name in enumerate(("tests", "failures", "errors", "skipped")):
        root.set(name, str(sum(t[i] for t in total)))
    Tree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Tree.tostring(root, "unicode") + "\n"


def _suite(
    root: Tree.Element, op: str, found: list[Result], record: Record
) -> tuple[int, int, int, int]:
    suite = Tree.SubElement(root, "testsuite", name=op)
    properties = Tree.SubElement(suite, "properties")
    for name, value in record.header.get("environment", {}).items():
        if isinstance(value, str | int):
            Tree.SubElement(properties, "property", name=name, value=str(value))
    where = place_words(record.header.get("options", {}).get("where", {}))
    for result in found:
        _case(suite, result, where)
    errors = sum(r.verdict in _BROKEN for r in found)
    failures = sum(r.failing for r in found) - errors
    skipped = sum(r.verdict in ("SKIP", "UNSUPPORTED", "XFAIL") for r in found)
    for name, value in (("tests", len(found)), ("failures", failures), ("errors", errors),
                        ("skipped", skipped)):  # fmt: skip
        suite.set(name, str(value))
    suite.set("time", f"{sum(r.seconds for r in found):.6f}")
    return len(found), failures, errors, skipped


def _case(suite: Tree.Element, r: Result, where: list[str]) -> None:
    case = Tree.SubElement(suite, "testcase", classname=f"mindtorch_npu.{r.op}", name=r.case,
                           time=f"{r.seconds:.6f}")  # fmt: skip
    if r.failing:
        kind = "error" if r.verdict in _BROKEN else "failure"
        note = Tree.SubElement(case, kind, type=r.verdict, message=_clean(r.reason))
        note.text = _clean("\n".join([r.reason, *r.guards, repro(r.case, r.seed, where)]))
    elif r.verdict in ("SKIP", "UNSUPPORTED", "XFAIL"):
        Tree.SubElement(case, "skipped", message=_clean(f"{r.verdict}: {r.issue or r.reason}"))


def _clean(text: str) -> str:
    """Without characters that XML 1.0 cannot carry."""
    return "".join(c if c in "\t\n" or ord(c) >= 32 else "?" for c in text)
