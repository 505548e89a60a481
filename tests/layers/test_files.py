"""Files that are written replace nothing too early and follow no links; forged ones are bounded."""

import errno
import json
import os
import resource
import shlex
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compiled
import layered
import pytest
from mindtorch_npu.conformance.record.journal import Journal, JournalError

from aclnn_bindings.install.library import find_install
from aclnn_bindings.layers import interposed, recording_file
from aclnn_bindings.layers.recording_file import Chunk, RecordingError, Writer


def test_an_older_recording_is_replaced_when_the_new_one_has_begun(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    path.write_bytes(b"older")
    with Writer(path) as writer:
        writer.add_json(recording_file.HEADER, {})
        assert path.read_bytes() == b"older"
        writer.add(Chunk(recording_file.ROWS, 0, 0, 0, b""))
        assert path.read_bytes().startswith(recording_file.MAGIC)
    with Writer(path):
        pass  # nothing came
    assert path.read_bytes().startswith(recording_file.MAGIC)
    assert os.listdir(tmp_path) == ["calls.rec"]


@pytest.mark.parametrize("begun", [False, True])
def test_a_second_writer_is_refused(begun: bool, tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    with Writer(path) as writer:
        if begun:
            writer.publish()
        with pytest.raises(RecordingError, match="another process records into it"):
            Writer(path)
        assert not path.with_name(".calls.rec.part").exists()
    with Writer(path) as writer:
        writer.publish()


def test_links_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("calls.rec", ".calls.rec.part", "j.jsonl.reserve"):
        (tmp_path / name).symlink_to(victim)
    with pytest.raises(RecordingError, match="cannot be written"):
        Writer(tmp_path / "calls.rec")
    (tmp_path / ".calls.rec.part").unlink()
    os.link(victim, tmp_path / ".calls.rec.part")
    with pytest.raises(RecordingError, match="has other names too"):
        Writer(tmp_path / "calls.rec")
    (tmp_path / ".calls.rec.part").unlink()
    with Writer(tmp_path / "calls.rec") as writer:
        writer.publish()
    journal = Journal(tmp_path / "j.jsonl")
    journal.own()
    journal.last({})
    journal.close()
    (tmp_path / "k.jsonl").symlink_to(victim)
    with pytest.raises(JournalError, match="a link to a file"):
        Journal(tmp_path / "k.jsonl")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "calls.rec").is_symlink()


PIECE = struct.Struct("<QQQHHB3x")
LIMIT = 700 << 20


def forged(path: Path, original: Path) -> None:
    """A recording of a few hundred KiB whose launch says that it read zeros without end."""
    with Writer(path) as writer:
        for chunk in recording_file.chunks(original):
            if chunk.kind == recording_file.ROWS:
                for offset in range(0, 1 << 31, 1 << 16):
                    piece = PIECE.pack(7, offset, 1 << 31, 0, 0, 0) + bytes(1 << 16)
                    head = struct.pack("<B3xIII", 5, 0, len(piece), 0)
                    row = (head + piece).ljust(-(-len(head + piece) // 64) * 64, b"\0")
                    writer.add(Chunk(recording_file.ROWS, chunk.process, chunk.pid, 1, row))
                    if offset > 64 << 20:
                        break
            writer.add(chunk)


READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
from mindtorch_npu import recording
print(len(list(recording.open(sys.argv[1]).captured())))
"""


def test_a_tensor_that_claims_more_than_there_is_takes_what_there_is(tmp_path: Path) -> None:
    original, path = tmp_path / "calls.rec", tmp_path / "forged.rec"
    layered.record(original, str(compiled.build("samples/add")))
    forged(path, original)
    assert path.stat().st_size < 2 << 20
    before = resource.getrlimit(resource.RLIMIT_AS)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path), str(LIMIT)], capture_output=True, text=True,
        env=layered.variables() | {"OPENBLAS_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_a_journal_of_json_that_means_nothing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(json.dumps({"kind": "run", "schema": "another"}) + "\n")
    outcome = layered.command("report", str(path))
    assert outcome.code == 2
    assert "schema 'another'" in outcome.err


def test_names_that_no_output_can_spell_are_shown_with_marks() -> None:
    text = rb'[["aclnn\ud800Add", "\u00e9\ud83d\ude00"]]'
    chunk = Chunk(recording_file.FUNCTIONS, 1, 1, 1, text)
    assert chunk.json() == [["aclnn?Add", "\u00e9\U0001f600"]]


def test_a_full_cache_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = interposed._make

    def full(folder: Path, *about: Any) -> None:
        if folder.is_relative_to(tmp_path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        make(folder, *about)

    monkeypatch.setattr(interposed, "_make", full)
    monkeypatch.setenv("MINDTORCH_CACHE_DIR", str(tmp_path))
    result = interposed.interpose(find_install(simulator=True))
    assert result.table.is_file()
    assert not result.table.is_relative_to(tmp_path)


def test_no_room_for_files_is_not_called_the_programs_fault() -> None:
    command = shlex.join([sys.executable, "-m", "mindtorch_npu", "run", "--simulator", "--summary"])
    done = subprocess.run(["bash", "-c", f"ulimit -f 4; {command} -- true"], capture_output=True,
                          text=True, check=False, env=layered.variables())  # fmt: skip
    assert done.returncode == 3
    assert "raise the limit" in done.stderr


def test_no_secret_of_a_command_or_the_environment_is_recorded(tmp_path: Path) -> None:
    path, secret = tmp_path / "calls.rec", "hunter2"
    words = ("--api-key", secret, f"--dsn=me:{secret}@db", f"https://host/#{secret}", f"K={secret}")
    planted = {"NPU_SSHKEY": secret, "ASCEND_LOGIN": secret, "HCCL_AUTH_HEADER": f"X {secret}"}
    layered.record(path, str(compiled.build("samples/add")), *words, **planted)
    content = b"".join(chunk.data for chunk in recording_file.chunks(path))
    assert b"--api-key" in content
    assert secret.encode() not in content


def test_a_recording_that_was_removed_meanwhile_is_not_said_to_be_recorded(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    program = (
        f"import os; os.unlink({str(path)!r}); import mindtorch; mindtorch.ones(2, device='npu')"
    )
    done = layered.record(path, sys.executable, "-c", program)
    assert done.code == 5
    assert "was removed or replaced while it was written" in done.err


def test_data_that_no_launch_has_are_not_recorded_in_silence(tmp_path: Path) -> None:
    program = "import mindtorch; mindtorch.ones(2, device='npu').tolist()"
    for options in (("--data", "op=NoSuch*"), ("--data", "all", "--data-limit", "1")):
        words = ("--record", str(tmp_path / "calls.rec"), *options)
        done = layered.run(*words, "--", sys.executable, "-c", program)
        assert done.code == 5, options
        assert "recorded no tensor" in done.err


def without_the_last_byte(data: bytes) -> bytes:
    return data[:-1]


def with_a_bit_flipped_in_the_calls(data: bytes) -> bytes:
    changed, at = bytearray(data), len(recording_file.MAGIC)
    head = recording_file._HEAD
    while data[at + 4] != recording_file.ROWS:
        at += head.size + head.unpack_from(data, at)[4]
    changed[at + head.size + 4] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("damage", [without_the_last_byte, with_a_bit_flipped_in_the_calls])
def test_a_recording_without_its_end_is_not_judged_whole(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "calls.rec"
    program = "import mindtorch; (mindtorch.ones(2, device='npu') + 1).tolist()"
    assert layered.record(path, sys.executable, "-c", program).code == 0
    data = path.read_bytes()
    path.write_bytes(damage(data))
    for words in (
        ("report", str(path)),
        ("check", "--simulator", "--from", str(path)),
        ("probe", "--simulator", "--no-run", "--from", str(path)),
    ):
        done = layered.command(*words)
        assert done.code == 5, words
        assert "the recording has no end" in done.out + done.err
