"""What frameworks need of an install beside operators, as C++ programs and MindSpore itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from compiled import run
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
    outcome = run(
        "graph_values", options=("-D_GLIBCXX_USE_CXX11_ABI=0", "-Wl,--no-as-needed", "-lgraph")
    )
    assert outcome.code == 0, outcome.out + outcome.err
    assert "done" in outcome.out


def _losses(command: list[str], capfd: pytest.CaptureFixture[str]) -> list[float]:
    assert main(command) == 0, capfd.readouterr()
    return [float(word) for word in capfd.readouterr().out.split()]


@pytest.mark.slow
@pytest.mark.skipif(not MINDSPORE, reason="MINDTORCH_MINDSPORE names no interpreter with MindSpore")
@pytest.mark.parametrize("layers", [[], ["--record"], ["--strict", "report"]])
def test_mindspore_trains_as_on_its_cpu(
    layers: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("GLOG_v", "4")
    script = str(HERE / "train_mindspore.py")
    alone = subprocess.run(
        [MINDSPORE, script, "CPU"], capture_output=True, text=True, check=True
    ).stdout
    options = [*layers, str(tmp_path / "r.rec")] if layers == ["--record"] else layers
    command = ["run", "--simulator", *options, "--", MINDSPORE, script, "Ascend"]
    seen = _losses(command, capfd)
    assert len(seen) == 8
    assert seen == pytest.approx([float(word) for word in alone.split()], rel=1e-3)
