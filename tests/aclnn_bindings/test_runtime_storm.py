"""Threads that allocate, launch, free, open and close streams and empty the cache, all at once."""

import gc
import random
import threading

from stub_acl import Stub

from aclnn_bindings.call.plan import Plan
from aclnn_bindings.call.specs import ScalarSpec, TensorSpec
from aclnn_bindings.runtime.native import Block, launch, lib
from aclnn_bindings.runtime.stream import Stream

TURNS, THREADS = 1500, 4


class Worker(threading.Thread):
    """One thread of the storm; `failure` is what went wrong in it."""

    def __init__(self, stub: Stub, plan: Plan, streams: list[Stream], seed: int) -> None:
        super().__init__()
        self.stub, self.plan, self.streams = stub, plan, streams
        self.rng = random.Random(seed)
        self.live: list[Block] = []
        self.session = int(lib.mt_session())
        self.failure: BaseException | None = None

    def block(self, stream: Stream, nbytes: int) -> Block:
        address = int(lib.mt_alloc(stream.address, nbytes))
        assert address
        return Block(address, nbytes, self.session)

    def launch(self) -> None:
        stream = self.rng.choice(self.streams)
        a = self.block(stream, 16)
        b = self.rng.choice(self.live) if self.live else a
        out = launch(self.plan.address, stream.address, 16, self.session, a, b)
        assert out is not None
        self.live.append(out)

    def drop(self) -> None:
        if self.live:
            self.live.pop(self.rng.randrange(len(self.live)))

    def look(self) -> None:
        device = self.stub.cann.runtime.device()
        report = device.memory()
        assert report.allocated <= report.reserved
        device.empty_cache()

    def open_stream(self) -> None:
        with self.stub.cann.runtime.stream() as stream:
            self.live.append(self.block(stream, 1 << 21))

    def other_device(self) -> None:
        self.stub.cann.runtime.device(1).buffer(1000).close()

    def hold_events(self) -> None:
        self.stub.set("held_events", self.rng.randrange(2))

    def run(self) -> None:
        actions = [self.launch, self.drop, self.look, self.open_stream, self.other_device]
        actions.append(self.hold_events)
        weights = [50, 25, 3, 4, 5, 13]
        try:
            for action in self.rng.choices(actions, weights, k=TURNS):
                action()
        except BaseException as error:
            self.failure = error


def test_a_storm_of_threads_loses_and_shares_nothing(stub: Stub) -> None:
    runtime, spec = stub.cann.runtime, TensorSpec.of((4,))
    plan = stub.cann.op("aclnnStubNoop").plan(spec, spec, ScalarSpec(1.0), spec, allocate=("out",))
    device, streams = runtime.device(), [runtime.current_stream(), runtime.stream()]
    workers = [Worker(stub, plan, streams, seed) for seed in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.failure for worker in workers] == [None] * THREADS
    addresses = [block.address for worker in workers for block in worker.live]
    assert len(addresses) == len(set(addresses))
    workers.clear()
    del worker
    gc.collect()
    stub.set("held_events", 0)
    device.empty_cache()
    stats = device.memory().stats
    assert stats["allocated_bytes.all.current"] == 0
    assert stats["pending_blocks"] == 0
    assert stats["reserved_bytes.all.current"] == 0
    assert stub.descriptors() == {"tensor": 0, "list": 0, "executor": 0}
