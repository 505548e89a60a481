"""`mindtorch-npu preflight`: what it finds in seconds, what it says against whom, and when."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from journals import result
from mindtorch_npu import exits
from mindtorch_npu.commands.preflight import breadth, ring, runner, slow, verdict
from mindtorch_npu.commands.preflight.links import COPIES, COPIES_A_LINE, Rank, Ring, judge
from mindtorch_npu.conformance.cases.case import parse
from mindtorch_npu.conformance.operators.families import by_family
from mindtorch_npu.conformance.record import votes
from mindtorch_npu.conformance.run import launch_times
from mindtorch_npu.conformance.run.lane import Note
from mindtorch_npu.conformance.run.pool import Lost
from mindtorch_npu.conformance.run.process import Batch
from mindtorch_npu.main import group

import aclnn_bindings
from aclnn_bindings.install.library import bundled_simulator
from mindtorch.npu import install
from mindtorch.ops import OPS

CASE = "add/functional/s0"
OTHER = "mul/functional/s0"
DEVICES = ("npu:0", "npu:1", "npu:2")
simulated = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


def deviation(kind, launches=20, case=CASE):
    return votes.Deviation(case, case.split("/")[0], 0, "npu:1", kind, launches=launches)


def run_of(deviations=(), notes=(), batches=(), lost=()):
    return SimpleNamespace(deviations=deviations, lost=lost, notes=notes, batches=batches,
                           pool=SimpleNamespace(devices=DEVICES))  # fmt: skip


def of_devices(bad, case=CASE, **fields):
    """Results of a case: `bad` on npu:1, PASS on the others."""
    return [result(case, bad if device == "npu:1" else "PASS", device=device, **fields)
            for device in DEVICES]  # fmt: skip


SLOW = {"npu:1": slow.Slow(4.0, 20, 20)}


@pytest.mark.parametrize(
    ("linked", "found", "unjudged", "code"),
    [
        (Ring(), {}, (), exits.OK),
        (Ring(("link npu:0 → npu:1: nothing comes through",)), {}, (), exits.PROBLEMS),
        (Ring(), SLOW, (), exits.PROBLEMS),
        (Ring(unjudged="no answer"), {}, (), exits.NOT_JUDGED),
        (Ring(), {}, ("npu:1: 3 of 15 cases",), exits.NOT_JUDGED),
    ],
)
def test_only_what_was_judged_and_is_right_leaves_with_0(linked, found, unjudged, code):
    findings = runner.Findings(run_of(), of_devices("PASS"), linked, found, unjudged)
    assert findings.code == code


def accused(results, deviations=(), lost=()):
    return set(verdict.judge(results, deviations, lost, required={OTHER}).wrong)


@pytest.mark.parametrize("bad", ["FAIL", "ERROR", "CRASH", "POISONED", "MISTRUSTED"])
def test_a_device_is_accused_when_its_case_fails_again_or_a_second_one_does(bad):
    assert accused(of_devices(bad), [deviation(votes.DETERMINISTIC)]) == {"npu:1"}
    assert accused([*of_devices(bad), *of_devices(bad, OTHER)]) == {"npu:1"}
    once = verdict.judge(of_devices(bad), [deviation(votes.UNREPEATED, 0)], ())
    assert (dict(once.wrong), len(once.unjudged)) == ({}, 1)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [("HANG", "no answer within 10 s"), ("OOM", ""), ("CRASH", "ended by signal 9 (SIGKILL)")],
)
def test_what_load_can_do_to_a_healthy_device_accuses_nobody(bad, reason):
    again = [deviation(kind, case=case) for kind in (votes.DETERMINISTIC, votes.FLAKY)
             for case in (CASE, OTHER)]  # fmt: skip
    results = [*of_devices(bad, reason=reason), *of_devices(bad, OTHER, reason=reason)]
    judged = verdict.judge(results, again, [Lost("npu:1", "died: signal 9 (SIGKILL)")])
    assert dict(judged.wrong) == {}
    assert len(judged.unjudged) == 3


def test_a_difference_counts_once_it_was_seen_again():
    same = of_devices("PASS")
    assert accused(same, [deviation(votes.UNREPEATED, 0)]) == set()
    assert accused(same, [deviation(votes.OPERATOR)]) == set()
    for kind in (votes.DETERMINISTIC, votes.STUCK, votes.FLAKY, votes.UNDECIDED):
        assert accused(same, [deviation(kind)]) == {"npu:1"}
        assert accused(same, [deviation(kind, 0)]) == set()


def test_what_fails_alike_on_every_device_is_no_devices_fault_unless_it_is_required():
    failing = [result(case, "FAIL", device=d) for case in (CASE, OTHER) for d in DEVICES]
    judged = verdict.judge(failing, (), (), required={OTHER})
    assert {text for texts in judged.wrong.values() for text in texts} == {f"FAIL {OTHER}"}
    assert list(judged.alike) == [f"FAIL {CASE}"]


def test_a_device_on_which_no_worker_starts_is_wrong():
    assert accused(of_devices("PASS"), lost=[Lost("npu:2", "workers die at once")]) == {"npu:2"}
    assert accused(of_devices("PASS"), lost=[Lost("npu:2", "held", what="device hung")]) == set()


def test_cases_of_a_preflight_have_names_that_there_are():
    extra = list(breadth.one_of_each(frozenset(runner.CASES)))
    every = [*runner.CASES, *extra]
    assert [parse(case).id for case in every] == every
    assert len(extra) > 700
    assert len({case.partition("/")[0] for case in extra[:40]}) == 40


def test_every_family_comes_early_and_what_reaches_no_other_operator_last():
    families = by_family()
    declared = {name for family in families for name in family}
    extra = list(breadth.one_of_each(frozenset(), declared))
    first = {case.partition("/")[0] for case in extra[: len(families)]}
    assert all(first.intersection(family) for family in families)
    launched = [{name for call in OPS[op].kernels.aclnn if (name := call.name)} if op in OPS
                else {op} for op in (case.partition("/")[0] for case in extra)]  # fmt: skip
    reached, fresh = set(), []
    for of_case in launched:
        fresh.append(not of_case <= reached)
        reached |= of_case
    assert fresh == sorted(fresh, reverse=True)


def test_every_bit_of_a_link_carries_both_values():
    words = ring.pattern(0).view("uint32")
    for bit in range(32):
        assert 0.4 < (words >> bit & 1).mean() < 0.6
    assert (ring.pattern(0) != ring.pattern(1)).mean() > 0.99


def steps(text, at=0.0):
    """`ready waits0 link`: steps in order, a wait in that round with enough copies to prove it."""
    lines = []
    for word in text.split():
        name = word.rstrip("0123456789")
        step = {"step": name, "at": at, "wrong": [], "error": "507057"}
        if name == "waits":
            count = COPIES // COPIES_A_LINE + 1
            lines += [step | {"at": at + 1 + i, "round": word, "since": at} for i in range(count)]
        else:
            lines.append(step | {"round": word})
    return lines


def ranks(*texts, error="", **fields):
    return [Rank(device, steps(text), error, **fields)
            for device, text in zip(DEVICES, texts, strict=True)]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (("ready waits0", "ready waits0", "ready waits1"), "link npu:0 → npu:1: nothing"),
        (("ready link", "ready waits0", "ready link"), "link npu:0 → npu:1: nothing"),
        (("ready failed0", "ready failed0", "ready failed1"), "link npu:0 → npu:1: 507057"),
        (("ready waits0",) * 3, "links between npu:0, npu:1, npu:2: nothing"),
    ],
)
def test_a_link_over_which_nothing_comes_is_named(texts, says):
    (text,) = judge(ranks(*texts)).wrong
    assert text.startswith(says)


@pytest.mark.parametrize(
    ("texts", "unjudged"),
    [
        (("ready link sum",) * 3, ""),
        (("ready", "ready", "ready"), "npu:0: no answer in time"),
        (("ready link", "ready", "ready link"), "npu:0: no answer in time"),
        (("ready waits0", "ready", "ready waits0"), "npu:0: no answer in time"),
        (("ready link sum", "ready link sum", "ready link"), "npu:2: no answer in time"),
    ],
)
def test_a_rank_that_the_host_did_not_let_run_proves_nothing(texts, unjudged):
    assert judge(ranks(*texts)) == Ring((), unjudged)
    assert judge(ranks("ready failed0", "ready waits0", "ready failed0", killed=True)).wrong == ()


def test_copies_of_before_both_ends_had_begun_do_not_count():
    from scipy.stats import binom

    early, late = steps("ready waits0"), steps("ready waits0", at=100.0)
    late = late[: len(late) // 2]
    assert judge([Rank("npu:0", early), Rank("npu:1", late)]).wrong == ()
    assert binom.cdf(3, COPIES, 0.2) < 1e-8  # as links.py states


def test_words_that_a_link_changes_are_named_with_the_link():
    wrong = ranks("ready link sum", "ready link sum", "ready link sum")
    wrong[1].steps[1]["wrong"] = ["rank 0: 2 words of 1 of 32 messages differ"]
    (text,) = judge(wrong).wrong
    assert text == "link npu:0 → npu:1: rank 0: 2 words of 1 of 32 messages differ"


OPERATORS, ROUNDS = 7, 24


def rounds(rng, factors, delays, count=ROUNDS):
    """Rounds of timed launches under a load, which `delays` draws."""
    return {
        f"npu:{i}": (factor * (1 + delays(rng, count, i))).tolist()
        for i, factor in enumerate(factors)
    }


def bursts(rng, count, device):
    """Load that treats all devices alike and is far above every threshold, in half of the time."""
    return rng.exponential(4.0, (count, OPERATORS)) * (rng.random((count, 1)) < 0.5)


def rare_bursts(rng, count, device):
    return rng.exponential(4.0, (count, OPERATORS)) * (rng.random((count, 1)) < 0.02)


def one_sided(rng, count, device):
    """Load that hits one device alone, in as many rounds as the model allows at most."""
    return 9.0 * (rng.random((count, 1)) < 0.5 * (device == 1)) * np.ones(OPERATORS)


def one_operator(rng, count, device):
    """What lasts through the whole run: the tensors of an operator lie badly on one device."""
    return np.tile(9.0 * (np.arange(OPERATORS) == 3) * (device == 1), (count, 1))


@pytest.mark.parametrize("delays", [bursts, one_sided, one_operator])
@pytest.mark.parametrize("count", [3, 8])
def test_load_makes_no_healthy_device_slow(delays, count):
    rng = np.random.default_rng(5)
    for _ in range(200):
        assert slow.slow_devices(rounds(rng, [1.0] * count, delays)) == {}


@pytest.mark.parametrize(("devices", "count"), [(3, 21), (3, 15), (8, 21), (16, 200)])
def test_a_false_alarm_is_as_rare_as_stated(devices, count):
    from scipy.stats import binom

    """By the exact law: the least number of late rounds that accuses, at the model's worst."""
    least = next(n for n in range(count + 2) if slow.is_slow(n, count, devices))
    assert devices * binom.sf(least - 1, count, 0.5) <= slow.ALARM
    assert devices * binom.sf(least - 2, count, 0.5) > slow.ALARM
    assert slow.least_rounds(devices) <= count


def test_a_device_whose_launches_take_longer_is_slow_under_load_and_it_alone():
    rng = np.random.default_rng(6)
    runs = [[*slow.slow_devices(rounds(rng, [1.0, 1.5, 1.1], rare_bursts))] for _ in range(50)]
    assert runs.count(["npu:1"]) > 45
    assert all(named in ([], ["npu:1"]) for named in runs)
    assert slow.slow_devices(rounds(rng, [1.0, 4.0], bursts)) == {}  # of two, either may be


def timed(counts, **more):
    data = {"milliseconds": [1.0] * OPERATORS, **more}
    return [Note(launch_times.NOTE, {"device": device, **data})
            for device, count in zip(DEVICES, counts, strict=True)
            for _ in range(count)]  # fmt: skip


def test_rounds_reach_the_judge_and_too_few_are_said():
    notes = [*timed((20, 15, 14)), *timed((0, 0, 3), milliseconds=[]),
             Note(launch_times.NOTE, {"device": "npu:2", "error": "x"})]  # fmt: skip
    run = run_of(notes=notes)
    assert [len(of_device) for of_device in runner._rounds(run).values()] == [20, 15, 14]
    (text,) = runner._unjudged(run, [])
    assert text == "npu:2: 14 rounds of timed launches; whether it is slow takes 15"


@simulated
def test_a_round_gives_a_time_for_each_operator_or_none_where_the_device_waited(monkeypatch):
    install.use(aclnn_bindings.open(simulator=True))  # open to the end: later tests compute there
    timer = launch_times.LaunchTimer("npu:0", "simulator", 0.0)
    times = next(filter(None, (timer.round() for _ in range(100))))
    assert len(times) == OPERATORS
    assert min(times) > 0
    assert (timer.rounds, timer.case) == (1, "launches/soak/timed/1")
    through = SimpleNamespace(record=lambda: None, query=lambda: True)
    monkeypatch.setattr(timer, "_outlasted", through)
    assert timer.round() == []


def test_what_a_device_did_not_judge_in_time_is_named_with_the_case_under_way():
    batches = [Batch((CASE, "mul/functional/s0"), 0, {}, device, required=True)
               for device in DEVICES[:2]]  # fmt: skip
    notes = [Note("cut", {"case": CASE, "device": "npu:1", "seconds": 4.0})]
    results = [result(case, "PASS", device="npu:0") for case in batches[0].cases]
    run = run_of(notes=[*notes, *timed((15, 15, 15))], batches=batches)
    (text,) = runner._unjudged(run, results)
    assert text == (
        f"npu:1: 2 of 2 cases had no verdict when time was up; {CASE} had run for 4.0 s"
    )


def test_a_scan_that_reached_no_memory_judged_none():
    notes = [Note("soak", {"device": "npu:1", "launches": 2, "bytes": size}) for size in (0, 1)]
    notes += timed((15, 15, 15))
    assert runner._unjudged(run_of(notes=notes), []) == ("npu:1: no memory was scanned in time",)


@simulated
def test_a_preflight_ends_in_its_time_whatever_devices_do(tmp_path, monkeypatch, capsys):
    """A device that hangs; where the host is so loaded that no worker starts, the same holds."""
    monkeypatch.setenv("ACLSIM_DEVICES", "2")
    monkeypatch.setenv("ACLSIM_FAULTS", "npu1/*:hang")
    started = time.monotonic()
    code = runner.run(3.0, "all", None, True, tmp_path / "p.jsonl", started)
    assert time.monotonic() - started < 3.0 + 2.0
    assert code == exits.NOT_JUDGED
    assert "not judged" in "".join(capsys.readouterr()).lower()


@pytest.mark.slow
@simulated
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("", exits.OK),
        ("npu1/matmul:stuck@12", exits.PROBLEMS),
        ("npu1/*:flip@50", exits.PROBLEMS),
        ("npu1/memory:stuck@16", exits.PROBLEMS),
        ("npu0-npu1/link:silent", exits.PROBLEMS),
    ],
)
def test_planted_faults_are_found_and_healthy_chips_pass(tmp_path, monkeypatch, fault, code):
    monkeypatch.setenv("ACLSIM_DEVICES", "3")
    monkeypatch.setenv("ACLSIM_FAULTS", fault)
    words = ["preflight", "--simulator", "--seconds", "60", "--journal", str(tmp_path / "p.jsonl")]
    assert group.main(words, standalone_mode=False) == code
