"""Streams that are captured, and the models made of them, one part per program run."""

import pytest
from compiled import run

# Parts of programs/capture.cpp.
PARTS = (
    "replays", "forks_and_joins", "refusals", "modes", "updates", "callbacks",
    "if_true", "if_false", "switches", "loops", "tasks",
)  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_part_behaves_as_documented(part: str) -> None:
    outcome = run("capture", part)
    assert outcome.code == 0, outcome.out + outcome.err
    assert "done" in outcome.out


CLEAN = ("forks_and_joins", "updates", "callbacks", "modes", "loops", "tasks")


@pytest.mark.parametrize("part", CLEAN)
def test_captures_keep_strict_mode_clean(part: str) -> None:
    outcome = run("capture", part, ACLSIM_STRICT="report")
    assert outcome.code == 0, outcome.out + outcome.err
    assert outcome.kinds() == [], outcome.findings


def test_inline_streams_capture_too() -> None:
    assert run("capture", "replays", ACLSIM_STREAM="inline").code == 0


def test_a_model_names_its_tasks() -> None:
    output = run("capture", "replays").out
    assert '"name": "aclnnAdd"' in output
    assert "device 0 stream 1 task 2 MEMCPY_ASYNC" in output
