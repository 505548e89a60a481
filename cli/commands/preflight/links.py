"""Owns the processes of a ring over a host's devices: started, waited for, and what they say."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

_END_SECONDS: Final = 1.0  # for all ranks: a driver that holds one is not waited for


@dataclass(frozen=True, slots=True)
class Ring:
    """What a ring says: `wrong` is proven, `unjudged` says why nothing is known."""

    wrong: tuple[str, ...] = ()
    unjudged: str = ""


@dataclass(frozen=True, slots=True)
class Rank:
    """What came of one rank: its steps in order, and the last line of its errors."""

    device: str
    steps: Sequence[Mapping[str, Any]]
    error: str = ""

    def has(self, step: str) -> bool:
        return any(line["step"] == step for line in self.steps)


def ring(devices: Sequence[str], until: float, home: str | None, simulator: bool) -> Ring:
    """Send and reduce between these devices, `until` a time of `time.monotonic` at most."""
    if len(devices) < 2:
        return Ring()
    with contextlib.ExitStack() as files:
        outputs = [
            (files.enter_context(tempfile.TemporaryFile()),
             files.enter_context(tempfile.TemporaryFile())) for _ in devices
        ]  # fmt: skip
        _run(_started(devices, home, simulator, outputs), until)
        return judge([_rank(*row) for row in zip(devices, outputs, strict=True)])


def _started(
    devices: Sequence[str], home: str | None, simulator: bool,
    outputs: Sequence[tuple[IO[bytes], IO[bytes]]],
) -> list[subprocess.Popen[bytes]]:  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
              "WORLD_SIZE": str(len(devices)),
              "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # fmt: skip
    command = [sys.executable, "-m", f"{__package__}.ring", home or "", str(int(simulator))]
    return [
        subprocess.Popen([*command, device], env={**common, "RANK": str(rank)},
                         stdout=output, stderr=errors)
        for rank, (device, (output, errors)) in enumerate(zip(devices, outputs, strict=True))
    ]  # fmt: skip


def _run(ranks: Sequence[subprocess.Popen[bytes]], until: float) -> None:
    _wait(ranks, until)
    for process in ranks:
        process.kill()
    _wait(ranks, time.monotonic() + _END_SECONDS)


def _wait(ranks: Sequence[subprocess.Popen[bytes]], until: float) -> None:
    for process in ranks:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(until - time.monotonic(), 0.0))


def _rank(device: str, files: tuple[IO[bytes], IO[bytes]]) -> Rank:
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read().decode("utf-8", "replace").strip().splitlines())
    steps = []
    for line in texts[0]:
        with contextlib.suppress(ValueError):  # cut off
            steps.append(json.loads(line))
    return Rank(device, steps, " ".join(texts[1][-1:])[:300])


def judge(ranks: Sequence[Rank]) -> Ring:
    """What the steps of all ranks prove. A rank over whose links nothing comes, while the others
    hear from theirs, is proven wrong; where none does, nothing is."""
    wrong = [text for rank in ranks for line in rank.steps for text in line["wrong"]]
    silent = [i for i, rank in enumerate(ranks) if not rank.has("link")]
    if silent and len(silent) < len(ranks) and all(rank.has("ready") for rank in ranks):
        wrong += [
            f"links {ranks[i - 1].device} → {ranks[i].device} → "
            f"{ranks[(i + 1) % len(ranks)].device}: nothing comes through" for i in silent
        ]  # fmt: skip
        return Ring(tuple(wrong))
    late = next((rank for rank in ranks if not rank.has("sum")), None)
    if late is None:
        return Ring(tuple(wrong))
    return Ring(tuple(wrong), f"{late.device}: {late.error or 'no answer in time'}")
