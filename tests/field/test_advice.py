"""For each error that people met: the likeliest cause is the one their public thread ended with."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclnn_bindings.diagnose.explanation import explain
from aclnn_bindings.interface import catalog
from aclnn_bindings.runtime import remedies, status

LINES = Path(__file__).with_name("advice.txt").read_text().splitlines()
ROWS = [tuple(line.rsplit("|", 2)) for line in LINES if line and not line.startswith("#")]


@pytest.mark.parametrize(("text", "words", "source"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_the_first_cause_is_what_the_thread_ended_with(text: str, words: str, source: str) -> None:
    first = explain(text).findings[0]
    said = f"{first.cause}: {first.fix}".lower()
    assert [word for word in words.lower().split(";") if word not in said] == [], source


def test_the_table_is_large_and_every_row_has_a_source() -> None:
    assert len({text for text, _, _ in ROWS}) >= 120
    assert all(source.strip() for _, _, source in ROWS)


def test_every_code_has_a_cause_and_a_remedy() -> None:
    names = status.StatusCodes(catalog.load(catalog.versions()[-1])).names()
    assert set(names.values()) == set(remedies.codes())
    for advice in remedies.codes().values():
        assert advice.cause
        assert advice.fix


def test_every_result_of_hccl_has_a_name_and_a_remedy() -> None:
    declared = dict(catalog.load(catalog.versions()[-1]).enums["HcclResult"])
    told = {name: number for number, (name, _) in remedies.collectives().items()}
    lacking = set(declared) - set(told) - {"HCCL_SUCCESS", "HCCL_E_RESERVED"}
    assert lacking == set()
    assert all(told[name] == declared[name] for name in told if name in declared)


def test_an_id_that_is_not_listed_is_explained_by_its_module() -> None:
    known = remedies.of_id("EG0042")
    assert known is not None
    assert "AOE" in known[1].cause
    assert remedies.of_id("EQ0001") is None
