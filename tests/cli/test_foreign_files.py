"""Files that others wrote are read so far and no further, and refused by name."""

import gzip
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import click
import fuzz_files
import numpy as np
import pytest
from mindtorch_npu import foreign
from mindtorch_npu.commands.explain import command as explain
from mindtorch_npu.conformance.cases import case_file
from mindtorch_npu.conformance.cases.case_file import CaseFileError
from mindtorch_npu.conformance.record import bundle, journal
from mindtorch_npu.conformance.record.journal import JournalError
from mindtorch_npu.fleet.run_files import Unread
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


def test_a_workbook_without_a_sheet_or_of_entities_is_refused_by_name(tmp_path: Path):
    path = tmp_path / "cases.xlsx"
    openpyxl = pytest.importorskip("openpyxl")
    openpyxl.Workbook().save(path)
    laughs = '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 60}">' for a, b in pairwise("abcdef")
    )
    for name, data in (
        ("xl/workbook.xml", WORKBOOK), ("xl/worksheets/sheet1.xml", f"{laughs}]><x>&f;</x>")
    ):  # fmt: skip
        damaged = tmp_path / f"{Path(name).stem}.xlsx"
        with zipfile.ZipFile(path) as whole, zipfile.ZipFile(damaged, "w") as other:
            for entry in whole.namelist():
                other.writestr(entry, data if entry == name else whole.read(entry))
        with pytest.raises(CaseFileError, match=damaged.name):
            list(case_file._workbook(damaged, ""))


WORKBOOK = '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheets/></workbook>'


def test_a_line_or_an_archive_is_unpacked_in_proportion_to_its_file(tmp_path: Path):
    book = tmp_path / "run.jsonl.gz"
    with gzip.open(book, "wb", 9) as packed:
        for _ in range(96):
            packed.write(b" " * (1 << 20))
    with pytest.raises(JournalError, match="MiB"):
        journal.read(book)
    case = tmp_path / "case.json"
    with (
        zipfile.ZipFile(tmp_path / "case.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("input0.npy", "w", force_zip64=True) as entry,
    ):
        for _ in range(1025):
            entry.write(bytes(1 << 20))
    case.write_text(json.dumps({"schema": bundle.SCHEMA, "arrays": "case.npz", "dtypes": {}}))
    with pytest.raises(bundle.BundleError, match="more than any case has"):
        bundle.load(case)


def test_a_case_of_no_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    np.savez(tmp_path / "case.npz", input0=np.zeros(1, np.float32))
    case = {"schema": bundle.SCHEMA, "arrays": "case.npz", "dtypes": {"input0": "float32"}}
    path = tmp_path / "case.json"
    path.write_text(json.dumps(case | {"case": "../../../evil", "seed": 0}))
    with pytest.raises(SystemExit) as end:
        main(["check", "replay", "--simulator", str(path)])
    assert end.value.code == 2
    assert "evil" in capsys.readouterr().err


def test_a_pipe_as_a_reference_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    os.mkfifo(tmp_path / "golden.py")
    with pytest.raises(SystemExit) as end:
        main(["check", "aclnnAdd", "--simulator", "--golden", str(tmp_path / "golden.py")])
    assert end.value.code in (1, 2)
    assert "golden.py: a folder, a device, a pipe" in capsys.readouterr().err


def test_a_long_line_of_a_log_is_read_so_far(tmp_path: Path):
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * (1 << 20) + b"\n[ERROR] 507018 device\n")
    text = explain._text([str(log)])
    assert len(text) < 1 << 16
    assert "507018" in text


def test_addresses_of_journals_are_shown_without_secrets():
    source = "https://user:SECRET1@host:9/j.jsonl?sig=SECRET2#SECRET3"
    unread = Unread(source, f"cannot be read: {source} (and {source})")
    assert "SECRET" not in unread.source + unread.why
    assert unread.source == "https://host:9/j.jsonl?***"
    assert Unread("run/j.jsonl", "torn: s3://bucket/x").why == "torn: s3://bucket/x"


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
    outcomes, bad = fuzz_files.attack_recording(tmp_path, 20, seed=1)
    assert bad == []
    assert outcomes["RecordingError"] > 7
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
