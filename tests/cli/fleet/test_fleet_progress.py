"""Progress over all hosts: of a cluster's run as it goes, of journals that still grow."""

import io
import json
import threading
from types import SimpleNamespace

import pytest
from journals import result, write
from mindtorch_npu import exits
from mindtorch_npu.commands.check import progress
from mindtorch_npu.conformance.record.result import Counts
from mindtorch_npu.main import group
from mindtorch_npu.render import _THEME
from rich.console import Console

CASES = [f"add/functional/s{i}" for i in range(40)]


def shown(nodes):
    """What a terminal has after results of `nodes`."""
    on = Console(file=io.StringIO(), force_terminal=True, width=110, height=40, theme=_THEME)
    counts = Counts()
    with progress._bar(on, SimpleNamespace(total=len(nodes), counts=counts)) as advance:
        for i, node in enumerate(nodes):
            one = result(CASES[i], "FAIL" if i == 1 else "PASS", node=node)
            counts.add(one)
            advance(one)
    return on.file.getvalue()


def test_hosts_of_a_cluster_have_a_line_each():
    text = shown(["host1", "host2", "host1"])
    assert "host1" in text
    assert "host2" in text
    assert "1 failing" in text


def test_one_host_has_none():
    assert "host1" not in shown(["host1"] * 3)


def test_many_hosts_share_a_line():
    text = shown([f"host{i}" for i in range(20)])
    assert "8 more hosts" in text
    assert "host11" in text
    assert "host12" not in text


def test_journals_are_watched_until_every_run_has_ended(tmp_path, capsys):
    done = write(tmp_path / "a.jsonl", "host1", map(result, CASES[:2]), CASES[:2])
    going = write(tmp_path / "b.jsonl", "host2", [result(CASES[2])], CASES[2:4], {})
    head = json.loads(going.read_text().splitlines()[0])

    def finish():
        with going.open("a") as file:
            for line in ({"kind": "result", **result(CASES[3]).as_json()},
                         {"kind": "end", "seconds": 1.0, "interrupted": False}):  # fmt: skip
                file.write(json.dumps({**line, "run": head["run"]}) + "\n")

    timer = threading.Timer(0.5, finish)
    timer.start()
    words = ["report", "--merge", str(done), str(going), "--watch", "1"]
    assert group.main(words, standalone_mode=False) == exits.OK
    timer.join()
    first, _, last = capsys.readouterr().out.partition("fleet · ")
    assert "3 of 4 cases; 1 host of 2 at work" in first
    assert "4 results: 4 PASS" in last


def test_watching_is_of_a_fleet():
    import click

    with pytest.raises(click.UsageError, match="add --merge"):
        group.main(["report", "--watch", "5"], standalone_mode=False)
