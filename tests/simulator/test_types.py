"""Operators that are called by their type names, one part per program run."""

import pytest
from compiled import Outcome, run


def types(part: str, **environment: str) -> Outcome:
    """Run a part of programs/types.cpp."""
    return run("types", part, options=("-Wno-deprecated-declarations",), **environment)


@pytest.mark.parametrize("part", ["moves", "numbers", "refusals"])
def test_part_behaves_as_documented(part: str) -> None:
    outcome = types(part)
    assert outcome.code == 0, outcome.out + outcome.err
    assert "done" in outcome.out


def test_an_unknown_type_is_named_at_once_and_on_its_stream() -> None:
    words = "operator NoSuchType is not among those that run by their type name"
    assert types("refusals").out.count(words) == 2


def test_calls_by_type_name_keep_strict_mode_clean() -> None:
    assert types("numbers", ACLSIM_STRICT="report").kinds() == []
