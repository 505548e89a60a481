"""Owns JUnit XML as CI systems read it: one suite per operator; in it one test per failure, and one
per form and verdict for what did not fail."""

from __future__ import annotations

from xml.etree import ElementTree as Tree

from ...conformance.record.journal import Record, place_words, repro
from ...conformance.record.result import Result
from ...plurals import plural

_BROKEN = frozenset(("CRASH", "HANG", "POISONED", "OOM", "ERROR"))
_SKIPPED = frozenset(("SKIP", "UNSUPPORTED", "XFAIL"))


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
    where = place_words(
        record.header.get("options", {}).get("where", {}), record.header.get("environment", {})
    )
    properties = Tree.SubElement(suite, "properties")
    for name, value in record.header.get("environment", {}).items():
        if isinstance(value, str | int):
            Tree.SubElement(properties, "property", name=_clean(name), value=_clean(str(value)))
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.failing:
            _failure(suite, result, where)
        else:
            groups.setdefault((result.form, result.verdict), []).append(result)
    for group in groups.values():
        _group(suite, group)
    errors = sum(r.verdict in _BROKEN for r in results)
    failures = sum(r.failing for r in results) - errors
    skipped = sum(verdict in _SKIPPED for _, verdict in groups)
    tests = failures + errors + len(groups)
    for name, value in (("tests", tests), ("failures", failures), ("errors", errors),
                        ("skipped", skipped)):  # fmt: skip
        suite.set(name, str(value))
    suite.set("time", f"{sum(r.seconds for r in results):.6f}")
    return tests, failures, errors, skipped


def _failure(suite: Tree.Element, r: Result, where: list[str]) -> None:
    kind = "error" if r.verdict in _BROKEN else "failure"
    note = Tree.SubElement(_test(suite, r.op, r.case, r.seconds), kind, type=r.verdict,
                           message=_clean(r.reason))  # fmt: skip
    note.text = _clean("\n".join([r.reason, *r.guards, repro(r.case, r.seed, where)]))


def _group(suite: Tree.Element, group: list[Result]) -> None:
    """Cases of one form and verdict; their number is in the output, so that the name stays."""
    first = group[0]
    name = f"{first.op}/{first.form}" + (f" {first.verdict}" if first.verdict != "PASS" else "")
    case = _test(suite, first.op, name, sum(r.seconds for r in group))
    if first.verdict in _SKIPPED:
        reasons = dict.fromkeys((r.issue or r.reason).partition(":")[0] for r in group)
        Tree.SubElement(case, "skipped",
                        message=_clean(f"{first.verdict}: {'; '.join(reasons)}"))  # fmt: skip
    words = plural(len(group), "case")
    Tree.SubElement(case, "system-out").text = f"{words} {first.verdict}"


def _test(suite: Tree.Element, op: str, name: str, seconds: float) -> Tree.Element:
    return Tree.SubElement(suite, "testcase", classname=_clean(f"mindtorch_npu.{op}"),
                           name=_clean(name), time=f"{seconds:.6f}")  # fmt: skip


def _clean(text: str) -> str:
    """Without characters that XML 1.0 cannot carry."""
    return "".join(c if _carried(ord(c)) else "?" for c in text)


def _carried(point: int) -> bool:
    """Char of XML 1.0, 2.2: no control characters, surrogates, U+FFFE or U+FFFF."""
    return point in (9, 10) or 32 <= point < 0xD800 or 0xE000 <= point < 0xFFFE or point > 0xFFFF
