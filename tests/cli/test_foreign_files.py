"""Files that others wrote are read so far and no further, and refused by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import fuzz_files
import pytest
from mindtorch_npu import foreign
from mindtorch_npu.conformance.record.journal import JournalError
from mindtorch_npu.main import main

from aclnn_bindings.layers import recording_file

FILES = {
    "noise": bytes(range(256)) * 99,
    "torn": b'{"a":',
    "list": b"[]",
    "null": b"null",
    "deep": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "deep table": b"x = " + b"[" * 100_000,
    "schema": b'{"schema": 99}',
    "huge number": b'{"a": 1' + b"0" * 5000 + b"}",
    "lines": b'{"kind":"start"}\n{"kind":\n',
    "empty": b"",
}
COMMANDS = (
    ("check", "replay"),
    ("check", "--resume"),
    ("check", "add", "--known-issues"),
    ("check", "--from"),
    ("bench", "add", "--against"),
    ("probe", "--simulator", "--diff"),
    ("report",),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", FILES)
def test_a_malformed_file_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, command: tuple[str, ...]
):
    path = tmp_path / "a file"
    path.write_bytes(FILES[name])
    with pytest.raises(SystemExit) as end:
        main([*command, str(path)])
    valid = name == "empty" and "--known-issues" in command  # TOML without entries
    assert end.value.code in ((0,) if valid else (1, 2, 3))
    assert valid or "a file" in "".join(capsys.readouterr())


@pytest.mark.skipif(not os.path.exists("/dev/urandom"), reason="no endless file here")
def test_an_endless_file_is_read_so_far_and_no_further():
    with pytest.raises(foreign.ForeignError, match="more than 16 MiB"):
        foreign.text_of(Path("/dev/zero"))


def test_a_pipe_is_read(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen([sys.executable, "-c", f"open({str(pipe)!r}, 'w').write('[1]')"])
    assert foreign.parsed(foreign.text_of(pipe)) == [1]
    writer.wait()


@pytest.mark.parametrize(
    "kind",
    [
        "journal",
        "compressed journal",
        "fleet",
        "bundle",
        "arrays",
        "known issues",
        "known findings",
        "library",
        "header",
        "JSON report",
        "case file",
        "case workbook",
        "baseline",
        "probe report",
        "checkpoint",
        "legacy checkpoint",
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path: Path, kind: str):
    sound, read, _ = target = fuzz_files.targets()[kind]
    path = tmp_path / "sound"
    path.write_bytes(sound)
    read(path)
    assert fuzz_files.attack(target, 100, seed=1)[1] == []


FIELDS = {
    "verdict": [], "case": 3, "op": ["add"], "form": None, "seconds": "long", "seed": "first",
    "guards": "texts", "outcomes": [["T0", "rule", True]], "measure": [1], "inputs": [{}],
    "cause": "none", "device": {},
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_a_result_of_another_kind_is_refused_by_name(tmp_path: Path, name: str):
    sound, _, _ = fuzz_files.targets()["journal"]
    *above, last = sound.decode().splitlines()
    path = tmp_path / "journal.jsonl"
    path.write_text("\n".join([*above, json.dumps({**json.loads(last), name: FIELDS[name]}), "{"]))
    with pytest.raises(JournalError, match=name):
        fuzz_files.shown(path)


@pytest.mark.parametrize(
    ("above", "name"), [("environment", "device"), ("environment", "soc"), ("options", "where")]
)
def test_a_header_of_another_kind_is_refused_by_name(tmp_path: Path, above: str, name: str):
    sound, _, _ = fuzz_files.targets()["journal"]
    first, *below = sound.decode().splitlines()
    header = json.loads(first)
    path = tmp_path / "journal.jsonl"
    path.write_text("\n".join([json.dumps({**header, above: {name: [1]}}), *below]))
    with pytest.raises(JournalError, match=name):
        fuzz_files.shown(path)
    path.write_text("\n".join([json.dumps({**header, above: {}}), *below]))
    fuzz_files.shown(path)


def test_a_recording_whose_header_lacks_a_version_is_refused_by_name(tmp_path: Path):
    chunks = fuzz_files.recorded(tmp_path)
    at = next(i for i, chunk in enumerate(chunks) if b'"install"' in chunk.data)
    header = json.loads(chunks[at].data)
    del header["install"]["version"]
    chunks[at] = replace(chunks[at], data=json.dumps(header).encode())
    writer = recording_file.Writer(tmp_path / "without.rec")
    for chunk in chunks:
        writer.add(chunk)
    writer.close()
    with pytest.raises(recording_file.RecordingError, match="version"):
        fuzz_files.summary.document(fuzz_files.recording.open(tmp_path / "without.rec"), most=9)


def test_damaged_recordings_are_refused_by_name_though_their_checksums_fit(tmp_path: Path):
    outcomes, bad = fuzz_files.attack_recording(tmp_path, 60, seed=1)
    assert bad == []
    assert outcomes["RecordingError"] > 20
    assert outcomes["read"] > 0


def test_a_chunk_that_unpacks_to_more_than_it_says_is_not_unpacked(tmp_path: Path):
    path = tmp_path / "bomb.rec"
    writer = recording_file.Writer(path)
    writer.add(recording_file.Chunk(recording_file.HEADER, 0, 0, 0, bytes(1 << 26)))
    writer.publish()
    writer.close()
    data = bytearray(path.read_bytes())
    data[20:24] = (100).to_bytes(4, "little")  # after the magic: the size when unpacked
    path.write_bytes(data)
    with pytest.raises(recording_file.RecordingError, match="the 100 bytes that it says"):
        list(recording_file.chunks(path))


@pytest.mark.parametrize("words", [("check", "add", "--timeout"), ("bench", "add", "--seconds")])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "1e9", "-1", "0"])
def test_a_time_that_nobody_can_wait_is_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], value: str
):
    with pytest.raises(SystemExit) as end:
        main([*words, value])
    assert end.value.code == 2
    assert value in capsys.readouterr().err


ALLOWED = ("allow = 3", "allow = [1]", "allow = [[]]", "[allow]\nfinding = 'x'", "[[allow]]",
           "[[allow]]\nreason = ''", "[[allow]]\nreason = 'x'\ncolour = 1")  # fmt: skip


@pytest.mark.parametrize("text", ALLOWED)
def test_known_findings_of_another_kind_are_refused_by_name(tmp_path: Path, text: str):
    path = tmp_path / "allow.toml"
    path.write_text(text)
    with pytest.raises(click.UsageError, match="allow"):
        fuzz_files.findings.allowed(path)
