"""No arguments crash or hang the simulator: every operator is called at random in a child."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("fuzz_child.py")
ROOT = Path(__file__).resolve().parents[2]


def guarded(guard: str) -> dict[str, str]:
    """A child's environment: a sanitizer stays loaded, and leaves faults to the child."""
    return os.environ | {
        "PYTHONPATH": str(ROOT), "ACLSIM_GUARD": guard, "PYTORCH_NO_NPU_MEMORY_CACHING": "1",
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0",
        "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") + " handle_segv=0",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "guard"), [(1, "end"), pytest.param(2, "start", marks=pytest.mark.slow)]
)
def test_random_arguments_are_refused_or_run_but_touch_nothing_else(seed: int, guard: str) -> None:
    """Memory before or behind each device block faults; fuzz_kernels.py runs it for longer."""
    ours = guarded(guard)
    command = [sys.executable, str(CHILD), str(seed), "10"]
    child = subprocess.run(
        command, cwd=ROOT, env=ours, capture_output=True, text=True, timeout=3000, check=False
    )
    lines = child.stdout.splitlines() or ["nothing was called"]
    assert child.returncode == 0, f"died in {lines[-1]}: {child.stderr[-2000:]}"
    ran = int(lines[-1].removeprefix("done: ").split()[0])
    assert ran > 400, lines[-1]


PAST = """
import ctypes, aclnn_bindings
x = aclnn_bindings.open(simulator=True).empty((3,), "FLOAT")
byte = ctypes.c_ubyte.from_address
at = x.buffer.address
byte(at).value, byte(at + 11).value
print("inside", flush=True)
byte(at + {offset}).value
print("outside", flush=True)
"""


@pytest.mark.parametrize(("guard", "offset"), [("end", 12), ("start", -1)])
def test_one_byte_outside_of_a_guarded_block_ends_the_process(guard: str, offset: int) -> None:
    ours = guarded(guard)
    program = PAST.format(offset=offset)
    child = subprocess.run(
        [sys.executable, "-c", program], env=ours, capture_output=True, text=True, check=False
    )
    assert (child.returncode, child.stdout) == (-signal.SIGSEGV, "inside\n"), child.stderr
