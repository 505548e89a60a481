"""Owns JUnit XML: one suite per operator, one test per case, as CI systems read it."""

from __future__ import annotations

from xml.etree import ElementTree as Tree

from ...conformance.record.journal import Record, place_words, repro
from ...conformance.record.result import Result

_BROKEN = frozenset(("CRASH", "HANG", "POISONED", "OOM", "ERROR"))


def xml(record: Record) -> str:
    """The record as JUnit XML."""
    by_op: dict[str, list[Result]] = {}
    for result in record.results.values():
        by_op.setdefault(result.op, []).append(result)
    root = Tree.Element("testsuites", name="mindtorch-npu check")
    total = [_suite(root, op, results, record) for op, results in by_op.items()]
    for i, name in enumerate(("tests", "failures", "errors", "skipped")):
        root.set(name, str(sum(t[i] for t in total)))
    Tree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Tree.tostring(root, "unicode") + "\n"


def _suite(
    root: Tree.Element, op: str, results: list[Result], record: Record
) -> tuple[int, int, int, int]:
    suite = Tree.SubElement(root, "testsuite", name=_clean(op))
    properties = Tree.SubElement(suite, "properties")
    for name, value in record.header.get("environment", {}).items():
        if isinstance(value, str | int):
            Tree.SubElement(properties, "property", name=_clean(name), value=_clean(str(value)))
    where = place_words(record.header.get("options", {}).get("where", {}))
    for result in results:
        _case(suite, result, where)
    errors = sum(r.verdict in _BROKEN for r in results)
    failures = sum(r.failing for r in results) - errors
    skipped = sum(r.verdict in ("SKIP", "UNSUPPORTED", "XFAIL") for r in results)
    for name, value in (("tests", len(results)), ("failures", failures), ("errors", errors),
                        ("skipped", skipped)):  # fmt: skip
        suite.set(name, str(value))
    suite.set("time", f"{sum(r.seconds for r in results):.6f}")
    return len(results), failures, errors, skipped


def _case(suite: Tree.Element, r: Result, where: list[str]) -> None:
    case = Tree.SubElement(suite, "testcase", classname=_clean(f"mindtorch_npu.{r.op}"),
                           name=_clean(r.case),
                           time=f"{r.seconds:.6f}")  # fmt: skip
    if r.failing:
        kind = "error" if r.verdict in _BROKEN else "failure"
        note = Tree.SubElement(case, kind, type=r.verdict, message=_clean(r.reason))
        note.text = _clean("\n".join([r.reason, *r.guards, repro(r.case, r.seed, where)]))
    elif r.verdict in ("SKIP", "UNSUPPORTED", "XFAIL"):
        Tree.SubElement(case, "skipped", message=_clean(f"{r.verdict}: {r.issue or r.reason}"))


def _clean(text: str) -> str:
    """Without characters that XML 1.0 cannot carry."""
    return "".join(c if _carried(ord(c)) else "?" for c in text)


def _carried(point: int) -> bool:
    """Char of XML 1.0, 2.2: no control characters, surrogates, U+FFFE or U+FFFF."""
    return point in (9, 10) or 32 <= point < 0xD800 or 0xE000 <= point < 0xFFFE or point > 0xFFFF
