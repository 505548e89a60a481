"""Owns the local scheduler: lanes on every device of this host, work dealt to whichever is free.

What a device loses goes to the others; a device on which no worker starts any more is told, and
costs only itself. It judges and records nothing.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from ..record.result import Result
from .lane import Lane, Note
from .process import Batch, DeviceHungError, EnvironmentFailedError, OutOfTimeError, Setup, prepared

__all__ = ["Batch", "EnvironmentFailedError", "Lost", "Note", "Pool", "Scheduler", "Setup",
           "prepared"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lost:
    """A device or host that is gone, why, and the cases that only it could have run; `what` is the
    name that a fleet's report gives it."""

    place: str
    reason: str
    cases: tuple[str, ...] = ()
    what: str = "device lost"

    def as_json(self) -> dict[str, Any]:
        return {"what": self.what, "place": self.place, "reason": self.reason,
                "cases": list(self.cases)}  # fmt: skip


Event = Result | Note | Lost


class Scheduler(Protocol):
    """Runs batches somewhere. Every case of every batch gives one result, or is in a Lost."""

    @property
    def replaced(self) -> int:
        """Workers that were replaced so far."""

    @property
    def devices(self) -> Sequence[str]:
        """What a batch may name as its device."""

    def open(self) -> dict[str, Any]:
        """The environment of the first worker; EnvironmentFailedError if none starts."""

    def results(self, batches: Sequence[Batch]) -> Iterator[Event]:
        """Run all, in order of completion."""

    def stop(self) -> None:
        """End at once; what was started and has no result is in the journal."""


class BatchQueue:
    """Batches to be taken: those of a device by its lanes alone, the others by any."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._any: deque[Batch] = deque()
        self._own: dict[str, deque[Batch]] = {}
        self._under_way = 0
        self._changed = threading.Condition()
        for batch in batches:
            self._queue(batch.device).append(batch)

    def _queue(self, device: str) -> deque[Batch]:
        return self._own.setdefault(device, deque()) if device else self._any

    def take(self, device: str) -> Batch | None:
        """The next batch for a lane; None when nothing is left that might still come to it."""
        with self._changed:
            while True:
                for waiting in (self._own.get(device), self._any):
                    if waiting:
                        self._under_way += 1
                        return waiting.popleft()
                if not self._under_way:
                    return None
                self._changed.wait()

    def hold(self) -> None:
        """Count as under way without a batch."""
        with self._changed:
            self._under_way += 1

    @property
    def over(self) -> bool:
        """Whether nothing waits and nothing is under way."""
        with self._changed:
            return not (self._under_way or self._any or any(self._own.values()))

    def finish(self, back: Batch | None = None) -> None:
        """A batch that was taken is over; `back` is what of it is still to be run."""
        with self._changed:
            self._under_way -= 1
            if back is not None and back.cases:
                self._queue(back.device).appendleft(back)
            self._changed.notify_all()

    def drain(self, device: str = "", required: bool = True) -> list[Batch]:
        """Take away what only `device` could run (or what any could), `required` ones if asked."""
        with self._changed:
            waiting = self._queue(device)
            batches = [batch for batch in waiting if required or not batch.required]
            rest = [batch for batch in waiting if not required and batch.required]
            waiting.clear()
            waiting.extend(rest)
            return batches


THREADS: Final = "ACLSIM_THREADS"


def setup_of_lane(setup: Setup, lane: int) -> Setup:
    """The setup of a device's lane: the second one's kernels share their work among threads of the
    simulator, whose races one thread would hide; the first one lists the install's operators."""
    setup = replace(setup, every=setup.every and not lane)
    if lane != 1 or THREADS in os.environ or THREADS in setup.environ:
        return setup
    return replace(setup, environ={**setup.environ, THREADS: "3"})


class Pool:
    """Runs batches on `jobs` workers over `devices`, at least one each."""

    def __init__(
        self, setup: Setup, jobs: int, devices: Sequence[str] = (), first: Lane | None = None
    ) -> None:
        """`first`: a lane of the first device that has a worker."""
        self.devices = tuple(devices) or (setup.device,)
        share, rest = divmod(jobs, len(self.devices))
        counts = [max(1, share + (i < rest)) for i in range(len(self.devices))]
        self._groups = {
            device: [Lane(replace(setup_of_lane(setup, i), device=device)) for i in range(count)]
            for device, count in zip(self.devices, counts, strict=True)
        }
        if first is not None:
            self._groups[self.devices[0]][0] = first
        self._setup = setup
        self._stopping = False
        self._events: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
        self._gone: dict[str, EnvironmentFailedError] = {}
        self._lock = threading.Lock()
        self._work: BatchQueue | None = None

    @property
    def lanes(self) -> list[Lane]:
        return [lane for lanes in self._groups.values() for lane in lanes]

    @property
    def replaced(self) -> int:
        return sum(lane.replaced for lane in self.lanes)

    def open(self) -> dict[str, Any]:
        """The environment of the first device whose worker starts; else the last one's error."""
        failure = EnvironmentFailedError("no device was named")
        if self._setup.until:  # there is no time for one after the other
            for device in self.devices[1:]:
                self._groups[device][0].start()
        for device in self.devices:
            try:
                return self._groups[device][0].open()
            except EnvironmentFailedError as error:
                failure = error
        raise failure

    def results(self, batches: Sequence[Batch]) -> Iterator[Event]:
        """Run all; a lost case's result says how it was lost."""
        self._work = work = BatchQueue(batches)
        threads = [
            threading.Thread(target=self._serve, args=(lane, work), daemon=True)
            for lane in self.lanes[: None if len(self.devices) > 1 else len(batches)]
        ]
        for thread in threads:
            thread.start()
        left = len(threads)
        while left:
            event = self._events.get()
            if event is None:
                # A device's further worker that still starts is not waited for.
                left = 0 if len(self.devices) == 1 and work.over else left - 1
            elif isinstance(event, BaseException):
                raise event
            else:
                yield event
        self._leftover(work)

    def _leftover(self, work: BatchQueue) -> None:
        """Nobody is left to run what any device could have: that is the environment's fault."""
        if not self._stopping and work.drain() and self._gone:
            raise next(iter(self._gone.values()))

    def drain(self) -> None:
        """Deal no more batches but required ones: what is under way ends, the others get no
        result."""
        if self._work is not None:
            for device in ("", *self.devices):
                self._work.drain(device, required=False)

    def stop(self) -> None:
        """End every worker; what they had started stays in the journal."""
        self._stopping = True
        for lane in self.lanes:
            lane.stop()

    def _serve(self, lane: Lane, work: BatchQueue) -> None:
        device = lane.setup.device
        try:
            # No batch waits for a worker that starts: others may be done with all of them before.
            self._open(lane, work)
            while not (self._stopping or lane.expired or device in self._gone):
                batch = work.take(device)
                if batch is None:
                    break
                self._run(lane, batch, work)
        except BaseException as error:
            if not self._stopping:
                self._events.put(error)
        finally:
            # Workers end with the thread that started them (see worker.py).
            lane.close()
            self._events.put(None)

    def _open(self, lane: Lane, work: BatchQueue) -> None:
        try:
            lane.open()
        except OutOfTimeError:
            pass
        except EnvironmentFailedError as error:
            work.hold()
            self._lose(lane.setup.device, error, Batch((), 0), work)

    def _run(self, lane: Lane, batch: Batch, work: BatchQueue) -> None:
        done = 0
        try:
            for event in lane.run(batch):
                done += isinstance(event, Result)
                self._events.put(event)
        except OutOfTimeError:
            work.finish()
        except EnvironmentFailedError as error:
            self._lose(lane.setup.device, error, replace(batch, cases=batch.cases[done:]), work)
        except BaseException:
            work.finish()
            raise
        else:
            work.finish()

    def _lose(
        self, device: str, error: EnvironmentFailedError, left: Batch, work: BatchQueue
    ) -> None:
        """No worker serves `device` any more: its own cases are lost, the others go on."""
        if len(self.devices) == 1:
            work.finish()
            raise error
        with self._lock:
            first = device not in self._gone
            self._gone[device] = error
        batches = [left] if left.device else []
        work.finish(None if left.device else left)
        batches += work.drain(device)
        if first or batches:
            cases = tuple(case for batch in batches for case in batch.cases)
            what = "device hung" if isinstance(error, DeviceHungError) else "device lost"
            self._events.put(Lost(device, str(error), cases, what))
