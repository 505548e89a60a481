"""Explains a log or a code without a device: likely causes in order, and what to run next.

CANN's own texts come first, as they name the cause; then what is known of the operator with this
code; then codes and message ids by themselves, of which inner errors only pass on another failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..install.error_texts import ErrorText
from ..runtime import message_ids, remedies, results
from ..runtime.advice import Remedy
from . import inference, log

_OF_AN_OPERATOR = 2  # the rank of what one operator means by a code, where none is named
_GUESS = 2  # from this rank on a finding is general, passes on a failure or is only a warning
_LONG = 2000  # lines from which on a log is made shorter first
_ALIKE = 3  # how many lines of one kind are read then
_NUMBER = re.compile(r"(?:0x)?[0-9a-f]*\d[0-9a-f]*")
_COLLECT = (
    "the first error of the whole log, of every rank: the last one is often an echo",
    "CANN's plog: `mindtorch-npu explain ~/ascend/log/debug/plog`",
    "the same run with ASCEND_LAUNCH_BLOCKING=1 and without graphs, whose stack ends at the call",
    "`npu-smi info` and `mindtorch-npu probe`: driver, firmware, CANN, torch and torch_npu",
)


@dataclass(frozen=True, slots=True)
class LikelyCause:
    """One likely cause: what it was concluded from, why it failed, what to do, what to run."""

    evidence: str
    cause: str
    fix: str
    run: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was read, and the causes, the likeliest first.

    `collect` says what else is needed where the text names no cause that is known.
    """

    reading: log.Reading
    findings: tuple[LikelyCause, ...]
    collect: tuple[str, ...] = ()


def explain(text: str, texts: Mapping[str, ErrorText] | None = None) -> Explanation:
    """The explanation of a code, a name, a message or a whole log.

    `texts` are those of an install (`install.error_texts.read`).
    """
    reading = log.read(text)
    every = [*_of_install(text, reading, texts or {}), *_all(text, reading)]
    ranked = sorted(every, key=lambda pair: pair[0])
    unlike: dict[str, LikelyCause] = {}
    for _, finding in ranked:
        unlike.setdefault(finding.cause, finding)
    known = any(rank < _GUESS for rank, _ in ranked)
    return Explanation(reading, tuple(unlike.values()), () if known else _COLLECT)


def _distinct(text: str) -> str:
    """`text` with the first lines of each kind: logs repeat lines that differ in numbers alone."""
    lines = text.split("\n")
    if len(lines) < _LONG:
        return text
    counts: Counter[str] = Counter()
    distinct = []
    for line in lines:
        kind = _NUMBER.sub("0", line)
        counts[kind] += 1
        if counts[kind] <= _ALIKE:
            distinct.append(line)
    return "\n".join(distinct)


def _all(text: str, reading: log.Reading) -> Iterator[tuple[int, LikelyCause]]:
    text = _distinct(text)
    lines = text.split("\n")
    for line, rule in sorted(remedies.of_message(text), key=lambda hit: hit[0]):
        yield rule.rank, _finding(_excerpt(lines[line]), rule.advice, reading)
    for number, name in reading.codes:
        for (op, code), by_code in remedies.operators().items():
            if code == name and op in reading.operators:
                yield (
                    0 if len(reading.codes) == 1 else 1,
                    _finding(f"{op} {number}", by_code, reading),
                )
            elif code == name and not reading.operators:
                yield _OF_AN_OPERATOR, _finding(f"{number} of {op}", by_code, reading)
        if advice := remedies.codes().get(name):
            yield 1, _finding(f"{number} ({name})", advice, reading)
    for family, number in reading.results:
        symbol, advice = results.families()[family].rows[number]
        yield 1, _finding(f"{family} {number} ({symbol})", advice, reading)
    for key in reading.ids:
        if (known := message_ids.of_id(key)) is not None:
            advice = known.of(message_ids.message_of(key, text))
            yield known.rank, _finding(f"{key} {known.title}".strip(), advice, reading)
    for rank, evidence, advice in inference.conclusions(reading):
        yield rank, _finding(evidence, advice, reading)


def _of_install(
    text: str, reading: log.Reading, texts: Mapping[str, ErrorText]
) -> Iterator[tuple[int, LikelyCause]]:
    """What an install says of the ids in `text`, and of its own messages without their id."""
    for row in texts.values():
        named = re.search(rf"(?<!\w){re.escape(row.key)}(?!\w)", text)
        pattern = None if named else row.pattern
        if (named or (pattern and pattern.search(text))) and (advice := _advice(row)):
            rank = _GUESS - 1 if row.key in message_ids.listed() else 0
            yield rank, _finding(f"{row.key} {row.title}".strip(), advice, reading)


def _advice(row: ErrorText) -> Remedy | None:
    if not (row.cause or row.solution):
        return None
    cause = row.cause or row.message or row.title
    return Remedy(cause, row.solution or "read the text after the id", "", str(row.file))


def _finding(evidence: str, advice: Remedy, reading: log.Reading) -> LikelyCause:
    op = reading.operators[0] if reading.operators else ""
    run = advice.run.replace("{op}", op) if op or "{op}" not in advice.run else ""
    return LikelyCause(evidence, advice.cause, advice.fix, run or _next(op), advice.source)


def _next(op: str) -> str:
    return f"mindtorch-npu ops {op}" if op else "mindtorch-npu probe"


def _excerpt(line: str) -> str:
    words = " ".join(line.split())
    return words if len(words) <= 160 else words[:157] + "..."
