"""Faults of hosts: each kind is a row with its name, and a fleet without it has none."""

import errno
import json
import os
import subprocess
import time

import pytest
from journals import ENVIRONMENT, result, write
from mindtorch_npu import exits
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.fleet import host_faults, merge
from mindtorch_npu.main import group

from aclnn_bindings.install.library import bundled_simulator

CASE = "add/functional/s0"
simulated = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


def rows(*paths, now=None):
    return [(r.name, r.place) for r in host_faults.rows(merge.merge(paths), now)]


def host(tmp_path, number, **fields):
    cases = fields.pop("results", [result(f"add/functional/s{number}")])
    return write(tmp_path / f"{number}.jsonl", f"host{number}", cases, **fields)


def test_a_calm_fleet_has_no_rows(tmp_path):
    assert rows(*(host(tmp_path, i) for i in range(3))) == []


def test_full_disk_keeps_its_end_and_is_named(tmp_path, monkeypatch):
    book = journal.Journal(tmp_path / "a.jsonl", journal.new_run())
    book.own()
    book.write("run", {**journal.header(ENVIRONMENT, {}, 2), "node": "host1"})
    real, room = os.write, [200]

    def write_until_full(file, data):
        taken = min(len(data), room[0])
        if not taken and book._reserve is None:
            return real(file, data)  # the room that was set aside
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room[0] -= taken
        return real(file, data[:taken])

    monkeypatch.setattr(os, "write", write_until_full)
    full = None
    for i in range(9):
        try:
            book.result(result(f"add/functional/s{i}"))
        except journal.JournalFullError as error:
            full = error
            break
    assert full is not None
    room[0] = 0
    book.last({"seconds": 1.0, "interrupted": True, "stopped": full.strerror})
    assert rows(book.path) == [("disk full", "host1")]
    assert merge.merge([book.path]).parts[0].torn == 0


def test_host_without_an_npu_is_named(tmp_path):
    end = {"seconds": 0.0, "interrupted": True, "stopped": "no device: libascendcl.so not there"}
    assert rows(host(tmp_path, 1, results=[], end=end)) == [("no NPU", "host1")]


def test_a_journal_without_an_end_stopped_early(tmp_path):
    assert rows(host(tmp_path, 1, end={})) == [("stopped early", "host1")]


def test_clock_that_is_ahead_is_skewed(tmp_path):
    path = host(tmp_path, 1)
    assert rows(path, now=time.time() - 3600) == [("clock skew", "host1")]


def test_clock_that_was_set_back_in_a_run_is_skewed(tmp_path):
    end = {"seconds": 300.0, "interrupted": False, "ended": journal.now()}
    assert rows(host(tmp_path, 1, end=end)) == [("clock skew", "host1")]


def test_cluster_node_whose_clock_is_off_is_skewed(tmp_path):
    note = ("place", {"node": "n7", "environment": ENVIRONMENT, "skew": -90.0})
    assert rows(host(tmp_path, 1, notes=[note])) == [("clock skew", "n7")]


def test_two_runs_in_one_journal_are_named(tmp_path):
    paths = [host(tmp_path, i) for i in range(2)]
    both = tmp_path / "both.jsonl"
    both.write_text("".join(p.read_text() for p in paths))
    assert rows(both) == [("two runs in one journal", "host0, host1")]


def test_a_second_run_into_a_journal_in_use_is_refused(tmp_path):
    first, second = (journal.Journal(tmp_path / "a.jsonl", journal.new_run()) for _ in range(2))
    first.own()
    with pytest.raises(journal.JournalError, match="another run is writing into it"):
        second.own()


@pytest.mark.parametrize("what", ["cann", "driver", "firmware", "kernels"])
def test_host_with_another_version_is_named(tmp_path, what):
    paths = [host(tmp_path, i) for i in range(2)]
    paths.append(host(tmp_path, 2, environment={what: "0.9"}))
    there = host_faults.rows(merge.merge(paths))
    assert [(r.name, r.place, r.text.split(",")[0]) for r in there] == [
        ("other version", "host2", f"{what} 0.9")
    ]


def test_killed_worker_is_named_with_its_case(tmp_path):
    note = ("killed", {"case": CASE, "seed": 0, "device": "npu:3"})
    there = host_faults.rows(merge.merge([host(tmp_path, 1, notes=[note])]))
    assert there == [("worker killed", "host1 npu:3", f"in {CASE}")]


def test_a_case_that_the_deadline_cut_is_named_with_its_time(tmp_path):
    note = ("cut", {"case": CASE, "seed": 0, "device": "npu:1", "seconds": 8.2})
    there = host_faults.rows(merge.merge([host(tmp_path, 1, notes=[note])]))
    assert there == [("cut at the deadline", "host1 npu:1", f"{CASE} had run for 8.2 s")]


def test_lost_device_is_named_with_what_it_did_not_run(tmp_path):
    lost = ("lost", {"place": "npu:3", "reason": "workers die at once", "cases": [CASE]})
    there = host_faults.rows(merge.merge([host(tmp_path, 1, notes=[lost])]))
    assert there == [("device lost", "host1 npu:3", "workers die at once; not run: 1 case")]


def test_torn_lines_are_left_out_and_counted(tmp_path):
    path = host(tmp_path, 1)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], '{"kind":"resu', *lines[1:]]) + "\n")
    assert rows(path) == [("torn lines", "host1")]


def test_missing_shard_and_case_judged_twice_are_named(tmp_path):
    one = host(tmp_path, 1, results=[result(CASE)], shard="1/3")
    two = host(tmp_path, 2, results=[result(CASE, "FAIL")], shard="2/3")
    assert rows(one, two) == [("shard missing", "3/3"), ("judged twice", "host2 npu:0")]


def test_every_row_has_a_meaning(tmp_path):
    path = host(tmp_path, 1, end={})
    assert {name for name, _ in rows(path)} <= set(host_faults.NAMES)
    json.dumps(host_faults.NAMES)


def test_slow_device_is_told_by_its_interval(tmp_path):
    paths = []
    for number in range(4):
        base = 2e-3 if number == 2 else 1e-3
        own = [
            result(f"add/functional/s{i}", seconds=base * (1 + i / 99), device="npu:0")
            for i in range(40)
        ]
        paths.append(host(tmp_path, number, results=own, compare=True))
    there = merge.merge(paths).devices
    assert [p.node for p in there if p.speed is not None and p.speed.slow] == ["host2"]
    speed = there[2].speed
    assert speed is not None
    assert 1.9 < speed.low <= speed.median <= speed.high < 2.1


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 40 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(folder)]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@simulated
def test_disk_that_fills_in_a_run_stops_it_and_is_named(small_disk, capfd):
    book = small_disk / "a.jsonl"
    words = ["check", "add", "--simulator", "--form", "functional", "--jobs", "1"]
    code = group.main([*words, "--journal", str(book)], standalone_mode=False)
    assert code == exits.NOTHING
    assert "no space left for its next line; go on with" in capfd.readouterr().err
    fleet = merge.merge([book])
    assert [r.name for r in host_faults.rows(fleet) if r.name != "torn lines"] == ["disk full"]
    assert fleet.counts().total
    assert fleet.lost


def test_half_a_line_of_a_worker_spoils_no_other(tmp_path):
    book = journal.Journal(tmp_path / "a.jsonl", journal.new_run())
    book.write("run", {**journal.header(ENVIRONMENT, {}, 1), "node": "host1"})
    os.write(book._file, b'{"kind":"start","case":"ad')
    book.last({"seconds": 1.0, "interrupted": True, "stopped": "a.jsonl: no space left for its"})
    assert rows(book.path) == [("disk full", "host1"), ("torn lines", "host1")]


def test_part_on_a_host_without_an_install_says_so_in_its_journal(tmp_path):
    book, home = tmp_path / "2.jsonl", tmp_path / "nothing"
    home.mkdir()
    words = ["check", "add", "--home", str(home), "--shard", "2/2", "--journal", str(book)]
    assert group.main(words, standalone_mode=False) == exits.NOTHING
    selection = json.loads(book.read_text().splitlines()[0])["options"]["selection"]
    other = host(tmp_path, 1, shard="1/2", selection=selection)
    assert [name for name, _ in rows(other, book)] == ["no NPU", "shard missing"]


def test_a_report_reads_over_half_a_line_before_the_end(tmp_path):
    book = journal.Journal(tmp_path / "a.jsonl", journal.new_run())
    book.write("run", journal.header(ENVIRONMENT, {}, 1))
    os.write(book._file, b'{"kind":"start","case":"ad')
    book.last({"seconds": 1.0, "interrupted": True})
    assert journal.read(book.path).end["interrupted"]
    book.path.write_text(book.path.read_text() + '{"kind":"end"}\n')
    with pytest.raises(journal.JournalError, match="line 2 is not JSON"):
        journal.read(book.path)


def test_two_hosts_of_one_name_are_told_by_the_serials_of_their_chips(tmp_path):
    """Their results came together under one name, and nothing said so."""
    paths = [
        write(tmp_path / f"{serial}.jsonl", "host1", [result("add/functional/s0", device="npu:0")],
              environment={"chips": {"npu:0": {"serial": serial}}})
        for serial in ("A7", "B2")
    ]  # fmt: skip
    rows = [tuple(row) for row in host_faults.rows(merge.merge(paths))]
    assert ("several chips", "host1 npu:0", "serial A7, B2") in rows
    assert "several chips" not in [row.name for row in host_faults.rows(merge.merge(paths[:1]))]
