"""Owns a lane: one seat for worker processes on one device, that runs batches one after another.

A crash, hang or poisoned device costs the one case that had started. The rest of its batch goes
to a fresh worker. A worker that was killed from outside says nothing of its case, which runs again;
killed twice, it is a crash. A lane deals nothing and records nothing.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ..cases.case import parse
from ..record.result import REFERENCE, Result, from_json
from .process import (
    Batch,
    DeviceHungError,
    EnvironmentFailedError,
    OutOfTimeError,
    Process,
    Setup,
)

# A worker that says nothing for so long and hardly uses the processor hangs. One that works, under
# an emulator or on a crowded host, is waited for until it has used the processor `_MOST` times
# as long.
_START_SECONDS: Final = 120.0
_START: Final = "MINDTORCH_START_SECONDS"
_BUSY, _MOST = 0.05, 4
# At the deadline a driver that holds a worker is not waited for.
_CUT_SECONDS: Final = 0.5
# What a worker may keep, between batches, beyond what it started with.
_MOST_GROWTH: Final = 768 << 20
# Fresh processes in a row that die before finishing one case: then the environment is at fault.
_MAX_STILLBORN: Final = 3


@dataclass(frozen=True, slots=True)
class Note:
    """A line that a worker says beside results, such as one of a soak; it goes to the journal."""

    kind: str
    data: Mapping[str, Any]


class Lane:
    """One seat on the device of `setup`, which results call `label`; used by one thread, `stop` may
    come from another."""

    def __init__(self, setup: Setup, node: str = "", label: str = "") -> None:
        self.setup, self.node, self.label = setup, node, label or setup.device
        self.replaced = 0
        self._soc = ""
        self._least_bytes = 0
        self._process: Process | None = None
        self._hello: dict[str, Any] | None = None
        self._begun = 0.0
        self._stopping = self._busy = False
        self._killed: set[tuple[str, int]] = set()

    def start(self, soc: str = "") -> None:
        """Start a worker, and do not wait for it; `open` does."""
        self._soc, self._hello = soc, None
        self._process = Process(replace(self.setup, soc=soc or self.setup.soc))
        self._begun = time.monotonic()

    def open(self, soc: str = "") -> dict[str, Any]:
        """Start a worker, where `soc` is named on a simulator of that product; its environment.
        EnvironmentFailedError if it cannot start, OutOfTimeError if not before the deadline."""
        if self.expired:
            raise OutOfTimeError(f"no time was left to start a worker on {self.label}")
        if self._process is None or self._soc != soc:
            self.start(soc)
        if self._hello is not None:
            return self._hello
        process, begun = self._process, self._begun
        assert process is not None
        message = _greeting(process, self.setup)
        if message == "late" and self.expired:
            self._cut(process)
            raise OutOfTimeError(
                f"a worker on {self.label} had not started after {time.monotonic() - begun:.0f} s,"
                " when time was up"
            )
        if isinstance(message, dict) and "hello" in message:
            self._hello = dict(message["hello"])
            self._least_bytes = process.resident_bytes()
            return self._hello
        reason = message["fatal"] if isinstance(message, dict) else None
        if message == "late":
            process.kill()
            reason = (
                f"a worker did not start within {time.monotonic() - begun:.0f} s; where it only "
                f"needs longer, set {_START} (seconds without work, {_START_SECONDS:g} by default)"
            )
        reason = reason or f"a worker died while starting: {process.ending()}"
        self._process = None
        raise EnvironmentFailedError(reason)

    @property
    def expired(self) -> bool:
        """Whether the deadline has come."""
        return self.setup.left <= 0

    def _cut(self, process: Process) -> None:
        process.kill(_CUT_SECONDS, 0.0)
        self._process = None

    def _has_grown(self) -> bool:
        """Whether the worker has so much more memory than at first that a new one is better."""
        grown = self._process.resident_bytes() - self._least_bytes if self._process else 0
        return grown > _MOST_GROWTH

    def stop(self) -> None:
        """End the worker, by force in a batch; what it had started stays in the journal."""
        self._stopping = True
        process = self._process
        if process is not None and self._busy:
            process.kill()
        elif process is not None:
            process.close()

    def close(self) -> None:
        """Let the worker end by itself; the next batch starts another."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def run(self, batch: Batch) -> Iterator[Result | Note]:
        """Run a batch to its end, on as many workers as that takes.

        EnvironmentFailedError when workers die at once, or none starts any more.
        """
        self._busy = True
        try:
            yield from self._run(batch)
        finally:
            self._busy = False

    def _run(self, batch: Batch) -> Iterator[Result | Note]:
        left = list(batch.cases)
        stillborn = 0
        if self._soc != batch.soc or self._has_grown():
            self.close()
        while left and not self._stopping and not self.expired:
            if self._process is None or self._hello is None:
                self.open(batch.soc)
            process = self._process
            assert process is not None
            done, alive = yield from self._drive(process, batch, left)
            stillborn = 0 if done else stillborn + 1
            if stillborn >= _MAX_STILLBORN:
                raise EnvironmentFailedError(f"workers die at once: {process.last_words()}")
            left = left[done:]
            if not alive:
                process.close()
                self._process = None
                self.replaced += 1

    def _drive(
        self, process: Process, batch: Batch, cases: Sequence[str]
    ) -> Generator[Result | Note, None, tuple[int, bool]]:
        """Returns (cases that have a result now, whether the worker still serves)."""
        process.send(batch.message(cases))
        done, current, since, reference = 0, "", time.monotonic(), False
        while True:
            message = process.receive(min(self.setup.timeout, self.setup.left))
            if isinstance(message, dict):
                if "start" in message:
                    current, since = message["start"], time.monotonic()
                elif "reference" in message:
                    reference = message["reference"]
                elif "result" in message:
                    current, done = "", done + 1
                    yield self._placed(from_json(message["result"]))
                elif "note" in message:
                    if message["data"].get("case") == current not in cases:
                        current = ""  # a round of timed launches is over: it has no result
                    yield Note(message["note"], {**message["data"], **self._place()})
                elif "done" in message:
                    return done, True
                continue
            if self._stopping:
                return done, False
            if message == "late" and self.expired:
                self._cut(process)
                if current:
                    seconds = round(time.monotonic() - since, 3)
                    yield Note("cut", {"case": current, "seed": batch.seed, "seconds": seconds,
                                       **self._place()})  # fmt: skip
                return done, True
            ended = message != "late" or process.kill()
            if current and message is None and self._killed_first(process, current, batch.seed):
                yield Note("killed", {"case": current, "seed": batch.seed, **self._place()})
            elif current:
                lost = self._lost(process, batch, current, message, since)
                yield self._placed(_of_reference(lost) if reference else lost)
                done += current in cases
            elif message is None:
                ended = process.wait() is not None or process.kill()
            if not ended:
                raise DeviceHungError(
                    f"a worker on {self.label} neither answers nor ends by SIGKILL: the driver "
                    "holds it; reset the device or the host"
                )
            return done, False

    def _killed_first(self, process: Process, case: str, seed: int) -> bool:
        """Whether somebody, such as a system short of memory, killed the worker, in this case for
        the first time."""
        if process.wait() != -signal.SIGKILL or (case, seed) in self._killed:
            return False
        self._killed.add((case, seed))
        return True

    def _place(self) -> dict[str, str]:
        place = {"device": self.label, "node": self.node, "soc": self._soc}
        return {k: v for k, v in place.items() if v}

    def _placed(self, result: Result) -> Result:
        return result.with_(device=self.label, node=self.node, soc=self._soc)

    def _lost(
        self, process: Process, batch: Batch, case: str, message: object, since: float
    ) -> Result:
        parsed = parse(case)
        verdict, reason = "CRASH", ""
        if message == "late":
            verdict, reason = "HANG", f"no answer within {self.setup.timeout:g} s; killed"
        else:
            reason = f"the worker process ended by {process.ending()}"
        return Result(
            case, parsed.op, parsed.form, verdict, dtype=parsed.dtype, reason=reason,
            seed=batch.seed, seconds=time.monotonic() - since,
        )  # fmt: skip


def _of_reference(lost: Result) -> Result:
    """A case that was lost while a person's reference ran: the device did nothing."""
    reason = f"error of the reference: {lost.reason}, inside of it"
    return lost.with_(verdict="ERROR", reason=reason, blame=REFERENCE)


def _greeting(process: Process, setup: Setup) -> dict[str, Any] | str | None:
    """What a worker says first, as `Process.receive` gives it; "late" once it hangs, or
    its time is up."""
    patience, used = start_seconds(), 0.0
    while True:
        message = process.receive(min(patience, setup.left))
        before, used = used, process.cpu_seconds()
        working = used - before > _BUSY * patience and used < _MOST * patience
        if message != "late" or not working or setup.left <= 0:
            return message


def start_seconds() -> float:
    """How long a starting worker may stay silent and idle; EnvironmentFailedError for no number."""
    text = os.environ.get(_START, "")
    try:
        seconds = float(text) if text else _START_SECONDS
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise EnvironmentFailedError(f"{_START}={text!r}: expected seconds, such as 600")
    return seconds
