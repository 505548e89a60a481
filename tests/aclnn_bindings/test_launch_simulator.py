"""The same calls on the bundled simulator: real kernels, asynchronous streams, strict lifetimes."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import aclnn_bindings
from aclnn_bindings.call.specs import ScalarSpec, TensorSpec
from aclnn_bindings.cann import Cann
from aclnn_bindings.runtime.native import lib
from aclnn_bindings.runtime.status import AclError, AclParameterError
from aclnn_bindings.runtime.words import call

ROOT = Path(__file__).resolve().parents[2]
LAUNCHES = 100_000


@pytest.fixture
def cann() -> Iterator[Cann]:
    opened = aclnn_bindings.open(simulator=True)
    running = opened.runtime.started
    yield opened
    if not running:
        opened.close()


@pytest.fixture
def live(cann: Cann) -> Callable[[], int]:
    """How many handles of all kinds live in the simulator (aclsimLiveHandles)."""
    address = cann.symbols.require("aclsimLiveHandles")
    return lambda: call(address, [(False, 0)])


def test_add_by_name_computes(cann: Cann) -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    a, out = cann.tensor(host), cann.empty((2, 3))
    cann.ops.aclnnAdd(self=a, other=a, alpha=2.0, out=out)
    assert (out.numpy() == host * 3).all()


def test_views_strides_and_dtypes_reach_the_kernel(cann: Cann) -> None:
    host = np.arange(24, dtype=np.float16).reshape(4, 6)
    whole, out = cann.tensor(host), cann.empty((6, 4), "FLOAT16")
    transposed = whole.view((6, 4), (1, 6))
    cann.ops.aclnnMul(self=transposed, other=transposed, out=out)
    assert (out.numpy() == (host.T * host.T)).all()
    column = whole.view((4,), (6,), offset=2)
    small = cann.empty((4,), "FLOAT16")
    cann.ops.aclnnAdds(self=column, other=1.0, alpha=1.0, out=small)
    assert (small.numpy() == host[:, 2] + 1).all()


def test_lists_arrays_and_enums_reach_the_kernel(cann: Cann) -> None:
    parts = [np.full((2, 2), k, np.float32) for k in range(3)]
    out = cann.empty((6, 2))
    cann.ops.aclnnCat(tensors=[cann.tensor(part) for part in parts], dim=0, out=out)
    assert (out.numpy() == np.concatenate(parts)).all()
    total = cann.empty((6,), "DOUBLE")
    cann.ops.aclnnReduceSum(self=out, dims=[1], keepDims=False, dtype="DOUBLE", out=total)
    assert total.numpy().tolist() == [0, 0, 2, 2, 4, 4]


def test_a_refusal_carries_canns_words(cann: Cann) -> None:
    a = cann.tensor(np.ones((2, 3), np.float32))
    with pytest.raises(AclParameterError) as caught:
        cann.ops.aclnnAdd(self=a, other=a, alpha=1.0, out=cann.empty((3, 3)))
    assert caught.value.code == cann.declarations.constant("ACLNN_ERR_PARAM_INVALID")
    assert "[2,3]" in caught.value.message
    assert "[3,3]" in caught.value.message


def test_a_hundred_thousand_launches_half_failing_leak_nothing(
    cann: Cann, live: Callable[[], int]
) -> None:
    spec, wrong = TensorSpec.of((4,)), TensorSpec.of((5,))
    a = cann.tensor(np.ones(4, np.float32))
    add = cann.op("aclnnAdd")
    good = add.plan(spec, spec, ScalarSpec(1.0), spec, allocate=("out",))
    bad = add.plan(spec, spec, ScalarSpec(1.0), wrong, allocate=("out",))
    stream, device = cann.runtime.current_stream(), cann.runtime.device()
    stream.synchronize()
    handles, blocks = live(), device.memory().stats["allocation.all.current"]
    for _ in range(LAUNCHES // 2):
        out = lib.mt_run2(good.address, stream.address, a.address, a.address)
        assert out
        assert lib.mt_run2(bad.address, stream.address, a.address, a.address) == 0
        assert lib.mt_free(out) == 0
    stream.synchronize()
    assert device.memory().stats["allocation.all.current"] == blocks
    assert live() == handles


def test_work_on_two_streams_is_ordered_by_events_and_memory_by_use(cann: Cann) -> None:
    runtime = cann.runtime
    a = cann.tensor(np.ones(1 << 16, np.float32))
    main = runtime.current_stream()
    with runtime.stream() as side:
        for _ in range(50):
            made = cann.empty((1 << 16,))
            cann.ops.aclnnAdd(a, a, 1.0, made)
            side.wait_stream(main)
            out = cann.empty((1 << 16,), stream=side)
            cann.ops.aclnnAdd(made, made, 1.0, out, stream=side)
            made.close()
            noise = cann.empty((1 << 16,))
            cann.ops.aclnnMul(a, a, noise)
            noise.close()
            with side.use():
                assert (out.numpy() == 4).all()
            out.close()


def test_threads_launch_at_once_on_their_own_streams(cann: Cann) -> None:
    wrong: list[object] = []

    def work(value: float) -> None:
        with cann.runtime.stream() as stream, stream.use():
            a, out = cann.tensor(np.full(64, value, np.float32)), cann.empty((64,))
            for _ in range(200):
                cann.ops.aclnnAdd(a, a, 1.0, out)
            if not (out.numpy() == 2 * value).all():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_buffers_copy_between_devices_in_order(cann: Cann) -> None:
    here, there = cann.runtime.device(0), cann.runtime.device(1)
    before = here.memory().allocated, there.memory().allocated
    nbytes = 1 << 20
    with here.buffer(nbytes) as a, there.buffer(nbytes) as b, here.buffer(nbytes) as c:
        for value in range(1, 20):
            a.fill(value)
            b.copy_from(a)
            c.copy_from(b)
            assert c.to_bytes() == bytes([value]) * nbytes
    assert (here.memory().allocated, there.memory().allocated) == before


def test_an_error_on_the_stream_is_raised_by_the_next_wait(cann: Cann) -> None:
    source, out = cann.tensor(np.zeros((4, 2), np.float32)), cann.empty((1, 2))
    index = cann.tensor(np.array([99], np.int64))
    cann.ops.aclnnIndexSelect(self=source, dim=0, index=index, out=out)
    with pytest.raises(AclError) as caught:
        cann.runtime.current_stream().synchronize()
    assert 507_000 <= caught.value.code < 508_000
    cann.close()


_STRICT = """
import sys
sys.path.insert(0, {root!r})
import numpy as np, aclnn_bindings
cann = aclnn_bindings.open(simulator=True)
a = cann.tensor(np.ones((8, 8), np.float32))
out = cann.empty((8, 8))
kept = [a, out, cann.runtime.stream(), cann.runtime.device().event(), cann.runtime.pinned(64)]
cann.ops.aclnnAdd(a, a, 1.0, out)
cann.ops.aclnnMatmul(a, a, out, 1)
cann.ops.aclnnCat(tensors=[a, a], dim=0, out=cann.empty((16, 8)))
try:
    cann.ops.aclnnAdd(a, a, 1.0, cann.empty((3,)))
except aclnn_bindings.AclError as error:
    print(error.code)
print(out.numpy()[0, 0])
"""


def test_a_program_that_exits_without_cleaning_up_pleases_strict_mode(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    env = {**os.environ, "ACLSIM_STRICT": "error", "ACLSIM_REPORT": str(report)}
    done = subprocess.run(
        [sys.executable, "-c", _STRICT.format(root=str(ROOT))],
        capture_output=True, text=True, timeout=120, env=env, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["161002", "8.0"]
    findings = [line for line in _lines(report) if '"finding"' in line or '"kind"' in line]
    assert findings == [], findings


_DAEMONS = """
import sys, threading, time
sys.path.insert(0, {root!r})
import numpy as np, aclnn_bindings
cann = aclnn_bindings.open(simulator=True)
a, out = cann.tensor(np.ones(64, np.float32)), cann.empty((64,))
started = threading.Barrier(4)
def work():
    started.wait()
    try:
        while True:
            cann.ops.aclnnAdd(a, a, 1.0, out)
    except aclnn_bindings.BindingError:  # CPython dies of daemon threads that print at its exit
        return
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
started.wait()
time.sleep(0.05)
"""


def test_daemon_threads_that_still_launch_do_not_break_the_exit() -> None:
    env = {**os.environ, "ACLSIM_STRICT": "error"}
    done = subprocess.run(
        [sys.executable, "-c", _DAEMONS.format(root=str(ROOT))],
        capture_output=True, text=True, timeout=120, env=env, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
