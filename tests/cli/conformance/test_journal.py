"""Journals survive what runs do not: torn lines, kills, newer fields."""

import json
from pathlib import Path

import pytest
from mindtorch_npu.conformance.record import journal, state
from mindtorch_npu.conformance.record.result import Result

RESULT = Result("add/meta/s0", "add", "meta", "PASS", tier="T0", seed=3, seconds=0.25)


def written(tmp_path, *lines):
    path = tmp_path / "run.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    return path


def head(**changes):
    data = {"kind": "run", **journal.header({"device": "cpu"}, {"what": "add"}, 2), **changes}
    return json.dumps(data)


def test_results_come_back_as_they_were(tmp_path):
    book = journal.Journal(tmp_path / "deep" / "run.jsonl")
    book.write("run", journal.header({"device": "cpu"}, {"what": "add"}, 2))
    book.write("start", {"case": RESULT.case, "seed": 3})
    book.result(RESULT)
    book.write("end", {"seconds": 1.0, "interrupted": False})
    book.close()
    record = journal.read(book.path)
    assert list(record.results.values()) == [RESULT]
    assert record.unfinished == []
    assert record.end == {"seconds": 1.0, "interrupted": False}


def test_torn_last_line_is_ignored(tmp_path):
    path = written(tmp_path, head(), json.dumps({"kind": "result", **RESULT.as_json()}))
    with path.open("a") as file:
        file.write('{"kind":"result","case":"add/me')
    assert len(journal.read(path).results) == 1


def test_torn_line_in_the_middle_is_an_error(tmp_path):
    path = written(tmp_path, head(), '{"kind":', head())
    with pytest.raises(journal.JournalError, match="line 2 is not JSON"):
        journal.read(path)


def test_case_that_started_and_never_ended_is_named(tmp_path):
    start = {"kind": "start", "case": "add/meta/s1", "seed": 0}
    record = journal.read(written(tmp_path, head(), json.dumps(start)))
    assert record.unfinished == ["add/meta/s1 --seed 0"]


def test_unknown_fields_of_newer_journals_are_ignored(tmp_path):
    line = json.dumps({"kind": "result", **RESULT.as_json(), "colour": "blue"})
    assert len(journal.read(written(tmp_path, head(), line)).results) == 1


def test_other_files_are_refused(tmp_path):
    with pytest.raises(journal.JournalError, match="no header line"):
        journal.read(written(tmp_path, '{"kind":"start","case":"a"}'))
    with pytest.raises(journal.JournalError, match="schema 'x/2'"):
        journal.read(written(tmp_path, head(schema="x/2")))


def test_repro_line_is_safe_to_paste():
    assert journal.repro("add/meta/s0", 7) == (
        "mindtorch-npu check add --case add/meta/s0 --seed 7"
    )
    assert "'a b'" in journal.repro("add/meta/s0", 7, ["--home", "a b"])


def test_unknown_verdict_is_refused_and_not_dropped(tmp_path):
    line = json.dumps({"kind": "result", **RESULT.as_json(), "verdict": "MAGIC"})
    with pytest.raises(journal.JournalError, match="'MAGIC' is none of"):
        journal.read(written(tmp_path, head(), line))


def test_a_home_that_cannot_be_written_costs_no_run(tmp_path, monkeypatch):
    """Containers run as users whose home is / or read-only; the worker then said that it found no
    device."""
    (tmp_path / "home").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr("aclnn_bindings.interface.user_dir.temporary", lambda: tmp_path)
    book = state.default_path()
    assert tmp_path in book.parents
    journal.Journal(book).write("run", journal.header({"device": "cpu"}, {"what": "add"}, 2))
    assert state.latest() == book
    (tmp_path / "mindtorch-npu/check-gone.jsonl").symlink_to(tmp_path / "gone")
    (tmp_path / "mindtorch-npu/check-folder.jsonl").mkdir()
    assert state.latest() == book


def test_two_runs_of_one_second_have_journals_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(state.time, "strftime", lambda _: "20260101-000000")
    assert state.default_path() != state.default_path()


def test_a_second_run_touches_no_line_of_the_one_that_writes(tmp_path):
    path = tmp_path / "run.jsonl"
    first = journal.Journal(path)
    first.own()
    first.write("run", journal.header({}, {}, 1))
    half = path.read_bytes() + b'{"kind":"start","case":'  # as a large line is being written
    path.write_bytes(half)
    second = journal.Journal(path)
    with pytest.raises(journal.JournalError, match="another run is writing"):
        second.own()
    assert path.read_bytes() == half
    for book in (first, second):
        book.close()


@pytest.mark.parametrize("size", [10, 1 << 16, (1 << 16) - 1, 200_000])
def test_half_a_last_line_of_any_length_is_cut_off(tmp_path, size):
    whole = json.dumps({"kind": "run", "pad": "x" * 100_000}).encode() + b"\n"
    for lines in (b"", whole):
        path = tmp_path / "run.jsonl"
        path.write_bytes(lines + b"y" * size)
        book = journal.Journal(path)
        book.own()
        book.close()
        assert path.read_bytes() == lines


def test_nothing_is_made_beside_a_device(monkeypatch):
    monkeypatch.setattr(Path, "write_bytes", lambda *_: pytest.fail("a file was made"))
    book = journal.Journal(Path("/dev/null"))
    book.own()
    book.write("run", {})
    book.last({})
    book.close()
