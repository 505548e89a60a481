"""Renders how many planted faults `check` catches, from the counts that a run wrote down."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCORES = ROOT / "tests" / "mutation" / "scores.json"
STATES = ("quick", "full", "survived", "equivalent", "unreached")


def _percent(counts: Mapping[str, int], *levels: str) -> str:
    judged = sum(counts.get(s, 0) for s in ("quick", "full", "survived"))
    return f"{100 * sum(counts.get(s, 0) for s in levels) / judged:.1f}" if judged else "–"


def _table(first: str, rows: Iterable[tuple[str, Mapping[str, int]]]) -> list[str]:
    names = ["killed at quick", "only at full", *STATES[2:], "quick %", "full %"]
    lines = [f"| {first} | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for name, counts in rows:
        cells = [str(counts.get(s, 0)) for s in STATES]
        shares = [_percent(counts, "quick"), _percent(counts, "quick", "full")]
        lines.append(f"| {name} | {' | '.join([*cells, *shares])} |")
    return lines


def _whole(tables: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found = dict.fromkeys(STATES, 0)
    for counts in tables:
        for state, number in counts.items():
            found[state] += number
    return found


def mutation_page() -> str:
    """Scores by kind, by kernel file and by operator, and every hand-written defect."""
    data = json.loads(SCORES.read_text("utf-8"))
    kinds = [*data["kinds"].items(), ("**all**", _whole(data["kinds"].values()))]
    words = {"quick": "caught at quick", "full": "caught at full", "survived": "**escapes**",
             "unreached": "**escapes**: no case reaches it"}  # fmt: skip
    bugs = [f"| {name} | {words.get(state, state)} |" for name, state in data["bugs"].items()]
    caught = sum(s in ("quick", "full") for s in data["bugs"].values())
    return "\n".join([
        "# Scores of the mutation tests\n",
        "Generated from `tests/mutation/scores.json`, which `python -m tests.mutation report`",
        "writes after a run, by `docs/check.py --write`; do not edit. What the words mean:",
        "[mutation testing](mutation.md).\n",
        f"{data['words']}\n",
        "## By kind of change\n",
        *_table("kind", kinds),
        "\n## By kernel file\n",
        *_table("file", data["files"].items()),
        "\n## By operator\n",
        "The mutants of the kernel files that an operator's cases reach; the loops that all share",
        "are counted above only.\n",
        *_table("operator", data["operators"].items()),
        "\n## Defects written by hand\n",
        f"{caught} of {len(bugs)} are caught.\n",
        "| defect | verdict |",
        "|---|---|",
        *bugs,
        "",
    ])  # fmt: skip
