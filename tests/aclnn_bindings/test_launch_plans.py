"""Plans and launches: one C call, outputs allocated inside it, everything released once."""

import struct
import threading

import numpy as np
import pytest
from stub_acl import Stub

from aclnn_bindings.call.plan import Plan
from aclnn_bindings.call.specs import ScalarSpec, TensorSpec
from aclnn_bindings.errors import ArgumentError, ClosedHandleError, RuntimeStateError
from aclnn_bindings.runtime.native import lib
from aclnn_bindings.runtime.status import AclError, AclOutOfMemoryError

NOTHING = {"tensor": 0, "list": 0, "executor": 0}


def add_plan(stub: Stub, allocate: tuple[str, ...] = ("out",), alpha: float = 1.0) -> Plan:
    spec = TensorSpec.of((4,))
    return stub.cann.op("aclnnAdd").plan(spec, spec, ScalarSpec(alpha), spec, allocate=allocate)


def read(stub: Stub, address: int, count: int) -> list[float]:
    stream = stub.cann.runtime.current_stream()
    host = np.empty(count, np.float32)
    assert (
        lib.mt_copy(stream.address, host.ctypes.data, host.nbytes, address, host.nbytes, 2, 1) == 0
    )
    return host.tolist()


def test_a_launch_allocates_its_output(stub: Stub) -> None:
    plan, a = add_plan(stub), stub.cann.tensor(np.full(4, 2.0, np.float32))
    assert (plan.inputs, plan.outputs) == (2, 1)
    (out,) = plan.launch(stub.cann.runtime.current_stream(), (a.address, a.address))
    assert read(stub, out, 4) == [4.0, 5.0, 6.0, 7.0]
    assert lib.mt_free(out) == 0
    assert stub.descriptors() == NOTHING


def test_the_fixed_arity_entry_points_return_the_address_or_zero(stub: Stub) -> None:
    plan, a = add_plan(stub), stub.cann.tensor(np.ones(4, np.float32))
    stream = stub.cann.runtime.current_stream().address
    out = lib.mt_run2(plan.address, stream, a.address, a.address)
    assert out > 1
    into = add_plan(stub, allocate=())
    assert lib.mt_run3(into.address, stream, a.address, a.address, out) == 1
    assert lib.mt_run1(plan.address, stream, a.address) == 0
    assert lib.mt_last_failure().code == lib.MT_WRONG_COUNT
    assert lib.mt_free(out) == 0


def test_many_outputs_are_allocated_and_reported_in_order(stub: Stub) -> None:
    spec = TensorSpec.of((1,))
    a = stub.cann.tensor(np.full(1, 7.0, np.float32))
    stream = stub.cann.runtime.current_stream()
    for count in (3, 16, 40):
        plan = stub.cann.op("aclnnStubSplit").plan(spec, (spec,) * count, allocate=("out",))
        made = plan.launch(stream, (a.address,))
        assert [read(stub, at, 1)[0] for at in made] == [7.0 + k for k in range(count)]
        assert all(lib.mt_free(at) == 0 for at in made)
    assert stub.descriptors() == NOTHING


@pytest.mark.parametrize(
    ("knob", "value", "phase"),
    [
        ("fail_one", 161002, lib.MT_PHASE_ONE),
        ("fail_two", 561000, lib.MT_PHASE_TWO),
        ("fail_tensor", 3, lib.MT_PHASE_DESCRIPTOR),
        ("fail_tensor", 1, lib.MT_PHASE_DESCRIPTOR),
    ],
)
@pytest.mark.parametrize("workspace", [0, 4096])
def test_every_failing_path_releases_everything_once(
    stub: Stub, knob: str, value: int, phase: int, workspace: int
) -> None:
    plan, a = add_plan(stub), stub.cann.tensor(np.ones(4, np.float32))
    device = stub.cann.runtime.device()
    before = device.memory().allocated
    stub.set("workspace", workspace)
    stub.set(knob, value)
    stream = stub.cann.runtime.current_stream().address
    assert lib.mt_run2(plan.address, stream, a.address, a.address) == 0
    assert lib.mt_last_failure().phase == phase
    assert stub.descriptors() == NOTHING
    assert device.memory().allocated == before


def test_lists_are_released_once_when_a_member_fails(stub: Stub) -> None:
    spec = TensorSpec.of((1,))
    plan = stub.cann.op("aclnnStubSplit").plan(spec, (spec,) * 3, allocate=("out",))
    a = stub.cann.tensor(np.ones(1, np.float32))
    for member in (1, 2, 3, 4):
        stub.set("fail_tensor", member)
        with pytest.raises(RuntimeStateError, match="returned NULL"):
            plan.launch(stub.cann.runtime.current_stream(), (a.address,))
        assert stub.descriptors() == NOTHING


def test_a_workspace_that_cannot_be_had_still_consumes_the_executor(stub: Stub) -> None:
    plan, a = add_plan(stub), stub.cann.tensor(np.ones(4, np.float32))
    stub.cann.runtime.device().empty_cache()
    stub.set("workspace", 1 << 33)
    stub.set("memory_left", 1 << 20)
    with pytest.raises(AclOutOfMemoryError) as caught:
        plan.launch(stub.cann.runtime.current_stream(), (a.address, a.address))
    assert stub.descriptors() == NOTHING
    text = str(caught.value)
    assert "asked for 8.00 GiB" in text
    assert "buffers 512 B" in text
    assert "workspaces 0 B" in text
    assert caught.value.shapes == ((4,), (4,), (4,))


def test_a_workspace_is_returned_to_its_stream(stub: Stub) -> None:
    plan, a = add_plan(stub), stub.cann.tensor(np.ones(4, np.float32))
    stub.set("workspace", 1 << 16)
    device = stub.cann.runtime.device()
    before = device.memory().allocated
    for _ in range(3):
        (out,) = plan.launch(stub.cann.runtime.current_stream(), (a.address, a.address))
        assert lib.mt_free(out) == 0
    assert device.memory().allocated == before
    assert device.memory().stats["segment.all.current"] == 1


def test_constants_of_a_plan_are_released_with_it(stub: Stub) -> None:
    plan = add_plan(stub)
    assert stub.live("scalar") == 1
    plan.close()
    plan.close()
    assert stub.live("scalar") == 0
    with pytest.raises(ClosedHandleError, match="plan of aclnnAdd"):
        plan.launch(stub.cann.runtime.current_stream(), (0, 0))


def test_a_plan_outlives_its_runtime_harmlessly(stub: Stub) -> None:
    plan = add_plan(stub)
    stub.cann.close()
    assert stub.live("scalar") == 0
    stub.cann.runtime.start()
    with pytest.raises(ClosedHandleError):
        plan.launch(stub.cann.runtime.current_stream(), (0, 0))
    plan.close()
    assert stub.live("scalar") == 0


def test_a_plan_that_cannot_be_made_leaves_nothing(stub: Stub) -> None:
    spec = TensorSpec.of((4,))
    with pytest.raises(ArgumentError, match="dtype 'NOPE'"):
        stub.cann.op("aclnnAdd").plan(spec, spec, ScalarSpec(1.0), TensorSpec.of((4,), "NOPE"))
    with pytest.raises(ArgumentError, match="allocate='alpha'"):
        stub.cann.op("aclnnAdd").plan(spec, spec, ScalarSpec(1.0), spec, allocate=("alpha",))
    assert stub.live("scalar") == 0


def test_launch_blocking_waits_and_reports_the_stream(stub: Stub) -> None:
    plan, a = add_plan(stub, allocate=()), stub.cann.tensor(np.ones(4, np.float32))
    runtime = stub.cann.runtime
    runtime.launch_blocking = True
    waited = runtime.counters()["host_syncs"]
    plan.launch(runtime.current_stream(), (a.address,) * 3)
    assert runtime.counters()["host_syncs"] == waited + 1
    stub.set("fail_sync", 507035)
    with pytest.raises(AclError, match="a kernel faulted") as caught:
        plan.launch(runtime.current_stream(), (a.address,) * 3)
    assert caught.value.op == "aclnnAdd"
    runtime.launch_blocking = False


@pytest.mark.parametrize("name", ["ASCEND_LAUNCH_BLOCKING", "ACL_LAUNCH_BLOCKING"])
def test_launch_blocking_is_read_from_the_environment_at_start(
    name: str, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    stub.cann.runtime.start()
    assert stub.cann.runtime.launch_blocking
    stub.cann.close()
    monkeypatch.delenv(name)
    stub.cann.runtime.start()
    assert not stub.cann.runtime.launch_blocking


def test_threads_share_a_plan_without_sharing_descriptors(stub: Stub) -> None:
    spec = TensorSpec.of((4,))
    plan = stub.cann.op("aclnnStubNoop").plan(spec, spec, ScalarSpec(1.0), spec, allocate=("out",))
    a = stub.cann.tensor(np.ones(4, np.float32))
    stream = stub.cann.runtime.current_stream()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(500):
                (out,) = plan.launch(stream, (a.address, a.address))
                assert lib.mt_free(out) == 0
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert stub.cann.runtime.device().memory().allocated == 512


def test_counters_count_launches_and_failures(stub: Stub) -> None:
    plan, a = add_plan(stub, allocate=()), stub.cann.tensor(np.ones(4, np.float32))
    runtime = stub.cann.runtime
    before = runtime.counters()
    plan.launch(runtime.current_stream(), (a.address,) * 3)
    stub.set("fail_one", 161002)
    with pytest.raises(AclError):
        plan.launch(runtime.current_stream(), (a.address,) * 3)
    after = runtime.counters()
    assert after["launches"] - before["launches"] == 2
    assert after["failed_launches"] - before["failed_launches"] == 1


def test_half_of_many_launches_failing_leaks_nothing(stub: Stub) -> None:
    plan, a = add_plan(stub), stub.cann.tensor(np.ones(4, np.float32))
    stream = stub.cann.runtime.current_stream().address
    allocated = stub.cann.runtime.device().memory().allocated
    knobs = ("fail_one", "fail_two", "fail_tensor")
    for turn in range(3000):
        if turn % 2:
            stub.set(knobs[turn // 2 % 3], 1)
        out = lib.mt_run2(plan.address, stream, a.address, a.address)
        assert bool(out) != bool(turn % 2)
        for knob in knobs:
            stub.set(knob, 0)
        if out:
            lib.mt_free(out)
    assert stub.descriptors() == NOTHING
    assert stub.cann.runtime.device().memory().allocated == allocated


def test_a_zero_dimensional_tensor_is_passed_with_rank_zero(stub: Stub) -> None:
    scalar = TensorSpec.of(())
    plan = stub.cann.op("aclnnAdd").plan(scalar, scalar, ScalarSpec(0.5), scalar, allocate=("out",))
    a = stub.cann.tensor(np.float32(2.0))
    (out,) = plan.launch(stub.cann.runtime.current_stream(), (a.address, a.address))
    assert read(stub, out, 1) == [3.0]
    assert struct.calcsize("f") == scalar.nbytes
    lib.mt_free(out)


def test_a_plan_with_other_scalars_computes_with_them_and_leaves_the_first_alone(
    stub: Stub,
) -> None:
    plan, a = add_plan(stub), stub.cann.tensor(np.full(4, 2.0, np.float32))
    other = plan.with_scalars({2: ScalarSpec(3)})
    assert other.arguments[2] == ScalarSpec(3)
    assert plan.arguments[2] == ScalarSpec(1.0)
    for chosen, expected in ((other, add_plan(stub, alpha=3)), (plan, add_plan(stub))):
        results = []
        for each in (chosen, expected):
            (out,) = each.launch(stub.cann.runtime.current_stream(), (a.address, a.address))
            results.append(read(stub, out, 4))
            assert lib.mt_free(out) == 0
        assert results[0] == results[1]
    assert stub.descriptors() == NOTHING
