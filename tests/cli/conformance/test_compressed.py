"""Compressed journals: written when a run has ended, read wherever a plain one is."""

import gzip
import json
import sys

import click
import pytest
from mindtorch_npu import exits, foreign
from mindtorch_npu.conformance.record import compressed, journal
from mindtorch_npu.fleet import merge
from mindtorch_npu.main import group

from aclnn_bindings.install.library import bundled_simulator

simulated = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
zstd = pytest.mark.skipif(compressed.suffix() != ".zst", reason="zstandard is an extra: [cluster]")
NAMES = ["a.jsonl.gz", pytest.param("a.jsonl.zst", marks=zstd)]


def run(*words):
    return group.main([str(w) for w in words], prog_name="mindtorch-npu", standalone_mode=False)


def check(path, *words):
    case = "add/functional/s0/float32"
    return run("check", "add", "--case", case, "--simulator", "--journal", path, *words)


@simulated
def test_a_run_leaves_its_journal_compressed_and_reports_read_it(tmp_path, capsys):
    path = tmp_path / f"a.jsonl{compressed.suffix()}"
    assert check(path) == exits.OK
    assert compressed.is_compressed(path)
    assert not path.with_suffix("").exists()
    assert f"journal: {path}" in capsys.readouterr().out
    assert run("report", path) == exits.OK
    assert merge.merge([path]).counts().by_verdict == {"PASS": 1}
    with pytest.raises(click.UsageError, match=f"{path} exists"):
        check(path)
    with pytest.raises(click.UsageError, match="a compressed journal is not appended to"):
        run("check", "--resume", path)


@pytest.mark.parametrize("name", NAMES)
def test_packing_gives_the_lines_back_and_removes_the_plain_file(tmp_path, name):
    plain, lines = (
        tmp_path / "a.jsonl",
        "".join(f'{{"kind":"start","n":{i}}}\n' for i in range(999)),
    )
    plain.write_text(lines)
    compressed.pack(plain, tmp_path / name)
    assert not plain.exists()
    assert (tmp_path / name).stat().st_size < len(lines) / 4
    with compressed.opened((tmp_path / name).open("rb")) as file:
        assert file.read().decode() == lines


@pytest.mark.parametrize("how", ["cut", "flipped"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_damaged_is_named(tmp_path, name, how):
    plain, path = tmp_path / "a.jsonl", tmp_path / name
    plain.write_text("".join(f'{{"kind":"start","n":{i}}}\n' for i in range(999)))
    compressed.pack(plain, path)
    data, half = path.read_bytes(), path.stat().st_size // 2
    path.write_bytes(data[:half] if how == "cut" else
                     data[:half] + bytes(b ^ 255 for b in data[half:]))  # fmt: skip
    with pytest.raises(journal.JournalError, match=name):
        journal.read(path)
    assert [one.source for one in merge.merge([path]).unread] == [str(path)]


def test_a_compressed_journal_is_no_larger_than_a_plain_one_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign, "FILE_BYTES", 1 << 20)
    path = tmp_path / "a.jsonl.gz"
    header = json.dumps({"kind": "run", **journal.header({"device": "cpu"}, {"what": "add"}, 1)})
    for line in (" " * (1 << 21), '{"kind":"start","case":"add"}\n' * (1 << 16)):
        path.write_bytes(gzip.compress(f"{header}\n{line}".encode()))
        with pytest.raises(journal.JournalError, match="more than 1 MiB"):
            journal.read(path)


def test_without_zstandard_gzip_is_written_and_zstd_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setattr(compressed, "find_spec", lambda name: None)
    assert compressed.suffix() == ".gz"
    assert compressed.live(tmp_path / "a.jsonl.gz") == tmp_path / "a.jsonl"
    with pytest.raises(compressed.CompressionError, match="pip install"):
        compressed.live(tmp_path / "a.jsonl.zst")
    path = tmp_path / "b.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    with pytest.raises(journal.JournalError, match="zstandard"):
        journal.read(path)
