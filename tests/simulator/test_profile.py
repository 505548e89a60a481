"""Profiles of programs: what `aclprof…` and `msprof` write, and what their files hold."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path

import pytest
from compiled import build, install, run

LAUNCHES = 5  # of aclnnAdd, in each part of programs/profile.cpp


def msprof(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = install() / "tools" / "profiler" / "bin" / "msprof"
    return subprocess.run(
        [str(program), *map(str, arguments)], capture_output=True, text=True, check=False
    )


def table(output: Path, name: str) -> list[dict[str, str]]:
    (path,) = output.glob(f"{name}_*.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a profile of a part of a program."""
    folder = tmp_path_factory.mktemp("profile")
    outcome = run("profile", "part", str(folder), ACLSIM_STRICT="report")
    assert outcome.code == 0, outcome.out + outcome.err
    done = msprof("--export=on", f"--output={folder}")
    assert done.returncode == 0, done.stderr
    (output,) = folder.glob("PROF_*/mindstudio_profiler_output")
    return output


def test_a_profile_holds_the_launches_between_start_and_stop(exported: Path) -> None:
    rows = table(exported, "op_summary")
    assert [row["Op Name"] for row in rows] == ["aclnnAdd"] * LAUNCHES
    assert {row["Input Shapes"] for row in rows} == {'"8;8"'}
    assert {row["Output Data Types"] for row in rows} == {"FLOAT"}
    assert all(float(row["Task Duration(us)"]) > 0 for row in rows)
    (kind,) = table(exported, "op_statistic")
    assert (kind["OP Type"], kind["Count"]) == ("Add", str(LAUNCHES))
    names = [row["kernel_name"] for row in table(exported, "task_time")]
    assert names == ["aclnnAdd"] * LAUNCHES + ["MEMSET_ASYNC"]
    calls = {row["API Name"]: int(row["Count"]) for row in table(exported, "api_statistic")}
    assert calls["aclnnAdd"] == LAUNCHES
    assert calls["aclrtMalloc"] == 3
    assert len(table(exported, "npu_mem")) == 6  # three allocations, and their end


def test_the_timeline_ties_each_kernel_to_its_call(exported: Path) -> None:
    (path,) = exported.glob("msprof_*.json")
    events = json.loads(path.read_text())
    slices = [e for e in events if e["ph"] == "X"]
    kernels = {(e["pid"], e["tid"], e["ts"]) for e in slices if e["name"] == "aclnnAdd"}
    calls = {(e["pid"], e["tid"], e["ts"]) for e in slices if e["name"] == "AscendCL@aclnnAdd"}
    assert len(kernels) == len(calls) == LAUNCHES
    flows = {
        phase: {e["id"]: (e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] == phase}
        for phase in "sf"
    }
    tied = [i for i, end in flows["f"].items() if end in kernels and flows["s"][i] in calls]
    assert len(tied) == LAUNCHES
    assert all(float(flows["s"][i][2]) <= float(flows["f"][i][2]) for i in tied)
    computing = sum(e["dur"] for e in slices if e["name"] == "Computing")
    assert 0 < computing <= sum(e["dur"] for e in slices if e["name"] == "aclnnAdd") + 1e-6
    (mark,) = [e for e in slices if e["name"] == 'Mark@a "range"']
    assert all(float(mark["ts"]) <= float(ts) for _, _, ts in calls)


def test_a_forked_child_adds_nothing_to_a_profile(tmp_path: Path) -> None:
    outcome = run("profile", "forked", str(tmp_path))
    assert outcome.code == 0, outcome.out + outcome.err
    assert msprof("--export=on", f"--output={tmp_path}").returncode == 0
    (output,) = tmp_path.glob("PROF_*/mindstudio_profiler_output")
    assert len(table(output, "op_summary")) == LAUNCHES


def test_misuse_of_the_profiler_is_refused_with_its_codes(tmp_path: Path) -> None:
    outcome = run("profile", "codes", str(tmp_path))
    assert outcome.code == 0, outcome.out + outcome.err


def test_msprof_profiles_a_whole_program(tmp_path: Path) -> None:
    done = msprof(f"--output={tmp_path}", build("profile"), "whole")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("done")
    (output,) = tmp_path.glob("PROF_*/mindstudio_profiler_output")
    assert len(table(output, "op_summary")) == LAUNCHES


def test_msprof_says_what_it_lacks(tmp_path: Path) -> None:
    assert "no profile of the simulator" in msprof("--export=on", f"--output={tmp_path}").stderr
    refused = msprof("--export=on", "--type=db", f"--output={tmp_path}")
    assert (refused.returncode, "databases are not written" in refused.stderr) == (1, True)
