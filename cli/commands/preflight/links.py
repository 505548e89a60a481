"""Owns the processes of a ring over a host's devices: started, waited for, and what they say."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ring:
    """What a ring found: `wrong` is proven, `unjudged` says why nothing is known."""

    wrong: tuple[str, ...] = ()
    unjudged: str = ""


def ring(devices: int, seconds: float, home: str | None, simulator: bool) -> Ring:
    """Send and reduce between devices 0 to `devices` - 1, for so long at most."""
    if devices < 2:
        return Ring()
    deadline = time.monotonic() + seconds
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
              "WORLD_SIZE": str(devices),
              "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # fmt: skip
    command = [sys.executable, "-m", f"{__package__}.ring", home or "", str(int(simulator))]
    ranks = [
        subprocess.Popen(command, env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(devices)
    ]  # fmt: skip
    try:
        return _heard(ranks, deadline)
    finally:
        for process in ranks:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=5)


def _heard(ranks: list[subprocess.Popen[str]], deadline: float) -> Ring:
    wrong: list[str] = []
    for rank, process in enumerate(ranks):
        try:
            out, errors = process.communicate(timeout=max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            return Ring(tuple(wrong), f"npu:{rank} said nothing of the ring in time")
        try:
            wrong += json.loads(out.splitlines()[-1])
        except (IndexError, ValueError):
            last = " ".join(errors.strip().splitlines()[-1:]) or f"exit code {process.returncode}"
            return Ring(tuple(wrong), f"npu:{rank}: {last[:300]}")
    return Ring(tuple(wrong))
