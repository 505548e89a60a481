"""What takes long says how far it is, on a terminal alone."""

import os
import pty
import subprocess
import sys

import pytest

PROGRAM = """
from mindtorch_npu.progress import steps, waiting
with waiting("choosing cases"):
    pass
with steps("timing", 3) as begin:
    for name in ("add", "[mul]", "exp"):
        begin(name)
"""
COMMAND = (sys.executable, "-c", PROGRAM)


@pytest.mark.parametrize("columns", ["80", "120"])
def test_a_terminal_sees_what_runs_and_how_much_is_left(columns: str) -> None:
    primary, secondary = pty.openpty()
    environ = {**os.environ, "COLUMNS": columns, "TERM": "xterm"}
    subprocess.run(COMMAND, stderr=secondary, env=environ, check=True)
    os.close(secondary)
    text = b""
    while chunk := _rest(primary):
        text += chunk
    os.close(primary)
    for word in (b"choosing cases", b"timing exp", b"2/3"):
        assert word in text


def _rest(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed, and all is read
        return b""


def test_a_pipe_sees_none_of_it() -> None:
    assert subprocess.run(COMMAND, capture_output=True, check=True).stderr == b""
