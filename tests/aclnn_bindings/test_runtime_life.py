"""The runtime's life: lazy start, one per process, threads, fork, close, exit; streams, events."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from stub_acl import Stub

from aclnn_bindings.cann import Cann
from aclnn_bindings.errors import (
    ClosedHandleError,
    ForkedError,
    MissingSymbolError,
    RuntimeStateError,
    StillUsedError,
)
from aclnn_bindings.install.describe import Install, LibraryFile
from aclnn_bindings.install.versions import Versions
from aclnn_bindings.interface.signature import Declarations
from aclnn_bindings.runtime.native import lib
from aclnn_bindings.runtime.status import AclError

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_is_initialised_before_a_device_is_used(stub: Stub) -> None:
    assert stub.cann.ops.aclnnAdd.name == "aclnnAdd"
    assert stub.get("inits") == 0
    stub.cann.runtime.device()
    stub.cann.runtime.start()
    assert stub.get("inits") == 1


def test_acl_is_initialised_with_the_configuration_that_operators_need(stub: Stub) -> None:
    stub.cann.runtime.start()
    assert json.loads(stub.config()) == {"dump": {"dump_scene": "lite_exception"}}


def test_acl_starts_where_no_file_can_be_written() -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "import aclnn_bindings; print(aclnn_bindings.open(simulator=True).empty((2,), 'FLOAT'))"
    )
    environ = {**os.environ, "TMPDIR": "/nowhere"}
    ran = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True)
    assert ran.returncode == 0, ran.stderr


def test_close_returns_everything_and_a_later_use_starts_again(stub: Stub) -> None:
    runtime = stub.cann.runtime
    tensor = stub.cann.tensor(np.ones(4, np.float32))
    stream, event = runtime.stream(), runtime.device().event()
    stub.cann.close()
    stub.cann.close()
    assert stub.get("finals") == 1
    for kind in ("device_memory", "stream", "event", "scalar", "context"):
        assert stub.live(kind) == 0, kind
    with pytest.raises(ClosedHandleError):
        tensor.numpy()
    stream.close()
    event.close()
    tensor.close()
    assert stub.cann.tensor(np.ones(2, np.float32)).numpy().tolist() == [1.0, 1.0]
    assert stub.get("inits") == 2


def test_a_failed_start_says_why_and_can_be_tried_again(stub: Stub) -> None:
    stub.set("fail_init", 507899)
    for _ in range(2):
        with pytest.raises(AclError, match="EE9999: no driver") as caught:
            stub.cann.runtime.device()
        assert caught.value.call == "aclInit"
    assert not stub.cann.runtime.started
    stub.set("fail_init", 0)
    stub.cann.runtime.device()


def test_acl_that_another_part_of_the_process_initialised_is_joined(stub: Stub) -> None:
    stub.set("fail_init", 100002)
    stub.cann.runtime.device()
    stub.cann.close()
    assert stub.get("finals") == 0, "who came first ends it"


def test_a_library_that_cannot_be_loaded_is_named_with_the_loaders_words(
    tmp_path: Path, stub_declarations: Declarations
) -> None:
    library = LibraryFile(tmp_path / "libascendcl.so", "core")
    library.path.write_text("no library at all")
    install = Install(tmp_path, "test", "cann", Versions(), (), (library,))
    with pytest.raises(MissingSymbolError, match=r"not loaded: libascendcl\.so: .*too short"):
        Cann(install, stub_declarations).runtime.start()


def test_a_second_runtime_in_the_process_is_refused(
    stub: Stub, stub_library: Path, stub_declarations: Declarations
) -> None:
    stub.cann.runtime.start()
    other = Stub(stub_library, stub_declarations)
    with pytest.raises(RuntimeStateError, match="ACL has one per process: start another process"):
        other.cann.runtime.start()
    stub.cann.close()
    other.cann.runtime.start()
    other.cann.close()


def test_a_new_thread_gets_the_device_by_itself(stub: Stub) -> None:
    stub.cann.runtime.device()
    found: list[list[float]] = []

    def work() -> None:
        a, out = stub.cann.tensor(np.ones(2, np.float32)), stub.cann.empty((2,))
        stub.cann.ops.aclnnAdd(a, a, 1.0, out)
        found.append(out.numpy().tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[2.0, 3.0]]


def test_a_device_that_does_not_exist_raises_acls_own_code(stub: Stub) -> None:
    with pytest.raises(AclError) as caught:
        stub.cann.runtime.device(9)
    assert (caught.value.call, caught.value.code) == ("aclrtSetDevice", 107001)
    assert stub.cann.runtime.device_count() == 8


def test_the_current_device_and_stream_are_the_threads_own(stub: Stub) -> None:
    runtime = stub.cann.runtime
    runtime.set_device(1)
    assert runtime.current_stream().device.index == 1
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(runtime.current_device))
    thread.start()
    thread.join()
    assert seen == [0]
    with runtime.stream(0) as side, side.use():
        assert runtime.current_stream() is side
        assert runtime.current_device == 0
    assert runtime.current_device == 1
    assert runtime.current_stream(0).default


def test_memory_of_two_devices_is_apart(stub: Stub) -> None:
    runtime = stub.cann.runtime
    with runtime.device(0).buffer(100), runtime.device(1).buffer(100) as other:
        assert other.device.index == 1
        assert runtime.device(1).memory().stats["allocation.all.current"] == 1
        assert runtime.device(0).memory().stats["allocation.all.current"] == 1


def test_streams_and_events_close_once_and_name_misuse(stub: Stub) -> None:
    runtime = stub.cann.runtime
    stream, event = runtime.stream(), runtime.device().event()
    for handle in (stream, event):
        handle.close()
        handle.close()
    with pytest.raises(ClosedHandleError, match="stream on device 0: it was closed"):
        stream.synchronize()
    with pytest.raises(ClosedHandleError, match="event on device 0: it was closed"):
        event.query()
    with pytest.raises(StillUsedError, match="default stream"):
        runtime.current_stream().close()
    assert stub.live("stream") == 1
    assert "closed" in repr(stream)


def test_events_order_and_measure(stub: Stub) -> None:
    runtime = stub.cann.runtime
    device = runtime.device()
    with runtime.stream() as side, device.event(timing=True) as start, device.event(True) as end:
        start.record(side)
        end.record(side)
        assert start.elapsed(end) == 1.5
        runtime.current_stream().wait_stream(side)
        assert side.query()
        assert end.query()
        end.synchronize()
        side.synchronize(timeout=5)
        stub.set("hanging", 1)
        with pytest.raises(AclError, match="timed out"):
            side.synchronize(timeout=0.001)


def test_a_context_of_ones_own_must_outlive_its_streams(stub: Stub) -> None:
    runtime = stub.cann.runtime
    device = runtime.device()
    with device.context() as context:
        stream = context.stream()
        with context.use():
            assert context.handle
        with pytest.raises(StillUsedError, match="close them first"):
            context.close()
        stream.close()
    assert context.closed
    assert stub.live("context") == 0
    device.synchronize()


def test_host_waits_are_counted(stub: Stub) -> None:
    runtime = stub.cann.runtime
    tensor = stub.cann.tensor(np.ones(2, np.float32))
    before = runtime.counters()["host_syncs"]
    tensor.numpy()
    runtime.current_stream().synchronize()
    runtime.device().synchronize()
    assert runtime.counters()["host_syncs"] == before + 3


def _in_child(action: str, stub: Stub) -> str:
    """What a forked child writes while doing `action`."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            runtime = stub.cann.runtime
            {"device": runtime.device, "start": runtime.start, "close": stub.cann.close,
             "launch": lambda: stub.cann.tensor(np.ones(2, np.float32))}[action]()  # fmt: skip
            os.write(write, b"fine")
        except Exception as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        return pipe.read()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_of_a_started_runtime_is_refused_clearly(stub: Stub) -> None:
    tensor = stub.cann.tensor(np.ones(2, np.float32))
    for action in ("device", "start", "launch"):
        text = _in_child(action, stub)
        assert text.startswith(ForkedError.__name__), text
        assert '"spawn"' in text
    assert _in_child("close", stub) == "fine"
    assert tensor.numpy().tolist() == [1.0, 1.0], "the parent goes on"
    assert stub.get("finals") == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_before_the_start_works(stub: Stub) -> None:
    assert _in_child("launch", stub) == "fine"


def test_a_closed_runtime_is_told_from_one_never_started(stub: Stub) -> None:
    stub.cann.runtime.start()
    stub.cann.close()
    assert lib.mt_alloc(0, 1) == 0
    assert lib.mt_last_failure().code == lib.MT_STOPPED
    assert lib.mt_free(4096) == 0, "late frees are no error: the device took everything back"


_EXIT = """
import atexit, sys
sys.path[:0] = [{root!r}, {tests!r}]
from pathlib import Path
from stub_acl import Stub, declare
import numpy as np
stub = Stub(Path({library!r}), declare())
atexit.register(lambda: print("left", [stub.live(k) for k in ("device_memory", "stream", "event",
    "scalar", "tensor")], "finals", stub.get("finals")))
runtime = stub.cann.runtime
kept = [stub.cann.tensor(np.ones(4, np.float32)), runtime.stream(), runtime.device().event(),
        runtime.pinned(8)]
stub.cann.ops.aclnnAdd(kept[0], kept[0], 1.0, kept[0])
cycle = [kept]; cycle.append(cycle)
"""


def test_interpreter_exit_releases_everything_in_order(stub_library: Path) -> None:
    script = _EXIT.format(
        root=str(ROOT), tests=str(Path(__file__).parent), library=str(stub_library)
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "left [0, 0, 0, 0, 0] finals 1"
    assert done.stderr == ""
