"""A disk without room: the file that could not be written is named, and the older one is there."""

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mindtorch_npu.commands.ops.atlas import site
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run import engine
from mindtorch_npu.main import main

import mindtorch
from aclnn_bindings.interface import atomic_write

ROOM = 4096
COMMANDS = {
    "html": ("report", "--html"),
    "junit": ("report", "--junit"),
    "md": ("report", "-v", "--md"),
    "json": ("report", "--json"),
    "merged": ("report", "--merge", "--html"),
    "stubs": ("stubs", "--simulator", "--out"),
    "catalog": ("catalog", "make", "--version", "99.0.RC1", "--force", "--out"),
}


@contextmanager
def little_room(room: int = ROOM) -> Iterator[None]:
    """A write past `room` bytes of any file fails, as on a full disk, with another number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("journal") / "run.jsonl"
    book = journal.Journal(path, journal.new_run())
    book.write("run", journal.header({"device": "npu:0"}, {"level": "quick"}, 99))
    for i in range(99):
        case = f"op{i}/out/{i}"
        book.write("start", {"case": case, "seed": 0, "device": "npu:0"})
        book.result(Result(case, f"op{i}", "out", "FAIL", "float32", "T0", reason="far away " * 9))
    book.close()
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_what_does_not_fit_is_named_and_leaves_the_older_file(
    tmp_path: Path, recorded: Path, capsys: pytest.CaptureFixture[str], name: str
):
    words = COMMANDS[name]
    target = tmp_path if name == "stubs" else tmp_path / "older"
    if name != "stubs":
        target.write_text("older")
    before = sorted(tmp_path.iterdir())
    source = ["--from", str(recorded)] if words[0] == "report" else []
    source = source[1:] if "--merge" in words else source
    with little_room(), pytest.raises(SystemExit) as end:
        main([*words, str(target), *source])
    told = "".join(capsys.readouterr())
    assert end.value.code in (2, 3), told
    assert str(target) in told, told
    assert "too large" in told, told
    if name != "stubs":
        assert target.read_text() == "older"
        assert sorted(tmp_path.iterdir()) == before
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and p.stat().st_size == ROOM]


def test_a_folder_of_pages_holds_whole_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(site, "entries", list)
    with little_room(512), pytest.raises(OSError, match=r"File too large.*page\.css'"):
        site.write(tmp_path)
    assert [p.name for p in tmp_path.rglob("*")] == ["op"]


def test_a_journal_without_room_for_its_plan_ends_with_its_end_line(tmp_path: Path):
    path = tmp_path / "run.jsonl"

    class Large:
        required = True

        def plan(self) -> dict[str, list[str]]:
            return {"cases": ["add/out/1"] * 999}

    head = journal.header({"device": "npu:0"}, {"level": "quick"}, 1)
    request = engine.RunRequest.__new__(engine.RunRequest)
    object.__setattr__(request, "run", "r")
    object.__setattr__(request, "done", {})
    with little_room(), pytest.raises(journal.JournalFullError, match="no space left"):
        engine._book(request, path, head, [Large()])  # type: ignore[list-item]
    record = journal.read(path)
    assert "no space left" in (record.end or {})["stopped"]
    assert [p.name for p in tmp_path.iterdir()] == ["run.jsonl"]


def test_a_report_replaces_a_link_and_keeps_permissions(tmp_path: Path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("precious")
    target.chmod(0o640)
    link.symlink_to(target)
    atomic_write.write(link, "newer")
    assert not link.is_symlink()
    assert link.read_text() == "newer"
    assert target.read_text() == "precious"
    assert stat.S_IMODE(link.stat().st_mode) == 0o640


def test_a_written_file_keeps_permissions_and_devices(tmp_path: Path):
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("older")
    target.chmod(0o640)
    link.symlink_to(target)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    try:
        for write in (atomic_write.write, lambda path, text: mindtorch.save(text, path)):
            saves = write is not atomic_write.write  # torch.save follows links
            write(link if saves else target, "newer")
            assert link.is_symlink()
            assert b"newer" in target.read_bytes()
            assert stat.S_IMODE(target.stat().st_mode) == 0o640
            write(pipe, "through")
            assert b"through" in os.read(reader, 9999)
            write(Path("/dev/null"), "nothing")
            assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    finally:
        os.close(reader)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe", "target"]
    (tmp_path / "new").touch()
    atomic_write.write(tmp_path / "newer", "")
    assert len({p.stat().st_mode for p in (tmp_path / "new", tmp_path / "newer")}) == 1
