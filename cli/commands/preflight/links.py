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

# Copies of its own that a rank does while it waits for a message, to prove that the message does
# not come. A message takes four turns of its threads; if load lets one of them run between two
# copies with a chance of 1 in 5 only, fewer than four come to pass in 128 copies once in 10⁸ times.
COPIES: Final = 128
COPIES_A_LINE: Final = 16
_END_SECONDS: Final = 1.0  # for all ranks: a driver that holds one is not waited for


@dataclass(frozen=True, slots=True)
class Ring:
    """What a ring says: `wrong` is proven, `unjudged` says why nothing is known."""

    wrong: tuple[str, ...] = ()
    unjudged: str = ""


@dataclass(frozen=True, slots=True)
class Rank:
    """What came of one rank: its steps in order, the last line of its errors, and whether somebody
    else ended it."""

    device: str
    steps: Sequence[Mapping[str, Any]]
    error: str = ""
    killed: bool = False

    def has(self, step: str) -> bool:
        return any(line["step"] == step for line in self.steps)

    @property
    def last(self) -> Mapping[str, Any]:
        """Its last line: how far it is."""
        return self.steps[-1] if self.steps else {"step": "", "at": 0.0}

    def copies_since(self, moment: float) -> int:
        """Copies that it did after a moment, in the round in which it waits."""
        lines = [line for line in self.steps if line["step"] == "waits"
                 and line["round"] == self.last.get("round") and line["at"] > moment]  # fmt: skip
        return COPIES_A_LINE * max(len(lines) - 1, 0)  # the first one may have begun before it


def ring(devices: Sequence[str], until: float, home: str | None, simulator: bool) -> Ring:
    """Send and reduce between these devices, `until` a time of `time.monotonic` at most."""
    if len(devices) < 2:
        return Ring()
    with contextlib.ExitStack() as files:
        outputs = [
            (files.enter_context(tempfile.TemporaryFile()),
             files.enter_context(tempfile.TemporaryFile())) for _ in devices
        ]  # fmt: skip
        killed = _run(_started(devices, home, simulator, outputs), until)
        return judge([_rank(*row) for row in zip(devices, outputs, killed, strict=True)])


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


def _run(ranks: Sequence[subprocess.Popen[bytes]], until: float) -> list[bool]:
    """Wait for them, and end them; which of them a signal had ended before."""
    _wait(ranks, until)
    killed = [(process.poll() or 0) < 0 for process in ranks]
    for process in ranks:
        process.kill()
    _wait(ranks, time.monotonic() + _END_SECONDS)
    return killed


def _wait(ranks: Sequence[subprocess.Popen[bytes]], until: float) -> None:
    for process in ranks:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(until - time.monotonic(), 0.0))


def _rank(device: str, files: tuple[IO[bytes], IO[bytes]], killed: bool) -> Rank:
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read().decode("utf-8", "replace").strip().splitlines())
    steps = []
    for line in texts[0]:
        with contextlib.suppress(ValueError):  # cut off
            steps.append(json.loads(line))
    return Rank(device, steps, " ".join(texts[1][-1:])[:300], killed)


def judge(ranks: Sequence[Rank]) -> Ring:
    """What the steps of all ranks prove: wrong words and sums, and links over which no message
    comes although both ends have begun the same one and go on working."""
    wrong = [_placed(ranks, at, text) for at, rank in enumerate(ranks)
             for line in rank.steps for text in line["wrong"]]  # fmt: skip
    steps = ("waits", "failed", "link", "sum")
    # Links to a rank that the host ended fail as dead ones do.
    if all(rank.last["step"] in steps and not rank.killed for rank in ranks):
        pairs = [(ranks[at - 1], rank) for at, rank in enumerate(ranks)]
        dead = [f"link {a.device} → {b.device}: {how}" for a, b in pairs if (how := _dead(a, b))]
        if len(dead) == len(ranks) > 2:  # a link that works looks the same, as both its ends wait
            dead = [f"links between {', '.join(r.device for r in ranks)}: nothing comes through"]
        wrong += dead
    late = next((rank for rank in ranks if not rank.has("sum")), None)
    if late is None or wrong:
        return Ring(tuple(wrong))
    return Ring((), f"{late.device}: {late.error or 'no answer in time'}")


def _placed(ranks: Sequence[Rank], at: int, text: str) -> str:
    """`text` of a rank, after the link to it where it is about that."""
    if not text.startswith("rank "):
        return text
    return f"link {ranks[at - 1].device} → {ranks[at].device}: {text}"


def _dead(sender: Rank, receiver: Rank) -> str:
    """What proves that no message comes from one rank to the next; "" where nothing does."""
    a, b = sender.last, receiver.last
    if a["step"] == b["step"] == "failed" and a["round"] == b["round"]:
        return str(b["error"])
    if b["step"] != "waits":
        return ""
    if a["step"] == "waits" and a["round"] == b["round"]:
        since = max(a["since"], b["since"])
        copies = min(sender.copies_since(since), receiver.copies_since(since))
    elif a["step"] in ("link", "sum"):  # it has sent everything
        copies = receiver.copies_since(a["at"])
    else:
        return ""
    return "nothing comes through" if copies >= COPIES else ""
