"""The corpus of the field: each observation of real CANN is held by the simulator or by `explain`.

A row that is `wrong` is held to be so: mending it makes its test ask for another state.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from calls import answers, fits

from aclnn_bindings.diagnose.explanation import explain
from aclnn_bindings.install.library import bundled_simulator

ROWS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("observations.json").read_text(encoding="utf-8")
)
CALLS = [row for row in ROWS if "call" in row]
TEXTS = [row for row in ROWS if "says" in row]
STATES = ("right", "partly", "wrong")


def names(key: str) -> Callable[[dict[str, Any]], str]:
    return lambda row: f"{row['source']} {row[key][:50]}"


@cache
def answered(product: str) -> dict[str, str]:
    calls = [row["call"] for row in CALLS if row["product"] == product]
    return dict(zip(calls, answers(calls, product), strict=True))


@pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
@pytest.mark.parametrize("row", CALLS, ids=names("call"))
def test_the_simulator_does_what_the_device_did(row: dict[str, Any]) -> None:
    answer = answered(row["product"])[row["call"]]
    assert not answer.startswith("binding"), answer
    assert fits(answer, row["answer"]) == (row["state"] != "wrong"), answer


@pytest.mark.parametrize("row", TEXTS, ids=names("says"))
def test_the_likeliest_cause_is_what_the_thread_ended_with(row: dict[str, Any]) -> None:
    first = explain(row["says"]).findings[0]
    said = f"{first.cause}: {first.fix}".lower()
    lacking = [words for words in row["advice"] if words.lower() not in said]
    assert (lacking == []) == (row["state"] != "wrong"), f"{lacking} not in: {said}"


def test_the_corpus_is_large_and_every_row_names_its_source() -> None:
    assert len(ROWS) >= 200
    assert len({row["says"] for row in TEXTS}) >= 120
    for row in ROWS:
        assert row["source"]
        assert row["state"] in STATES
        assert ("call" in row) != ("says" in row)


def test_a_call_that_is_refused_is_told_apart_from_one_that_runs() -> None:
    assert fits("0", "0")
    assert not fits("161002 DT_INT64", "0")
    assert not fits("161002 DT_INT64", "161002 DT_BOOL")
    assert fits("361001 x", "!0")
    assert not fits("0", "!0")
