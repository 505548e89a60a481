"""CANN's message ids: each has advice, and advice names the arguments of the message."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from aclnn_bindings.diagnose.explanation import explain
from aclnn_bindings.runtime import message_ids, remedies, results

MESSAGES: list[tuple[str, list[str]]] = json.loads(
    Path(__file__).with_name("messages.json").read_text(encoding="utf-8")
)
# Modules, and how many of their ids releases 8.1 to 9.1 declare.
DECLARED = {"E1": 140, "E3": 16, "E5": 38, "E6": 150, "EE": 25, "EH": 15, "EI": 21, "EZ": 57}


@pytest.mark.parametrize("module", DECLARED)
def test_the_ids_of_every_module_are_listed(module: str) -> None:
    ids = [key for key in message_ids.listed() if key.startswith(module)]
    assert len([key for key in ids if not key.startswith("ERR")]) >= DECLARED[module]


def test_every_id_has_a_cause_a_remedy_and_a_source() -> None:
    for key, known in message_ids.listed().items():
        advice = known.of("")
        assert advice.cause, key
        assert advice.fix, key
        assert advice.source, key
        assert not re.search(r"[{}%]|\(\)|  | [,:;]", advice.cause + advice.fix), (key, advice)


@pytest.mark.parametrize("module", ["00", "01", "02", "03", "04"])
@pytest.mark.parametrize("code", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 100, 200, 300, 999])
def test_every_code_of_torch_npu_is_explained(module: str, code: int) -> None:
    (first, *_) = explain(f"[ERROR] 2026 (PID:7, RankID:0) ERR{module}{code:03} x").findings
    assert f"ERR{module}{code:03}" in first.evidence


@pytest.mark.parametrize(("text", "words"), MESSAGES)
def test_the_advice_names_what_the_message_names(text: str, words: list[str]) -> None:
    said = [f"{finding.cause}: {finding.fix}" for finding in explain(text).findings[:2]]
    assert any(all(re.search(word, one) for word in words) for one in said), said


def test_a_failed_call_takes_the_advice_of_an_id_in_its_message() -> None:
    message = "EZ0019: Parameter x1 of aclnnMatmul has incorrect dtype INT8. It should be FLOAT."
    advice = remedies.advise("ACLNN_ERR_PARAM_INVALID", "aclnnMatmul", message)
    assert advice is not None
    assert "dtype of x1" in advice.cause


def test_every_result_below_acl_has_a_cause_and_a_remedy() -> None:
    assert set(results.families()) == {"HcclResult", "drvError_t", "DCMI", "GE"}
    for family in results.families().values():
        assert len(family.rows) >= 20
        for symbol, advice in family.rows.values():
            assert symbol
            assert advice.cause
            assert advice.fix


def test_a_word_that_only_looks_like_a_symbol_is_no_result() -> None:
    assert list(results.read("FAILED with PARAM_INVALID: 12 of 4294967295")) == []
