"""The command: which entries, on which device, what is printed and kept."""

import argparse
import json
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import torch

from .entries import Entry, entries
from .verdict import RANK, Verdict, judge, judge_errors


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.opdb",
        description="Hold torch's operator database (operators, foreach, modules, optimizers)"
        " against mindtorch: equal, refused, wrong or absent, for each entry.",
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "npu", "meta"))
    parser.add_argument("--name", action="append", help="only names that begin so; repeatable")
    parser.add_argument("--dtype", default="float32", help="with commas; those an entry claims")
    parser.add_argument("--limit", type=int, default=12, help="samples per dtype; 0 for all")
    parser.add_argument("--errors", action="store_true", help="the entries' wrong calls instead")
    parser.add_argument("--json", type=Path, help="write every verdict to this file")
    parser.add_argument("--brief", action="store_true", help="counts only")
    return parser.parse_args()


def main() -> None:
    """Run the entries, print what is not equal, then counts."""
    asked = _arguments()
    chosen = [e for e in entries() if not asked.name or e.name.startswith(tuple(asked.name))]
    started = time.monotonic()
    verdicts = [_one(entry, asked) for entry in chosen]
    if asked.json:
        asked.json.write_text(json.dumps([asdict(v) for v in verdicts], indent=1))
    if not asked.brief:
        for verdict in verdicts:
            _show(verdict)
    counts = Counter(v.verdict for v in verdicts)
    said = ", ".join(f"{counts[v]} {v}" for v in RANK if counts[v])
    spent = time.monotonic() - started
    cases, equal = sum(v.cases for v in verdicts), sum(v.equal for v in verdicts)
    print(f"{equal} of {cases} calls are equal ({equal / max(cases, 1):.1%})")
    print(f"{asked.device} ({asked.dtype}): {len(verdicts)} entries: {said}; {spent:.0f} s")


def _one(entry: Entry, asked: argparse.Namespace) -> Verdict:
    if asked.errors:
        return judge_errors(entry, asked.device)
    dtypes = [getattr(torch, name) for name in asked.dtype.split(",")]
    return judge(entry, asked.device, dtypes, asked.limit)


def _show(verdict: Verdict) -> None:
    for reason, count in verdict.reasons.items():
        where = verdict.labels[reason]
        print(f"{verdict.name}: {reason} ({count} of {verdict.cases}; {where})")
