"""Counts agree with their nouns: what is counted in a text goes through `plural`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import mindtorch_npu
import pytest
from mindtorch_npu.plurals import plural

FOLDER = Path(mindtorch_npu.__file__).resolve().parent
FILES = sorted(p for part in ("commands", "fleet") for p in (FOLDER / part).rglob("*.py"))
# `3 of {n} cases` has a plural whatever n is, and these words are verbs.
RATIO = re.compile(r"\b(of|of the|all) $")
VERBS = {"is", "has", "takes", "passes", "fails", "names", "needs"}


def _plain(text: ast.JoinedStr) -> Iterator[str]:
    """What `{len(…)}` counts in words of its own."""
    before = ""
    for part, after in zip(text.values, [*text.values[1:], ast.Constant("")], strict=True):
        if isinstance(part, ast.Constant):
            before = str(part.value)
            continue
        noun = re.match(r" ([a-z]+s)\b", str(getattr(after, "value", "")))
        called = isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Call)
        if noun and called and ast.unparse(part.value).startswith("len(") and (
            noun[1] not in VERBS and not RATIO.search(before)
        ):  # fmt: skip
            yield f"{ast.unparse(part)} {noun[1]}"
        before = ""


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(FOLDER)))
def test_what_is_counted_agrees_with_its_noun(path: Path) -> None:
    texts = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.JoinedStr)]
    assert [words for text in texts for words in _plain(text)] == []


def test_a_plural_is_spelt_by_its_noun() -> None:
    assert [plural(n, "case") for n in (0, 1, 2500)] == ["0 cases", "1 case", "2,500 cases"]
    assert plural(2, "launch") == "2 launches"
    planted = [n for n in ast.walk(ast.parse('f"{len(x)} cases"')) if isinstance(n, ast.JoinedStr)]
    assert len(list(_plain(planted[0]))) == 1
