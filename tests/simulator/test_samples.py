"""Programs of the usual ACLNN shape build with one command, print what they should, end clean."""

from __future__ import annotations

import pytest
from compiled import PROGRAMS, run

SAMPLES = sorted(p.stem for p in (PROGRAMS / "samples").glob("*.cpp"))
STRICTEST = ("-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic")


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_prints_its_expected_line_and_is_clean_in_strict_mode(name: str) -> None:
    first_line = (PROGRAMS / "samples" / f"{name}.cpp").read_text().splitlines()[0]
    outcome = run(f"samples/{name}", options=STRICTEST, ACLSIM_STRICT="error")
    assert outcome.code == 0, outcome.out + outcome.err
    assert outcome.out.split() == first_line.removeprefix("// prints:").split()
    assert outcome.findings == []


def test_there_are_at_least_twelve_samples() -> None:
    assert len(SAMPLES) >= 12
