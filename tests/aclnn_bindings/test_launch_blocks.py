"""Blocks: device memory that dies with its Python object, and launches that take and make them."""

import gc
import sys
import threading
import time

import numpy as np
import pytest
from stub_acl import Stub

import aclnn_bindings
from aclnn_bindings.call.plan import Plan
from aclnn_bindings.call.specs import ScalarSpec, TensorSpec
from aclnn_bindings.runtime.native import (
    Block,
    allocate,
    launch,
    launch_into,
    launch_many,
    lib,
)
from aclnn_bindings.runtime.status import AclError


def block(stub: Stub, values: list[float]) -> Block:
    stream = stub.cann.runtime.current_stream().address
    host = np.array(values, np.float32)
    made = Block(int(lib.mt_alloc(stream, host.nbytes)), host.nbytes, int(lib.mt_session()))
    assert lib.mt_copy(stream, made.address, host.nbytes, host.ctypes.data, host.nbytes, 1, 1) == 0
    return made


def values(stub: Stub, of: Block) -> list[float]:
    host = np.empty(of.nbytes // 4, np.float32)
    stream = stub.cann.runtime.current_stream().address
    assert lib.mt_copy(stream, host.ctypes.data, of.nbytes, of.address, of.nbytes, 2, 1) == 0
    return host.tolist()


def add(stub: Stub, allocate: tuple[str, ...]) -> Plan:
    spec = TensorSpec.of((2,))
    return stub.cann.op("aclnnAdd").plan(spec, spec, ScalarSpec(1.0), spec, allocate=allocate)


def held(stub: Stub) -> int:
    return stub.cann.runtime.device().memory().stats["allocation.all.current"]


def test_a_launch_takes_blocks_and_makes_one(stub: Stub) -> None:
    a, b = block(stub, [1.0, 0.0]), block(stub, [4.0, 0.0])
    plan, stream = add(stub, ("out",)), stub.cann.runtime.current_stream().address
    out = launch(plan.address, stream, 8, a.session, a, b)
    assert out is not None
    assert (out.nbytes, out.session) == (8, a.session)
    assert values(stub, out) == [5.0, 6.0]
    assert launch_into(add(stub, ()).address, stream, a, b, out)
    assert held(stub) == 3
    del a, b, out
    assert held(stub) == 0


def test_many_results_are_blocks_of_their_own(stub: Stub) -> None:
    spec, a = TensorSpec.of((1,)), block(stub, [7.0])
    plan = stub.cann.op("aclnnStubSplit").plan(spec, (spec,) * 3, allocate=("out",))
    stream = stub.cann.runtime.current_stream().address
    made = launch_many(plan.address, stream, (4, 4, 4), a.session, a)
    assert made is not None
    assert [values(stub, each) for each in made] == [[7.0], [8.0], [9.0]]
    assert held(stub) == 4


def test_a_launch_takes_any_number_of_blocks() -> None:
    cann = aclnn_bindings.open(simulator=True)
    stream, session = cann.runtime.current_stream().address, int(lib.mt_session())
    blocks = [allocate(stream, 1, session) for _ in range(40)]
    for k, each in enumerate(blocks):
        assert each is not None
        assert lib.mt_fill(stream, each.address, 1, k, 1) == 0
    byte, whole = (TensorSpec.of((n,), "UINT8") for n in (1, 40))
    plan = cann.op("aclnnCat").plan((byte,) * 40, 0, whole, allocate=("out",))
    made = launch_many(plan.address, stream, (40,), session, *blocks)
    assert made is not None
    host = np.empty(40, np.uint8)
    assert lib.mt_copy(stream, host.ctypes.data, 40, made[0].address, 40, 2, 1) == 0
    assert host.tolist() == list(range(40))
    assert launch_many(plan.address, stream, (), session, *blocks) is None
    assert lib.mt_last_failure().code == lib.MT_WRONG_COUNT
    del blocks, made, each
    assert cann.runtime.device().memory().stats["allocation.all.current"] == 0
    cann.close()


def test_a_failed_launch_gives_nothing_and_the_plan_raises_it(stub: Stub) -> None:
    a = block(stub, [1.0, 2.0])
    plan, stream = add(stub, ("out",)), stub.cann.runtime.current_stream()
    stub.set("fail_one", 161002)
    assert launch(plan.address, stream.address, 8, a.session, a, a) is None
    with pytest.raises(AclError, match="told to refuse"):
        plan.throw(stream)
    assert not launch_into(add(stub, ()).address, stream.address, a, a, a)
    assert held(stub) == 1


def test_wrong_arguments_are_refused_without_a_launch(stub: Stub) -> None:
    a = block(stub, [1.0, 2.0])
    plan, stream = add(stub, ("out",)), stub.cann.runtime.current_stream().address
    with pytest.raises(TypeError, match=r"expected a Block, got <class .int.>"):
        launch(plan.address, stream, 8, a.session, a, 7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected 4 and up to 32 blocks"):
        launch(plan.address, stream, 8)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="3 positional arguments"):
        Block(1, 2)  # type: ignore[call-arg]
    with pytest.raises(OverflowError):
        Block(1 << 70, 2, 3)
    assert launch(plan.address, stream, 8, a.session, a) is None
    assert lib.mt_last_failure().code == lib.MT_WRONG_COUNT
    assert stub.get("launches") == 0


def test_a_block_of_a_session_that_is_over_frees_nothing_of_the_next(stub: Stub) -> None:
    old = block(stub, [1.0])
    stub.cann.close()
    new = block(stub, [2.0])
    again = Block(new.address, 4, old.session)
    del old, again
    gc.collect()
    assert held(stub) == 1
    assert values(stub, new) == [2.0]


def test_a_dying_block_waits_for_no_other_thread(stub: Stub) -> None:
    kept, dying = block(stub, [1.0]), block(stub, [2.0])
    stub.set("held_device", 1)
    thread = threading.Thread(target=stub.cann.runtime.device().empty_cache)
    thread.start()
    while not stub.get("holding"):
        time.sleep(0.001)
    del dying
    assert stub.get("holding"), "the other thread is still inside the allocator"
    stub.set("held_device", 0)
    thread.join()
    assert held(stub) == 1
    assert values(stub, kept) == [1.0]


def test_launches_keep_reference_counts(stub: Stub) -> None:
    a, nbytes = block(stub, [1.0, 2.0]), 1 << 40
    plan, stream = add(stub, ("out",)), stub.cann.runtime.current_stream().address
    counts = sys.getrefcount(a), sys.getrefcount(nbytes), sys.getrefcount(None)
    for _ in range(100):
        launch(plan.address, stream, nbytes, a.session, a, a)
    assert sys.getrefcount(a) == counts[0]
    assert sys.getrefcount(nbytes) == counts[1]
    assert abs(sys.getrefcount(None) - counts[2]) < 50


@pytest.mark.parametrize("way", ["launch", "launch_into", "by name", "entry point"])
def test_a_launch_keeps_python_from_nobody(stub: Stub, way: str) -> None:
    """Phase 1 may compile, and what compiles may be Python, or wait for a thread that runs it.

    torch_npu releases the interpreter's lock for ACLNN's calls too, "for NPU to compile op"
    (Ascend/pytorch, torch_npu/csrc/framework/OpParamMaker.cpp): a launch that kept it would wait
    for ever, however quick the ones before it were.
    """
    a, out = stub.cann.tensor(np.ones(2, np.float32)), stub.cann.empty((2,))
    blocks = [block(stub, [1.0, 1.0]) for _ in range(3)]
    stream, session = stub.cann.runtime.current_stream().address, int(lib.mt_session())
    into, making = add(stub, ()), add(stub, ("out",))
    ways = {
        "launch": lambda: launch(making.address, stream, 8, session, *blocks[:2]),
        "launch_into": lambda: launch_into(into.address, stream, *blocks),
        "by name": lambda: stub.cann.ops.aclnnAdd(a, a, 1.0, out),
        "entry point": lambda: lib.mt_run3(into.address, stream, *(b.address for b in blocks)),
    }
    for _ in range(8):  # quick launches first
        ways[way]()
    ran: list[int] = []
    stub.compile_by(lambda: ran.append(threading.get_ident()))
    assert ways[way]() not in (0, False, None) or way == "by name"
    assert len(ran) == 1
    assert ran[0] != threading.get_ident()
