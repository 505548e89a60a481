"""A failure of queued work stays with its device until a caller has seen it."""

import subprocess
import sys

import numpy as np
import pytest

import mindtorch

_PROGRAM = """
import gc
import mindtorch as torch
from mindtorch._backends.npu import runtime

x, bad = torch.arange(4.0).npu(), torch.tensor([99.0]).npu().long()  # the device alone knows it
torch.npu.synchronize()
torch_runtime = runtime.cann().runtime


def fail_on_a_stream():
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        x.index_select(0, bad)
    return stream


{action}
"""
ACTIONS = {
    "empty_cache": "x.index_select(0, bad); torch.npu.empty_cache()",
    "synchronize": "x.index_select(0, bad); torch.npu.synchronize()",
    "close": "x.index_select(0, bad); torch_runtime.close()",
    "exit": "x.index_select(0, bad)",
    "a stream that dies": (
        "fail_on_a_stream(); gc.collect(); torch.npu.synchronize(); print((x + 1).cpu())"
    ),
}


def run(action):
    program = _PROGRAM.format(action=action)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


@pytest.mark.parametrize("name", ACTIONS)
def test_a_failure_that_nobody_asked_about_is_told_at_the_next_occasion(name):
    done = run(ACTIONS[name])
    assert "507015" in done.stderr
    assert "tensor(" not in done.stdout


def test_what_was_seen_is_not_told_again():
    done = run(
        "try:\n    x.index_select(0, bad); torch.npu.empty_cache()\n"
        "except RuntimeError:\n    pass\nprint((x + 1).cpu().tolist())"
    )
    assert done.stdout.strip() == "[1.0, 2.0, 3.0, 4.0]", done.stderr
    assert "507015" not in done.stderr


def test_a_broken_device_is_restarted_without_a_new_process():
    done = run(
        "x.index_select(0, bad)\nother = torch.ones(2, device='npu:0')\n"
        "torch.npu.restart_device(0)\n"
        "for use in (lambda: x + 1, lambda: x.cpu()):\n"
        "    try:\n        use()\n"
        "    except RuntimeError as error:\n        assert 'closed' in str(error), error\n"
        "    else:\n        raise SystemExit('no error')\n"
        "print((torch.ones(2).npu() + 1).tolist())"
    )
    assert done.stdout.strip() == "[2.0, 2.0]", done.stderr
    assert done.stderr == ""


def test_the_error_of_queued_work_names_operator_shapes_and_index():
    done = run("x.index_select(0, bad); torch.npu.synchronize()")
    assert "aclnnIndexSelect" in done.stderr, done.stderr
    assert "[4]" in done.stderr, done.stderr
    assert "99" in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["from_numpy", "tensor", "as_tensor"])
def test_an_array_of_foreign_byte_order_is_refused_not_misread(name):
    with pytest.raises(ValueError, match="byte order"):
        getattr(mindtorch, name)(np.array([1.0, 2.0], ">f4"))


_LATE = """
import gc
import sys
import mindtorch as torch


gc.disable()


class Timed:
    def __init__(self):
        self.event = torch.npu.Event(enable_timing=True)
        torch.ones(2, device="npu")

    def __del__(self):
        self.event.record()
        sys.__stdout__.write("recorded\\n")
        sys.__stdout__.flush()


timed = Timed()
timed.itself = timed
"""


def test_an_event_may_be_recorded_while_python_ends():
    done = subprocess.run([sys.executable, "-c", _LATE], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("recorded\n", "")
