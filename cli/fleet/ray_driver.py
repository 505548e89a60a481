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
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

from aclnn_bindings.interface import atomic_write
from aclnn_bindings.interface.user_dir import temporary

from ..conformance.cases.case import parse
from ..conformance.record.result import Result
from ..conformance.run import chips
from ..conformance.run.lane import Lane
from ..conformance.run.process import Batch, EnvironmentFailedError, Setup, answers

RESOURCE: Final = "NPU"  # Ray's name for Ascend devices (Ray documents, accelerator support)
_LOOK_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 300.0
# An actor ends cases that hang by itself; one that says nothing for so much longer than its cases
# may take hangs with its node.
_GRACE_SECONDS: Final = 60.0
_REVIVALS: Final = 3  # of a device's actor in a row, without a batch that it finished
_REQUEUES: Final = 5  # of a batch whose nodes are lost


class DeviceActor:
    """Holds one NPU of one node (or none, for work on hosts), and a lane; made into a Ray actor."""

    def __init__(self, setup: Mapping[str, Any], node: str, recording: bytes = b"") -> None:
        import ray

        setup = {**setup, "recording": _stored(recording)} if recording else setup
        self._bits = tempfile.TemporaryDirectory(prefix="mindtorch-npu-bits-")
        if setup["device"] == "cpu":
            self.label = "cpu"
            self.lane = Lane(Setup(**setup), node, self.label)
            return
        ids = ray.get_runtime_context().get_accelerator_ids().get(RESOURCE) or ["0"]
        # Ray shows an actor its own device only, which therefore is the first one here.
        environ = {**setup["environ"], "ASCEND_RT_VISIBLE_DEVICES": str(ids[0])}
        self.label = f"npu:{ids[0]}"
        own_setup = Setup(**{**setup, "environ": environ, "device": "npu:0"})
        self.lane = Lane(own_setup, node, self.label)

    def open(self) -> dict[str, Any]:
        """Environment and clock, or why there is none."""
        known = self._chip(identity=True)
        try:
            hello = self.lane.open()
        except EnvironmentFailedError as error:
            return {"label": self.label, "fatal": str(error)}
        if known:
            hello["chips"] = {self.label: known}
        return {"label": self.label, "hello": hello, "clock": time.time()}

    def _chip(self, identity: bool) -> dict[str, Any]:
        setup = self.lane.setup
        return chips.read([setup.device], setup, identity).get(setup.device, {})

    def health(self) -> dict[str, Any]:
        """The chip's counters now."""
        return self._chip(identity=False)

    def run(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What a batch gave, all at once: a batch that is lost on the way gave nothing."""
        events: list[dict[str, Any]] = []
        try:
            for event in self.lane.run(self._batch(data)):
                if isinstance(event, Result):
                    events.append({"result": event.as_json()})
                elif event.kind != "beat":
                    events.append({"note": event.kind, "data": dict(event.data)})
        except EnvironmentFailedError as error:
            events.append({"fatal": str(error)})
        return events

    def _batch(self, data: Mapping[str, Any]) -> Batch:
        """The batch as it was sent; outputs are kept on this node and sent along with notes."""
        batch = Batch(**{**data, "cases": tuple(data["cases"])})
        if "bits" not in batch.options:
            return batch
        return replace(batch, options={**batch.options, "bits": self._bits.name, "ship": True})


def _stored(recording: bytes) -> str:
    """A recording's file on this host, in this user's own folder; written once, in one step."""
    name = f"recording-{hashlib.sha256(recording).hexdigest()[:32]}.rec"
    path = temporary() / name
    if not path.is_file() or path.is_symlink() or path.read_bytes() != recording:
        with atomic_write.writing(path) as file:
            file.write(recording)
    return str(path)


@dataclass(slots=True)
class ActorState:
    """An actor, where it is, and what it runs now, until when; of one that is being replaced,
    `batch` is what its predecessor died of."""

    actor: Any
    node_id: str
    node: str
    place: str = ""
    batch: dict[str, Any] | None = None
    deadline: float = 0.0
    revivals: int = 0
    has_chip: bool = False


@dataclass(slots=True)
class Driver:
    """Deals batches to actors on every node that has NPUs, those that join later too."""

    ray: Any
    out: IO[str]
    setup: Mapping[str, Any]
    recording: Any = b""
    running: dict[Any, ActorState] = field(default_factory=dict)
    opening: dict[Any, ActorState] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    free: list[ActorState] = field(default_factory=list)
    waiting: dict[str, deque[dict[str, Any]]] = field(default_factory=dict)
    deaths: Counter[tuple[str, int]] = field(default_factory=Counter)
    requeues: Counter[tuple[str, int]] = field(default_factory=Counter)

    def say(self, **message: Any) -> None:
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()

    def lost(self, what: str, place: str, reason: str, cases: Sequence[str] = ()) -> None:
        self.say(lost={"what": what, "place": place, "reason": reason, "cases": list(cases)})

    def look(self) -> None:
        """Start actors on nodes that are new."""
        on_hosts = self.setup["device"] == "cpu"
        alive = [n for n in self.ray.nodes()
                 if n["Alive"] and (on_hosts or n["Resources"].get(RESOURCE))]  # fmt: skip
        names = [str(n["NodeManagerHostname"]) for n in alive]
        for node in [n for n in alive if n["NodeID"] not in self.known]:
            self.known.add(node["NodeID"])
            name = str(node["NodeManagerHostname"])
            if names.count(name) > 1:
                name += f"~{node['NodeID'][:6]}"  # several nodes of one host
            for _ in range(1 if on_hosts else int(node["Resources"][RESOURCE])):
                self._start(ActorState(None, node["NodeID"], name))

    def _start(self, state: ActorState) -> None:
        """Make the actor of `state`; it opens its device beside everything else."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        on_host = self.setup["device"] == "cpu"
        state.actor = self.ray.remote(DeviceActor).options(
            num_cpus=0, resources={} if on_host else {RESOURCE: 1},
            scheduling_strategy=NodeAffinitySchedulingStrategy(state.node_id, soft=False),
        ).remote(dict(self.setup), state.node, self.recording)  # fmt: skip
        state.deadline = time.monotonic() + _PATIENCE_SECONDS
        self.opening[state.actor.open.remote()] = state

    def _opened(self, ref: Any) -> None:
        """An actor answered, or could not be made."""
        state = self.opening.pop(ref)
        try:
            answer = self.ray.get(ref)
        except Exception as error:  # Ray's own errors: the actor or its node is gone
            self._give_up(state, "node lost" if state.place else "device lost", _short(error))
            return
        state.place = f"{state.node} {answer['label']}"
        if "fatal" in answer:
            what = "device lost" if state.batch else "no NPU"
            self._give_up(state, what, answer["fatal"])
            return
        if state.batch is not None:
            self._replaced(state, state.batch)
        state.has_chip = "chips" in answer["hello"]
        environment = {**answer["hello"], "node": state.node, "device": answer["label"]}
        self.say(place={"node": state.node, "place": state.place, "environment": environment,
                        "skew": round(answer["clock"] - time.time(), 1)})  # fmt: skip
        self.free.append(state)

    def _give_up(self, state: ActorState, what: str, reason: str) -> None:
        """No actor serves this device any more; what it ran goes to others."""
        batch, state.batch = state.batch, None
        self.ray.kill(state.actor)
        self.lost(what, state.place or state.node, reason)
        if batch is not None:
            self._requeue(batch)

    def _requeue(self, batch: dict[str, Any]) -> None:
        """Run a batch again, each case a limited number of times."""
        keys = [(case, batch["seed"]) for case in batch["cases"]]
        self.requeues.update(keys)
        left = [case for case, seed in keys if self.requeues[case, seed] <= _REQUEUES]
        over = [case for case in batch["cases"] if case not in left]
        if over:
            reason = f"no result in {_REQUEUES} tries on different devices"
            self.lost("device lost", batch["device"] or "any device", reason, over)
        if left:
            again = {**batch, "cases": left}
            self.waiting.setdefault(batch["device"], deque()).appendleft(again)

    def _replaced(self, state: ActorState, batch: dict[str, Any]) -> None:
        """An actor was killed, and its node lives: its cases run again, one by one. A case that
        was alone in two actors that died is at fault."""
        state.batch = None
        self.say(event={"note": "killed", "data": {
            "case": batch["cases"][0], "seed": batch["seed"], "node": state.node,
            "device": state.place.rpartition(" ")[2], "cases": len(batch["cases"]),
        }})  # fmt: skip
        alone = len(batch["cases"]) == 1
        for case in reversed(batch["cases"]):
            key = (case, batch["seed"])
            self.deaths[key] += 1
            if alone and self.deaths[key] > 1:
                self.say(event={"result": self._crash(case, batch, state).as_json()})
            else:
                one = {**batch, "cases": [case]}
                self.waiting.setdefault(batch["device"], deque()).appendleft(one)

    def _crash(self, case: str, batch: Mapping[str, Any], state: ActorState) -> Result:
        parsed = parse(case)
        return Result(
            case, parsed.op, parsed.form, "CRASH", dtype=parsed.dtype, seed=batch["seed"],
            reason="the process that ran it was killed twice, often because host memory ran out",
            node=state.node, device=state.place.rpartition(" ")[2], soc=batch.get("soc", ""),
        )  # fmt: skip

    def add(self, batches: Iterable[dict[str, Any]]) -> None:
        """Put batches behind those that wait for the same place ("": for any)."""
        for batch in batches:
            self.waiting.setdefault(batch["device"], deque()).append(batch)

    def _next(self, place: str) -> dict[str, Any] | None:
        """The next batch that an actor may run: its own first."""
        for key in (place, ""):
            queue = self.waiting.get(key)
            if queue:
                batch = queue.popleft()
                if not queue:
                    del self.waiting[key]
                return batch
        return None

    def deal(self) -> None:
        """Give every free actor the next batch that it may run; looks at each once."""
        if not self.waiting:
            return
        free, self.free = self.free, []
        for state in free:
            batch = self._next(state.place)
            if batch is None:
                self.free.append(state)
            else:
                state.batch = batch
                state.deadline = time.monotonic() + self._seconds(batch)
                self.running[state.actor.run.remote(batch)] = state

    def _seconds(self, batch: Mapping[str, Any]) -> float:
        """How long an actor may be silent: as long as all cases of a batch may take, each in a
        worker that starts anew. A soak and a repeated case take what they were pending for."""
        options = batch.get("options", {})
        each = float(self.setup.get("timeout", _GRACE_SECONDS)) * int(options.get("repeat", 1))
        each += float(options.get("seconds", 0.0))
        return len(batch["cases"]) * each + _GRACE_SECONDS

    def serve(self) -> None:
        """Run what is waiting to its end."""
        idle = time.monotonic()
        while self.waiting or self.running or any(s.batch for s in self.opening.values()):
            self.deal()
            if self.running or self.opening:
                idle = time.monotonic()
            else:
                self._strand()
                if time.monotonic() - idle > _PATIENCE_SECONDS:
                    self.say(fatal="no node of the cluster has an NPU left")
                    return
                time.sleep(_LOOK_SECONDS)
            if not self.poll():
                self.look()
        self._health()
        self.say(done=True)

    def _health(self) -> None:
        """What the system says of chips after the work, where it said something before."""
        pending = {s.actor.health.remote(): s for s in self.free if s.has_chip}
        if not pending:
            return
        ready, _ = self.ray.wait([*pending], num_returns=len(pending), timeout=_GRACE_SECONDS)
        for ref in ready:
            state = pending[ref]
            try:
                chip = self.ray.get(ref)
            except Exception:  # Ray's own errors: the actor or its node is gone
                continue
            place = {"node": state.node, "device": state.place.rpartition(" ")[2]}
            self.say(event={"note": "health", "data": {**place, **chip}})

    def poll(self) -> bool:
        """Take what is ready of all actors; whether anything was."""
        refs = [*self.running, *self.opening]
        ready = []
        if refs:
            ready, _ = self.ray.wait(refs, timeout=_LOOK_SECONDS)
        if ready:  # and what else is ready by now: one look at all of them, not one for each
            ready, _ = self.ray.wait(refs, num_returns=len(refs), timeout=0)
        for ref in ready:
            if ref in self.opening:
                self._opened(ref)
            else:
                self._take(ref)
        self._fence()
        return bool(ready)

    def _fence(self) -> None:
        """Devices that are over their time get nothing more; the others run their cases."""
        now = time.monotonic()
        for refs in (self.running, self.opening):
            for ref in [ref for ref, state in refs.items() if now > state.deadline]:
                state = refs.pop(ref)
                reason = "no answer in the time that its cases may take; it gets no other"
                self._give_up(state, "device hung", reason)

    def _strand(self) -> None:
        """Batches for a place that is gone are lost; its node may have come back as new."""
        places = {state.place for state in self.free}
        for place in [p for p in self.waiting if p and p not in places]:
            cases = [case for batch in self.waiting.pop(place) for case in batch["cases"]]
            self.lost("device lost", place, "its node left", cases)

    def _take(self, ref: Any) -> None:
        state = self.running.pop(ref)
        batch = state.batch
        assert batch is not None
        try:
            events = self.ray.get(ref)
        except Exception as error:  # the actor, its node or its object is gone
            self._revive(state, error)
            return
        state.batch, done = None, 0
        for event in events:
            if "fatal" in event:
                state.batch = {**batch, "cases": batch["cases"][done:]}
                self._give_up(state, "device lost", event["fatal"])
                return
            done += "result" in event
            self.say(event=event)
        state.revivals = 0
        self.free.append(state)

    def _revive(self, state: ActorState, error: Exception) -> None:
        """Start another actor in the place of one that died. Where the node is gone as well, which
        Ray learns later, that one does not start either."""
        alive = {n["NodeID"] for n in self.ray.nodes() if n["Alive"]}
        if state.node_id not in alive or state.revivals >= _REVIVALS:
            self._give_up(state, "node lost", _short(error))
            return
        state.revivals += 1
        self.ray.kill(state.actor)
        self._start(state)


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def main() -> int:
    """Connect, start actors, serve lists of batches until stdin ends."""
    out = answers()
    request = json.loads(sys.stdin.readline())
    try:
        import ray

        ray.init(address=request["address"], log_to_driver=False, logging_level="ERROR",
                 configure_logging=False)  # fmt: skip
    except (ImportError, ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        out.write(json.dumps({"fatal": _short(error)}) + "\n")
        out.flush()
        return 3
    # Nodes need not see this host's disk: a recording travels to each of them once.
    path = request["setup"]["recording"]
    recording = ray.put(Path(path).read_bytes()) if path else b""
    driver = Driver(ray, out, request["setup"], recording)
    started = time.monotonic()
    while time.monotonic() - started < _PATIENCE_SECONDS:
        driver.look()
        driver.poll()
        if driver.free and not driver.opening:
            break
        time.sleep(0 if driver.opening else _LOOK_SECONDS)
    driver.say(places=[state.place for state in driver.free])
    for line in sys.stdin:
        driver.add(json.loads(line)["batches"])
        driver.serve()
    return 0


if __name__ == "__main__":
    code = main()
    os._exit(code)
