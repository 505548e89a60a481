"""The state folder: a bare `report` means this folder's run, and old journals go."""

import os

import pytest
from mindtorch_npu import exits, main
from mindtorch_npu.conformance.record import journal, state


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return state.folder()


def book(path, age=0.0, what="add", end=True):
    writer = journal.Journal(path)
    header = journal.header({"device": "cpu"}, {"what": what, "level": "quick", "seed": 0}, 0)
    writer.write("run", header)
    if end:
        writer.write("end", {"seconds": 1.0, "interrupted": False})
    writer.close()
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))
    return path


def test_the_latest_run_is_this_folders(folder, tmp_path, monkeypatch):
    for name, age in (("mine", 50), ("other", 10)):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        book(folder / f"check-{name}.jsonl", age)
    assert state.latest() == folder / "check-other.jsonl"
    monkeypatch.chdir(tmp_path / "mine")
    assert state.latest() == folder / "check-mine.jsonl"
    monkeypatch.chdir(tmp_path)
    assert state.latest() == folder / "check-other.jsonl"


def test_a_report_of_another_folders_run_says_so(folder, tmp_path, monkeypatch, capsys):
    book(folder / "check-1.jsonl")
    for place, words in ((os.getcwd(), ""), (tmp_path, f"the latest was in {os.getcwd()}")):
        monkeypatch.chdir(place)
        with pytest.raises(SystemExit):
            main.main(["report"])
        err = capsys.readouterr().err
        assert words in err
        assert bool(err) == bool(words)


def test_old_journals_beyond_the_limits_go_and_young_and_open_ones_stay(folder):
    day = 86_400
    old = [book(folder / f"check-{i}.jsonl", day * (i + 2)) for i in range(5)]
    young = [book(folder / f"probe-{i}.jsonl", i) for i in range(3)]
    writing = journal.Journal(old[4])
    writing.own()
    size = old[0].stat().st_size
    assert state.prune(most_runs=4, most_bytes=1 << 20) == old[1:4]
    assert all(path.exists() for path in (*young, old[0], old[4]))
    writing.close()
    assert state.prune(most_runs=9, most_bytes=size * 4) == [old[4]]
    assert state.prune(most_runs=0, most_bytes=0) == [old[0]]


def test_runs_are_listed_and_deleted(folder, capsys):
    paths = [book(folder / f"{name}-{i}.jsonl", i, f"{name} {i}")
             for name in ("check", "bench") for i in range(3)]  # fmt: skip
    (folder / "check-torn.jsonl").write_text("{torn")
    with pytest.raises(SystemExit):
        main.main(["report", "--list"])
    out = capsys.readouterr().out
    assert all(path.name in out for path in paths)
    assert "bench 2" in out
    with pytest.raises(SystemExit) as ended:
        main.main(["report", "--prune"])
    assert ended.value.code == exits.OK
    assert "deleted 5 runs" in capsys.readouterr().out
    assert len(list(folder.iterdir())) == 2
