"""Searching only the lines that can fit finds what searching everything finds."""

import json
import random
import re
import time
from pathlib import Path

import pytest

from aclnn_bindings.runtime import literals, remedies
from aclnn_bindings.runtime.lines import Lines

_FIELD = Path(__file__).parents[1] / "field"
TEXTS = [row["says"] for row in json.loads((_FIELD / "threads.json").read_text(encoding="utf-8"))]
TEXTS += [text for text, _ in json.loads((_FIELD / "messages.json").read_text(encoding="utf-8"))]


def test_every_text_of_the_field_gives_the_same_matches() -> None:
    for text in [*TEXTS, "\n".join(TEXTS), " ".join(TEXTS), "\n\nx\n"]:
        lines = Lines(text)
        for rule in remedies.rules():
            found = [(line, m.span(), m.groups()) for line, m in lines.matches(rule.pattern)]
            expected = [
                (text.count("\n", 0, m.end()), m.span(), m.groups())
                for m in rule.pattern.finditer(text)
            ]
            assert found == expected, rule.pattern.pattern


def test_every_rule_needs_a_word() -> None:
    """A rule without one costs a search of the whole log."""
    patterns = [rule.pattern.pattern for rule in remedies.rules()]
    assert [pattern for pattern in patterns if not literals.required(pattern)] == []


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"abc(?:def|ghij)", {"abc"}),
        (r"(a|bcd)efg", {"efg"}),
        (r"colou?rs", {"colo"}),
        (r"\[No\] such\.file", {"[no] such.file"}),
        (r"abcd|ef", set()),
        (r"(?!never)here\d+", {"here"}),
        (r"(?:maybe)?\w+", set()),
        (r"ab+cdef", {"cdef"}),
    ],
)
def test_the_words_that_a_pattern_needs(pattern: str, words: set[str]) -> None:
    assert literals.required(pattern) == words


@pytest.mark.parametrize(
    ("pattern", "crosses"),
    [
        (r"a.b", False),
        (r"a[^\n]*b", False),
        (r"a\Sb", False),
        (r"a\s*b", True),
        (r"a[^x]b", True),
        (r"a$", True),
        (r"^a", True),
        (r"[\s\S]", True),
    ],
)
def test_a_pattern_that_reaches_over_lines_is_recognised(pattern: str, crosses: bool) -> None:
    assert literals.crosses_lines(pattern) is crosses


def test_a_letter_whose_small_form_is_longer_hides_nothing() -> None:
    pattern = re.compile("out of memory", re.IGNORECASE)
    assert [line for line, _ in Lines("İ\nİ Out of Memory").matches(pattern)] == [1]


def test_a_megabyte_of_different_lines_is_read_quickly() -> None:
    words = [word for text in TEXTS for word in text.split()]
    draw = random.Random(1)
    text = "\n".join(" ".join(draw.choices(words, k=16)) for _ in range(10_000))
    remedies.rules()
    start = time.process_time()
    assert sum(1 for _ in remedies.of_message(text)) > 100
    assert (time.process_time() - start) / len(text) < 6e-6
