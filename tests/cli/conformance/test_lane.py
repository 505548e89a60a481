"""A lane's workers end in many ways: which of them cost a case, and which run it again."""

import os
import signal
import stat
import sys

import pytest
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run import process
from mindtorch_npu.conformance.run.lane import Lane, Note
from mindtorch_npu.conformance.run.process import (
    Batch,
    DeviceHungError,
    EnvironmentFailedError,
    OutOfTimeError,
    Process,
    Setup,
    prepared,
)

CASES = tuple(f"add/{form}/s0" for form in ("functional", "method", "out"))


def run(monkeypatch, number, times):
    """(verdicts, notes) of a batch in which the first `times` workers that start the second case
    get a signal before they have a result."""
    struck = []
    real = Process.receive

    def receive(self, seconds):
        if self in struck:
            return None
        message = real(self, seconds)
        if message == {"start": CASES[1]} and len(struck) < times:
            os.kill(self.child.pid, number)
            struck.append(self)
        return message

    monkeypatch.setattr(Process, "receive", receive)
    lane = Lane(Setup("cpu"))
    events = list(lane.run(Batch(CASES, 0)))
    lane.close()
    verdicts = [(e.case, e.verdict) for e in events if isinstance(e, Result)]
    return verdicts, [e.data for e in events if isinstance(e, Note)]


def test_a_killed_workers_case_runs_again_and_counts_once(monkeypatch):
    verdicts, notes = run(monkeypatch, signal.SIGKILL, 1)
    assert verdicts == [(case, "PASS") for case in CASES]
    assert notes == [{"case": CASES[1], "seed": 0, "device": "cpu"}]


@pytest.mark.parametrize(("number", "times"), [(signal.SIGKILL, 2), (signal.SIGSEGV, 1)])
def test_a_case_that_kills_its_worker_is_a_crash(monkeypatch, number, times):
    """Twice from outside, as where it takes all of the host's memory; once where it does itself."""
    verdicts, notes = run(monkeypatch, number, times)
    assert verdicts == [(CASES[0], "PASS"), (CASES[1], "CRASH"), (CASES[2], "PASS")]
    assert len(notes) == times - 1


def test_a_crash_in_a_round_of_timed_launches_is_a_result_and_costs_no_case(monkeypatch):
    struck = []
    real = Process.receive

    def receive(self, seconds):
        if self in struck:
            return None
        if not struck and getattr(self, "round", False):
            os.kill(self.child.pid, signal.SIGSEGV)
            struck.append(self)
            return {"start": "launches/soak/timed/0"}
        message = real(self, seconds)
        self.round = "result" in message
        return message

    monkeypatch.setattr(Process, "receive", receive)
    lane = Lane(Setup("cpu"))
    verdicts = [(e.case, e.verdict) for e in lane.run(Batch(CASES, 0)) if isinstance(e, Result)]
    lane.close()
    assert verdicts == [(CASES[0], "PASS"), ("launches/soak/timed/0", "CRASH"),
                        (CASES[1], "PASS"), (CASES[2], "PASS")]  # fmt: skip


def test_a_stopped_worker_costs_its_case_and_its_time_limit(monkeypatch):
    """As one that a debugger or a driver holds, in a case that takes longer than stopping it."""
    stopped = []
    cases = (CASES[0], "add/functional/dtype=float32/row=8388609/rank=1", CASES[2])
    real = Process.receive

    def receive(self, seconds):
        message = real(self, 1.0 if self.child.pid in stopped else seconds)
        if message == {"start": cases[1]} and not stopped:
            os.kill(self.child.pid, signal.SIGSTOP)
            stopped.append(self.child.pid)
        return message

    monkeypatch.setattr(Process, "receive", receive)
    lane = Lane(Setup("cpu"))
    verdicts = [e.verdict for e in lane.run(Batch(cases, 0)) if isinstance(e, Result)]
    lane.close()
    assert sorted(verdicts) == ["HANG", "PASS", "PASS"]


def test_a_worker_that_nothing_ends_fences_its_device(monkeypatch):
    """A process inside a driver does not die of SIGKILL: the run goes on without its device."""
    real = Process.receive

    def receive(self, seconds):
        message = real(self, seconds)
        if message == {"start": CASES[1]}:
            self.held = True
        return "late" if getattr(self, "held", False) and message is not None else message

    monkeypatch.setattr(Process, "receive", receive)
    monkeypatch.setattr(Process, "wait", lambda self, seconds=0: None)
    lane = Lane(Setup("cpu", timeout=20.0))
    with pytest.raises(DeviceHungError, match="reset the device"):
        list(lane.run(Batch(CASES, 0)))


def test_a_worker_that_ends_late_on_a_busy_host_fences_nothing(monkeypatch):
    real, waited = Process.wait, []

    def wait(self, seconds=10.0):
        waited.append(seconds)
        return real(self, seconds) if len(waited) > 1 else None

    process = Process(Setup("cpu"))
    monkeypatch.setattr(Process, "wait", wait)
    assert process.kill()
    assert waited[1] > waited[0]


def test_at_the_deadline_a_case_under_way_is_cut_and_named(monkeypatch):
    """By the lane's clock: a worker that is silent from then on, as on a host without a free
    processor."""
    real = Process.receive

    def receive(self, seconds):
        if seconds <= 0:
            return "late"
        message = real(self, seconds)
        if message == {"start": CASES[1]}:
            monkeypatch.setattr(Setup, "left", property(lambda _setup: 0.0))
        return message

    monkeypatch.setattr(Process, "receive", receive)
    lane = Lane(Setup("cpu"))
    first, cut = lane.run(Batch(CASES, 0))
    assert (first.case, first.verdict) == (CASES[0], "PASS")
    assert (cut.kind, cut.data["case"], cut.data["device"]) == ("cut", CASES[1], "cpu")
    with pytest.raises(OutOfTimeError, match="no time was left"):
        lane.open()


def start(monkeypatch, tmp_path, body, seconds):
    """What a lane says of a worker that runs these lines of Python before anything else."""
    program = tmp_path / "python"
    program.write_text(f"#!{sys.executable} -IS\nimport sys, time\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("MINDTORCH_START_SECONDS", seconds)
    lane = Lane(Setup("cpu"))
    try:
        return lane.open()
    finally:
        lane.close()


WORKS = """while time.process_time() < 0.7: pass
print('{"hello": {"slow": 1}}', flush=True)"""


def test_a_worker_that_works_is_waited_for(monkeypatch, tmp_path):
    assert start(monkeypatch, tmp_path, WORKS, "0.4") == {"slow": 1}


@pytest.mark.parametrize("body", ["time.sleep(60)", "while True: pass"])
def test_a_worker_that_hangs_or_works_for_ever_is_not(monkeypatch, tmp_path, body):
    with pytest.raises(EnvironmentFailedError, match=r"did not start.*set MINDTORCH_START_SECONDS"):
        start(monkeypatch, tmp_path, body, "0.3")


@pytest.mark.parametrize("seconds", ["soon", "-1", "0", "nan", "inf"])
def test_a_time_to_start_that_is_no_time_is_refused(monkeypatch, tmp_path, seconds):
    with pytest.raises(EnvironmentFailedError, match=r"MINDTORCH_START_SECONDS=.*expected seconds"):
        start(monkeypatch, tmp_path, "pass", seconds)


def test_a_worker_that_was_started_ahead_is_the_one_that_runs():
    lane = Lane(Setup("cpu"))
    lane.start()
    child = lane._process.child.pid
    assert lane.open()["device"] == "cpu"
    assert lane.open()["device"] == "cpu"
    (outcome,) = lane.run(Batch(CASES[:1], 0))
    assert (outcome.verdict, lane._process.child.pid) == ("PASS", child)
    lane.close()


@pytest.mark.parametrize(("grown", "workers"), [(1 << 20, 1), (2 << 30, 3)])
def test_a_worker_that_keeps_growing_is_replaced_between_batches(monkeypatch, grown, workers):
    """Each batch leaves the worker with `grown` bytes more."""
    opened = []

    class Growing:
        size = 300 << 20

        def resident_bytes(self):
            return self.size

        def close(self):
            pass

    def begin(lane, soc=""):
        opened.append(soc)
        lane._process, lane._least_bytes, lane._hello = Growing(), Growing.size, {}

    def drive(_lane, process, _batch, left):
        process.size += grown
        yield from ()
        return len(left), True

    monkeypatch.setattr(Lane, "open", begin)
    monkeypatch.setattr(Lane, "_drive", drive)
    lane = Lane(Setup("cpu"))
    for _ in range(3):
        assert list(lane.run(Batch(CASES, 0))) == []
    assert len(opened) == workers


def test_a_prepared_worker_that_nobody_takes_ends_with_its_run():
    with prepared([Setup()]):
        (started,) = process._spare
        assert started.child.poll() is None
    assert started.child.returncode is not None
    assert process._spare == []
