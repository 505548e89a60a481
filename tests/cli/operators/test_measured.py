"""The atlas of what machines measured: cells, first broken release, times, hostile folders."""

import gc
import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mindtorch_npu import exits, main
from mindtorch_npu.commands.ops.atlas import matrix, measured, results, site
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.record.result import Result

from aclnn_bindings.install.library import bundled_simulator

sys.path.insert(0, str(Path(__file__).parents[1]))
from browser import browser, missing

RELEASES = ("8.3.RC1", "8.5.0", "9.0.0")
A2, P3 = "Ascend910B2", "Ascend310P3"
SECRET = "s3cr3t-hunter2"
simulated = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


def write_journal(path: Path, release: str, *lines: Result, soc: str = A2, kind: str = "opened",
                  node: str = "node-1", **environment: Any) -> None:  # fmt: skip
    book = journal.Journal(path, journal.new_run())
    facts = {"cann": release, "soc": soc, "kind": kind, "node": node, **environment}
    book.write("run", {**journal.header(facts, {}, len(lines)), "node": node})
    for line in lines:
        book.result(line)
    book.close()


def case(verdict: str, op: str = "softmax", dtype: str = "float32", **fields: Any) -> Result:
    return Result(f"{op}/out/s0/{dtype}", op, "out", verdict, dtype, **fields)


def timed(median: float, *, noisy: bool = False, shapes: str = "8x8") -> Result:
    spread = {"median": median, "p20": median, "p80": median * 1.01, "q1": median,
              "q3": median * 1.01, "least": median * 0.99, "n": 20, "noisy": noisy}  # fmt: skip
    return Result(f"softmax/bench/float32/{shapes}", "softmax", "bench", "PASS", "float32",
                  measure={"times": {"device": spread}})  # fmt: skip


def rows_of(folder: Path) -> dict[measured.MeasuredPlace, measured.MeasuredReleases]:
    return {row.place: row for row in results.read(folder).measured.rows()}


def leave(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main.main(list(words))
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checks of three releases on two products; 9.0.0 is wrong on one, and slower there."""
    folder = tmp_path_factory.mktemp("fleet")
    for soc in (A2, P3):
        for release in RELEASES:
            environ = {**os.environ, "ACLSIM_RELEASE": release, "ACLSIM_SOC": soc}
            if (soc, release) == (A2, RELEASES[-1]):
                environ["ACLSIM_FAULTS"] = "softmax:long@300"
            path = folder / f"{soc}-{release}.jsonl.gz"
            command = [sys.executable, "-m", "mindtorch_npu", "check", "_softmax", "--alone",
                       "--form", "functional", "--dtype", "float32", "--simulator",
                       "--journal", str(path)]  # fmt: skip
            done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)
            assert done.returncode in (exits.OK, exits.PROBLEMS), done.stderr
            write_journal(folder / f"{soc}-{release}-times.jsonl", release,
                          timed(20.0 if environ.get("ACLSIM_FAULTS") else 10.0),
                          soc=soc, kind="simulator")  # fmt: skip
    return folder


@simulated
def test_cells_tell_the_release_and_product_of_a_fault(fleet: Path) -> None:
    rows = rows_of(fleet)
    broken = rows[measured.MeasuredPlace("_softmax", "910b", True)]
    assert [cell.state for cell in broken.cells.values()] == ["passes", "passes", "fails"]
    assert tuple(broken.cells) == RELEASES
    assert broken.cells["9.0.0"].dtypes == {"float32"}
    assert broken.history == "fails since 9.0.0 (passes in 8.5.0)"
    good = rows[measured.MeasuredPlace("_softmax", "310p", True)]
    assert {cell.state for cell in good.cells.values()} == {"passes"}
    assert good.history == ""


@simulated
def test_times_tell_the_release_that_is_slower(fleet: Path) -> None:
    rows = rows_of(fleet)
    (change,) = rows[measured.MeasuredPlace("softmax", "910b", True)].speed
    assert (change.before, change.after, change.word) == ("8.5.0", "9.0.0", "slower")
    assert change.ratio == pytest.approx(2.0)
    assert rows[measured.MeasuredPlace("softmax", "310p", True)].speed == ()


@simulated
def test_the_site_has_a_page_and_a_block_of_each_operator(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("ops", "--html", str(tmp_path), "--results", str(fleet)) == exits.OK
    assert "machine" in capsys.readouterr().out
    assert 'href="measured.html"' in (tmp_path / "index.html").read_text("utf-8")
    page = (tmp_path / "op" / "aclnnSoftmax.html").read_text("utf-8")
    assert "fails since 9.0.0 (passes in 8.5.0)" in page
    assert "simulator of Atlas A2 (910B)" in page
    text = (tmp_path / "measured_data.js").read_text("utf-8")
    data = json.loads(text.removeprefix("const MEASURED = ").removesuffix(";\n"))
    assert data["rows"][0][0] == "_softmax"  # those that fail come first
    assert data["rows"][0][1] == "aclnnSoftmax"


@simulated
@pytest.mark.skipif(bool(missing()), reason=missing() or "there")
def test_rows_are_found_by_operator_product_release_and_state(fleet: Path, tmp_path: Path) -> None:
    site.write(tmp_path, matrix.matrix(results.read(fleet).measured, hosts=False))
    shown = "return [...document.querySelectorAll('#found tbody tr')].map(r => r.innerText)"
    with browser(tmp_path / "profile") as page:
        page.open((tmp_path / "measured.html").as_uri())
        assert len(page.script(shown)) == 4

        def choose(name: str, value: str) -> list[str]:
            page.script(f"const s = document.getElementById('{name}'); s.value = '{value}';"
                        "s.dispatchEvent(new Event('input'))")  # fmt: skip
            return list(page.script(shown))

        (row,) = choose("state", "fails")
        assert row.startswith("_softmax")
        assert choose("release", "8.5.0") == []
        choose("state", "")
        assert len(choose("product", "simulator of 310P")) == 2
        page.open((tmp_path / "measured.html").as_uri() + "#softmax 910B slower")
        page.script("location.reload()")
        (row,) = page.script(shown)
        assert "×2.00 slower in 9.0.0 than in 8.5.0" in row
        assert page.errors() == []


@simulated
def test_the_terminal_tells_what_was_measured(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("ops", "aclnnSoftmax", "--results", str(fleet), "--md") == exits.OK
    assert "fails since 9.0.0 (passes in 8.5.0)" in capsys.readouterr().out
    assert leave("ops", "aclnnSoftmax", "--results", str(fleet), "--json") == exits.OK
    (entry,) = json.loads(capsys.readouterr().out)
    states = {(r["operator"], r["product"]): r["releases"]["9.0.0"]["state"]
              for r in entry["measured"]}  # fmt: skip
    assert states["_softmax", "910b"] == "fails"
    assert states["_softmax", "310p"] == "passes"


def test_a_simulator_is_never_counted_with_hardware(tmp_path: Path) -> None:
    write_journal(tmp_path / "chip.jsonl", "9.0.0", case("PASS"))
    write_journal(tmp_path / "sim.jsonl", "9.0.0", case("FAIL"), kind="simulator")
    rows = rows_of(tmp_path)
    assert rows[measured.MeasuredPlace("softmax", "910b", False)].worst == 2
    assert rows[measured.MeasuredPlace("softmax", "910b", True)].worst == 0


def test_machines_that_agree_are_counted_and_named_on_request_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for n, verdict in enumerate(("FAIL", "FAIL", "PASS")):
        write_journal(tmp_path / f"{n}.jsonl", "9.0.0", case(verdict), node=f"rack{n}")
    assert leave("ops", "softmax", "--results", str(tmp_path), "--md") == exits.OK
    shown = capsys.readouterr().out
    assert "FAIL, 2 of 3 machines; 2 of 3 cases: float32" in shown
    assert "rack" not in shown
    assert leave("ops", "softmax", "--results", str(tmp_path), "--hosts", "--md") == exits.OK
    shown = capsys.readouterr().out
    assert "rack0, rack1" in shown
    assert "rack2" not in shown


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ("PASS PASS PASS", ""),
        ("FAIL FAIL FAIL", "fails since 8.3.RC1 (the oldest release measured)"),
        ("PASS FAIL PASS", "fails in 8.5.0 (passes in 8.3.RC1), passes since 9.0.0"),
        ("SKIP PASS CRASH", "fails since 9.0.0 (passes in 8.5.0)"),
    ],
)
def test_history_tells_when_it_broke_and_was_mended(tmp_path: Path, states: str, told: str) -> None:
    for release, verdict in zip(RELEASES, states.split(), strict=True):
        write_journal(tmp_path / f"{release}.jsonl", release, case(verdict))
    (row,) = rows_of(tmp_path).values()
    assert row.history == told


def test_noisy_times_and_other_shapes_are_not_compared(tmp_path: Path) -> None:
    write_journal(tmp_path / "a.jsonl", "8.5.0", timed(10), timed(10, shapes="9x9"))
    write_journal(tmp_path / "b.jsonl", "9.0.0", timed(30, noisy=True), timed(30, shapes="7x7"))
    read = results.read(tmp_path).measured
    assert [row.speed for row in read.rows()] == [()]
    assert read.left_out["noisy times"] == 1


def test_probes_tell_what_is_missing_since_a_release(tmp_path: Path) -> None:
    for release, works in (("8.5.0", True), ("9.0.0", False)):
        report = {"schema": "mindtorch-npu/probe/1", "device": {"soc": A2},
                  "install": {"kind": "toolkit", "versions": {"toolkit": release}},
                  "ops": {"rows": [{"name": "aclnnAdd", "callable": works}]}}  # fmt: skip
        (tmp_path / f"{release}.json").write_text(json.dumps(report))
    (row,) = rows_of(tmp_path).values()
    assert row.history == "missing since 9.0.0 (callable in 8.5.0)"


def test_a_journal_and_its_report_count_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    write_journal(path, "9.0.0", case("PASS"))
    report = str(tmp_path / "run.json")
    assert leave("report", str(path), "--json", report) in (exits.OK, exits.NOT_JUDGED)
    capsys.readouterr()
    read = results.read(tmp_path)
    assert (read.measured.results, read.unread) == (1, [])
    path.unlink()
    assert results.read(tmp_path).measured.results == 1


def test_files_that_are_no_results_are_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_journal(tmp_path / "good.jsonl", "9.0.0", case("PASS"))
    write_journal(tmp_path / "cpu.jsonl", "", case("PASS"), kind="cpu")
    data = gzip.compress((tmp_path / "good.jsonl").read_bytes())
    (tmp_path / "torn.jsonl.gz").write_bytes(data[: len(data) // 2])
    (tmp_path / "other.json").write_text('{"schema": "mindtorch-npu/check/99"}')
    (tmp_path / "list.json").write_text("[" * 100_000)
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "short.json").write_text('{"schema": "mindtorch-npu/bench/1", "results": [{}]}')
    os.mkfifo(tmp_path / "pipe.json")
    read = results.read(tmp_path)
    names = {one.source for one in read.unread}
    assert names == {"cpu.jsonl", "torn.jsonl.gz", "other.json", "list.json", "notes.txt",
                     "short.json"}  # fmt: skip
    assert read.measured.read == 1
    assert leave("ops", "softmax", "--results", str(tmp_path)) == exits.OK
    shown = capsys.readouterr().err
    assert all(f"left out: {name}: " in shown for name in names)


def test_a_folder_without_results_ends_with_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    site_ = tmp_path / "site"
    assert leave("ops", "--html", str(site_), "--results", str(tmp_path)) == exits.NOT_JUDGED
    assert "no result of probe, check or bench" in capsys.readouterr().err
    assert not site_.exists()


def planted(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Copies of plain data, each with the secret in place of one text, or of one key."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield f"{at}.{key} (key)", {SECRET if k == key else k: v for k, v in value.items()}
            for where, new in planted(one, f"{at}.{key}"):
                yield where, {**value, key: new}
    elif isinstance(value, list):
        for i, one in enumerate(value):
            for where, new in planted(one, f"{at}[{i}]"):
                yield where, [*value[:i], new, *value[i + 1 :]]
    elif isinstance(value, str):
        yield at, SECRET
        yield f"{at} (appended)", value + SECRET
    else:
        yield at, SECRET


def test_no_secret_of_any_field_is_on_a_page(tmp_path: Path) -> None:
    source = tmp_path / "source.jsonl"
    failure = case("FAIL", reason="r", inputs=("i",), node="n", device="npu:0", soc=A2)
    write_journal(source, "9.0.0", failure, timed(10), switches={"HOME": "v"}, install="/opt")
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    source.unlink()
    folder = tmp_path / SECRET
    folder.mkdir()
    for i, (_, copy) in enumerate(planted(lines)):
        text = "\n".join(json.dumps(line) for line in copy)
        (folder / f"{SECRET}{i}.jsonl").write_text(text.replace(lines[0]["run"], f"run{i}"))
    times = timed(10).measure["times"]  # type: ignore[index]
    row = {"op": "add", "dtype": "float32", "shapes": [[8, 8]], "problem": "", "times": times}
    environment = {"cann": "9.0.0", "soc": A2, "kind": "toolkit", "node": "n"}
    bench = {"schema": "mindtorch-npu/bench/1", "environment": environment, "results": [row]}
    probe = {"schema": "mindtorch-npu/probe/1", "device": {"soc": A2}, "host": {"system": "Linux"},
             "install": {"kind": "toolkit", "versions": {"toolkit": "9.0.0"}, "root": "/opt"},
             "ops": {"rows": [{"name": "aclnnAdd", "callable": True, "reason": "r"}]}}  # fmt: skip
    for name, document in (("bench", bench), ("probe", probe)):
        for i, (_, copy) in enumerate(planted(document)):
            (folder / f"{name}{i}.json").write_text(json.dumps(copy))
    read = results.read(folder)
    assert read.measured.read > 100
    assert len(read.unread) > 10
    pages = matrix.matrix(read.measured, hosts=False)
    site.write(tmp_path / "site", pages)
    text = "".join(p.read_text("utf-8") for p in (tmp_path / "site").rglob("*") if p.is_file())
    assert "FAIL" in text
    assert SECRET not in text
    assert "node-1" not in text
    assert SECRET not in json.dumps(pages.plain("softmax", "add", "aclnnAdd"))


def test_memory_does_not_grow_with_the_number_of_files(tmp_path: Path) -> None:
    lines = [case("PASS" if n % 9 else "FAIL") for n in range(250)]
    write_journal(tmp_path / "0.jsonl", "9.0.0", *lines)
    text = (tmp_path / "0.jsonl").read_text()
    run = json.loads(text.splitlines()[0])["run"]
    results.names()  # the catalogs, once

    def peak(files: int) -> int:
        for i in range(1, files):
            changed = text.replace(run, f"run{i}").replace("node-1", f"node-{i + 1}")
            (tmp_path / f"{i}.jsonl").write_text(changed)
        gc.collect()  # what other tests left is not this one's
        tracemalloc.start()
        try:
            assert results.read(tmp_path).measured.results == 250 * files
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few = peak(5)
    assert peak(40) < few + 35 * 4096  # a run's id, a node's name, a path
