"""Public threads of people on Ascend: `explain` says first what each thread ended with.

`advice` are expressions that the first cause and remedy must match. `draw` says how a thread came
into the table: those of `training` shaped the knowledge, others were scored once before they did.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from aclnn_bindings.diagnose.explanation import explain
from aclnn_bindings.runtime import remedies

THREADS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("threads.json").read_text(encoding="utf-8")
)

DRAWS = (
    "training", "held out", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
    "tenth",
)  # fmt: skip


@pytest.mark.parametrize("row", THREADS, ids=lambda row: row["url"].rpartition("github.com/")[2])
def test_the_first_cause_is_what_the_thread_ended_with(row: dict[str, Any]) -> None:
    first = explain(row["says"]).findings[0]
    said = f"{first.cause}: {first.fix}"
    lacking = [words for words in row["advice"] if not re.search(words, said, re.IGNORECASE)]
    assert lacking == [], said


def test_every_thread_has_an_address_and_advice() -> None:
    for row in THREADS:
        assert row["url"].startswith("http")
        assert row["advice"]
        assert row["draw"] in DRAWS


def test_what_a_pattern_matched_is_named_in_the_advice() -> None:
    first = explain("ImportError: libfoo.so.1: cannot open shared object file").findings[0]
    assert "libfoo.so.1" in first.cause
    assert not any(re.search(r"\{\d", f"{f.cause}{f.fix}{f.run}") for f in (first,))


def test_every_group_that_advice_names_is_in_its_pattern() -> None:
    for rule in remedies.rules():
        named = re.findall(r"\{(\d)\}", rule.advice.cause + rule.advice.fix)
        assert all(int(group) <= rule.pattern.groups for group in named), rule.pattern.pattern
        assert not re.search(r"\{\d", rule.advice.run)


def test_a_chip_that_the_document_lacks_is_named() -> None:
    first = explain("aclnnGroupedMatmul failed on Ascend310B1").findings[0]
    assert "do not list aclnnGroupedMatmul for 310B" in first.cause


def test_a_dtype_that_the_document_lacks_is_named() -> None:
    first = explain("aclnnRmsNorm failed, DT_COMPLEX64, Ascend910B4").findings[0]
    assert "COMPLEX64" in first.cause
    assert "FLOAT16" in first.fix


def test_an_operator_alone_shows_its_limits() -> None:
    causes = explain("call aclnnMatmul failed").findings
    assert "self: " in causes[0].fix
    assert "dimensions" in causes[0].fix


def test_the_package_in_which_a_stack_ends_is_named() -> None:
    text = (
        '  File "/usr/lib/python3/site-packages/vllm_ascend/worker.py", line 1, in load\n'
        '  File "/usr/lib/python3/site-packages/torch/nn.py", line 2, in call\n'
        "StrangeError: 42"
    )
    assert "vllm_ascend raised it" in explain(text).findings[0].cause


@pytest.mark.parametrize("text", ["my program is odd", "EngineDeadError: see above", "EZ9999 x"])
def test_a_text_without_a_known_cause_says_what_to_collect(text: str) -> None:
    answer = explain(text)
    assert any("plog" in step for step in answer.collect)


def test_a_text_with_a_known_cause_asks_for_nothing() -> None:
    assert explain("aclrtSetDevice, error code is 507033").collect == ()


def test_the_cause_in_a_log_comes_before_its_echoes() -> None:
    text = (
        "WARNING Failed to import from vllm._C\n"
        "RuntimeError: Cannot re-initialize NPU in forked subprocess.\n"
        "RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    causes = [finding.cause for finding in explain(text).findings]
    assert "forked" in causes[0]
    assert "echo" in causes[-1]


def test_a_long_log_is_read_once_for_each_kind_of_line() -> None:
    noise = [f"[INFO] RUNTIME({n},python): [stream.cc:{n}]{n} Setup: id={n}" for n in range(9000)]
    noise.insert(4500, "RuntimeError: Cannot re-initialize NPU in forked subprocess.")
    (first,) = explain("\n".join(noise)).findings
    assert "forked" in first.cause
