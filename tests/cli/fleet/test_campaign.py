"""Campaigns over days: rounds are counted once whatever ends the process, in a bounded folder."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from journals import ENVIRONMENT
from mindtorch_npu import exits
from mindtorch_npu.commands.check import campaign
from mindtorch_npu.conformance.record import compressed, journal
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.fleet import merge
from mindtorch_npu.main import group

from aclnn_bindings.install.library import bundled_simulator

CASE = "add/soak/float32/64"
LAUNCHES = 1000


class Power(BaseException):
    """The power goes: nothing of the process is run any more."""


@pytest.fixture
def soaks(monkeypatch):
    """Soaks of three devices that take no time; `wrong` names rounds in which npu:1 differs, and
    `cut` rounds in which the power goes after so many devices."""
    world = SimpleNamespace(wrong=set(), cut={}, begun=[])

    def begin(request, path):
        number = request.seed
        world.begun.append((number, len(request.done)))
        book = journal.Journal(path, request.run)
        book.own()
        if not request.done:
            book.write("run", {**journal.header(ENVIRONMENT, request.options, 3), "node": "host1"})
            for d in range(3):
                book.write("plan", {"cases": [CASE], "seed": number, "device": f"npu:{d}"})
        for d in range(3):
            if journal.key_of(CASE, number, f"npu:{d}") in request.done:
                continue
            if world.cut.get(number) == d:
                del world.cut[number]
                book.close()
                raise Power
            bad = number in world.wrong and d == 1
            note = {"case": CASE, "seed": number, "launches": LAUNCHES, "wrong": 2 * bad,
                    "digest": "aa", "differences": [], "device": f"npu:{d}"}  # fmt: skip
            book.write("soak", note)
            book.result(Result(CASE, "add", "soak", "FAIL" if bad else "PASS", "float32",
                               seed=number, digest="aa", device=f"npu:{d}"))  # fmt: skip
        book.write("end", {"seconds": 1.0, "interrupted": False})
        book.close()
        return SimpleNamespace(stopped="")

    monkeypatch.setattr(campaign.engine, "begin", begin)
    monkeypatch.setattr(campaign.progress, "follow", lambda going: [])
    return world


def run(folder, *words, hours=5):
    command = ["check", "campaign", str(folder), "--hours", str(hours), *words]
    return group.main(command, standalone_mode=False)


def state(folder):
    return json.loads((folder / "campaign.json").read_text())


def test_rounds_have_inputs_and_compressed_journals_of_their_own(soaks, tmp_path):
    assert run(tmp_path) == exits.OK
    assert soaks.begun == [(n, 0) for n in range(1, 6)]
    books = sorted(tmp_path.glob("round-*"))
    assert [b.name for b in books] == [
        f"round-{n:06d}.jsonl{compressed.suffix()}" for n in range(1, 6)
    ]
    fleet = merge.merge(books)
    assert (fleet.counts().total, fleet.incomplete) == (15, False)
    assert state(tmp_path)["devices"]["host1 npu:1"] == {
        "rounds": 5, "launches": 5 * LAUNCHES, "wrong": 0
    }  # fmt: skip


def test_a_campaign_that_is_over_runs_nothing_and_shows_its_totals(soaks, tmp_path, capsys):
    assert run(tmp_path) == exits.OK
    begun = list(soaks.begun)
    capsys.readouterr()
    assert run(tmp_path) == exits.OK
    shown = capsys.readouterr()
    assert soaks.begun == begun
    assert "5 of 5 rounds" in shown.out
    assert "going on" not in shown.err


@pytest.mark.parametrize("devices", [0, 1, 2])
def test_a_round_that_was_cut_goes_on_and_counts_once(soaks, tmp_path, devices):
    soaks.cut = {2: devices}
    with pytest.raises(Power):
        run(tmp_path)
    assert run(tmp_path) == exits.OK
    assert soaks.begun[2] == (2, devices)
    totals = state(tmp_path)["devices"]
    assert {t["launches"] for t in totals.values()} == {5 * LAUNCHES}
    assert {t["rounds"] for t in totals.values()} == {5}


@pytest.mark.parametrize("where", ["write", "pack"])
def test_power_that_goes_while_a_round_is_counted_counts_it_once(
    soaks, tmp_path, monkeypatch, where
):
    owner, name = (
        (campaign.CampaignState, "write") if where == "write" else (campaign.compressed, "pack")
    )
    real = getattr(owner, name)

    def cut(*args):
        if (tmp_path / "round-000003.jsonl").exists():
            raise Power
        return real(*args)

    monkeypatch.setattr(owner, name, cut)
    with pytest.raises(Power):
        run(tmp_path)
    monkeypatch.setattr(owner, name, real)
    assert run(tmp_path) == exits.OK
    assert {t["launches"] for t in state(tmp_path)["devices"].values()} == {5 * LAUNCHES}
    assert not list(tmp_path.glob("round-*.jsonl"))


def test_a_header_that_was_cut_begins_the_round_again(soaks, tmp_path):
    run(tmp_path, hours=1)
    (tmp_path / "campaign.json").write_text(
        json.dumps({**state(tmp_path), "last": 0, "devices": {}})
    )
    (tmp_path / "round-000001.jsonl").write_text('{"kind":"ru')
    assert run(tmp_path, hours=1) == exits.OK
    assert state(tmp_path)["devices"]["host1 npu:0"]["rounds"] == 1


def test_a_device_that_differs_in_one_round_of_days_is_named_with_its_rate(soaks, tmp_path, capsys):
    soaks.wrong = {3}
    assert run(tmp_path) == exits.PROBLEMS
    shown = capsys.readouterr().out
    assert "findings in 1 round" in shown
    assert "1 in 2,500" in shown  # 2 of 5,000 launches
    assert "fewer than 1 in 1,667" in shown  # the others: three out of n at 95 %
    assert "round-000003" in shown
    assert run(tmp_path) == exits.PROBLEMS  # nothing is left to run, and the finding stays


def test_the_folder_stays_within_its_size_and_keeps_what_was_found(soaks, tmp_path):
    soaks.wrong = {2}
    assert run(tmp_path, "--max-mb", "0.004", hours=30) == exits.PROBLEMS
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= 4000
    left = {campaign._number(p) for p in tmp_path.glob("round-*")}
    assert 2 in left
    assert 30 in left
    assert state(tmp_path)["removed"] == 30 - len(left)
    assert state(tmp_path)["devices"]["host1 npu:0"]["rounds"] == 30


def test_evidence_larger_than_the_folder_may_be_ends_it(soaks, tmp_path, capsys):
    soaks.wrong = set(range(1, 50))
    assert run(tmp_path, "--max-mb", "0.003", hours=50) == exits.PROBLEMS
    assert "journals of rounds with findings take more than" in capsys.readouterr().err
    assert state(tmp_path)["last"] < 50


def test_a_folder_of_other_options_or_in_use_is_refused(soaks, tmp_path):
    assert run(tmp_path, hours=1) == exits.OK
    with pytest.raises(campaign.CampaignError, match="other options"):
        run(tmp_path, hours=2)
    with campaign._alone(tmp_path), pytest.raises(campaign.CampaignError, match="another process"):
        run(tmp_path, hours=1)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "mindtorch-npu/campaign/1", "last": -1}', "[" * 10_000]
)
def test_a_record_that_is_none_is_refused_by_name(soaks, tmp_path, text):
    (tmp_path / "campaign.json").write_text(text)
    with pytest.raises(campaign.CampaignError, match="no record of a campaign"):
        run(tmp_path)


def _results(path):
    return path.read_text().count('"kind":"result"') if path.exists() else 0


@pytest.mark.slow
@pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
def test_a_campaign_that_is_killed_in_the_middle_of_a_round_goes_on(tmp_path):
    folder = tmp_path / "campaign"
    command = [sys.executable, "-m", "mindtorch_npu", "check", "campaign", str(folder),
               "--simulator", "--hours", "0.005", "--round-minutes", "0.1"]  # fmt: skip
    environ = {**os.environ, "ACLSIM_DEVICES": "3", "ACLSIM_FAULTS": "npu1/*:flip@100"}
    process = subprocess.Popen(command, env=environ)
    second = folder / "round-000002.jsonl"
    deadline = time.monotonic() + 300
    while _results(second) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = _results(second)
    assert before >= 2
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert done.returncode == exits.PROBLEMS, done
    assert "going on with round 2 of 3" in done.stderr
    fleet = merge.merge(sorted(folder.glob("round-*")))
    assert len(fleet.parts) == 3
    assert not fleet.incomplete
    assert {stats.counts.total for stats in fleet.devices} == {3 * 7}
    assert {d.place.rpartition(" ")[2] for d in fleet.deviations} == {"npu:1"}
    totals = state(folder)["devices"]
    assert {t["rounds"] for t in totals.values()} == {3}
    assert [p.rpartition(" ")[2] for p, t in totals.items() if t["wrong"]] == ["npu:1"]


@pytest.mark.slow
@pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
@pytest.mark.parametrize("most", [300, 4096, 7000])
def test_a_campaign_whose_disk_is_full_says_so_and_goes_on_once_there_is_room(tmp_path, most):
    """In the first line of a journal, in its plan, among its results."""
    folder = tmp_path / "campaign"
    command = [sys.executable, "-m", "mindtorch_npu", "check", "campaign", str(folder),
               "--simulator", "--hours", "0.001", "--round-minutes", "0.03"]  # fmt: skip
    environ = {**os.environ, "ACLSIM_DEVICES": "2", "PYTHONDONTWRITEBYTECODE": "1"}
    limit = ["prlimit", f"--fsize={most}"]
    full = subprocess.run([*limit, *command], env=environ, capture_output=True, text=True)
    assert full.returncode == exits.NOTHING, full
    assert "no space left" in full.stderr
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert done.returncode == exits.OK, done
    assert {t["rounds"] for t in state(folder)["devices"].values()} == {2}
    fleet = merge.merge(sorted(folder.glob("round-*")))
    assert (len(fleet.parts), fleet.incomplete) == (2, False)
