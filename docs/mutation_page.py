"""Renders how many planted faults `check` catches, from the counts that a run wrote down."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCORES = ROOT / "tests" / "mutation" / "scores.json"
STATES = ("quick", "full", "survived", "equivalent", "unreached")


def _percent(counts: Sequence[int], levels: int) -> str:
    judged = sum(counts[:3])
    return f"{100 * sum(counts[:levels]) / judged:.1f}" if judged else "–"


def _table(first: str, rows: Iterable[tuple[str, Sequence[int]]]) -> list[str]:
    names = ["killed at quick", "only at full", *STATES[2:], "quick %", "full %"]
    lines = [f"| {first} | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for name, counts in rows:
        cells = [*map(str, counts), _percent(counts, 1), _percent(counts, 2)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def mutation_page() -> str:
    """Scores by kind and by kernel file, and the hand-written defects that escape."""
    data = json.loads(SCORES.read_text("utf-8"))
    whole = [sum(column) for column in zip(*data["kinds"].values(), strict=True)]
    bugs = data["bugs"]
    caught = len(bugs["quick"]) + len(bugs["full"])
    escapes = [f"- {name}" for name in bugs["survived"]]
    escapes += [f"- {name} (no case reaches it)" for name in bugs["unreached"]]
    return "\n".join([
        "# Scores of the mutation tests\n",
        "Generated from `tests/mutation/scores.json`, which `python -m tests.mutation report`",
        "writes after a run. What the words mean: [mutation testing](mutation.md).",
        "The atlas has the score of each operator.\n",
        f"{data['words']}\n",
        "## By kind of change\n",
        *_table("kind", [*data["kinds"].items(), ("**all**", whole)]),
        "\n## By kernel file\n",
        *_table("file", data["files"].items()),
        "\n## Defects written by hand\n",
        f"{caught} of {sum(map(len, bugs.values()))} are caught. These escape:\n",
        *escapes,
        "",
    ])  # fmt: skip
