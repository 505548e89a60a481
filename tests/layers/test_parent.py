"""`run` is a good parent: signals reach the program once, its end is the command's."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import layered
import pytest

# Says which signals came, until HUP has; then ends as told.
LISTENER = """
import os, signal, sys, time
came = []
for name in ("TERM", "HUP", "INT", "QUIT", "USR1", "USR2", "WINCH", "CONT", "ALRM", "XCPU", "IO"):
    signal.signal(getattr(signal, "SIG" + name), lambda n, f: came.append(signal.Signals(n).name))
open(sys.argv[1], "w").write(str(os.getpid()))
end = time.monotonic() + 60
while "SIGHUP" not in came and time.monotonic() < end:
    time.sleep(0.01)
print(*sorted(set(came)), len(came), flush=True)
sys.exit(int(sys.argv[2]))
"""
WORDS = (sys.executable, "-m", "mindtorch_npu", "run", "--simulator")


def wait_for(path: Path) -> int:
    """The process id that the program wrote."""
    for _ in range(2000):
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.03)
    raise AssertionError(f"{path} was not written")


@contextmanager
def running(tmp_path: Path, *options: str, code: int = 7) -> Iterator[subprocess.Popen[str]]:
    ready = tmp_path / "ready"
    command = [*WORDS, *options, "--", sys.executable, "-c", LISTENER, str(ready), str(code)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=layered.variables() | {"TMPDIR": str(tmp_path)},
        preexec_fn=os.setpgrp,  # a group whose parent is in this session: stops are for such alone
    )  # fmt: skip
    try:
        wait_for(ready)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("layer", [(), ("--record", "calls.rec")])
def test_signals_reach_the_program_once(layer: tuple[str, ...], tmp_path: Path) -> None:
    options = [str(tmp_path / word) if word.endswith(".rec") else word for word in layer]
    with running(tmp_path, *options) as process:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1,
                       signal.SIGUSR2, signal.SIGWINCH, signal.SIGALRM, signal.SIGXCPU,
                       signal.SIGIO, signal.SIGHUP):  # fmt: skip
            process.send_signal(number)
            time.sleep(0.1)
        out, err = process.communicate(timeout=60)
    names = "SIGALRM SIGHUP SIGINT SIGIO SIGQUIT SIGTERM SIGUSR1 SIGUSR2 SIGWINCH SIGXCPU"
    assert out == f"{names} 10\n", err
    assert process.returncode == 7
    assert not list(tmp_path.glob("mindtorch-[!n]*"))


def test_a_job_stops_and_goes_on_as_one(tmp_path: Path) -> None:
    with running(tmp_path, "--record", str(tmp_path / "calls.rec")) as process:
        program = int((tmp_path / "ready").read_text())
        process.send_signal(signal.SIGTSTP)
        for one in (program, process.pid):
            assert becomes(one, "T"), one
        process.send_signal(signal.SIGCONT)
        for one in (program, process.pid):
            assert becomes(one, "S"), one
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=60)
    assert out.startswith("SIGCONT SIGHUP")


def becomes(pid: int, state: str) -> bool:
    for _ in range(200):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == state:
            return True
        time.sleep(0.03)
    return False


@pytest.mark.parametrize(
    ("number", "code"),
    [("INT", -signal.SIGINT), ("QUIT", -signal.SIGQUIT), ("TERM", 143), ("KILL", 137),
     ("SEGV", 139)],
)  # fmt: skip
def test_the_command_ends_as_its_program(number: str, code: int) -> None:
    outcome = layered.run("--", "sh", "-c", f"ulimit -c 0; kill -{number} $$")
    assert outcome.code == code, outcome.err


def test_ctrl_c_arrives_once(tmp_path: Path) -> None:
    """The terminal sends it to the whole job, and the command does not send it again."""
    ready = tmp_path / "ready"
    pid, terminal = pty.fork()
    if pid == 0:
        command = [*WORDS, "--", sys.executable, "-c", LISTENER, str(ready), "0"]
        os.execvpe(command[0], command, layered.variables())
    program = wait_for(ready)
    os.write(terminal, b"\x03")
    time.sleep(0.5)
    os.kill(program, signal.SIGHUP)
    shown = b""
    while b"\n" not in shown:  # an unbuffered program writes its line word by word
        shown += os.read(terminal, 4096)
    assert b"SIGHUP SIGINT 2" in shown
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)


def test_open_files_and_ignored_signals_are_passed_on(tmp_path: Path) -> None:
    file = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    command = [*WORDS, "--", "sh", "-c", f"echo here >/dev/fd/{file}; cat /proc/self/status"]
    done = subprocess.run(command, pass_fds=[file], capture_output=True, text=True, check=True,
                          env=layered.variables())  # fmt: skip
    os.close(file)
    assert (tmp_path / "log").read_text() == "here\n"
    masks = dict(line.split(":\t") for line in done.stdout.splitlines() if line.startswith("Sig"))
    assert int(masks["SigBlk"], 16) == 0
    assert int(masks["SigIgn"], 16) & (1 << signal.SIGPIPE - 1) == 0


def test_blocked_signals_stay_blocked() -> None:
    start = (
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [10, 15]); "
        "os.execv(sys.executable, [sys.executable, '-m', 'mindtorch_npu', *sys.argv[1:]])"
    )
    words = ("run", "--simulator", "--summary", "--", "grep", "SigBlk", "/proc/self/status")
    done = subprocess.run([sys.executable, "-c", start, *words], capture_output=True, text=True,
                          env=layered.variables(), check=False)  # fmt: skip
    assert int(done.stdout.split()[1], 16) == 1 << 9 | 1 << 14, done.stderr


def test_folders_of_a_killed_command_are_removed_by_the_next(tmp_path: Path) -> None:
    with running(tmp_path, "--summary") as process:
        (left,) = tmp_path.glob("mindtorch-run-*")
        os.kill(int((tmp_path / "ready").read_text()), signal.SIGKILL)
        process.kill()
        process.wait()
        assert left.exists()
    layered.run("--summary", "--", "true", TMPDIR=str(tmp_path))
    assert not list(tmp_path.glob("mindtorch-[!n]*"))


def test_a_program_that_is_not_there_leaves_the_older_recording(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    path.write_text("an older one")
    outcome = layered.record(path, str(tmp_path / "nonexistent"))
    assert outcome.code == 2
    assert "nonexistent: No such file or directory" in outcome.err
    assert (path.read_text(), os.listdir(tmp_path)) == ("an older one", ["calls.rec"])
