"""What is reserved stays near what is in use, whatever the pattern."""

import subprocess
import sys

import robson

_IDLE = """
import mindtorch as torch

streams = [torch.npu.Stream() for _ in range(32)]
for stream in streams:
    with torch.npu.stream(stream):
        x = torch.ones(1 << 19, device="npu") + torch.ones(64, 1, device="npu").sum()
        stream.synchronize()
        assert x[0].item() == 65.0
        del x
print(torch.npu.memory_reserved() >> 20, end="")
"""

# Sizes that grow, the last one always freed first: no free segment fits the next.
_GROWING = """
import mindtorch as torch

held = []
for step in range(400):
    held.append(torch.empty((2500 + 70 * step) << 8, device="npu"))
    if len(held) > 4:
        held.pop(0)
    most = max(torch.npu.max_memory_allocated() * 2, 128 << 20)
    assert torch.npu.memory_reserved() <= most + (64 << 20), (step, torch.npu.memory_reserved())
kept = torch.full((3,), 7.0, device="npu")
assert kept.tolist() == [7.0] * 3
print(torch.npu.max_memory_reserved() >> 20, torch.npu.max_memory_allocated() >> 20, end="")
"""


def test_sizes_that_grow_hold_twice_what_was_in_use_and_no_more() -> None:
    done = subprocess.run([sys.executable, "-c", _GROWING], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    reserved, used = map(int, done.stdout.split())
    assert reserved <= 2 * used + 64


def test_robson_s_pattern_costs_what_it_must_and_little_more() -> None:
    for size, ratio, least in robson.pattern(32 << 20, 1 << 20):
        assert ratio <= least + 0.25, size


def test_streams_that_work_in_turn_hold_what_one_of_them_needs() -> None:
    done = subprocess.run([sys.executable, "-c", _IDLE], capture_output=True, text=True)
    assert done.stdout == "22", (done.stdout, done.stderr)
