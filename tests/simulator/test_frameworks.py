"""What frameworks need of an install beside operators, as C++ programs and MindSpore itself."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from compiled import run

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


def _losses(command: list[str]) -> list[float]:
    # The tree alone: the packages beside this Python are not those of MindSpore's.
    tree = [p for p in sys.path if Path(p).is_relative_to(HERE.parents[1])]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(tree), "GLOG_v": "4"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [
        float(word) for word in re.findall(r"^[\d.]+(?: [\d.]+)+ ?$", done.stdout, re.M)[-1].split()
    ]


@pytest.mark.slow
@pytest.mark.skipif(not MINDSPORE, reason="MINDTORCH_MINDSPORE names no interpreter with MindSpore")
def test_mindspore_trains_as_on_its_cpu(tmp_path: Path) -> None:
    script = str(HERE / "train_mindspore.py")
    expected = _losses([MINDSPORE, script, "CPU"])
    for layers in ((), ("--record", str(tmp_path / "calls.rec")),
                   ("--strict=error", "--allow", "mindspore")):  # fmt: skip
        run_it = [sys.executable, "-m", "mindtorch_npu", "run", "--simulator", *layers, "--"]
        seen = _losses([*run_it, MINDSPORE, script, "Ascend"])
        assert len(seen) == 8
        assert seen == pytest.approx(expected, rel=1e-3)
        if not layers:
            graphs = _losses([*run_it, MINDSPORE, script, "Ascend", "graph"])
            assert graphs == pytest.approx(expected, rel=1e-3)
