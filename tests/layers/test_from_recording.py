"""A recording is cases of `check` on any install, and is shown in other forms."""

import json
import struct
from pathlib import Path

import compiled
import layered
import pytest
from mindtorch_npu.commands.bench.recorded import Pair, compared
from mindtorch_npu.commands.bench.statistics import TimeSpread, summarize
from mindtorch_npu.render import Grid

from aclnn_bindings.layers import recording_file


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "calls.rec"
    program = str(compiled.build("samples/layer_norm"))
    assert layered.run("--record", str(path), "--data", "first", "--", program).code == 0
    return path


@pytest.fixture(scope="module")
def without_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "calls.rec"
    assert layered.record(path, str(compiled.build("samples/matmul"))).code == 0
    return path


def check(path: Path, folder: Path, **environment: str) -> layered.Outcome:
    book = str(folder / "journal.jsonl")
    words = ("check", "--simulator", "--from", str(path), "--jobs", "1", "--journal", book)
    return layered.command(*words, **environment)


def test_each_distinct_launch_is_a_case(recorded: Path, tmp_path: Path) -> None:
    outcome = check(recorded, tmp_path)
    assert outcome.code == 0, outcome.out + outcome.err
    assert "1 PASS" in outcome.out


def test_a_wrong_kernel_fails_the_recorded_case(recorded: Path, tmp_path: Path) -> None:
    outcome = check(recorded, tmp_path, ACLSIM_FAULTS="layernorm:tail")
    assert outcome.code == 1
    assert "FAIL  aclnnLayerNorm#0/functional/s0" in outcome.out
    assert f"--from {recorded}" in " ".join(outcome.out.split())


def test_without_recorded_data_fresh_elements_are_drawn(without_data: Path, tmp_path: Path) -> None:
    outcome = check(without_data, tmp_path)
    assert outcome.code == 0, outcome.out + outcome.err
    assert "float32[2, 3]" not in outcome.err
    assert "1 PASS" in outcome.out


def test_a_page_has_every_call(recorded: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("report", str(recorded), "--html", str(page))
    assert layered.command(*words).code == 0
    assert "aclnnLayerNorm" in page.read_text()
    shown = layered.command("report", str(recorded))
    assert "aclnnLayerNorm" in shown.out


def test_another_file_is_refused_by_report_and_check(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("no recording")
    for outcome in (layered.command("report", str(other)), check(other, tmp_path)):
        assert outcome.code != 0
        assert "no recording of version 1" in outcome.err


def test_probe_is_content_where_everything_called_is_there(recorded: Path) -> None:
    good = layered.command("probe", "--simulator", "--from", str(recorded))
    assert good.code == 0, good.err
    assert "0 missing or changed here" in good.out
    assert "aclnnLayerNorm" in good.out


def recording_of(path: Path, functions: list[list[object]]) -> None:
    """A recording with one call of each function."""
    writer = recording_file.Writer(path)
    install = {"root": "/", "version": "1", "kind": "cann"}
    texts = dict.fromkeys(("started", "folder", "host", "machine"), "")
    writer.add_json(recording_file.HEADER, {"version": 1, "dtypes": {}, "install": install,
                                            "monotonic_ns": 0, "unix_ns": 0, "command": [],
                                            **texts})  # fmt: skip
    writer.add_json(recording_file.FUNCTIONS, functions)
    rows = b"".join(struct.pack("<BBHIQQIiII3Q", 1, 0, 0, function, function, 0, 1, *([0] * 6))
                    for function in range(len(functions)))  # fmt: skip
    writer.add(recording_file.Chunk(recording_file.ROWS, 1, 1, 1, rows))
    writer.close()


def test_two_releases_are_compared_by_the_calls_of_a_program(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    names = ("aclnnMlaPrologV2GetWorkspaceSize", "aclnnAdd", "aclrtSnapShotProcessLock")
    recording_of(path, [[name, [], True] for name in names])
    outcome = layered.command("probe", "--diff", "8.5.0..9.1.0", "--from", str(path), "--json")
    assert outcome.code == 1, outcome.err
    difference = json.loads(outcome.out)
    assert "aclnnMlaPrologV2GetWorkspaceSize" in difference["removed"]
    assert difference["removed_ops"] == ["aclnnMlaPrologV2"]
    assert [(c["name"], c["effect"]) for c in difference["changed"]] == [
        ("aclrtSnapShotProcessLock", "breaks ABI")
    ]
    one = layered.command("probe", "--diff", "8.5.0", "--from", str(path))
    assert one.code == 2
    assert "8.5.0..9.1.0" in one.err


def test_probe_names_what_an_install_lacks_or_declares_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    recording_of(path, [["aclnnLost", [], True], ["aclrtFree", [["p", 8, "int64_t"]], False]])
    outcome = layered.command("probe", "--simulator", "--from", str(path))
    assert outcome.code == 1
    assert "2 missing or changed here" in outcome.out
    assert "exported by no library" in outcome.out
    assert "parameter 1 is void *, was int64_t" in outcome.out


def test_bench_times_each_distinct_launch_and_adds_up(recorded: Path, tmp_path: Path) -> None:
    base = str(tmp_path / "base.json")
    words = ("bench", "--simulator", "--from", str(recorded), "--seconds", "0.05")
    first = layered.command(*words, "--json", base)
    assert first.code == 0, first.out + first.err
    assert "1 of 1 launches were timed" in first.out
    again = layered.command(*words, "--against", base)
    assert "1 workload with the baseline" in again.out


def times(*samples: float) -> TimeSpread:
    return summarize(list(samples))


def test_totals_weigh_operators_by_their_launches_and_forgive_a_slow_sample() -> None:
    pairs = [
        Pair("aclnnAdd", 10, times(100, 100, 100, 9000), times(100, 100, 100, 100)),
        Pair("aclnnAdd", 1, times(200, 200), times(200, 200)),
        Pair("aclnnMatmul", 100, times(30, 30, 30, 30), times(20, 20, 20, 20)),
    ]
    head, *doubt, table = compared(pairs)
    # 1.0 + 0.2 + 3.0 ms, there 1.0 + 0.2 + 2.0.
    assert "4.200 ms, there 3.200 ms: ×1.31 (×1.31 by medians)" in str(head)
    assert len(doubt) == 1
    assert "24% of that time is of launches whose samples scatter" in str(doubt[0])
    assert isinstance(table, Grid)
    assert table.rows == [
        ["aclnnMatmul", "100", "3.000", "2.000", "×1.50"],
        ["aclnnAdd", "11", "1.200", "1.200", "×1.00"],
    ]


@pytest.mark.parametrize(("fault", "code", "devices"), [("", 0, 2), ("npu1/layernorm:zeros", 1, 1)])
def test_bench_times_recorded_launches_on_every_device(
    recorded: Path, tmp_path: Path, fault: str, code: int, devices: int
) -> None:
    """Each device's result is verified: one that is wrong has no times."""
    told, book = tmp_path / "told.json", tmp_path / "bench.jsonl"
    words = ("bench", "--simulator", "--from", str(recorded), "--seconds", "0.02", "--rounds", "2")
    outcome = layered.command(
        *words, "--device", "all", "--journal", str(book), "--json", str(told),
        ACLSIM_DEVICES="2", ACLSIM_FAULTS=fault,
    )  # fmt: skip
    assert outcome.code == code, outcome.out + outcome.err
    data = json.loads(told.read_text())
    (timing,) = data["workloads"]
    assert timing["workload"].startswith("aclnnLayerNorm#0 ")
    assert timing["devices"] == devices
    assert data["counts"] == ({"PASS": 2, "FAIL": 2} if fault else {"PASS": 4})
