"""Owns the scheduler of a Ray cluster: the same interface as the local pool, over every NPU there.

What Ray loses (a worker, a node, the head) costs the batches in flight, which run again; a result
counts when it has arrived here, and once.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from typing import Any, Final

from ..conformance.record.result import Result, from_json
from ..conformance.run.pool import Batch, EnvironmentFailedError, Event, Lost, Note, Setup
from ..plurals import plural

# Batches are lost whole, and reported whole.
_BATCH: Final = 8
_RETRY_SECONDS: Final = 3.0
_HEAD_SECONDS: Final = 600.0
# How long Ray lets a driver wait for a head that is gone, before it ends the driver.
_RECONNECT: Final = {"RAY_gcs_rpc_server_reconnect_timeout_s": "20"}
Left = dict[tuple[str, str, int], Batch]


class RayPool:
    """Runs batches on the cluster at `address` ("auto": the one of this machine): on every NPU, or
    for a setup's device of "cpu" once on every node."""

    def __init__(self, setup: Setup, address: str) -> None:
        if find_spec("ray") is None:
            raise EnvironmentFailedError(
                "--ray needs Ray: pip install 'mindtorch-npu[cluster]', here and on every node"
            )
        # Journals are this host's; nodes need not see its disk. Of a node's NPUs an actor sees one.
        device = "npu:0" if setup.device != "cpu" else "cpu"
        self.setup, self.address = replace(setup, journal="", device=device), address
        self.devices: Sequence[str] = ()
        self.replaced = 0
        self._early: list[Event] = []
        self._child: subprocess.Popen[bytes] | None = None

    def open(self) -> dict[str, Any]:
        """Connect and take every NPU; the environment of the first."""
        environments = self._connect()
        if not environments:
            why = next((e.reason for e in self._early if isinstance(e, Lost)), "it has no NPU")
            raise EnvironmentFailedError(f"cluster {self.address}: no worker starts: {why}")
        first = {k: v for k, v in environments[0].items() if k != "chips"}  # its node's, not ours
        return {**first, "ray": self.address, "devices": len(self.devices)}

    def _connect(self) -> list[dict[str, Any]]:
        environ = {**_RECONNECT, **os.environ,
                   "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # fmt: skip
        self._child = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.ray_driver"], env=environ,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self._send({"address": self.address, "setup": asdict(self.setup)})
        environments: list[dict[str, Any]] = []
        for message in self._messages():
            if "fatal" in message:
                raise EnvironmentFailedError(f"cluster {self.address}: {message['fatal']}")
            if "places" in message:
                self.devices = tuple(message["places"])
                return environments
            if "place" in message:
                environments.append(message["place"]["environment"])
            self._early += _events(message)
        raise EnvironmentFailedError(f"cluster {self.address}: the connection ended at once")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._child is not None
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(message).encode() + b"\n")
        self._child.stdin.flush()

    def _messages(self) -> Iterator[dict[str, Any]]:
        assert self._child is not None
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if line.endswith(b"\n"):
                yield json.loads(line)

    def results(self, batches: Sequence[Batch]) -> Iterator[Event]:
        """Run all, connecting again when the head is gone."""
        left: Left = {
            (b.device, case, b.seed): b
            for batch in batches
            for b in _cut(batch)
            for case in b.cases
        }
        while left:
            yield from self._early
            self._early = []
            over = yield from self._serve(left)
            if over:
                return
            self.replaced += 1
            yield Lost(
                self.address, f"run again: {plural(len(left), 'case')}", what="head restarted"
            )
            self._again()

    def _serve(self, left: Left) -> Generator[Event, None, bool]:
        """Returns whether all is over; False when the driver died."""
        try:
            self._send({"batches": [b.as_json() for b in _rest(left)]})
        except BrokenPipeError:
            return False
        for message in self._messages():
            if "done" in message:
                return True
            if "fatal" in message:
                raise EnvironmentFailedError(f"cluster {self.address}: {message['fatal']}")
            for event in _events(message):
                if isinstance(event, Result):
                    if not _forget(left, event):
                        continue  # it had arrived before
                elif isinstance(event, Lost):
                    gone = set(event.cases)
                    for key in [k for k in left if k[0] == event.place and k[1] in gone]:
                        del left[key]
                yield event
        return False

    def _again(self) -> None:
        """Wait for a head at the same address."""
        self.stop()
        deadline = time.monotonic() + _HEAD_SECONDS
        while True:
            try:
                self._connect()
                if self.devices:
                    return
            except EnvironmentFailedError:
                if time.monotonic() > deadline:
                    raise
            self.stop()
            time.sleep(_RETRY_SECONDS)

    def stop(self) -> None:
        """Leave the cluster; Ray ends the actors of a driver that is gone."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for stream in (self._child.stdin, self._child.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
            self._child = None


def maker(address: str) -> Callable[[Setup, int], RayPool]:
    """What makes the scheduler of the cluster at `address`; numbers of jobs are the cluster's."""
    return lambda setup, _jobs: RayPool(setup, address)


def _cut(batch: Batch) -> Iterator[Batch]:
    for i in range(0, len(batch.cases), _BATCH):
        yield replace(batch, cases=batch.cases[i : i + _BATCH])


def _rest(left: Left) -> list[Batch]:
    """What is still to be run, in the batches it belongs to."""
    by_batch: dict[int, tuple[Batch, list[str]]] = {}
    for (_, case, _), batch in left.items():
        by_batch.setdefault(id(batch), (batch, []))[1].append(case)
    return [replace(batch, cases=tuple(cases)) for batch, cases in by_batch.values()]


def _forget(left: Left, result: Result) -> bool:
    """Strike a result off; False where it was struck off before."""
    for device in ("", f"{result.node} {result.device}"):
        if left.pop((device, result.case, result.seed), None) is not None:
            return True
    return False


def _events(message: Mapping[str, Any]) -> Iterator[Event]:
    if "place" in message:
        yield Note("place", message["place"])
    elif "lost" in message:
        lost = message["lost"]
        yield Lost(lost["place"], lost["reason"], tuple(lost["cases"]), lost["what"])
    elif "event" in message:
        event = message["event"]
        if "result" in event:
            yield from_json(event["result"])
        else:
            yield Note(event["note"], event["data"])
