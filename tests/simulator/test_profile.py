"""Profiles of programs: what `aclprof…` and `msprof` write, and what their files hold."""

import csv
import json
import re
import sqlite3
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
    assert flows["s"].keys() == flows["f"].keys()  # no arrow leads nowhere
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


def test_the_database_says_what_the_files_say(exported: Path) -> None:
    folder = exported.parent
    assert msprof("--export=on", "--type=db", f"--output={folder}").returncode == 0
    (path,) = folder.glob("msprof_*.db")
    assert re.fullmatch(r"msprof_\d+\.db", path.name)  # torch_npu looks for digits only
    connection = sqlite3.connect(path)
    launches = connection.execute(
        "SELECT name.value, type.value, shapes.value, task.endNs - task.startNs, launch.name "
        "FROM COMPUTE_TASK_INFO AS info JOIN TASK AS task USING (globalTaskId) "
        "JOIN STRING_IDS AS name ON name.id = info.name "
        "JOIN STRING_IDS AS type ON type.id = info.opType "
        "JOIN STRING_IDS AS shapes ON shapes.id = info.inputShapes "
        "JOIN CANN_API AS launch ON launch.connectionId = task.connectionId "
        "AND launch.type = 10000 AND launch.startNs <= task.startNs"
    ).fetchall()
    said = [(row["Op Name"], row["OP Type"], row["Input Shapes"])
            for row in table(exported, "op_summary")]  # fmt: skip
    assert [row[:3] for row in launches] == said == [("aclnnAdd", "Add", '"8;8"')] * LAUNCHES
    assert all(ns > 0 for _, _, _, ns, _ in launches)
    assert connection.execute(
        "SELECT DISTINCT value FROM STRING_IDS WHERE id IN (SELECT name FROM CANN_API "
        "WHERE type = 10000)"
    ).fetchall() == [("launch",)]
    calls = dict(connection.execute(
        "SELECT value, count(*) FROM CANN_API JOIN STRING_IDS ON id = name "
        "WHERE type = 20000 GROUP BY value"
    ).fetchall())  # fmt: skip
    counted = {row["API Name"]: int(row["Count"]) for row in table(exported, "api_statistic")}
    assert calls == counted
    marks = connection.execute("SELECT count(*) FROM MSTX_EVENTS").fetchone()
    assert marks == (2,)  # the range around the work, and the mark in it
    assert connection.execute("SELECT count(*) FROM NPU_MEM").fetchone() == (6,)
    connection.close()


def test_the_database_has_collectives_and_what_they_hide(tmp_path: Path) -> None:
    events = tmp_path / "PROF_000001_20260101000000000_ABC" / "host" / "data" / "aclsim.jsonl"
    events.parent.mkdir(parents=True)
    common = {"device": 1, "stream": 3}
    rows = [
        {"process": 7, "wall": 1000, "clock": 0},
        {"call": "HcclAllReduce", "thread": 9, "begin": 0, "end": 40},
        {"call": "aclrtRecordEvent", "thread": 9, "begin": 10, "end": 12},
        {"queued": 1, "thread": 9, "at": 20},
        {"task": "HcclAllReduce", "ticket": 1, "begin": 100, "end": 300, **common},
        {"task": "aclnnAdd", "ticket": 2, "begin": 250, "end": 400, "in": [], **common},
        {"mark": "there", "domain": "default", "thread": 9, "begin": 5, "end": 5},
    ]
    events.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert msprof("--export=on", "--type=db", f"--output={tmp_path}").returncode == 0
    (path,) = events.parents[2].glob("msprof_20260101000000000.db")
    connection = sqlite3.connect(path)

    def read(query: str) -> list[tuple[object, ...]]:
        return connection.execute(query).fetchall()

    assert read(
        "SELECT name.value, startNs, endNs, connectionId, count, deviceId FROM COMMUNICATION_OP "
        "JOIN STRING_IDS AS name ON name.id = opName"
    ) == [("hcom_allReduce_", 1100, 1300, 1, 0, 1)]
    # The call that queued it, not the one that had ended before.
    assert read(
        "SELECT startNs, globalTid >> 32, globalTid & 4294967295, connectionId FROM CANN_API "
        "WHERE type = 10000"
    ) == [(1000, 7, 9, 1)]
    assert read("SELECT startNs, endNs, type FROM OVERLAP_ANALYSIS") == [
        (1250, 1400, 0), (1100, 1300, 1), (1100, 1250, 2)
    ]  # fmt: skip
    assert read("SELECT eventType, rangeId FROM MSTX_EVENTS") == [(0, 4294967295)]
    assert read("SELECT * FROM SESSION_TIME_INFO") == [(1000, 1400)]
    connection.close()


def test_msprof_says_what_it_lacks(tmp_path: Path) -> None:
    assert "no profile of the simulator" in msprof("--export=on", f"--output={tmp_path}").stderr
