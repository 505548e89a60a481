"""What the runtime does by itself: waits before reads, finds its context, survives refusals."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from stub_acl import Stub

import aclnn_bindings
from aclnn_bindings import AclAbortedError, AclDeviceLostError, AclTimeoutError, StatusCodes
from aclnn_bindings.call.cache import PlanCache
from aclnn_bindings.cann import Cann
from aclnn_bindings.errors import ArgumentError
from aclnn_bindings.runtime.status import AclError


@pytest.fixture
def cann() -> Iterator[Cann]:
    opened = aclnn_bindings.open(simulator=True)
    running = opened.runtime.started
    yield opened
    if not running:
        opened.close()


def test_a_read_waits_for_the_stream_that_wrote(cann: Cann) -> None:
    host = np.full((256, 256), 1 / 256, np.float32)
    a = cann.tensor(host)
    with cann.runtime.stream() as stream:
        for _ in range(4):
            out = cann.empty(host.shape)
            for _ in range(4):
                cann.ops.aclnnMatmul(a, a, out, 0, stream=stream)
            assert np.allclose(out.numpy(), host)


def test_a_write_waits_for_the_stream_that_reads(cann: Cann) -> None:
    ones, zeros = np.ones((256, 256), np.float32), np.zeros((256, 256), np.float32)
    with cann.runtime.stream() as stream:
        for _ in range(4):
            a, out = cann.tensor(ones), cann.empty(ones.shape)
            for _ in range(4):
                cann.ops.aclnnMatmul(a, a, out, 0, stream=stream)
            a.buffer.write(zeros)
            assert (out.numpy() == 256).all()


def test_a_context_that_another_library_changed_is_noticed(stub: Stub) -> None:
    device = stub.cann.runtime.device()
    ctypes.CDLL(str(stub.library)).aclrtSetCurrentContext(None)
    device.stream().close()
    device.event().close()


@pytest.mark.parametrize("code", [100002, 207000, 507033, 561000])
def test_a_refused_aclnn_init_is_survived_and_so_is_a_restart(stub: Stub, code: int) -> None:
    stub.set("fail_light", code)
    for _ in range(2):
        stub.cann.runtime.start()
        out = stub.cann.empty((2,))
        stub.cann.ops.aclnnAdd(out, out, 1.0, out)
        stub.cann.close()


def test_newer_creations_that_a_driver_lacks_fall_back(stub: Stub) -> None:
    stub.set("fail_create", 207000)
    device = stub.cann.runtime.device()
    with device.stream() as stream, device.event() as event:
        stream.record(event)
    stub.set("fail_create", 207008)
    with pytest.raises(AclError, match="207008"):
        device.stream()


def test_the_end_is_bounded_where_the_device_hangs(stub: Stub) -> None:
    stub.cann.runtime.device()
    stub.set("fail_device", 507046)
    with pytest.raises(AclTimeoutError):
        stub.cann.close()
    assert not stub.cann.runtime.started
    assert stub.live("stream") == 1
    stub.set("live", 0)  # what a hanging device keeps is nobody's later
    stub.set("fail_device", 0)
    stub.cann.runtime.device()


def test_a_collected_stream_waits_for_nothing_and_is_closed_later(stub: Stub) -> None:
    device = stub.cann.runtime.device()
    stream = device.stream()
    before, open_streams = stub.get("synchronized"), stub.live("stream")
    del stream
    gc.collect()
    assert (stub.get("synchronized"), stub.live("stream")) == (before, open_streams)
    device.synchronize()
    assert stub.live("stream") == open_streams - 1


def test_a_cache_of_plans_is_safe_between_threads() -> None:
    cache, errors = PlanCache(limit=8), []

    def work(first: int) -> None:
        try:
            for key in range(first, first + 4000):
                cache.put(key % 16, object())  # type: ignore[arg-type]
                cache.get((key * 7) % 16)
        except KeyError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(cache) <= 8


@pytest.mark.parametrize("order", ["<", ">", "="])
def test_arrays_of_either_byte_order_arrive(stub: Stub, order: str) -> None:
    host = np.array([1.5, -2.0, 3.0], f"{order}f4")
    assert (stub.cann.tensor(host).numpy() == [1.5, -2.0, 3.0]).all()


def test_a_foreign_byte_order_is_refused_where_memory_is_passed(stub: Stub) -> None:
    size = stub.cann.functions.aclnnStubWeightSize
    with pytest.raises(ArgumentError, match="byte order"):
        size([2, 3], np.zeros(1, ">u8"))


@pytest.mark.parametrize(
    ("code", "kind"),
    [(107019, AclTimeoutError), (107020, AclTimeoutError), (107022, AclAbortedError),
     (107023, AclAbortedError), (507046, AclTimeoutError), (507047, AclTimeoutError)],
)  # fmt: skip
def test_time_outs_and_aborts_are_no_wrong_values(code: int, kind: type[AclError]) -> None:
    error = StatusCodes().error("aclrtSynchronizeStream", code)
    assert isinstance(error, kind)
    assert not isinstance(error, ValueError)
    assert error.remedy or code == 507047


def test_a_device_that_keeps_failing_is_called_lost(stub: Stub) -> None:
    runtime = stub.cann.runtime
    runtime.device()
    assert runtime.lost is None
    stub.set("fail_sync", 507015)
    with pytest.raises(AclError) as first:
        runtime.current_stream().synchronize()
    assert runtime.lost is first.value
    with pytest.raises(AclDeviceLostError, match=r"cann\.close\(\)"):
        runtime.current_stream().synchronize()
    stub.set("fail_sync", 0)
    stub.cann.close()
    runtime.device()
    assert runtime.lost is None


def test_infinities_are_kept_where_the_chip_can(cann: Cann) -> None:
    assert cann.runtime.device().overflow_mode == "inf_nan"


@pytest.mark.parametrize("asked", [False, True])
def test_what_follows_a_failure_is_not_run_where_that_is_asked_for(
    cann: Cann, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDTORCH_STOP_ON_FAILURE", str(int(asked)))
    cann.close()
    device = cann.runtime.device()
    read = cann.function("aclrtGetStreamAttribute")
    attribute = cann.declarations.constant("ACL_STREAM_ATTR_FAILURE_MODE")
    with device.stream() as side:
        for stream in (side, device.default_stream):
            mode = np.full(4, 7, np.uint64)
            read(stream.handle, attribute, mode)
            assert mode[0] & 0xFFFFFFFF == asked
    monkeypatch.setenv("MINDTORCH_STOP_ON_FAILURE", "0")
    cann.close()


@pytest.mark.parametrize(("value", "mode"), [("1", "inf_nan"), ("0", "saturation")])
def test_the_overflow_mode_is_that_of_the_environment(
    cann: Cann, value: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_NAN_MODE_ENABLE", value)
    cann.close()
    assert cann.runtime.device().overflow_mode == mode
    monkeypatch.delenv("INF_NAN_MODE_ENABLE")
    cann.close()


HANGING = """
import os, signal, threading
import numpy as np
import aclnn_bindings

class Alarm(Exception): pass
seen = []
def alarm(number, frame): raise Alarm
signal.signal(signal.SIGALRM, alarm)
# A shell's background job starts with SIGINT ignored, and Python then leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
cann = aclnn_bindings.open(simulator=True)
x, out = cann.tensor(np.ones(4, np.float32)), cann.empty((4,))
stream = cann.runtime.stream()
cann.ops.aclnnMul(x, x, out, stream=stream)
event = stream.record()
for wait in (stream.synchronize, out.numpy, event.synchronize, cann.runtime.device().synchronize):
    for number in (signal.SIGINT, signal.SIGALRM):
        for later, one in ((0.1, signal.SIGUSR1), (0.3, number)):
            threading.Timer(later, os.kill, (os.getpid(), one)).start()
        try:
            wait()
        except (KeyboardInterrupt, Alarm) as error:
            print(type(error).__name__, len(seen), flush=True)
os._exit(0)  # the end of a process waits for a device, for its own time
"""


def test_a_signal_ends_every_wait_for_a_device_that_hangs() -> None:
    """By what its handler raises; one that raises nothing is run, and the wait goes on."""
    environ = {**os.environ, "ACLSIM_FAULTS": "mul:hang", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", HANGING], env=environ, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    told = [f"{('KeyboardInterrupt', 'Alarm')[k % 2]} {k + 1}" for k in range(8)]
    assert done.stdout.splitlines() == told, done.stderr


def test_work_that_lasts_longer_than_one_look_at_signals_is_waited_for(stub: Stub) -> None:
    device = stub.cann.runtime.device()
    stub.set("hanging", 3)
    before = stub.get("synchronized")
    device.default_stream.synchronize()
    assert stub.get("synchronized") == before + 1
    stub.set("fail_sync", 507015)
    stub.set("hanging", 1)
    with pytest.raises(AclError, match="507015"):
        device.default_stream.synchronize()
