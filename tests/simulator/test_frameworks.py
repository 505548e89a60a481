"""What frameworks need of an install beside operators, as C++ programs and MindSpore itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from compiled import install, run
from mindtorch_npu.main import main

HERE = Path(__file__).parent
TDT = ("-Wl,--no-as-needed", "-lacl_tdt_channel")
# An interpreter with MindSpore 2.10 or later, whose wheel has the Ascend part for x86-64.
MINDSPORE = os.environ.get("MINDTORCH_MINDSPORE", "")


@pytest.mark.parametrize("part", ["float_modes", "channels", "allocators"])
def test_part_behaves_as_documented(part: str) -> None:
    outcome = run("frameworks", part, options=TDT)
    assert outcome.code == 0, outcome.out + outcome.err
    assert "done" in outcome.out


def test_parts_stay_clean_under_strict_mode() -> None:
    for part in ("float_modes", "channels", "allocators"):
        outcome = run("frameworks", part, options=TDT, ACLSIM_STRICT="report")
        assert outcome.code == 0, outcome.out + outcome.err
        assert outcome.kinds() == [], outcome.findings


def test_graph_engine_keeps_what_operators_are_given() -> None:
    outcome = run("graph_values", options=("-D_GLIBCXX_USE_CXX11_ABI=0", "-Wl,--no-as-needed", "-lgraph"))
    assert outcome.code == 0, outcome.out + outcome.err
    assert "done" in outcome.out
