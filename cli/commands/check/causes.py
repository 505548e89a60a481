"""Owns the paragraph per failing operator: its shrunk cause first, then where, how far, and which
kinds of defect fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...conformance.record.journal import repro
from ...conformance.record.result import FAILING, Result, from_json
from ...render import Block, Cell, Heading, Item, Items

_MOST: Final = 20
# Factor → the kinds of defect that a failure which needs it speaks for.
_KINDS: Final[dict[str, str]] = {
    "layout": "strides or the offset of an input ignored",
    "layout1": "strides or the offset of the second input ignored",
    "layout2": "strides or the offset of the third input ignored",
    "layouti": "strides of the indices ignored",
    "to": "strides or the offset of the output ignored",
    "alias": "an input read after the output was written over it",
    "meets1": "a broadcast dimension read as if it were full",
    "meets2": "a broadcast dimension read as if it were full",
    "promote": "operands not converted to the common type",
    "alpha": "alpha ignored, rounded or applied to the wrong operand",
    "beta": "beta ignored, or its buffer read although beta is 0",
    "call": "an attribute ignored or at its default",
    "dims": "negative or several dimensions resolved wrongly",
    "keepdim": "keepdim ignored",
    "at": "inner strides of the reduced dimension wrong",
    "correction": "correction ignored",
    "index": "the index type read as another",
    "pattern": "indices at the edges, repeated or in another order",
    "keys": "several indices combined in the wrong order",
    "count": "more indices than one block holds",
    "tensors": "more tensors than one launch takes",
    "rank": "ranks beyond what the kernel was written for",
    "row": "a block size: what lies beyond it is dropped or read twice",
    "k": "the last terms of a long sum dropped, or sums kept in a narrow type",
}  # fmt: skip
_VALUES: Final[dict[str, str]] = {
    "nan": "NaN lost or spread", "special": "NaN, infinities or zeros of the other sign",
    "mixed": "NaN, infinities or zeros of the other sign",
    "halfway": "ties rounded away from even, or bits cut off", "tiny": "subnormals flushed to zero",
    "large": "overflow on the way, or saturation", "wide": "a narrower type on the way",
    "integer": "a narrower type on the way", "offset": "cancellation: one pass over large numbers",
    "hard": "range reduction or a polynomial beyond its interval",
    "infinite": "rows of infinities: a maximum subtracted from itself",
    "ties": "ties broken wrongly", "repeated": "repeated indices lost",
}  # fmt: skip

# What a guard saw → the kinds of defect that leave that behind.
_GUARDED: Final[dict[str, str]] = {
    "outside of": "writes past the end of a tensor",
    "a second run differs": "elements never written, a stale workspace, or a race",
    "zeros": "a kernel that leaves or returns zeros",
}
_PLAIN: Final = "a formula, constant or sign: the plain case fails"
# Factors of every design, which are no parameters of an operator.
_FACTORS: Final = frozenset(("dtype", "values", "pattern", "overload", "types"))
# ULP; beyond, it is not the rounding of the result that is wrong.
_ROUNDED: Final = 4.0


def causes(results: Sequence[Result], extra: Sequence[str] = ()) -> Iterator[Block]:
    """One paragraph for every operator whose failures were shrunk."""
    by_op: dict[str, list[Result]] = {}
    for r in results:
        if r.verdict in FAILING:
            by_op.setdefault(r.op, []).append(r)
    with_cause = {op: outcomes for op, outcomes in by_op.items() if any(r.cause for r in outcomes)}
    if not with_cause:
        return
    yield Heading(f"Causes ({len(with_cause)} of {len(by_op)} failing operators)")
    yield Items(
        [paragraph(op, outcomes, extra) for op, outcomes in list(with_cause.items())[:_MOST]]
    )


def paragraph(op: str, results: Sequence[Result], extra: Sequence[str] = ()) -> Item:
    """The paragraph of one operator: the smallest cause of its failing results, and what the case
    of that cause gave."""
    shrunk = sorted((r for r in results if r.cause), key=_size)
    first = shrunk[0]
    cause = first.cause or {}
    label = _smallest_result(first)
    details = [("cases", f"{len(results)} fail; this is the smallest")]
    others = dict.fromkeys(str((r.cause or {})["text"]) for r in shrunk[1:])
    details += [("also", text) for text in others if text != cause["text"]][:2]
    details += [("guard", guard) for guard in label.guards if guard != label.reason]
    trusted = label.verdict != "MISTRUSTED"  # else the numbers pass, the worst among them too
    details += (_worst(label) if trusted else []) or [("why", label.reason)]
    if label.pattern and label.pattern["wrong"]:
        details += [("where", f"{label.pattern['text']} ({label.pattern['wrong']} wrong)"),
                    ("map", str(label.pattern["blocks"]))]  # fmt: skip
    details.append(("fits", "; ".join(kinds(cause, label))))
    details.append(("again", repro(str(cause["case"]), first.seed, extra)))
    return Item(Cell(f"{op}: {cause['text']}", "bad"), details)


def _size(r: Result) -> tuple[int, bool]:
    cause = r.cause or {}
    return len(str(cause["case"])), "result" not in cause


def _smallest_result(r: Result) -> Result:
    """What the smallest case gave, where the journal tells; else the failure that led to it."""
    result = (r.cause or {}).get("result")
    try:
        return from_json(result) if isinstance(result, dict) else r
    except (TypeError, ValueError):
        return r  # a foreign journal's


def _worst(r: Result) -> list[tuple[str, str]]:
    worst = (r.measure or {}).get("worst")
    if not worst:
        return []
    text = f"at {list(worst['index'])} got {worst['got']}, expected {worst['expected']}"
    inputs = worst.get("inputs") or {}
    return [("worst", text + (" from " + ", ".join(inputs.values()) if inputs else ""))]


def kinds(cause: Mapping[str, Any], r: Result) -> list[str]:
    """Which kinds of defect would need just these factors."""
    levels = dict(part.partition("=")[::2] for part in str(cause["case"]).split("/")[2:])
    known = [_KINDS[name] for name in levels if name in _KINDS]
    known += list(dict.fromkeys(filter(None, (_declared(n, cause) for n in levels))))
    known += [_VALUES[value] for name, value in levels.items()
              if name in ("values", "pattern") and value in _VALUES]  # fmt: skip
    if str(cause["case"]).split("/")[1] == "inplace":
        known.append("the in-place form alone: its own kernel or its write-back")
    where = str((r.pattern or {}).get("text", ""))
    if where.startswith("a tail"):
        known.append("a loop's tail or the last core's part not computed")
    if where.startswith("every"):
        known.append("one lane of a vector, or one core of several")
    if cause.get("passing") and len(cause["failing"]) <= len(cause["passing"]):
        known.append("the branch of one type")
    known += [kind for words, kind in _GUARDED.items() if any(words in g for g in r.guards)]
    if _leans(r):
        # Which way results lean shows in many of them alone: the size says nothing about blocks.
        known = [kind for kind in known if kind != _KINDS["row"]]
        cut = (r.measure or {})["lean"] < 0
        known.insert(0, "rounding that cuts off" if cut else "rounding half away from zero")
    plain = not levels.keys() - {"dtype"}
    return known or [_PLAIN if plain else "a branch that only these levels take"]


def _declared(name: str, cause: Mapping[str, Any]) -> str:
    """The kind of a factor of a declaration: a size, a layout or a parameter of the operator."""
    if name in _KINDS or name in _FACTORS:
        return ""
    if name.startswith("layout."):
        return f"strides or the offset of {name.removeprefix('layout.')} ignored"
    if name in cause.get("sizes", ()):
        return _KINDS["row"]
    size = name.startswith("*") or name.isupper()
    return "" if size else f"{name} ignored, or wrong at this value"


def _leans(r: Result) -> bool:
    """Whether 16-bit results are off by about one unit, most of them to one side."""
    measure = r.measure or {}
    lean, worst = measure.get("lean", 0.0), measure.get("max_ulp", 0.0)
    return (r.dtype in ("float16", "bfloat16") and isinstance(lean, float) and abs(lean) > 0.2
            and isinstance(worst, float | int) and worst < _ROUNDED)  # fmt: skip
