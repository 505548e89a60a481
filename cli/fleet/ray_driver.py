"""Speaks to Ray for `ray_pool`, in a process of its own (`-m mindtorch_npu.fleet.ray_driver`).

Ray ends the process of a driver whose cluster's head is gone. Here that costs the cases in flight:
the one who started this process starts another. It reads a setup and lists of batches as JSON lines
and writes {"places"}, {"place"}, {"event"}, {"lost"}, {"done"} and {"fatal"} lines.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from ..conformance.record.result import Result
from ..conformance.run.lane import Lane
from ..conformance.run.process import Batch, EnvironmentFailedError, Setup

RESOURCE: Final = "NPU"  # Ray's name for Ascend devices (Ray documents, accelerator support)
_LOOK_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 300.0


class Seat:
    """Holds one NPU of one node (or none, for work on hosts), and a lane; made into a Ray actor."""

    def __init__(self, setup: Mapping[str, Any], node: str, recording: bytes = b"") -> None:
        import ray

        setup = {**setup, "recording": _kept(recording)} if recording else setup
        if setup["device"] == "cpu":
            self.label = "cpu"
            self.lane = Lane(Setup(**setup), node, self.label)
            return
        own = ray.get_runtime_context().get_accelerator_ids().get(RESOURCE) or ["0"]
        # Ray shows an actor its own device only, which therefore is the first one here.
        environ = {**setup["environ"], "ASCEND_RT_VISIBLE_DEVICES": str(own[0])}
        self.label = f"npu:{own[0]}"
        own_setup = Setup(**{**setup, "environ": environ, "device": "npu:0"})
        self.lane = Lane(own_setup, node, self.label)

    def open(self) -> dict[str, Any]:
        """Environment and clock, or why there is none."""
        try:
            hello = self.lane.open()
        except EnvironmentFailedError as error:
            return {"label": self.label, "fatal": str(error)}
        return {"label": self.label, "hello": hello, "clock": time.time()}

    def run(self, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What a batch gave, all at once: a batch that is lost on the way gave nothing."""
        told: list[dict[str, Any]] = []
        try:
            for event in self.lane.run(Batch(**batch)):
                if isinstance(event, Result):
                    told.append({"result": event.as_json()})
                elif event.kind != "beat":
                    told.append({"note": event.kind, "data": dict(event.data)})
        except EnvironmentFailedError as error:
            told.append({"fatal": str(error)})
        return told


def _kept(recording: bytes) -> str:
    """A recording's file on this host; written once, in one step."""
    folder = Path(tempfile.gettempdir())
    path = folder / f"mindtorch-npu-{hashlib.sha256(recording).hexdigest()[:16]}.rec"
    if not path.exists():
        part = folder / f"{path.name}.{os.getpid()}"
        part.write_bytes(recording)
        part.replace(path)
    return str(path)


@dataclass(slots=True)
class Taken:
    """An actor, where it is, and what it runs now."""

    actor: Any
    node_id: str
    node: str
    place: str = ""
    batch: dict[str, Any] | None = None


@dataclass(slots=True)
class Driver:
    """Deals batches to seats on every node that has NPUs, those that join later too."""

    ray: Any
    out: IO[str]
    setup: Mapping[str, Any]
    recording: Any = b""
    seats: dict[Any, Taken] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    free: list[Taken] = field(default_factory=list)
    waiting: dict[str, deque[dict[str, Any]]] = field(default_factory=dict)

    def say(self, **message: Any) -> None:
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()

    def look(self) -> None:
        """Take seats on nodes that are new."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        on_hosts = self.setup["device"] == "cpu"
        alive = [n for n in self.ray.nodes()
                 if n["Alive"] and (on_hosts or n["Resources"].get(RESOURCE))]  # fmt: skip
        names = [str(n["NodeManagerHostname"]) for n in alive]
        new = [n for n in alive if n["NodeID"] not in self.known]
        opening = {}
        for node in new:
            self.known.add(node["NodeID"])
            name = str(node["NodeManagerHostname"])
            if names.count(name) > 1:
                name += f"~{node['NodeID'][:6]}"  # several nodes of one host
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            for _ in range(1 if on_hosts else int(node["Resources"][RESOURCE])):
                actor = self.ray.remote(Seat).options(
                    num_cpus=0, resources={} if on_hosts else {RESOURCE: 1},
                    scheduling_strategy=there,
                ).remote(dict(self.setup), name, self.recording)  # fmt: skip
                opening[actor.open.remote()] = Taken(actor, node["NodeID"], name)
        for ref, seat in opening.items():
            self._seated(ref, seat)

    def _seated(self, ref: Any, seat: Taken) -> None:
        try:
            answer = self.ray.get(ref, timeout=_PATIENCE_SECONDS)
        except Exception as error:  # Ray's own errors, or an actor that could not be made
            self.say(lost={"what": "device lost", "place": seat.node, "reason": _short(error),
                           "cases": []})  # fmt: skip
            return
        seat.place = f"{seat.node} {answer['label']}"
        if "fatal" in answer:
            what = "no NPU"
            self.say(lost={"what": what, "place": seat.place, "reason": answer["fatal"],
                           "cases": []})  # fmt: skip
            return
        self.free.append(seat)
        environment = {**answer["hello"], "node": seat.node, "device": answer["label"]}
        self.say(place={"node": seat.node, "place": seat.place, "environment": environment,
                        "skew": round(answer["clock"] - time.time(), 1)})  # fmt: skip

    def add(self, batches: Iterable[dict[str, Any]]) -> None:
        """Put batches behind those that wait for the same place ("": for any)."""
        for batch in batches:
            self.waiting.setdefault(batch["device"], deque()).append(batch)

    def _next(self, place: str) -> dict[str, Any] | None:
        """The next batch that a seat may run: its own first."""
        for key in (place, ""):
            queue = self.waiting.get(key)
            if queue:
                batch = queue.popleft()
                if not queue:
                    del self.waiting[key]
                return batch
        return None

    def deal(self) -> None:
        """Give every free seat the next batch that it may run; looks at each once."""
        if not self.waiting:
            return
        free, self.free = self.free, []
        for seat in free:
            batch = self._next(seat.place)
            if batch is None:
                self.free.append(seat)
            else:
                seat.batch = batch
                self.seats[seat.actor.run.remote(batch)] = seat

    def serve(self) -> None:
        """Run what is waiting to its end."""
        idle = time.monotonic()
        while self.waiting or self.seats:
            self.deal()
            if not self.seats:
                self._strand()
                if time.monotonic() - idle > _PATIENCE_SECONDS:
                    self.say(fatal="no node of the cluster has an NPU left")
                    return
                time.sleep(_LOOK_SECONDS)
                self.look()
                continue
            running = list(self.seats)
            ready, _ = self.ray.wait(running, timeout=_LOOK_SECONDS)
            if ready:  # and what else is ready by now: one look at all of them, not one for each
                ready, _ = self.ray.wait(running, num_returns=len(running), timeout=0)
            for ref in ready:
                self._take(ref)
                idle = time.monotonic()
            if not ready:
                self.look()
        self.say(done=True)

    def _strand(self) -> None:
        """Batches for a place that is gone are told as lost; its node may have come back as new."""
        places = {seat.place for seat in self.free}
        for place in [p for p in self.waiting if p and p not in places]:
            cases = [case for batch in self.waiting.pop(place) for case in batch["cases"]]
            self.say(lost={"what": "device lost", "place": place, "reason": "its node left",
                           "cases": cases})  # fmt: skip

    def _take(self, ref: Any) -> None:
        seat = self.seats.pop(ref)
        batch = seat.batch
        assert batch is not None
        try:
            told = self.ray.get(ref)
        except Exception as error:  # the actor, its node or its object is gone
            self._lose(seat, batch, error)
            return
        done = 0
        for event in told:
            if "fatal" in event:
                left = {**batch, "cases": batch["cases"][done:]}
                self._lose(seat, left, EnvironmentFailedError(event["fatal"]))
                return
            done += "result" in event
            self.say(event=event)
        self.free.append(seat)

    def _lose(self, seat: Taken, left: dict[str, Any], error: Exception) -> None:
        """The batch goes to others; the seat is given up."""
        self.waiting.setdefault(left["device"], deque()).appendleft(left)
        # Ray learns of a dead node later than of its actors.
        what = "device lost" if isinstance(error, EnvironmentFailedError) else "node lost"
        self.ray.kill(seat.actor)
        self.say(lost={"what": what, "place": seat.place, "reason": _short(error), "cases": []})


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def main() -> int:
    """Connect, take seats, serve lists of batches until stdin ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    asked = json.loads(sys.stdin.readline())
    try:
        import ray

        ray.init(address=asked["address"], log_to_driver=False, logging_level="ERROR",
                 configure_logging=False)  # fmt: skip
    except (ImportError, ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        out.write(json.dumps({"fatal": _short(error)}) + "\n")
        out.flush()
        return 3
    # Nodes need not see this host's disk: a recording travels to each of them once.
    path = asked["setup"]["recording"]
    recording = ray.put(Path(path).read_bytes()) if path else b""
    driver = Driver(ray, out, asked["setup"], recording)
    started = time.monotonic()
    while not driver.free and time.monotonic() - started < _PATIENCE_SECONDS:
        driver.look()
        time.sleep(0 if driver.free else _LOOK_SECONDS)
    driver.say(places=[seat.place for seat in driver.free])
    for line in sys.stdin:
        driver.add(json.loads(line)["batches"])
        driver.serve()
    return 0


if __name__ == "__main__":
    code = main()
    os._exit(code)
